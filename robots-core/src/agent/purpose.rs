//! Guesses the purpose of a client from pieces of words in its header, such as `crawl`, `fetch`,
//! `feed`, `webhook` and `player`.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, Match, MatchKind};

use super::crawler::Category;
use super::name_index::ends_with;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The product crawls. Words such as `crawl` declare a crawler even in a browser's header,
    /// because only crawlers use such words.
    Crawls,
    /// The product is a bot. A bot is treated like [`Crawls`](Self::Crawls) unless other words
    /// suggest another purpose: for example, some bots monitor a site for the site's owner.
    IsBot,
    /// The product fetches, checks or collects. Words such as `fetch` declare a crawler, except in
    /// a browser's header.
    Collects(Option<Category>),
    /// The product probes the health of a server, validates domains or delivers webhooks.
    Serves,
    /// The product plays, reads or browses for a person. A URL after the product's name belongs to
    /// the product's maker.
    Presents,
    /// The word contains a listed piece, but suggests no purpose as a whole.
    Unrelated,
}

/// Pieces of words, and the purposes that they suggest. A piece of at most five letters does not
/// match across the boundary between two words, so `bot` does not match in `fuboTV`.
const PURPOSES: &[(Purpose, &[&str])] = &[
    (Purpose::Crawls, &["crawl", "spider", "scrape", "scraping", "scrapp", "slurp"]),
    (Purpose::IsBot, &["robot", "bot"]),
    (Purpose::Collects(Some(Category::Archive)), &["archiv"]),
    (Purpose::Collects(None), &["harvest", "fetch", "extract", "collect", "index", "scan", "check", "screenshot"]),
    (Purpose::Collects(None), &["thumb", "sniff", "parser", "survey", "census", "analy", "audit", "statist"]),
    (Purpose::Collects(None), &["verif", "snapshot", "seo", "url", "resolver", "expander", "unshort"]),
    (Purpose::Collects(Some(Category::Monitoring)), &["monitor", "nagios", "uptime", "validat"]),
    (Purpose::Collects(Some(Category::Preview)), &["preview", "unfurl"]),
    (Purpose::Unrelated, &["spidermonkey", "spiderman", "spider-man", "skyscrape", "unarchiv", "audition", "auditori"]),
    (Purpose::Unrelated, &["checkout", "checkers", "checklist", "checkpoint", "spellcheck", "scandinav", "scandal"]),
    (Purpose::Unrelated, &["scania", "thumbtack", "thumbprint", "verifone", "museo", "seoul", "urlaub", "url control"]),
    (Purpose::Unrelated, &["feedback"]),
    (Purpose::Collects(Some(Category::Feed)), &["rss", "feed", "podcast", "subscriber", "aggregat"]),
    (Purpose::Collects(Some(Category::Search)), &["searchengine"]),
    (Purpose::Presents, &["player", "reader", "browser", "radio", "music", "audio", "tuner", "podder", "podcatch"]),
    (Purpose::Presents, &["pod", "explorer", "launcher", "torrent", "cast", "synchroniz", "toolbar"]),
    (Purpose::Serves, &["webhook", "hookshot", "healthcheck", "health-check", "health_check", "health check"]),
    (Purpose::Serves, &["healthz", "probe", "dcv", "ocsp", "heartbeat", "keepalive", "callback", "liveness"]),
    (Purpose::Serves, &["readiness", "loadbalancer", "load balancer", "load-balancer", "notifications", "ipn"]),
    (Purpose::Serves, &["cron", "cronjob", "cronless", "cronitor", "letsencrypt", "sectigo"]),
    (Purpose::Serves, &["validation server", "domain validation"]),
    // `acme` alone is not listed, because it is also a common example name for companies.
    (Purpose::Serves, &["acme-challenge", "acme challenge", "acme-client", "acme client", "acmeclient", "acme.sh"]),
];

/// An automaton that finds the pieces in [`PURPOSES`], and a list of these pieces with their
/// purposes. Pattern number `n` of the automaton is the piece at index `n` of the list.
static STEMS: LazyLock<(AhoCorasick, Vec<(&str, Purpose)>)> = LazyLock::new(|| {
    let stems: Vec<_> =
        PURPOSES.iter().flat_map(|(purpose, stems)| stems.iter().map(|stem| (*stem, *purpose))).collect();
    #[expect(clippy::expect_used, reason = "the automaton allows many more literals than this short list")]
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(stems.iter().map(|(stem, _)| stem))
        .expect("the list above");
    (automaton, stems)
});

