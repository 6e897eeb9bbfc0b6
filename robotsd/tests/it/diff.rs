//! Tests `diff`, which is run before a change is published.

use crate::harness::*;

const OLD: &str = "User-agent: *\nDisallow: /cart\n";
const NEW: &str = "User-agent: *\nDisallow: /cart\nDisallow: /*?page=\n\nUser-agent: GPTBot\nDisallow: /\n";

#[test]
fn diff_lists_the_effect_of_a_change_by_crawler() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    let text = folder.run(["diff", "old.txt", "new.txt"]).succeeded();
    assert!(text.starts_with("Googlebot, bingbot, "), "{text}");
    let parts = [
        "  - disallowed now  /?page=  new.txt:3: disallow /*?page=; was no rule\n",
        "\nGPTBot\n  - disallowed now  the whole site  new.txt:6: disallow /; was no rule\n",
    ];
    assert_has(&text, &parts);
    let last = text.lines().last().unwrap();
    let (rules, rest) = last.split_once(" for ").unwrap();
    assert_eq!(rules, "2 rules changed", "{last}");
    let known: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(known > 100 && known <= crawlers_of_the_registry(), "each crawler counts once: {last}");
    let want = " crawlers and every other crawler that is named in neither file: the whole site is disallowed now for \
                1 crawler, 1 part of the site is disallowed now";
    assert!(last.ends_with(want), "{last}");
    let text = folder.run(["diff", "new.txt", "old.txt"]).out;
    assert!(text.lines().last().unwrap().ends_with("1 part of the site is allowed now"), "{text}");
    let output = folder.run(["diff", "old.txt", "old.txt"]);
    assert_eq!(output.out, "nothing changes for any crawler\n");
}

#[test]
fn a_crawler_that_keeps_its_access_through_another_group_is_reported() {
    let folder = folder(&[
        ("open", "User-agent: *\nDisallow:\n"),
        ("shut", "User-agent: *\nDisallow: /\n\nUser-agent: Googlebot\nDisallow:\n\nUser-agent: bingbot\nDisallow:\n"),
    ]);
    let text = folder.run(["diff", "open", "shut"]).succeeded();
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("unchanged: Googlebot, and ") && last.contains("; bingbot, and "), "{last}");
    assert_has(last, &["Applebot", " that obey its group"]);
    let comment = folder.run(["diff", "open", "shut", "--format", "markdown"]).succeeded();
    assert_has(comment, &["\nunchanged: `Googlebot`, and `"]);
    let parts = ["\"spared\":[[{\"name\":\"Googlebot\""];
    assert_has(folder.run(["diff", "open", "shut", "--format", "json"]).succeeded(), &parts);
    let error = folder.run(["diff", "HEAD:robots.txt", "shut"]).failed(2);
    assert_has(
        error,
        &[
            "to read a version in git, run `git show HEAD:robots.txt`, pipe its output into this command, and write \"-\" as the file",
        ],
    );
}

fn crawlers_of_the_registry() -> usize {
    tower_robots::agent::Registry::builtin().crawlers().len()
}

#[test]
fn diff_exits_with_status_1_if_a_change_is_forbidden() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    for (guards, code) in [
        ("Googlebot:/products/ | GPTBot:/ | Googlebot:https://shop.test/products/ | GPTBot: *", 1),
        ("category:ai-training:/ | operator:OpenAI:* | index:/products/", 1),
        ("Googlebot:/cart | category:monitoring:/cart", 0),
        ("Googlebot | Googlebot:products/ | category:ai-training | category:ai:/ | :/", 2),
    ] {
        for guard in guards.split(" | ") {
            let output = folder.run(["diff", "old.txt", "new.txt", "--forbid", guard]);
            assert_eq!(output.code, Some(code), "{guard}");
        }
    }
    let error = folder.run(["diff", "old.txt", "missing.txt"]).failed(2);
    assert!(error.starts_with("robotsd: missing.txt: "));
}

#[test]
fn diff_lists_changes_and_breaches_as_json() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    let said = folder.run(["diff", "--format", "json", "--forbid", "GPTBot:/x", "old.txt", "new.txt"]).json();
    let change = &said["effects"][0]["changes"][0];
    let found = (&change["path"], &change["access"], &change["after"]["line"]);
    assert_eq!(found, (&"/?page=".into(), &"disallow".into(), &3.into()));
    assert_eq!(said["breaches"][0]["guard"]["crawler"], "GPTBot");
}

