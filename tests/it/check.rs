//! Tests of the check through the public API: whole files, real files, and arbitrary bytes.

use std::io::BufRead;
use std::path::Path;

use base64::Engine;
use proptest::prelude::*;
use tower_robots::check::{Finding, Lint, Options, Report, Severity, check};
use tower_robots::rules::RobotsTxt;

fn checked(file: &[u8]) -> Report {
    check(&RobotsTxt::parse(file), &Options::new())
}

/// Returns the findings as `line:column code`.
fn found(file: &[u8]) -> Vec<String> {
    let place = |finding: &Finding| format!("{}:{} {}", finding.line, finding.column, finding.code);
    checked(file).findings.iter().map(place).collect()
}

#[test]
fn ordinary_files_have_no_findings() {
    for file in [
        "User-agent: *\nDisallow:\n",
        "# Everything is allowed.\n",
        "User-agent: *\nDisallow: /private/ # not yet\n\nSitemap: https://example.com/sitemap.xml\n",
        "User-agent: Googlebot\nUser-agent: bingbot\nAllow: /\nDisallow: /*?sort=\nCrawl-delay: 5\n\nUser-agent: *\n\
         Disallow: /cgi-bin/\nDisallow: *.pdf$\n",
        "User-agent: Yandex\nClean-param: ref /articles/\nHost: example.com\nDisallow: /tmp/\n",
        "Content-Signal: search=yes, ai-train=no\nUser-agent: *\nContent-Usage: ai=n\nAllow: /\n",
        "License: https://example.com/license.xml\r\nUser-agent: *\r\nDisallow: /x\r\n",
        "user-agent: *\ndisallow: /caf%C3%A9/\n",
        "User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nCrawl-delay: 5\n",
    ] {
        assert_eq!(found(file.as_bytes()), [""; 0], "{file}");
    }
}

#[test]
fn findings_have_the_right_position() {
    let table: [(&[u8], &[&str]); 12] = [
        (b"", &["1:1 empty-file"]),
        (b"Disallow: /x\nUser-agent: *\nDisallow: /x\n", &["1:1 rule-before-group"]),
        (b"User-agent: *\n  Disalllow: /x\nDisallow: /y\n", &["2:3 unknown-directive"]),
        (
            b"Useragent: *\rDissallow: /x\r",
            &["1:1 misspelled-directive", "1:13 cr-line-end", "2:1 misspelled-directive"],
        ),
        (b"User-agent: *\r\n\r\nDisallow /x\r\n", &["3:1 missing-colon", "3:1 blank-line-in-group"]),
        (b"User-agent: *\nDisallow: x\nAllow:\ty # z\n", &["2:11 path-without-slash", "3:8 path-without-slash"]),
        (b"\xEF\xBB\xBFUser-agent: GPT Bot\nDisallow: /x\n", &["1:1 byte-order-mark", "1:13 cut-product-token"]),
        (b"User-agent: *\nDisallow: /x\nUser-agent: a\n", &["3:13 group-without-rules"]),
        (b"User-agent: *\nDisallow: /\n", &["2:11 whole-site-disallowed"]),
        (b"<!doctype html>\n<p>User-agent: *\n", &["1:1 html-instead-of-text"]),
        (b"User-agent: *\nAllow: /\0\nSitemap: //x/y\n", &["2:9 nul-octet", "3:10 sitemap-not-absolute"]),
        (b"User-agent:\nDisallow: /x\nplease\n", &["1:1 empty-user-agent", "3:1 not-a-field"]),
    ];
    for (file, want) in table {
        assert_eq!(found(file), want, "{}", String::from_utf8_lossy(file));
    }
}

#[test]
fn the_report_returns_its_worst_severity_and_counts_findings_per_severity() {
    let report = checked(b"User-agent: a\nDisallow: /\n");
    assert_eq!((report.worst(), report.count(Severity::Note)), (Some(Severity::Note), 1));
    let report = checked(b"User-agent: a\nDisallow: /\nDisallow: x\nfoo: x\n");
    assert_eq!(report.worst(), Some(Severity::Error));
    assert_eq!(Severity::ALL.map(|severity| report.count(severity)), [1, 1, 1]);
    assert_eq!(checked(b"# x\n").worst(), None);
    assert!(checked(b"# x\n").findings.is_empty());
}

#[test]
fn options_turn_lints_off_and_change_their_severity() {
    let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
    let whole_site = Lint::of_code("whole-site-disallowed").expect("a lint");
    assert!(check(&robots, &Options::new().allow(whole_site)).findings.is_empty());
    let report = check(&robots, &Options::new().report_as(whole_site, Severity::Error));
    assert_eq!(report.worst(), Some(Severity::Error));
    let report = check(&robots, &Options::new().report_as(whole_site, Severity::Error).allow(whole_site));
    assert_eq!(report.worst(), None);
}

#[test]
fn a_report_lists_a_bounded_number_of_findings_and_counts_the_rest() {
    let report = checked(&[&b"User-agent: *\nDisallow:\n"[..], &b"rubbish\n".repeat(10_000)].concat());
    assert_eq!(report.findings.len(), Finding::MAX_PER_LINT);
    assert_eq!(report.count(Severity::Error), 10_000);
    assert_eq!(report.omitted(), 10_000 - Finding::MAX_PER_LINT);
}

/// Checks that findings are sorted, that each span is inside the file, and that each line number
/// exists.
fn hold_invariants(file: &[u8]) {
    let robots = RobotsTxt::parse(file);
    let lines = robots.lines().count();
    let report = check(&robots, &Options::new());
    assert!(report.findings.is_sorted_by_key(|finding| finding.span.start));
    for finding in &report {
        let span = finding.span.clone();
        assert!(span.start <= span.end && span.end <= file.len(), "{finding:?}");
        assert!((1..=lines).contains(&finding.line) && finding.column >= 1, "{finding:?}");
        assert!(Lint::of_code(finding.code).is_some(), "{finding:?}");
        for text in [Some(finding.message.clone()), finding.help.clone()].into_iter().flatten() {
            assert!(!text.chars().any(char::is_control) && text.len() < 3_000, "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn the_findings_of_any_bytes_are_sorted_and_inside_the_file(file in proptest::collection::vec(any::<u8>(), 0..600)) {
        hold_invariants(&file);
    }

    #[test]
    fn the_findings_of_any_lines_are_sorted_and_inside_the_file(
        file in "((user-agent|Useragent|disallow|ALLOW|sitemap|host|foo|http)?[ \t]?:?[ \t]?[/*$a-z0-9:# \u{0}\u{e9}]{0,8}(\r|\n|\r\n)){0,20}"
    ) {
        hold_invariants(file.as_bytes());
    }
}

/// Checks the files of the shared case data, if it exists: one in thirty, or all with
/// `ROBOTSD_LONG`.
#[test]
fn the_findings_of_real_files_are_sorted_and_inside_the_file() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases/robots_files.jsonl.gz");
    if !path.exists() && std::env::var_os("CI").is_none() {
        return println!("skipped: {} is not there", path.display());
    }
    let file = std::fs::File::open(&path).expect("the case data opens");
    let lines = std::io::BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let every = if crate::is_long() { 1 } else { 30 };
    let lines: Vec<_> = lines.collect();
    assert_eq!(lines.len(), 3_240);
    for line in lines.into_iter().step_by(every) {
        let case: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("an object");
        let body = case["body_base64"].as_str().expect("a body");
        hold_invariants(&base64::engine::general_purpose::STANDARD.decode(body).expect("base64"));
    }
}