pub(super) fn is_address_of_service(address: &[u8]) -> bool {
    // The search looks for `k` first: it is rare in URLs, and all three strings end with it.
    memchr::memchr2_iter(b'k', b'K', address)
        .map(|at| &address[..=at])
        .any(|text| [&b"webhook"[..], b"healthcheck", b"health-check"].iter().any(|stem| ends_with(text, stem)))
}

/// Returns the purposes that the words of `text` suggest, from left to right. Each purpose comes
/// with the position of the piece that suggests it.
pub(super) fn purposes(text: &[u8]) -> impl Iterator<Item = (usize, Purpose)> {
    suggestive_pieces(text).map(|(hit, _, purpose)| (hit.start(), purpose))
}

pub(super) fn crawls(text: &[u8]) -> bool {
    purposes(text).any(|(_, purpose)| matches!(purpose, Purpose::Crawls | Purpose::IsBot))
}

/// Finds the pieces of [`PURPOSES`] in `text`. Skips pieces that suggest no purpose because of
/// their position in a word, such as `scan` in `Toscana`.
fn suggestive_pieces(text: &[u8]) -> impl Iterator<Item = (Match, &'static str, Purpose)> {
    let (automaton, stems) = &*STEMS;
    automaton.find_iter(text).filter_map(move |hit| {
        let (stem, purpose) = stems.get(hit.pattern().as_usize())?;
        let word = &text[hit.range()];
        let (next, after) = (text.get(hit.end()), text.get(hit.end() + 1));
        let begins = is_border(text, hit.start());
        // In `fuboTV`, `boT` crosses a word boundary: it begins with a lower-case letter and ends
        // with an upper-case letter.
        let in_one_word = word.last().is_some_and(u8::is_ascii_lowercase) || word[0].is_ascii_uppercase();
        let plural = matches!(next, Some(b's' | b'S')) && after.is_none_or(|after| !after.is_ascii_alphabetic());
        // `BOTECH` is one word, but `BOTScanner` is two words.
        let goes_on = word.iter().all(u8::is_ascii_uppercase)
            && next.is_some_and(u8::is_ascii_uppercase)
            && !after.is_some_and(u8::is_ascii_lowercase);
        let ends = next.is_none_or(|next| !next.is_ascii_lowercase()) && !goes_on;
        // Short pieces also occur inside unrelated words, so a short piece counts only at the
        // beginning or at the end of a word.
        let counts = match *stem {
            "bot" | "robot" => ends || plural,
            "cron" | "dcv" | "ipn" | "ocsp" => begins && ends,
            "rss" | "probe" | "index" | "seo" | "pod" | "audit" => begins || ends,
            // `scanner` counts anywhere in a word, but `scan` does not count in the middle
            // (`Toscana`).
            "scan" => begins || ends || next.is_some_and(|next| next.eq_ignore_ascii_case(&b'n')),
            "url" => begins && !text[..hit.start()].last().is_some_and(u8::is_ascii_lowercase),
            "cast" => ends,
            _ => true,
        };
        let counts = counts && (in_one_word || stem.len() > 5);
        counts.then_some((hit, *stem, *purpose))
    })
}

/// Reports whether a word begins at `start`. `Cron` and `Url` are words in `WebCron` and `XMLUrl`,
/// but `url` is not a word in `CURL` and `PyCurl`.
fn is_border(text: &[u8], start: usize) -> bool {
    let Some(before) = start.checked_sub(1).map(|before| text[before]) else { return true };
    let is_lower = |at: usize| text.get(at).is_some_and(u8::is_ascii_lowercase);
    !before.is_ascii_alphabetic()
        || text[start].is_ascii_uppercase() && (before.is_ascii_lowercase() || is_lower(start + 1))
}

/// Reports whether the end of a word suggests a player or a similar program, as in `MediaPlayer`.
/// The ending `reader` does not count, because the names of some crawlers end with `reader`.
pub(super) fn ends_as_program(word: &[u8]) -> bool {
    suggestive_pieces(word)
        .any(|(hit, stem, purpose)| purpose == Purpose::Presents && stem != "reader" && hit.end() == word.len())
}

