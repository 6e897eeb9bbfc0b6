//! Tests for the fixes of findings.

use super::*;
use crate::check::test_notation::written_out;
use crate::check::{Finding, Lint, Safety, check};

fn fixed(file: &str, most: Safety) -> String {
    let robots = RobotsTxt::parse(file.as_bytes());
    let fixed = fix(&robots, &Options::new(), most);
    String::from_utf8(fixed.robots.bytes().to_vec()).expect("text")
}

/// Returns the code of each finding in a file, with the safety of its fix.
fn safeties(file: &[u8], options: &Options) -> Vec<(&'static str, Option<Safety>)> {
    let robots = RobotsTxt::parse(file);
    let report = check(&robots, options);
    let fixes = Fixes::of(&robots, &report, options);
    let safety = |(at, finding): (usize, &Finding)| (finding.code, fixes.get(at).map(|fix| fix.safety));
    report.findings.iter().enumerate().map(safety).collect()
}

#[test]
fn every_lint_whose_bad_example_can_be_fixed_corrects_it() {
    for lint in Lint::all().iter().filter(|lint| lint.fix.is_some()) {
        let (options, file) = (lint.example_options(), lint.bad.bytes().into_owned());
        let fixed = fix(&RobotsTxt::parse(file), &options, Safety::Unsafe);
        let left = fixed.report.findings.iter().filter(|finding| finding.code == lint.code).count();
        // The examples of these lints have no fix: they lack the name of the site or crawler.
        if ["sitemap-not-absolute", "license-value", "cut-product-token"].contains(&lint.code) {
            assert_eq!((left, fixed.applied.len()), (1, 0), "{}", lint.code);
            continue;
        }
        let text = String::from_utf8_lossy(fixed.robots.bytes()).into_owned();
        assert_eq!(left, 0, "{}: {text}", lint.code);
        assert!(fixed.applied.iter().any(|(finding, _)| finding.code == lint.code), "{}", lint.code);
    }
}

#[test]
fn only_the_fixes_of_the_listed_lints_are_safe_for_their_examples() {
    let usual = |lint: &Lint| {
        let found = safeties(&lint.bad.bytes(), &lint.example_options());
        found.into_iter().find(|(code, _)| *code == lint.code).and_then(|(_, safety)| safety)
    };
    let of = |wanted: Safety| -> Vec<&str> {
        Lint::all().iter().filter(|lint| usual(lint) == Some(wanted)).map(|lint| lint.code).collect()
    };
    // The example of `utf-16` contains no rule, so converting it to UTF-8 changes no verdict.
    let want = "byte-order-mark utf-16 cr-line-end not-a-field missing-colon misspelled-directive unknown-lint \
        duplicate-group blank-line-in-group hash-in-path redundant-star unescaped-non-ascii duplicate-rule \
        shadowed-rule host-repeated crawl-delay-zero";
    assert_eq!(of(Safety::Safe).join(" "), want);
    for never in ["secret-path", "whole-site-disallowed", "search-engine-refused"] {
        assert!(Lint::of_code(never).is_some_and(|lint| lint.fix.is_none()), "{never}");
    }
}

#[test]
fn a_usually_safe_fix_is_unsafe_if_it_would_change_a_verdict() {
    // The two patterns are equally long. Without the final `*`, another rule would decide.
    let file = "User-agent: *\nDisallow: /private/*\nAllow: /*/opened\n";
    assert_eq!(safeties(file.as_bytes(), &Options::new()), [("redundant-star", Some(Safety::Unsafe))]);
    assert_eq!(fixed(file, Safety::Safe), file);
    // The second group for `a` has a delay, and is also for another crawler.
    let file = "User-agent: a\nDisallow: /x\n\nUser-agent: a\nUser-agent: b\nCrawl-delay: 5\nDisallow: /y\n";
    assert!(safeties(file.as_bytes(), &Options::new()).iter().all(|(_, safety)| *safety != Some(Safety::Safe)));
    // The reference parser does not decode the escape, so the fix changes its verdict.
    let file = "User-agent: *\nDisallow: /%7Euser/\n";
    assert_eq!(safeties(file.as_bytes(), &Options::new()), [("needless-escape", Some(Safety::Unsafe))]);
    let file = "User-agent: *\nDisallow: /%7Euser/\nDisallow: /~user/\n";
    assert_eq!(fixed(file, Safety::Safe), file);
}

