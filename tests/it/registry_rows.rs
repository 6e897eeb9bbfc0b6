//! The rows of the built-in registry: how each crawler is verified, and when its operator's page
//! was read.

use std::collections::HashSet;

use tower_robots::agent::{Category, Crawler, Registry};
use tower_robots::identity::NamePattern;

/// Crawlers of search engines whose operators' pages could not be read.
const UNREAD_ENGINES: &str = "YandexImages YandexVideo YandexRenderResourcesBot YandexWebmaster Baiduspider \
    Baiduspider-image Baiduspider-video Baiduspider-render Sogou 360Spider Bravebot";

fn rows() -> impl Iterator<Item = &'static Crawler> {
    Registry::builtin().crawlers()
}

fn row(name: &str) -> &'static Crawler {
    Registry::builtin().crawler(name).unwrap()
}

fn patterns(crawler: &Crawler) -> Vec<NamePattern> {
    let pattern = |text: &String| text.parse().unwrap_or_else(|error| panic!("{}: {error}", crawler.name));
    crawler.reverse_dns.iter().map(pattern).collect()
}

fn accepts(crawler: &str, name: &str) -> bool {
    patterns(row(crawler)).iter().any(|pattern| pattern.matches(name))
}

#[test]
fn address_lists_and_keys_have_https_urls_and_host_names_are_valid_patterns() {
    for crawler in rows() {
        for address in crawler.ranges.iter().chain(&crawler.signature) {
            assert!(address.starts_with("https://"), "{}: {address}", crawler.name);
        }
        patterns(crawler);
    }
}

/// Google's proxies for its users have names under `.google.com` too.
#[test]
fn host_names_available_to_an_operators_users_do_not_verify_its_crawlers() {
    let user = "google-proxy-66-102-1-1.google.com";
    for crawler in rows().filter(|row| row.operator == "Google" && row.category != Category::UserFetch) {
        let by_users = crawler.ranges.iter().any(|list| list.contains("user-triggered"));
        assert!(by_users || !accepts(&crawler.name, user), "{}", crawler.name);
        for other in ["mail.google.com", "google.com", "a.googlebot.com"] {
            assert!(!accepts(&crawler.name, other), "{}: {other}", crawler.name);
        }
    }
    assert!(accepts("Google-Read-Aloud", user));
    assert!(accepts("Googlebot", "crawl-66-249-66-1.googlebot.com"));
    assert!(accepts("Googlebot", "geo-crawl-34-22-85-1.geo.googlebot.com"));
    assert!(accepts("AdsBot-Google", "rate-limited-proxy-66-249-90-77.google.com"));
    assert!(!accepts("AdsBot-Google", "crawl-66-249-66-1.googlebot.com"));
}

#[test]
fn the_host_name_patterns_accept_the_names_that_operators_document() {
    for (crawler, name) in [
        ("Qwantbot", "qwantbot-1-162-242-91.qwant.com"),
        ("MojeekBot", "crawl-5-102-173-71.mojeek.com"),
        ("SeznamBot", "fulltextrobot-77-75-77-12.seznam.cz"),
        ("YandexBot", "5-255-231-1.spider.yandex.com"),
        ("Applebot", "17-58-101-179.applebot.apple.com"),
        ("bingbot", "msnbot-157-55-39-1.search.msn.com"),
        ("Baiduspider", "baiduspider-123-125-66-120.crawl.baidu.com"),
        ("Slurp", "b115504.yse.yahoo.net"),
        ("coccocbot-web", "crawl-1.coccoc.com"),
    ] {
        assert!(accepts(crawler, name), "{crawler}: {name}");
    }
    assert!(row("YandexBot").ranges.is_empty(), "its addresses are an HTML page");
}

#[test]
fn a_crawler_has_only_the_address_list_of_its_own_class() {
    for (crawler, list) in [
        ("Googlebot", "common-crawlers.json"),
        ("AdsBot-Google", "special-crawlers.json"),
        ("Google-Agent", "user-triggered-agents.json"),
        ("AhrefsBot", "crawler-ip-ranges"),
        ("GPTBot", "gptbot.json"),
    ] {
        assert!(row(crawler).ranges.iter().all(|address| address.ends_with(list)), "{crawler}");
        assert_eq!(row(crawler).ranges.len(), 1, "{crawler}");
    }
    assert_eq!(row("ChatGPT Agent").signature.as_deref(), Some("https://chatgpt.com"));
}

/// Baidu's forward records are not reliable.
#[test]
fn only_the_host_names_of_baidu_are_marked_as_weak() {
    let weak: HashSet<_> = rows().filter(|row| row.is_reverse_dns_weak).map(|row| row.operator.as_str()).collect();
    assert_eq!(weak, HashSet::from(["Baidu"]));
}

#[test]
fn a_checked_row_contains_its_source_and_the_date_of_the_check() {
    for crawler in rows().filter(|row| row.checked_on.is_some()) {
        assert!(crawler.source.is_some() && crawler.checked_on.as_deref() >= Some("2026-11-21"), "{}", &crawler.name);
    }
    let unread: Vec<_> =
        rows().filter(|row| row.is_index_engine && row.checked_on.is_none()).map(|row| row.name.as_str()).collect();
    assert_eq!(unread.join(" "), UNREAD_ENGINES, "search engines that are not refused by default");
}
