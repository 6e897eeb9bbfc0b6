//! The agent that a person means by a name, as it stands on a command line or in a file of expectations.
//!
//! What a person writes is looked up as a name first. Only what is no name is read as a header: a header must hold what a
//! registered crawler's name requires (`Stripe` is also a word), a name need not, and a control token is never sent.

use std::sync::Arc;

use super::agents::{Agent, Agents};
use super::crawler::{Class, Crawler, Obeys};
use super::header::{Header, Word};
use super::name_index::Kinds;
use super::recognizer::Recognizer;
use super::registry::Registry;
use crate::rules::{Fallback, ProductToken};

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

/// The agent that a name stands for: see [`Recognizer::resolve`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct NamedAgent {
    /// How the name was understood.
    pub named_as: NamedAs,
    /// The agent, or all that a header names: a request is judged by each of them.
    pub agents: Agents,
}

impl NamedAgent {
    /// The agent, the first of a header; for a name that no registered crawler has, a crawler of that name.
    pub fn agent(&self) -> &Agent {
        self.agents.first()
    }

    /// Whether the agent itself obeys the groups of `*`: crawlers do, unless their operator says otherwise. A
    /// [`Policy`](crate::policy::Policy) may hold fewer agents to it, or more.
    pub fn fallback(&self) -> Fallback {
        let is_crawler = matches!(self.agent().class(), Class::Registered | Class::Declared);
        if is_crawler && self.agent().obeys_star() != Obeys::No { Fallback::Star } else { Fallback::Nothing }
    }
}

impl Recognizer {
    /// The agent that a person means: `*`, a registered name, header name or product token, a whole `User-Agent` header, or
    /// else the product token of a crawler that is not registered.
    ///
    /// ```
    /// use robots_core::agent::{Class, NamedAs, Recognizer, Registry};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
    /// let stripe = recognizer.resolve("Stripe");
    /// assert_eq!((stripe.named_as, stripe.agent().crawler()), (NamedAs::Registered, Some("Stripe")));
    /// // A header needs more than the word.
    /// assert_eq!(recognizer.identify(b"Stripe").crawler(), None);
    ///
    /// let unknown = recognizer.resolve("NeverSeenBot");
    /// assert_eq!((unknown.named_as, unknown.agent().class()), (NamedAs::Unregistered, Class::Declared));
    /// ```
    pub fn resolve(&self, name: &str) -> NamedAgent {
        let name = name.trim();
        if name == "*" {
            return NamedAgent { named_as: NamedAs::Star, agents: Agent::named(None, Vec::new()).into() };
        }
        if let Some(crawler) = self.registry().named(name) {
            return NamedAgent { named_as: NamedAs::Registered, agents: Agent::of(crawler.clone()).into() };
        }
        let identified = if name.is_empty() { Agent::empty().into() } else { self.agents(name.as_bytes()) };
        match ProductToken::from_name(name.as_bytes()) {
            Some(token) if !identified.first().is_registered() && is_name(name, identified.first()) => NamedAgent {
                named_as: NamedAs::Unregistered,
                agents: Agent::named(Some(name.to_owned()), vec![token]).into(),
            },
            _ => NamedAgent { named_as: NamedAs::Header, agents: identified },
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
    use crate::rules::RobotsTxt;

    fn resolve(name: &str) -> NamedAgent {
        let file = RobotsTxt::parse(&b"User-agent: Foo Bar\nUser-agent: Foo\nDisallow: /\n"[..]);
        Recognizer::new(Registry::builtin().clone(), &file).resolve(name)
    }

    #[test]
    fn every_registered_name_and_header_name_is_resolved_to_its_crawler() {
        for crawler in Registry::builtin().crawlers() {
            for name in [&crawler.name].into_iter().chain(&crawler.header_names) {
                for name in [name.to_owned(), name.to_uppercase(), format!(" {name} ")] {
                    let resolved = resolve(&name);
                    let want = (NamedAs::Registered, Some(crawler.name.as_str()));
                    assert_eq!((resolved.named_as, resolved.agent().crawler()), want);
                    assert_eq!(resolved.agent().tokens(), &crawler.tokens);
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
            let resolved = resolve(name);
            let found = (resolved.named_as, resolved.agent().crawler(), resolved.fallback());
            assert_eq!(found, (named_as, crawler, fallback), "{name}");
        }
        assert_eq!(resolve("").agent().class(), Class::Empty);
        assert_eq!(resolve("Foo Bar/1").agent().tokens(), [ProductToken::new("foo bar")]);
        assert_eq!(resolve("Foo Bar").agent().tokens()[0], ProductToken::new("foo bar"));
        assert_eq!(resolve("NeverSeen_Bot").agent().tokens(), [ProductToken::new("neverseen_bot")]);
    }
}
