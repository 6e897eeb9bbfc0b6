//! The rest of a header beside the registered names in it: a crawler that declares itself there does not hide behind them.
//!
//! Registered crawlers describe themselves (`serpstatbot/1.0 (advanced backlink tracking bot; …)`, `PingdomPageSpeed/1.0
//! (pingbot/2.0; …)`, `Dazzle BlueSky Bot/1.1`), so fewer forms declare another crawler here than where no name is
//! registered.

use std::ops::Range;

use super::header::{Header, Marks, Voice, Word};
use super::trade::{Trade, trades};
use super::words::Kinds;

impl Header<'_> {
    /// Whether a word outside of these places, which are in the order of the header, may be part of a product's name.
    pub(super) fn has_own_word_outside(&self, places: &[Range<usize>]) -> bool {
        let mut places = places.iter().peekable();
        self.words().filter(|word| word.may_name_a_crawler() && !word.kinds.is_costume()).any(|word| {
            while places.next_if(|place| place.end <= word.start).is_some() {}
            let is_named = places.peek().is_some_and(|place| place.start < word.end);
            !is_named && word.text(self.bytes).iter().any(u8::is_ascii_alphabetic)
        })
    }

    /// The header without the names at these places. The contact of a name's part is that of the name.
    pub(super) fn without(mut self, places: &[Range<usize>]) -> Self {
        let mut places = places.iter().peekable();
        for part in &mut self.parts {
            for word in &mut self.words[part.words.clone()] {
                while places.next_if(|place| place.end <= word.start).is_some() {}
                if places.peek().is_some_and(|place| place.start < word.end) {
                    word.voice = Voice::Named;
                    part.marks.remove(Marks::ADDRESSED);
                    part.marks.remove(Marks::COMPATIBLE);
                }
            }
        }
        self
    }

    /// Mutes what may describe a registered crawler. Of a header [without](Self::without) the names, these are left:
    ///
    /// - products with a version outside of comments (`MyBot/1.0`), and words there that say bot or crawler in their name;
    /// - products in a comment that have a version and say that they crawl, unless the comment is that of a registered
    ///   product.
    pub(super) fn mute_descriptions(&mut self) {
        let mut is_of_named = false;
        for part in &self.parts {
            let words = &mut self.words[part.words.clone()];
            let holds_name = words.iter().any(|word| word.voice == Voice::Named);
            if !part.is_comment() {
                is_of_named = holds_name;
            }
            let is_product = has_version(words, self.bytes) && !holds_name && !is_led_by_everyday_word(words);
            let is_left =
                is_product && (!part.is_comment() || !is_of_named && words.iter().any(|word| crawls(word, self.bytes)));
            if is_left {
                continue;
            }
            let is_left =
                |word: &Word| !part.is_comment() && !word.kinds.has(Kinds::GENERIC) && crawls(word, self.bytes);
            for word in words.iter_mut().filter(|word| word.voice == Voice::Speaks && !is_left(word)) {
                word.voice = Voice::Muted;
            }
        }
    }
}

/// Whether a version with a digit stands behind a `/`: prose has words there (`addresses/domains`).
fn has_version(words: &[Word], header: &[u8]) -> bool {
    let mut versions = words.iter().filter(|word| word.voice == Voice::Version);
    versions.any(|word| word.text(header).iter().any(u8::is_ascii_digit))
}

fn is_led_by_everyday_word(words: &[Word]) -> bool {
    let first = words.iter().find(|word| word.may_name_a_crawler() && !word.kinds.is_costume());
    first.is_some_and(|first| first.kinds.has(Kinds::GENERIC))
}

/// Whether a word that may name an agent says bot or crawler.
fn crawls(word: &Word, header: &[u8]) -> bool {
    word.may_name_a_crawler()
        && trades(word.text(header)).any(|(_, trade)| matches!(trade, Trade::Crawls | Trade::IsBot))
}

