//! Cases of the lints about delays.

use super::{Case, severities};
use crate::check::Severity;

#[test]
fn lints_about_delays_report_the_expected_findings() {
    Case("crawl-delay-decimal", "a point is enough")
        .found_each("Crawl-delay: {}", &["5", "1.2.3", "."], &[])
        .found_each("Crawl-delay: {}", &["5.", "0.5"], &["1:14"]);
    Case("crawl-delay-ignored", "one other crawler is enough")
        .found("User-agent: Googlebot\nUser-agent: YandexBot\nAllow: /\nCrawl-delay: 1\n", &["4:1"])
        .found("User-agent: Googlebot\nUser-agent: bingbot\nCrawl-delay: 1\n", &[])
        .found("User-agent: bingbot\nAllow: /\nUser-agent: Googlebot\nCrawl-delay: 1\n", &["4:1"])
        .found("User-agent: Googlebot\nCrawl-delay: 1\nUser-agent: bingbot\nDisallow: /x\n", &[])
        .found("User-agent: *\nCrawl-delay: 1\n", &[])
        .found("Crawl-delay: 1\n", &["1:1"])
        .found("# open\nCrawl-delay: 10\nUser-agent: bingbot\nDisallow: /x\n", &["2:1"]);
    Case("crawl-delay-long", "thirty seconds are the most")
        .found_each("Crawl-delay: {}", &["30", "30.0", "0", "x"], &[])
        .found_each("Crawl-delay: {}", &["30.5", "7200"], &["1:14"]);
    Case("crawl-delay-value", "numbers are plain")
        .found_each("Crawl-delay: {}", &["10", "0", "0.5", "5.", "3600", "7200"], &[])
        .found_each("crawl-delay: {}", &["10s", "-1", "1e3", "inf", "1,5", "one", "."], &["1:14"])
        .found("Crawl-delay:", &["1:1"]);
    Case("crawl-delay-zero", "every spelling of zero is found")
        .found_each("Crawl-delay: {}", &["0", "0.0", "00"], &["1:1"])
        .found_each("Crawl-delay: {}", &["0.1", ""], &[]);
}

#[test]
fn an_invalid_request_rate_or_visit_time_is_a_warning_and_a_valid_one_a_note() {
    for (code, read, unread) in [("request-rate", "1/10m [1300-1659]", "1 page"), ("visit-time", "0600-0845", "noon")] {
        for (value, want) in [(read, Severity::Note), (unread, Severity::Warning), ("", Severity::Warning)] {
            let file = format!("User-agent: a\n{code}: {value}\nDisallow: /x\n");
            assert_eq!(severities(code, file.as_bytes()), [want], "{code}: {value}");
        }
    }
}
