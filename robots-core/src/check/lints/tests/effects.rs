//! Cases of the lints about effects.

use super::{Case, messages};
use crate::check::{Options, Severity, check};
use crate::rules::RobotsTxt;

const RULES: &str = "User-agent: *\n{}\n";

#[test]
fn lints_about_effects_report_the_expected_findings() {
    let names = "User-agent: Mediapartners-Google\nUser-agent: Googlebot\nUser-agent: *\nDisallow: /*ads.txt\n";
    Case("ad-file-disallowed", "a rule that closes such a file is found once")
        .found_each(RULES, &["Disallow: /ads", "Disallow: /*.txt$", "Disallow: /app-ads.txt"], &["2:11"])
        .found_each(RULES, &["Disallow: /*.json"], &["2:11"])
        .found_each(RULES, &["Disallow: /ads/\nDisallow: /ads.html", "Disallow: /ads\nAllow: /ads.txt"], &[])
        // `whole-site-disallowed` reports rules for the whole site.
        .found_each(RULES, &["Disallow: /", "Disallow: /*"], &[])
        .says(names, &["\"/*ads.txt\" blocks \"/ads.txt\", \"/app-ads.txt\": buyers of ad space treat a blocked file as missing"])
        .helps(names, &["if the site has such a file, add \"Allow: /ads.txt\" and \"Allow: /app-ads.txt\""]);
    Case("ad-file-disallowed", "groups of other crawlers do not count")
        .found_each("User-agent: {}\nDisallow: /ads\n", &["GPTBot", "AhrefsBot"], &[])
        .found_each("User-agent: {}\nDisallow: /ads\n", &["Googlebot", "AdsBot-Google", "AmazonAdBot"], &["2:11"]);
    Case("assets-disallowed", "groups that search engines read count")
        .found("User-agent: Googlebot\nDisallow: /js/\n\nUser-agent: GPTBot\nDisallow: /js/\n", &["2:11"]);
    Case("ignores-star", "what the file names is reached")
        .found("User-agent: *\nDisallow: /\n", &[])
        .found("User-agent: a\nDisallow: /\nAllow: /x\n", &[]);
    let secret = ["/Backup/", "/db-dump.tgz", "/.git/", "/.env", "/wp-config.php", "/my_secrets"];
    let others = ["/secretary/", "/dumplings", "/admin/", "/private/", "/.github", "/user/password/"];
    Case("secret-path", "words are whole")
        .found_each("Disallow: {}", &secret, &["1:11"])
        .found_each("Disallow: {}", &others, &[])
        .found("Disallow: /INSTALL.sqlite.txt", &[])
        .found("Allow: /backup/\n", &[]);
    let sitemap = "User-agent: *\n{}\nSitemap: https://example.com/s.xml\nSitemap: /s.xml\n";
    Case("sitemap-disallowed", "the longest rule for star decides")
        .found_each(sitemap, &["Disallow: /*.xml$", "Disallow: /"], &["3:10"])
        .found_each(sitemap, &["Disallow: /b", "Disallow:", "Allow: /s.xml"], &[])
        .helps("User-agent: *\nDisallow: /\nSitemap: https://example.com/s.xml\n", &["add \"Allow: /s.xml\""])
        .found("User-agent: *\nDisallow: /\nSitemap: https://a.test/s.xml\nSitemap: https://b.test/s.xml\n", &[]);
    for (host, lines) in [("shop.test", vec![4]), ("SHOP.test:8443", vec![4]), ("other.test", vec![])] {
        let file = "User-agent: *\nDisallow: /\nSitemap: https://cdn.test/s.xml\nSitemap: https://shop.test/s.xml\n";
        let report = check(&RobotsTxt::parse(file), &Options::new().site_host(host));
        let found = report.findings.iter().filter(|finding| finding.code == "sitemap-disallowed");
        assert_eq!(found.map(|finding| finding.line).collect::<Vec<_>>(), lines, "{host}");
    }
    let star = "User-agent: *\nDisallow: /cart/\nDisallow: /login\n\nUser-agent: {}\n";
    let added = [
        "bingbot\nDisallow: /x",
        "bingbot\nCrawl-delay: 5",
        "SemrushBot\nAllow: /x",
        "Slurp\nUser-agent: bingbot\nDisallow: /x",
        // Crawlers of pictures, videos and news also obey only their own group.
        "Googlebot-Image\nAllow: /x",
        "Googlebot-Video\nDisallow: /x",
        "Googlebot-News\nDisallow: /x",
        "YandexImages\nDisallow: /x",
    ];
    let meant = [
        // In these groups, one rule disallows or allows the whole site.
        "bingbot\nDisallow: /",
        "bingbot\nDisallow:",
        "bingbot\nAllow: /\nDisallow: /x",
        // These groups repeat the rules for `*`, possibly in another spelling, or allow the paths
        // that the rules for `*` disallow.
        "bingbot\nDisallow: /x\nDisallow: /cart/\nDisallow: /login/",
        "bingbot\nAllow: /cart/\nDisallow: /x",
        "Googlebot-Image\nDisallow: /",
        "Googlebot-Image\nDisallow:",
        // One of these crawlers does not read whole sites, one ignores `*`, one is unknown, and one
        // shares its group with `*`.
        "Twitterbot\nAllow: /x",
        "AdsBot-Google\nDisallow: /x",
        "OurOwnBot\nDisallow: /x",
        "bingbot\nUser-agent: *\nDisallow: /x",
    ];
    let closed = "User-agent: *\nDisallow: /\nAllow: /x\n\nUser-agent: bingbot\nDisallow: /y\n";
    let repaired = "User-agent: *\nDisallow: /a\nDisallow: /b\nDisallow: /.well-known/\nDisallow: /images/\nDisallow: /c\n\
                    Disallow: /login\n\nUser-agent: bingbot\nDisallow: /x\nDisallow: /b\n";
    let own_list: String = (0..25).map(|at| format!("Disallow: /own-{at}/\n")).collect();
    Case("star-rules-dropped", "a group that only adds to that of star opens what it closes")
        .found_each(star, &added, &["5:13"])
        .found_each(star, &meant, &[])
        .found(closed, &[])
        .says(
            star.replace("{}", "Slurp\nUser-agent: bingbot\nAllow: /x"),
            &["\"Slurp\", \"bingbot\" ignore the group for \"*\": \"/cart/\", \"/login\" are open to them"],
        )
        // The group repeats only some rules. In the message, paths that are disallowed on purpose
        // come first. Exempt paths, and paths of files that are needed to display pages, are left
        // out.
        .says(
            repaired,
            &["\"bingbot\" ignores the group for \"*\", and this group repeats only some of its rules: \"/login\", \
               \"/a\", \"/c\" are open to it"],
        )
        // Two kinds of groups are intended: a group that lacks only rules for files that are needed
        // to display pages, and a group with a long list of its own rules.
        .found(format!("{repaired}Disallow: /a\nDisallow: /c\n"), &[])
        .found(format!("{repaired}{own_list}"), &[]);
    Case("whole-site-disallowed", "an allow that wins somewhere opens the site")
        .found_each(RULES, &["Disallow: /", "Disallow: /\nAllow: /$", "Disallow: /*\nAllow: /"], &["2:11"])
        .found_each(RULES, &["Disallow: /\nDisallow: /*\nAllow:\nAllow: a"], &["3:11"])
        .found_each(
            RULES,
            &["Disallow: /\nAllow: /", "Disallow: /\nAllow: /$\nAllow: /x", "Disallow: /a\nDisallow:"],
            &[],
        )
        .found_each(
            RULES,
            &["Disallow: /\nAllow: /robots.txt", "Disallow: /\nAllow: /$\nAllow: /robots.txt$"],
            &["2:11"],
        );
    let all = "the whole site is disallowed for every crawler without a group of its own";
    let rest = "the whole site except its home page is disallowed for every crawler without a group of its own";
    let engine = "the whole site except its home page is disallowed for \"Googlebot\": the site will be dropped from the \
                  index";
    Case("whole-site-disallowed", "a home page alone is no open site")
        .says("User-agent: *\nDisallow: /\nAllow: /$\n", &[rest])
        .says("User-agent: *\nAllow: /$\nDisallow: /*\n", &[rest])
        // The longer pattern also decides whether the home page is allowed.
        .says("User-agent: *\nAllow: /$\nDisallow: /**\n", &[all])
        .says("User-agent: Googlebot\nDisallow: /\nAllow: /$\n", &[engine]);
    let several = "User-agent: a\nUser-agent: b\nDisallow: /\n\nUser-agent: A/1\nAllow: /x\n";
    Case("whole-site-disallowed", "groups of one crawler are judged together")
        .says(several, &["the whole site is disallowed for \"b\""])
        .says("User-agent: a\nDisallow: /\n\nUser-agent: *\nAllow: /x\n", &["the whole site is disallowed for \"a\""]);
    Case("whole-site-disallowed", "only an index that people use is left").says(
        "User-agent: bingbot\nDisallow: /\n\nUser-agent: PiplBot\nDisallow: /\n",
        &[
            "the whole site is disallowed for \"bingbot\": the site will be dropped from the index",
            "the whole site is disallowed for \"PiplBot\"",
        ],
    );
    let five = "User-agent: e\nUser-agent: d\nDisallow: /\nUser-agent: c\nUser-agent: b\nUser-agent: a\nDisallow: /\n";
    Case("whole-site-disallowed", "named crawlers are noted together")
        .says(five, &["the whole site is disallowed for \"e\", \"d\", \"c\" and 2 more"])
        .found("User-agent: *\nUser-agent: a\nDisallow: /", &["3:11"]);
}

#[test]
fn ignores_star_does_not_report_a_crawler_that_the_file_names() {
    let file = "User-agent: *\nDisallow: /\nAllow: /public/\n";
    assert!(messages("ignores-star", file.as_bytes())[0].contains("AdsBot-Google"));
    let named = format!("{file}\nUser-agent: AdsBot-Google\nDisallow: /\n");
    assert!(!messages("ignores-star", named.as_bytes()).concat().contains("\"AdsBot-Google\""));
}

#[test]
fn blocking_a_rare_ad_file_is_a_note_and_blocking_ads_txt_is_a_warning() {
    for (rule, severity) in [("/ads", Severity::Warning), ("/app-ads", Severity::Note), ("/sellers", Severity::Note)] {
        let report = check(&RobotsTxt::parse(format!("User-agent: *\nDisallow: {rule}\n").as_bytes()), &Options::new());
        assert_eq!(report.worst(), Some(severity), "{rule}");
    }
}