#[test]
fn safe_fixes_correct_a_file_in_one_run_and_keep_its_comments() {
    for (file, want) in [
        (
            "\u{feff}User-agent: *\r\n\r\nDissallow: /a # why\r\nDisallow /b\r\nD: /a\r\n",
            "U: *\r\nD: /a # why\r\nD: /b\r\n",
        ),
        ("U: *\rD: /a\r", "U: *\nD: /a\n"),
        ("U: *\nD: /a\n\nD: /b\n# all\n\nD: /c\n", "U: *\nD: /a\n#\nD: /b\n# all\nD: /c\n"),
        ("U: a\nD: /a\n\n# more\nU: a # too\nD: /b\n", "U: a\nD: /a\n# more\n# too\nD: /b\n"),
        (
            "U: a\nD: /a\n\nU: b\nD: /b\n\n# more\nU: a\nCrawl-delay: 5\nD: /c",
            "U: a\nD: /a\n# more\nCrawl-delay: 5\nD: /c\n\nU: b\nD: /b\n\n",
        ),
        ("U: a\nU: A\nD: /a\n", "U: a\nD: /a\n"),
        ("U: *\nKeep out\nD: /a\n", "U: *\n# Keep out\nD: /a\n"),
        ("U: *\nD: /a#b\n", "U: *\nD: /a #b\n"),
        ("U: Googlebot/2.1\nD: /a\n", "U: Googlebot\nD: /a\n"),
        ("U: a\nUser-agent:\nD: /a\n", "U: a\nD: /a\n"),
    ] {
        let (file, want) = (&*written_out(file), &*written_out(want));
        assert_eq!(fixed(file, Safety::Safe), want, "{file:?}");
        assert_eq!(fixed(want, Safety::Safe), want, "{file:?}");
    }
}

#[test]
fn unsafe_fixes_are_applied_if_they_are_requested() {
    for (file, want) in [
        ("U: *\nD: p\n", "U: *\nD: /p\n"),
        ("D: /p\nD: /b\n", "U: *\nD: /p\nD: /b\n"),
        ("U: *\r\nD: /p /b\r\nD: /b c\r\n", "U: *\r\nD: /p\r\nD: /b\r\nD: /b%20c\r\n"),
        ("U: *\nA: /p\nD: /p\n", "U: *\nA: /p\n"),
        ("User-agent:\nD: /p\n", "U: *\nD: /p\n"),
        ("User-agent:\u{a0}*\nD: /p\n", "User-agent:*\nD: /p\n"),
        ("U: *\nDisallow /p:b\n", "U: *\nD: /p:b\n"),
        ("U: *\nD: /*.pdf$*\n", "U: *\nD: /*.pdf$\n"),
        ("U: *\nD: /*.pdf$/\n", "U: *\nD: /*.pdf$\n"),
        ("U: *\nD: /*.php$?a=1\n", "U: *\nD: /*.php$\n"),
        // `$` may be a folder with this name, or the beginning of a name.
        ("U: *\nD: /$/a\n", "U: *\nD: /$/a\n"),
        ("U: *\nD: /$metadata\n", "U: *\nD: /%24metadata\n"),
        ("U: *\nD: /p$b$\n", "U: *\nD: /p%24b$\n"),
        ("U: bingbot\nCrawl-delay: 5\nU: b\nD: /p\n", "U: bingbot\nU: b\nCrawl-delay: 5\nD: /p\n"),
        (
            "U: *\nD: /p/\nSitemap: https://a.test/p/s.xml\nSitemap: /t.xml\n",
            "U: *\nD: /p/\nA: /p/s.xml\nSitemap: https://a.test/p/s.xml\nSitemap: https://a.test/t.xml\n",
        ),
        (
            "U: *\nContent-Usage: /a/ train-ai: no, search=YES\nContent-Signal: ai-train=n\nD: /p\n",
            "U: *\nContent-Usage: /a/ train-ai=n, search=y\nContent-Signal: ai-train=no\nD: /p\n",
        ),
        (
            "U: *\nContent-Signal: search=1, use: Reference\nD: /p\n",
            "U: *\nContent-Signal: search=yes, use=reference\nD: /p\n",
        ),
        ("U: *\nContent-Signal: use=yes\nD: /p\n", "U: *\nContent-Signal: use=yes\nD: /p\n"),
        ("U: b\nCrawl-delay: 10 sec\nA: /\n", "U: b\nCrawl-delay: 10\nA: /\n"),
        ("U: b\nRequest-rate: 2/1m\nA: /\n", "U: b\nCrawl-delay: 30\nA: /\n"),
        ("U: *\nD: .pdf$\n", "U: *\nD: /*.pdf$\n"),
        ("U: *\nD: ^/foo.*$\n", "U: *\nD: /foo\n"),
        ("U: *\nD: \\windows\\\n", "U: *\nD: /windows/\n"),
        ("U: *\nD: www.shop.example/old/\n", "U: *\nD: /old/\n"),
        ("U: *\nD: /cart, /b,/c\n", "U: *\nD: /cart\nD: /b\nD: /c\n"),
        ("U: *\nD: /*.a$ /*.b$\n", "U: *\nD: /*.a$\nD: /*.b$\n"),
        ("U: *\nD: \"/c\", '/b' /p\n", "U: *\nD: /c\nD: /b\nD: /p\n"),
        ("U: *\nD: \u{201e}/p\u{e9}\u{201c}\n", "U: *\nD: /p%C3%A9\n"),
        ("U: *\nD: \u{feff}/p\n", "U: *\nD: /p\n"),
        ("U: *\nD: \u{200b}\nD: /p\n", "U: *\nD: \nD: /p\n"),
        ("U: *\nD: /p/\u{200b}\u{e9}\n", "U: *\nD: /p/%C3%A9\n"),
        (
            "Sitemap: https://shop.example/s.xml\nU: *\nD: /www.shop.example/cart\n",
            "Sitemap: https://shop.example/s.xml\nU: *\nD: /cart\n",
        ),
    ] {
        let (file, want) = (&*written_out(file), written_out(want));
        assert_eq!(fixed(file, Safety::Unsafe), want, "{file:?}");
    }
    let wide: Vec<u8> =
        "\u{feff}User-agent: *\r\nDisallow: /\u{e9}\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let fixed = fix(&RobotsTxt::parse(wide), &Options::new(), Safety::Unsafe);
    assert_eq!(&**fixed.robots.bytes(), b"User-agent: *\r\nDisallow: /%C3%A9\r\n");
}