const LISTED: &str =
    "User-agent: *\nDisallow: /cart\nDisallow: /news/\nDisallow: /2026/\nDisallow: /*?\nDisallow: /assets/\n";

fn sitemap(pages: impl Iterator<Item = String>) -> String {
    let urls: String = pages.map(|page| format!("<url><loc>https://a.example{page}</loc></url>")).collect();
    format!("<urlset>{urls}</urlset>")
}

fn log_line(target: &str, agent: &str) -> String {
    format!("192.0.2.1 - - [22/Nov/2026:10:00:00 +0000] \"GET {target} HTTP/1.1\" 200 12 \"-\" \"{agent}\"\n")
}

#[test]
fn diff_measures_losses_of_search_engines_with_sitemaps_lists_and_logs() {
    let pages =
        (0..120).map(|number| format!("/news/{number}")).chain((0..879).map(|number| format!("/shop/{number}")));
    let googlebot = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
    let log: String = (0..100)
        .map(|number| log_line(&format!("{}{number}", if number < 25 { "/news/" } else { "/shop/" }), googlebot))
        .chain((0..50).map(|_| log_line("/news/1", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Firefox/140.0")))
        .collect();
    let folder = folder(&[
        ("old.txt", OLD),
        ("new.txt", LISTED),
        ("sitemap.xml", &sitemap(pages.chain(["/?a=1&amp;b=2".to_owned()]))),
        ("urls.txt", "# what matters\n/\n/news/\nhttps://a.example/2026/x\n/cart\n"),
        ("access.log", &log),
    ]);
    let diff =
        |arguments: &[&str]| run(folder.robotsd().args(["diff", "old.txt", "new.txt"]).args(arguments)).succeeded();
    let lists = ["--sitemap", "sitemap.xml", "--urls", "urls.txt", "--log", "access.log"];
    let text = diff(&lists);
    let line =
        |of: &str| text.lines().find(|line| line.contains(of)).unwrap_or_else(|| panic!("{of}: {text}")).to_owned();
    let (crawlers, rest) =
        line("of the sitemaps").split_once(" more search engines ").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    assert!(crawlers.starts_with("Googlebot, bingbot, "), "{crawlers}");
    assert_eq!(rest, "lose 121 of 1,000 pages of the sitemaps (12 %)");
    let want = " lose 2 of 3 pages of urls.txt (67 %)";
    assert!(line("of urls.txt").ends_with(want), "the cart was disallowed before: {text}");
    let expected = "Googlebot loses 25 of 100 pages that it requested in the log, and 25 % of its requests (25 of 100)";
    assert_eq!(line("in the log"), expected);
    assert_has(&text, &["\n  new.txt:3: disallow /news/: 120 pages\n  new.txt:5: disallow /*?: 1 page\n"]);
    assert!(text.contains("\n    /?a=1&b=2  (line 5)\n"), "each rule has an example: {text}");
    let value: Value = serde_json::from_str(&diff(&[&lists[..], &["--format", "json"]].concat())).unwrap();
    let losses = value["pages"]["losses"].as_array().unwrap();
    let of_log = losses.iter().find(|loss| loss["requests"].is_object()).unwrap();
    let found = (&of_log["crawlers"][0], &of_log["requests"]["lost"], &of_log["requests"]["all"]);
    assert_eq!(found, (&"Googlebot".into(), &25.into(), &100.into()));
    assert_eq!(losses.iter().find(|loss| loss["of"] == "of the sitemaps").unwrap()["lost"], 121);
    assert!(value["effects"].as_array().is_some_and(|effects| !effects.is_empty()));
    let same = run(folder.robotsd().args(["diff", "old.txt", "old.txt"]).args(lists));
    let same = same.out;
    assert_has(&same, &["search engines lose none of the 1,000 pages of the sitemaps\n"]);
}

/// If a page were misread as another one, its loss would never be reported.
#[test]
fn a_sitemap_that_is_not_utf_8_is_refused_with_a_clear_message() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", "User-agent: *\nDisallow: /caf%C3%A9\nDisallow: /%D1%88\n")]);
    let utf8 = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    let document = |declaration: &str, page: &[u8]| {
        let loc = [b"<urlset><url><loc>https://shop.example/", page, b"</loc></url></urlset>"].concat();
        [declaration.as_bytes(), &loc[..]].concat()
    };
    let diff = || folder.run(["diff", "old.txt", "new.txt", "--sitemap", "s.xml"]);
    // `pages::sitemap` tests the other errors.
    folder.write("s.xml", document(&utf8.replace("UTF-8", "ISO-8859-1"), b"caf\xE9"));
    let output = diff().ends_with(2);
    assert_eq!(output.out, "");
    assert_has(output.error, &["a location is in the encoding \"ISO-8859-1\": write the sitemap as UTF-8"]);
    folder.write("s.xml", document(utf8, "caf\u{e9}".as_bytes()));
    assert_has(diff().succeeded(), &["of the sitemaps (100 %)"]);
}

#[test]
fn diff_exits_with_status_1_if_a_loss_exceeds_max_loss() {
    let pages: String = (0..199).map(|number| format!("/p/{number}\n")).collect();
    let log = |path: &str| {
        let agent = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
        format!("192.0.2.7 - - [01/Nov/2026:03:00:00 +0000] \"GET {path} HTTP/1.1\" 200 1 \"-\" \"{agent}\"\n")
    };
    // Requests for robots.txt itself and for pages that the old file disallows cannot be lost, so
    // they must not affect the percentages.
    let others = log("/robots.txt").repeat(50) + &log("/cart").repeat(900);
    let requests = [log("/p/1").repeat(97), log("/news/").repeat(3), others].concat();
    let new = "User-agent: *\nDisallow: /cart\nDisallow: /news/\n\nUser-agent: GPTBot\nDisallow: /\n";
    let folder = folder(&[
        ("old.txt", OLD),
        ("new.txt", new),
        ("pages.txt", &format!("{pages}/news/\n")),
        ("none.txt", "# none\n"),
        ("access.log", &requests),
        ("people.log", &log("/p/1").replace("bingbot", "Firefox").replace("compatible; ", "")),
    ]);
    for (options, code, said) in [
        (&["--urls", "pages.txt", "--max-loss", "0.5%"][..], 0, ""),
        (
            &["--urls", "pages.txt", "--max-loss", "0.4 %"],
            1,
            "pages of pages.txt (0.5 %); --max-loss permits at most 0.4 %",
        ),
        (&["--log", "access.log", "--max-loss", "3%"], 0, ""),
        (
            &["--log", "access.log", "--max-loss", "2%"],
            1,
            "3.0 % of its requests (3 of 100); --max-loss permits at most 2 %",
        ),
        (&["--max-loss", "2%"], 2, "--max-loss: there are no pages to measure"),
        (&["--log", "people.log", "--max-loss", "2%"], 2, "--max-loss: no request in the logs is from a search engine"),
        (&["--urls", "none.txt", "--max-loss", "2%"], 2, "none.txt: the list contains no pages"),
        (&["--urls", "pages.txt", "--max-loss", "2"], 2, "write a percentage from 0% to 100%, such as 1%"),
    ] {
        let ended = run(folder.robotsd().args(["diff", "old.txt", "new.txt"]).args(options));
        assert_eq!(ended.code, Some(code), "{options:?}: {ended:?}");
        assert_has([ended.out, ended.error].concat(), &[said]);
    }
}

#[test]
fn the_markdown_comment_of_diff_is_bounded_and_quotes_the_file_only_in_code_spans() {
    let rules: String =
        (0..1000).map(|number| format!("Disallow: /{number}/<img src=x>|@team`{}\n", "x".repeat(200))).collect();
    let new = format!("User-agent: *\n{rules}Disallow: /news/\n");
    let pages: String = (0..500).map(|number| format!("/news/|@team`{number}\n")).collect();
    let folder = folder(&[("old.txt", OLD), ("new.txt", &new), ("urls.txt", &pages)]);
    let text = folder.run(["diff", "old.txt", "new.txt", "--urls", "urls.txt", "--format", "markdown"]).succeeded();
    assert!(text.len() < 65_536, "{}", text.len());
    assert!(text.starts_with("### `new.txt`: what changes for crawlers\n\n**`Googlebot`, `bingbot`, "), "{text}");
    assert_has(&text, &["| line 1002: `/news/` | 500 |\n"]);
    assert_eq!(text.matches("<details>").count(), text.matches("</details>").count());
    assert_has(&text, &["more rows: run `robotsd diff` for all"]);
    for line in text.lines() {
        // Text from the file may appear only in code spans.
        let outside: String = line.split("``").step_by(2).flat_map(|part| part.split('`').step_by(2)).collect();
        assert!(!outside.contains('@') && !outside.contains("<img"), "{line}");
    }
}
