//! Cases of the lints about groups.

use super::Case;

#[test]
fn lints_about_groups_report_the_expected_findings() {
    Case("blank-line-in-group", "the first rule that is cut off is found")
        .found("User-agent: a\nAllow: /\n\n# x\nAllow: /y\n\nAllow: /z\n", &["5:1"])
        .found("User-agent: a\n\nUser-agent: b\nAllow: /\n\nUser-agent: c\nAllow: /\n", &[])
        .found("User-agent: a\nAllow: /\n\nSitemap: https://example.com/\n", &[])
        .found("User-agent: a\n \t\n Allow: /\nUser-agent: b\r\n\r\nAllow: /\n", &["3:2", "6:1"]);
    let file = "User-agent: A\nUser-agent: *\nAllow: /\nUser-agent: a/2\nUser-agent: * all\nUser-agent: b\nAllow: /";
    let again = "User-agent: a\nUser-agent: a\nAllow: /\nUser-agent:\nUser-agent:\nAllow: /\n";
    Case("duplicate-group", "names are compared as tokens")
        .found(file, &["4:13", "5:13"])
        .says(again, &["line 1 of the same group already names \"a\""]);
    Case("group-without-rules", "only the last group can lack rules")
        .found("User-agent: a\nUser-agent: b\n", &["1:13"])
        .says("User-agent: a\n", &["the file ends after the user-agent line of \"a\", so it contains no rules"])
        .found("User-agent: a\n\nUser-agent: b\nDisallow:\n", &[])
        .found("User-agent: a\nDisallow:\nUser-agent: b\nSitemap: https://example.com/\n", &["3:13"])
        .found("User-agent: a\nCrawl-delay: 5\n", &[])
        .found("User-agent:\n", &[])
        .found("Sitemap: https://example.com/\n", &[]);
    Case("line-between-names", "only lines with names on both sides are found")
        .found("User-agent: a\nCrawl-delay: 1\nfoo: x\nUser-agent: b\nAllow: /\n", &["2:1"])
        .found("User-agent: a\nSitemap: https://example.com/\nUser-agent: b\nAllow: /\n", &[])
        .found("User-agent: a\nCrawl-delay: 1\nAllow: /\nUser-agent: b\nAllow: /\n", &[])
        .found("Crawl-delay: 1\nUser-agent: b\nAllow: /\n", &[])
        .found("User-agent: a\nCrawl-delay: 1\n", &[]);
    let file = "Sitemap: https://example.com/\nAllow: /a\n Disallow:\nuseragent: *\nAllow: /a\n";
    Case("rule-before-group", "only rules need a group")
        .found(file, &["2:1", "3:2"])
        .found("Disallow: /", &["1:1"])
        .found("User-agent:\nDisallow: /", &[]);
}