#[test]
fn an_ambiguous_value_is_reported_but_not_changed() {
    let values = ".x | ?sort= | &page= | page=2 | pdf$ | all | none | shop.example/old/ | www.shop.example | \
        ^/(a|b) | C:\\inetpub\\ | /a/ for staff | /a and /b | /a /b c | /a, b | /a,/ | a/, b/ | \
        ftp://shop.example/a | https://shop.example/ | /a\u{a0}b | /shop.example/a | /a/:id | /?b=9";
    for value in values.split(" | ") {
        let file = format!("User-agent: *\nDisallow: {value}\n");
        assert!(!safeties(file.as_bytes(), &Options::new()).is_empty(), "{value}");
        assert_eq!(fixed(&file, Safety::Unsafe), file);
    }
    let file = "Sitemap: https://shop.example/s.xml\nUser-agent: *\nDisallow: https://other.example/a\n";
    assert_eq!(fixed(file, Safety::Unsafe), file);
}

#[test]
fn a_fix_is_not_applied_if_an_allow_comment_would_apply_to_another_line() {
    let file = "User-agent: *\nDisallow: /p\n# robots-check: allow(secret-path)\nDisallow: /p\nDisallow: /backup/\n";
    assert_eq!(fixed(file, Safety::Unsafe), file);
}

#[test]
fn a_file_with_hundreds_of_problems_has_no_more_safe_fixes_after_one_run() {
    let file =
        ["User-agent: *\n", &"rubbish line here\nDisallow: /p\nDisallow: b\nDisallow: /c*\n".repeat(200)].concat();
    let robots = RobotsTxt::parse(file.as_bytes());
    let fixed = fix(&robots, &Options::new(), Safety::Safe);
    assert!(fixed.applied.len() > 330, "{}", fixed.applied.len());
    assert_eq!(fix(&fixed.robots, &Options::new(), Safety::Safe).applied, []);
}