/// Reports whether a word begins with a piece such as `spider` or `bot`, and continues with another
/// word that does not suggest a crawler: `SpiderOak`, but not `SpiderBot`.
pub(super) fn continues_with_other_word(word: &[u8]) -> bool {
    let mut hits =
        suggestive_pieces(word).filter(|(_, _, purpose)| matches!(purpose, Purpose::Crawls | Purpose::IsBot));
    hits.next().is_some_and(|(hit, ..)| hit.start() == 0 && word.get(hit.end()).is_some_and(u8::is_ascii_uppercase))
        && hits.next().is_none()
}

pub(super) fn is_media_host(host: &[u8]) -> bool {
    let (name, domain) = host.split_at(host.iter().rposition(|byte| *byte == b'.').unwrap_or(host.len()));
    let is_media = |stem: &str| {
        ["player", "radio", "music", "audio", "tuner", "podder", "podcatch", "podcast", "pod", "cast"].contains(&stem)
    };
    [".fm", ".audio", ".radio", ".music"].iter().any(|end| domain.eq_ignore_ascii_case(end.as_bytes()))
        || name.split(|byte| *byte == b'.').any(|label| suggestive_pieces(label).any(|(_, stem, _)| is_media(stem)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stem_counts_in_its_listed_words_and_not_in_similar_words() {
        let rows: Vec<Vec<Vec<&str>>> = include_str!("../../../tests/cases/words.tsv")
            .lines()
            .map(|row| row.split('\t').map(|words| words.split('|').collect()).collect())
            .collect();
        let stems: Vec<_> = rows.iter().map(|row| row[0][0]).collect();
        let want = STEMS.1.iter().map(|(stem, _)| *stem).collect::<Vec<_>>();
        assert_eq!(stems, want, "a row for each stem, in their order");
        let mut wrong = Vec::new();
        for row in &rows {
            let stem = row[0][0];
            assert!(row.len() == 3 && row[1..].iter().all(|words| words.len() == 5), "{stem}: five and five");
            let counts = |word: &str| suggestive_pieces(word.as_bytes()).any(|(_, found, _)| found == stem);
            wrong.extend(row[1].iter().filter(|word| !counts(word)).map(|word| format!("{stem}: {word} should count")));
            wrong.extend(
                row[2].iter().filter(|word| counts(word)).map(|word| format!("{stem}: {word} should not count")),
            );
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    #[test]
    fn a_program_is_recognized_by_the_end_of_its_name() {
        for program in ["JellyfinMediaPlayer", "Example Launcher", "Peapod", "Turtlecast", "NetRadio"] {
            assert!(ends_as_program(program.as_bytes()), "{program}");
        }
        for other in ["Browsershots", "PageReader", "PlayerBot", "Example", "", "Podium2"] {
            assert!(!ends_as_program(other.as_bytes()), "{other}");
        }
        assert!(continues_with_other_word(b"SpiderOak") && continues_with_other_word(b"RobotArm"));
        for crawler in ["SpiderBot", "Spider", "Spiderling", "ExampleBotAI", "spider2"] {
            assert!(!continues_with_other_word(crawler.as_bytes()), "{crawler}");
        }
    }

    #[test]
    fn hosts_for_audio_and_podcasts_are_recognized_by_their_names() {
        for host in ["overcast.fm", "www.podcast-app.example", "netradio.example", "example.audio", "podvine.example"] {
            assert!(is_media_host(host.as_bytes()), "{host}");
        }
        for host in ["example.com", "siteexplorer.example", "anchorbrowser.example", "", "fm"] {
            assert!(!is_media_host(host.as_bytes()), "{host}");
        }
    }

    #[test]
    fn a_url_with_a_webhook_or_a_health_check_belongs_to_a_service() {
        for address in
            ["https://x.test/docs/webhooks", "https://x.test/WebHook", "x.test/k/healthcheck", "x.test/health-check/k"]
        {
            assert!(is_address_of_service(address.as_bytes()), "{address}");
        }
        for address in ["https://x.test/bot", "https://kiosk.test/k", "hook", "https://x.test/web/hook", ""] {
            assert!(!is_address_of_service(address.as_bytes()), "{address}");
        }
    }
}