#[cfg(test)]
mod tests {
    use crate::agent::{Agent, Recognizer, Registry};
    use crate::rules::RobotsTxt;

    /// The product or the tokens of the agent beside the registered ones, which are at least one.
    fn beside(file: &str, header: &str) -> Option<String> {
        let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(file.as_bytes()));
        let agents = recognizer.agents(header.as_bytes());
        assert!(agents.first().is_registered(), "{header}");
        let own: Vec<&Agent> = agents.iter().filter(|agent| !agent.is_registered()).collect();
        assert!(own.len() < 2, "{header}: {own:?}");
        own.first().map(|own| own.crawler().map_or_else(|| own.tokens()[0].to_string(), str::to_owned))
    }

    #[test]
    fn a_crawler_that_declares_itself_does_not_hide_behind_a_registered_name() {
        for header in [
            "MyBot/1.0 (+https://my.example/bot) UptimeRobot",
            "UptimeRobot/2.0 MyBot/1.0",
            "MyBot UptimeRobot/2.0",
            "UptimeRobot MyBot",
            "GPTBot/1.2 CCBot/2.0 MyBot/1.0",
            "MyBot/beta UptimeRobot",
            "Mozilla/5.0 (compatible; MyBot/1.0; UptimeRobot/2.0)",
            "Mozilla/5.0 (X11) AppleWebKit/5 Chrome/1 Safari/5 (compatible; MyBot/1.0; +https://x.example/) UptimeRobot",
        ] {
            assert_eq!(beside("", header).as_deref(), Some("MyBot"), "{header}");
        }
        assert_eq!(beside("", "Example/1.0 (+https://my.example/about) UptimeRobot").as_deref(), Some("Example"));
    }

    #[test]
    fn the_description_of_a_registered_crawler_is_no_other_one() {
        for header in [
            "serpstatbot/1.0 (advanced backlink tracking bot; http://serpstatbot.com/; abuse@serpstatbot.com)",
            "Mozilla/5.0 (X11; Linux) Chrome/59.0 Safari/537.36 PingdomPageSpeed/1.0 (pingbot/2.0; +http://www.pingdom.com/)",
            "Mozilla/5.0 (compatible; YandexBot/3.0; MirrorDetector; +http://yandex.com/bots)",
            "Mastodon/4.3.9 (http.rb/5.2.0; +https://social.example/)",
            "Dazzle BlueSky Bot/1.1",
            "Crawler Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)",
            "Expanse, a Palo Alto Networks company, searches. Please send IP addresses/domains to: scaninfo@paloaltonetworks.com",
            "UptimeRobot/2.0 Example/1.0",
            "Scrapy/2.11 (+https://scrapy.org) UptimeRobot/2.0",
        ] {
            assert_eq!(beside("", header), None, "{header}");
        }
    }

    #[test]
    fn a_name_of_the_file_does_not_hide_behind_a_registered_one() {
        let file = "User-agent: AcmeBot\nUser-agent: Quux\nUser-agent: bot\nDisallow: /\n";
        for (header, name) in [
            ("CCBot AcmeBot/1.0", Some("AcmeBot")),
            ("UptimeRobot/2.0 AcmeBot/1.0", Some("AcmeBot")),
            ("facebookexternalhit/1.1 AcmeBot/1.0", Some("AcmeBot")),
            ("PingdomPageSpeed/1.0 (pingbot/2.0; AcmeBot; +http://www.pingdom.com/)", Some("acmebot")),
            ("Quux UptimeRobot/2.0", Some("quux")),
            ("UptimeRobot/2.0 (like Quux)", None),
            // Everyday words are names only where they lead.
            ("UptimeRobot bot", None),
            ("facebookexternalhit/1.1 Facebot Twitterbot/1.0", None),
        ] {
            assert_eq!(beside(file, header).as_deref(), name, "{header}");
        }
    }
}