#[test]
fn an_unsafe_fix_removes_quotes_and_separators_of_a_spreadsheet() {
    for (before, after) in [
        ("User-agent: *\nDisallow: \"/cart\"\n", "User-agent: *\nDisallow: /cart\n"),
        ("User-agent: *\nDisallow: 'cart' # c\n", "User-agent: *\nDisallow: /cart # c\n"),
        ("\"User-agent: *\"\n\"Disallow: /cart\"\n", "User-agent: *\nDisallow: /cart\n"),
        ("\"User-agent: *\",\n\"Disallow: /cart\";;\n", "User-agent: *\nDisallow: /cart\n"),
        (
            "User-agent;*\nDisallow;/cart\nSitemap: https://a.example/s.xml\n",
            "User-agent: *\nDisallow: /cart\nSitemap: https://a.example/s.xml\n",
        ),
        ("User-agent: \u{201c}Googlebot\u{201d}\nDisallow: /cart\n", "User-agent: Googlebot\nDisallow: /cart\n"),
        ("User-agent: \"*\"\nDisallow: /cart\n", "User-agent: *\nDisallow: /cart\n"),
    ] {
        assert_eq!(fixed(before, Safety::Safe), before, "it changes what the file does");
        assert_eq!(fixed(before, Safety::Unsafe), after);
    }
}

#[test]
fn a_file_that_is_not_a_robots_txt_is_not_changed() {
    for file in ["django==4.2\nrequests>=2.31\n# pinned\nflask\n", "name = shop\nurl: x\n", "{\n  \"a\": 1\n}\n"] {
        assert_eq!(fixed(file, Safety::Unsafe), file);
        assert!(safeties(file.as_bytes(), &Options::new()).iter().all(|(_, safety)| safety.is_none()), "{file}");
    }
}

#[test]
fn no_fix_opens_a_site_that_may_have_lost_its_rules() {
    let joined = "User-agent: *\nDisallow: /x\nDisallow: /y\n\nUser-agent: b\nDisallow: /\n";
    let mut files: Vec<String> =
        [" ", "\\n", "<br>", "\u{2028}", "\u{85}", ""].iter().map(|end| joined.replace('\n', end)).collect();
    files.push("User-agent: *\nDisallow: /x\\nDisallow: /y\n".to_owned());
    for file in [
        "",
        "User-agent: *",
        "User-agent: *\n",
        "User-agent: *\nDisallow: /x\nUser-agent: b",
        "User-agent: *\nDisallow\n",
    ] {
        files.push(file.to_owned());
    }
    for end in ["Di", "Disallow", "Allow", "User-agent"] {
        files.push(format!("User-agent: *\nDisallow: /x\n{end}"));
    }
    for file in files {
        assert_eq!(fixed(&file, Safety::Unsafe), file);
    }
}

/// A byte order mark inside a file hides a user-agent line, so that its rules join the group above.
#[test]
fn an_invisible_character_is_removed_safely_only_if_it_hides_no_user_agent_line() {
    for mark in ["\u{feff}", "\u{feff}\u{feff}", "\u{200b}", "\u{a0}"] {
        for (shared, own) in [
            ("User-agent: GPTBot\nDisallow: /\n\n", "User-agent: *\nDisallow: /private/\nAllow: /\n"),
            ("User-agent: GPTBot\nDisallow: /private/\n\n", "User-agent: *\nDisallow: /private/\nDisallow: /x\n"),
            ("User-agent: GPTBot\nDisallow: /\n\n", "User-agent: *\nDisallow: /private/\nDisallow: /x\n"),
        ] {
            let file = format!("{shared}{mark}{own}");
            assert_eq!(fixed(&file, Safety::Safe), file);
            assert_eq!(fixed(&file, Safety::Unsafe), format!("{shared}{own}"));
        }
    }
    let hidden = "User-agent: CCBot\n\u{feff}User-agent: bingbot\nDisallow: /private/\n";
    for file in [
        // After the fix, the rules for `*` also apply to bingbot.
        format!("User-agent: *\nAllow: /\n{hidden}\u{feff}User-agent: bingbot\nUser-agent: *\nDisallow: /x\n"),
        // The moved lines would include the user-agent line for `*`.
        "User-agent: CCBot\nDisallow: /a/\nUser-agent: *\nDisallow: /b/\nUser-agent: CCBot\nDisallow: /\n\
         \u{feff}User-agent: *\nUser-agent: GPTBot\nDisallow: /x\n"
            .to_owned(),
    ] {
        assert_eq!(fixed(&file, Safety::Safe), file);
    }
    // A byte order mark that hides nothing is only a note, and its fix is safe.
    for own in ["# own\nUser-agent: *\nDisallow: /private/\n", "\nUser-agent: *\nDisallow: /private/\n"] {
        let shared = "User-agent: GPTBot\nDisallow: /private/\n\n";
        let file = format!("{shared}\u{feff}{own}");
        assert_eq!(safeties(file.as_bytes(), &Options::new()), [("byte-order-mark", Some(Safety::Safe))]);
        assert_eq!(fixed(&file, Safety::Safe), format!("{shared}{own}"));
    }
}
