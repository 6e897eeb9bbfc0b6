//! Cases of the lints about permitted uses of pages.

use super::Case;

#[test]
fn lints_about_usage_report_the_expected_findings() {
    Case("content-signal-value", "signals are known and yes or no")
        .found_each(
            "Content-Signal: {}",
            &["search=yes", "search=yes, ai-train=no,ai-input=no", "/x/ ai-train=no"],
            &[],
        )
        .found_each("Content-Signal: {}", &["use=immediate", "search=yes,ai-train=no,use=reference", "use=full"], &[])
        .found_each(
            "Content-Signal: {}",
            &["search", "search=y", "train=no", "search: yes", "use=yes", "use", "search=full", "use=Full"],
            &["1:17"],
        );
    Case("content-usage-value", "items are keys with y or n")
        .found_each("Content-Usage: {}", &["ai=n", "train-ai=n, search=y", "/x/ ai=n", "bots=y,train-ai=n"], &[])
        .found_each("content-usage: {}", &["ai=no", "ai", "AI=n", "/x/", "ai=n,", "ai = n"], &["1:16"])
        .says("Content-Usage: ai=n, b", &["\"b\" is not a preference"])
        .found("Content-Usage:", &["1:1"]);
    Case("license-value", "only URLs pass")
        .found("License: https://example.com/l.xml\nLICENSE: MIT\nLicense:\n", &["2:10", "3:1"]);
    Case("noindex", "every line is found")
        .found("Noindex: /\nNOINDEX: /\nNoindexed: /\nAllow: /noindex\n", &["1:1", "2:1"]);
}
