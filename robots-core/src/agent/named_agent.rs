//! The agent that a person means by a name, as it stands on a command line or in a file of expectations.
//!
//! What a person writes is looked up as a name first. Only what is no name is read as a header: a header must hold what a
//! registered crawler's name requires (`Stripe` is also a word), a name need not, and a control token is never sent.

use std::sync::Arc;

use super::agents::{Agent, Agents};
use super::crawler::{Class, Crawler};
use super::header::{Header, Word};
use super::name_index::Kinds;
use super::recognizer::Recognizer;
use super::registry::Registry;
use crate::rules::ProductToken;

/// How a name was understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedAs {
    /// `*`: a crawler that no group names.
    Star,
    /// The name of a registered crawler, one of its header names, or the product token that it obeys first.
    Registered,
    /// A `User-Agent` header, as sent.
    Header,
    /// A name that no registered crawler has. It is taken as the product token of a crawler, which obeys the group of that
    /// name, or else `*`.
    Unregistered,
}

impl Recognizer {
    /// The agent that a person means: `*`, a registered name, header name or product token, a whole `User-Agent` header, or
    /// else the product token of a crawler that is not registered. Returns how the name was understood, and the agent, or all
    /// that a header names: a request is judged by each of them.
    ///
    /// ```
    /// use robots_core::agent::{Class, NamedAs, Recognizer, Registry};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
    /// let (named_as, stripe) = recognizer.resolve("Stripe");
    /// assert_eq!((named_as, stripe.first().crawler()), (NamedAs::Registered, Some("Stripe")));
    /// // A header needs more than the word.
    /// assert_eq!(recognizer.identify(b"Stripe").crawler(), None);
    ///
    /// let (named_as, unknown) = recognizer.resolve("NeverSeenBot");
    /// assert_eq!((named_as, unknown.first().class()), (NamedAs::Unregistered, Class::Declared));
    /// ```
    pub fn resolve(&self, name: &str) -> (NamedAs, Agents) {
        let name = name.trim();
        if name == "*" {
            return (NamedAs::Star, Agent::named(None, Vec::new()).into());
        }
        if let Some(crawler) = self.registry().named(name) {
            return (NamedAs::Registered, Agent::of(crawler.clone()).into());
        }
        let identified = if name.is_empty() { Agent::empty().into() } else { self.agents(name.as_bytes()) };
        match ProductToken::from_name(name.as_bytes()) {
            Some(token) if !identified.first().is_registered() && is_name(name, identified.first()) => {
                (NamedAs::Unregistered, Agent::named(Some(name.to_owned()), vec![token]).into())
            }
            _ => (NamedAs::Header, identified),
        }
    }
}

impl Registry {
    /// The crawler that is listed under this name, has it in its headers, or obeys it first.
    fn named(&self, name: &str) -> Option<&Arc<Crawler>> {
        let by_name = || self.crawlers.iter().find(|crawler| crawler.name.eq_ignore_ascii_case(name));
        let by_header = || self.with_header_name(name.as_bytes());
        // A path or a version makes a header of it.
        let token = ProductToken::from_name(name.as_bytes()).filter(|_| !name.contains(['/', '(', ';', ',']));
        let by_token =
            || token.and_then(|token| self.crawlers.iter().find(|crawler| crawler.tokens.first() == Some(&token)));
        by_name().or_else(by_header).or_else(by_token)
    }
}

/// Whether this is one word that no browser, library or application is called.
fn is_name(name: &str, identified: &Agent) -> bool {
    if name.contains(|char: char| char.is_whitespace() || matches!(char, '/' | '(' | ';' | ',')) {
        return false;
    }
    let is_costume = |word: &Word| word.kinds.is_costume() || word.kinds.has(Kinds::ENGINE);
    let header = Header::read(name.as_bytes());
    matches!(identified.class(), Class::Declared | Class::NonBrowser) && !header.words().any(is_costume)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Fallback, RobotsTxt};

    fn resolve(name: &str) -> (NamedAs, Agents) {
        let file = RobotsTxt::parse(&b"User-agent: Foo Bar\nUser-agent: Foo\nDisallow: /\n"[..]);
        Recognizer::new(Registry::builtin().clone(), &file).resolve(name)
    }

    #[test]
    fn every_registered_name_and_header_name_is_resolved_to_its_crawler() {
        for crawler in Registry::builtin().crawlers() {
            for name in [&crawler.name].into_iter().chain(&crawler.header_names) {
                for name in [name.to_owned(), name.to_uppercase(), format!(" {name} ")] {
                    let (named_as, agents) = resolve(&name);
                    let want = (NamedAs::Registered, Some(crawler.name.as_str()));
                    assert_eq!((named_as, agents.first().crawler()), want);
                    assert_eq!(agents.first().tokens(), &crawler.tokens);
                }
            }
        }
    }

    #[test]
    fn what_is_no_name_is_a_header_and_what_is_no_header_a_crawlers_name() {
        for (name, named_as, crawler, fallback) in [
            ("*", NamedAs::Star, None, Fallback::Star),
            ("Sogou", NamedAs::Registered, Some("Sogou"), Fallback::Star),
            ("'Googlebot'", NamedAs::Registered, Some("Googlebot"), Fallback::Star),
            ("AdsBot-Google", NamedAs::Registered, Some("AdsBot-Google"), Fallback::Nothing),
            ("Googlebot/2.1", NamedAs::Header, Some("Googlebot"), Fallback::Star),
            ("Googlebot 2.1", NamedAs::Header, Some("Googlebot"), Fallback::Star),
            ("Googelbot", NamedAs::Unregistered, Some("Googelbot"), Fallback::Star),
            ("Foo", NamedAs::Unregistered, Some("Foo"), Fallback::Star),
            ("Googelbot/2.1", NamedAs::Header, Some("Googelbot"), Fallback::Star),
            ("Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2", NamedAs::Header, None, Fallback::Nothing),
            ("Firefox", NamedAs::Header, None, Fallback::Nothing),
            ("curl", NamedAs::Header, None, Fallback::Nothing),
            ("", NamedAs::Header, None, Fallback::Nothing),
        ] {
            let (found_as, agents) = resolve(name);
            let found = (found_as, agents.first().crawler(), agents.first().fallback());
            assert_eq!(found, (named_as, crawler, fallback), "{name}");
        }
        assert_eq!(resolve("").1.first().class(), Class::Empty);
        assert_eq!(resolve("Foo Bar/1").1.first().tokens(), [ProductToken::new("foo bar")]);
        assert_eq!(resolve("Foo Bar").1.first().tokens()[0], ProductToken::new("foo bar"));
        assert_eq!(resolve("NeverSeen_Bot").1.first().tokens(), [ProductToken::new("neverseen_bot")]);
    }
}
