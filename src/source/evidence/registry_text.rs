//! The checks of a registry that comes over the network, beyond those of the rows in an operator's own file.

use super::verification_plan::VerificationPlan;
use crate::agent::{Crawler, Recognizer, Registry};
use crate::rules::RobotsTxt;
use std::sync::Arc;

/// Crawlers in a registry at most: the built-in one has some 720.
const MOST_CRAWLERS: usize = 10_000;

/// The longest value of a row, in octets; headers are longer than names.
const LONGEST: usize = 512;

/// Headers of the browsers that most people have: a name that is found in one is no crawler's.
const BROWSERS: &[&str] = &[
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 Edg/142.0.0.0",
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64; rv:145.0) Gecko/20100101 Firefox/145.0",
    "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_15_7) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Safari/605.1.15",
    "Mozilla/5.0 (X11; Ubuntu; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36 OPR/124.0.0.0",
    "Mozilla/5.0 (iPhone; CPU iPhone OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Version/26.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (iPad; CPU OS 18_6 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) CriOS/142.0.0.0 Mobile/15E148 Safari/604.1",
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) SamsungBrowser/29.0 Chrome/136.0.0.0 Mobile Safari/537.36",
    "Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0",
];

/// The text, if it is one.
pub(super) fn check_text(octets: &[u8]) -> Result<&str, String> {
    let text = std::str::from_utf8(octets).map_err(|error| {
        let before = &octets[..error.valid_up_to()];
        let line = memchr::memchr_iter(b'\n', before).count() + 1;
        format!("line {line} is not UTF-8")
    })?;
    if text.trim_start().starts_with('<') {
        return Err("it is an HTML or XML page, not a registry".to_owned());
    }
    Ok(text)
}

/// Whether a registry may be used: it is of a size and of characters that names have, what it leads to is fetched over
/// `https`, and no browser of people's is a crawler by it.
pub(super) fn check_use(registry: &Registry) -> Result<(), String> {
    let rows = registry.crawlers().len();
    if rows > MOST_CRAWLERS {
        return Err(format!("it has {rows} crawlers, more than {MOST_CRAWLERS}"));
    }
    registry.crawlers().try_for_each(row)?;
    VerificationPlan::of(registry, &[]).map_err(|error| error.to_string())?;
    let recognizer = Recognizer::new(Arc::new(registry.clone()), &RobotsTxt::parse(&b""[..]));
    for browser in BROWSERS {
        if let Some(crawler) = recognizer.identify(browser.as_bytes()).registered() {
            return Err(format!("crawler {:?} would be every browser that sends {browser:?}", crawler.name()));
        }
    }
    Ok(())
}

fn row(crawler: &Crawler) -> Result<(), String> {
    let name = crawler.name();
    let texts = [name, crawler.operator()].into_iter();
    let texts = texts.chain(crawler.header_names()).chain(crawler.requires()).chain(crawler.reverse_dns());
    let texts = texts.chain(crawler.source()).chain(crawler.examples());
    for text in texts.chain(crawler.ranges()).chain(crawler.signature()) {
        if text.len() > LONGEST {
            return Err(format!("crawler {:?}: a value has {} octets, more than {LONGEST}", short(name), text.len()));
        }
        if let Some(character) = text.chars().find(|character| character.is_control() || is_bidirectional(*character)) {
            return Err(format!(
                "crawler {:?}: {:?} holds {character:?}, which is not shown",
                short(name),
                short(text)
            ));
        }
    }
    for address in crawler.ranges().chain(crawler.signature()) {
        if !address.starts_with("https://") {
            return Err(format!("crawler {name:?}: {address:?} is fetched in the clear: write an https URL"));
        }
    }
    Ok(())
}

/// Whether a character changes the direction in which others are shown.
const fn is_bidirectional(character: char) -> bool {
    matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Category, CrawlerRow};

    fn wrong(change: impl FnOnce(CrawlerRow) -> CrawlerRow) -> Option<String> {
        let row = change(CrawlerRow::new("HouseBot", Category::Seo));
        check_use(&Registry::builtin().extended_with([row]).expect("a registry")).err()
    }

    #[test]
    fn the_builtin_registry_could_be_published() {
        assert_eq!(check_use(Registry::builtin()), Ok(()));
        assert_eq!(wrong(|row| row.source("https://house.example/bot").operator("Häuser")), None);
    }

    #[test]
    fn values_that_no_name_has_are_refused() {
        for (wrong, want) in [
            (wrong(|row| row.operator("a\u{1b}[2Jb")), "which is not shown"),
            (wrong(|row| row.operator("a\nb")), "'\\n', which is not shown"),
            (wrong(|row| row.operator("a\u{202e}b")), "which is not shown"),
            (wrong(|row| row.examples(["x".repeat(513)])), "a value has 513 octets, more than 512"),
            (wrong(|row| row.ranges(["http://house.example/list"])), "is fetched in the clear: write an https URL"),
            (wrong(|row| row.signature("http://house.example")), "\"http://house.example\" is fetched in the clear"),
            (wrong(|row| row.reverse_dns(["*.*"])), "rdns"),
            (wrong(|row| row.header_names(["Safari"])), "would be every browser that sends"),
            (wrong(|row| row.header_names(["Firefox"])), "crawler \"HouseBot\" would be every browser"),
        ] {
            assert!(wrong.as_deref().is_some_and(|wrong| wrong.contains(want)), "{wrong:?}, not {want}");
        }
        let many = (0..10_000).map(|number| CrawlerRow::new(format!("House{number}Bot"), Category::Seo));
        let many = Registry::builtin().extended_with(many).expect("a registry");
        assert!(check_use(&many).is_err_and(|error| error.contains("more than 10000")));
    }

    #[test]
    fn what_is_no_text_is_refused_with_its_line() {
        assert_eq!(check_text(b"# one\n# \xff\n"), Err("line 2 is not UTF-8".to_owned()));
        assert!(check_text(b"\n<!DOCTYPE html>").is_err() && check_text(b"# rows\n").is_ok());
    }
}
