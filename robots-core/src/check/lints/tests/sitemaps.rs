//! Cases of the lints about sitemaps and hosts.

use super::Case;
use crate::check::{Options, check};
use crate::rules::RobotsTxt;

#[test]
fn lints_about_sitemaps_report_the_expected_findings() {
    Case("host-repeated", "every further one is found")
        .found("Host: a\nAllow: /\nhost: b\nHOST: a\nHosts: c\n", &["3:1", "4:1"])
        .found("Host: a b\nHost: a\nHost: c d\nHost: b\n", &["4:1"]);
    Case("host-value", "a sitemap shows that the scheme is missing")
        .helps("Host: example.com\nSitemap: https://example.com/s.xml\n", &["write \"https://example.com\""])
        .found("Host: example.com\nSitemap: https://example.org/s.xml\n", &[])
        .found("Host:\n", &["1:1"]);
    let absolute = ["https://example.com/s.xml", "HTTP://example.com", "https://b\u{fc}cher.example/"];
    let others = ["/s.xml", "s.xml", "//example.com/", "ftp://example.com/", "https:///s.xml", "https:/x", "http:"];
    Case("sitemap-not-absolute", "only http and https with a host are absolute")
        .found_each("Sitemap: {}", &absolute, &[])
        .found_each("Sitemap: {}", &others, &["1:10"])
        .found("Sitemap:", &["1:1"])
        .found("Sitemap https://example.com/", &[])
        .helps("Sitemap: /s.xml", &["write the whole URL, such as \"https://YOUR-SITE/s.xml\""]);
    for (address, want) in [
        ("/s.xml", "a.test/s.xml"),
        ("s.xml", "a.test/s.xml"),
        ("//b.test/s", "b.test/s"),
        ("www.b.test/s", "www.b.test/s"),
    ] {
        let file = format!("Sitemap: {address}\n");
        let want = format!("write \"https://{want}\"");
        Case("sitemap-not-absolute", "the host that the file or the site has is proposed")
            .helps(format!("{file}Sitemap: https://a.test/1.xml\n"), &[&want]);
        let report = check(&RobotsTxt::parse(file), &Options::new().site_host("a.test"));
        assert_eq!(report.findings[0].help.as_deref(), Some(&*want), "{address}");
    }
}
