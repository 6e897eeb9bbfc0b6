//! Cases of the lints about rules.

use super::Case;
use crate::check::{Options, check};
use crate::rules::RobotsTxt;

#[test]
fn lints_about_rules_report_the_expected_findings() {
    let rules = "User-agent: *\n{}\n";
    Case("allow-disallow-tie", "ties are found at the rule that loses")
        .found_each(rules, &["Disallow: /\nAllow: /"], &["2:11"])
        .found_each(rules, &["Allow: /a\nDisallow: /a"], &["3:11"])
        .found_each(rules, &["Allow: /a\nDisallow: /b", "Allow: /a*\nDisallow: /a", "Allow:\nDisallow:"], &[])
        .found_each(rules, &["Allow: /a\nUser-agent: a\nDisallow: /a"], &[]);
    let named = "User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n\nUser-agent: CCBot\nUser-agent: gptbot\nAllow: /\n";
    let tie = "line 9, in another group for \"GPTBot\", allows \"/\": if two rules are equally long, the allow rule \
        takes precedence";
    Case("allow-disallow-tie", "groups for one crawler are read as one")
        .says(named, &[tie])
        .found("User-agent: *\nDisallow: /\nAllow: /\nUser-agent: *\nAllow: /\nDisallow: /a\n", &["2:11"]);
    let file = |stars: usize| format!("user-agent: a\n\nallow: /{}b", "*a".repeat(stars));
    Case("costly-wildcards", "many wildcards in one pattern are found")
        .found(file(16), &[])
        .found(file(17), &["3:1"])
        .found("user-agent: a\nallow: /*******************************", &[]);
    let rules_for_a = |count: usize| {
        let [some, rest] = [count, 1250].map(|count| "disallow: /*a*b*c*d\n".repeat(count));
        format!("sitemap: /\nuser-agent: a\n{some}user-agent: b\nuser-agent: a\n{rest}")
    };
    Case("costly-wildcards", "many wildcards for one crawler are found at its first group")
        .says(rules_for_a(1250), &[])
        .says(
            rules_for_a(1251),
            &["the rules for this crawler have 10004 wildcards: matching a path against more than 10000 wildcards is \
               slow"],
        )
        .found(rules_for_a(1251), &["2:1"]);
    let group = "User-agent: a\nAllow: /a\nDisallow: /a\nAllow: /a*\nAllow: /%61\nAllow:\nAllow:\n";
    Case("duplicate-rule", "rules of one kind in one group are compared")
        .found(format!("{group}\nUser-agent: b\nAllow: /a\n"), &["4:8", "5:8"]);
    let inside = "Disallow: /\nDisallow: /.well-known/x\nDisallow: /robots.txt\n";
    let outside = "Disallow: /*.well-known/\nAllow: /.well-known/\nDisallow: /robots.txt.bak\n";
    Case("rule-on-exempt-path", "rules wholly inside are found").found(format!("{inside}{outside}"), &["2:11", "3:11"]);
    let shadow = ["Allow: /fish\nDisallow: /fish*", "Allow: /ab\nDisallow: /*a*b"];
    let shadowed = ["Allow: /fish*\nDisallow: /fish", "Allow: /%61\nDisallow: /a"];
    let alike = ["Disallow: /fish\nDisallow: /fish*", "Allow: /fish\nDisallow: /fish", "Allow: x\nDisallow:\nAllow:"];
    let shorter = ["Allow: /abcdefgh\nDisallow: /*a*b", "Allow: /x/a.pdf\nDisallow: /*.pdf$"];
    Case("shadowed-rule", "only longer rules of the other kind shadow")
        .found_each(rules, &shadow, &["2:8"])
        .found_each(rules, &shadowed, &["3:11"])
        .found_each(rules, &alike, &[])
        .found_each(rules, &shorter, &[])
        .found_each(rules, &["Allow: /ab\nDisallow: /*a*c"], &[]);
}

#[test]
fn rules_on_paths_that_the_site_exempts_are_reported_too() {
    let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /health/x\nDisallow: /.well-known/\n"[..]);
    let report = check(&robots, &Options::new().exempt_paths(["/health"]).expect("a pattern"));
    let lines: Vec<_> = report.findings.iter().map(|finding| (finding.line, finding.code)).collect();
    assert_eq!(lines, [(2, "rule-on-exempt-path"), (3, "rule-on-exempt-path")]);
}
