//! Recognises the agents in a header, and resolves names that people type.
//!
//! A typed string is first looked up in the registry. A string that the registry does not contain
//! is treated as a header. The names that people type differ from headers in two ways. First, in a
//! header, some registered names count only together with other strings (`Stripe` is also an
//! ordinary word), but a person may type the name alone. Second, a person may type a control token,
//! which never occurs in a header.

use std::collections::HashSet;
use std::ops::Range;
use std::sync::Arc;

use super::agents::{Agent, Agents};
use super::claim::{Claim, ClaimReader};
use super::crawler::{Category, Class, Crawler};
use super::file_names::{FileNames, may_claim};
use super::header::{Header, Word, WordRole};
use super::name_index::Kinds;
use super::purpose::crawls;
use super::registry::Registry;
use crate::rules::{ProductToken, RobotsTxt};

/// Recognises agents for one robots.txt: crawlers of the registry, and other crawlers that the file
/// names.
///
/// ```
/// use robots_core::agent::{Class, Recognizer, Registry};
/// use robots_core::rules::{ProductToken, RobotsTxt};
///
/// let file = RobotsTxt::parse(&b"User-agent: ExampleBot\nDisallow: /\n"[..]);
/// let recognizer = Recognizer::new(Registry::builtin().clone(), &file);
///
/// let agent = recognizer.identify(b"Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)");
/// assert_eq!(agent.class(), Class::Registered);
/// assert_eq!(agent.tokens(), [ProductToken::new("googlebot-image"), ProductToken::new("googlebot")]);
///
/// let agent = recognizer.identify(b"ExampleBot/2.1 (+https://example.com/bot)");
/// assert_eq!((agent.class(), agent.crawler()), (Class::Declared, Some("ExampleBot")));
/// ```
#[derive(Debug)]
pub struct Recognizer {
    registry: Arc<Registry>,
    names: FileNames,
}

/// The kind of name that was passed to [`Recognizer::resolve`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NamedAs {
    /// `*`: a crawler that is not named in any group.
    Star,
    /// The name of a registered crawler, one of its header names, or its first product token.
    Registered,
    /// A whole `User-Agent` header.
    Header,
    /// A name that does not belong to a registered crawler. It is treated as the product token of a
    /// crawler. This crawler obeys the group with this name or, if there is no such group, the
    /// groups for `*`.
    Unregistered,
}

impl Recognizer {
    /// Creates a recognizer for the names in a file. The registry is shared, not copied.
    pub fn new(registry: Arc<Registry>, file: &RobotsTxt) -> Self {
        let names = FileNames::new(&registry, file);
        Self { registry, names }
    }

    /// Returns the registry of known crawlers that this recognizer uses.
    #[doc(hidden)]
    pub const fn registry(&self) -> &Arc<Registry> {
        &self.registry
    }

    /// Returns the first of the agents that [`Recognizer::agents`] returns for one `User-Agent`
    /// line. Logs and reports show the name of this agent as the sender. A decision on a request
    /// must consider all agents of the request.
    ///
    /// The line may contain any bytes. All bytes are examined, even in a long line.
    pub fn identify(&self, field: &[u8]) -> Agent {
        self.agents(field).first().clone()
    }

    /// Returns all agents in one `User-Agent` line, so that no crawler can hide behind another
    /// name. All registered crawlers come first, each once. If words outside the registered names
    /// contain a name from the robots.txt or declare a crawler, an unregistered agent follows. If
    /// the line names several link previewers, only the first previewer is returned: a messenger
    /// also sends the names of other previewers whose metadata it understands. If the line names no
    /// registered crawler, there is exactly one agent.
    ///
    /// ```
    /// use robots_core::agent::{Recognizer, Registry};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
    /// let agents = recognizer.agents(b"Mozilla/5.0 (compatible; CCBot/2.0; GPTBot/1.2)");
    /// let names: Vec<_> = agents.iter().filter_map(|agent| agent.crawler()).collect();
    /// assert_eq!(names, ["CCBot", "GPTBot"]);
    /// ```
    pub fn agents(&self, field: &[u8]) -> Agents {
        let header = Header::read(field);
        let named = NamedCrawlers::of(&self.registry, &header);
        let Some((first, further)) = named.crawlers.split_first() else {
            return self.unregistered(&header, named.framework).into();
        };
        let own = self.unregistered_agent(header, &named.places);
        let further = further.iter().map(|crawler| Agent::of((*crawler).clone()));
        Agents::new(Agent::of((*first).clone()), further.chain(own))
    }

    /// Resolves a name that a person has written on a command line or in a file of expectations.
    /// Returns what kind of name it is, and the agents that it refers to. The name may be `*`; the
    /// name, header name or first product token of a registered crawler; a whole `User-Agent`
    /// header; or the product token of an unregistered crawler.
    ///
    /// A header may name several agents. Callers should consider all of them.
    ///
    /// ```
    /// use robots_core::agent::{Class, NamedAs, Recognizer, Registry};
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
    /// let (named_as, stripe) = recognizer.resolve("Stripe");
    /// assert_eq!((named_as, stripe.first().crawler()), (NamedAs::Registered, Some("Stripe")));
    /// // In a header, this word alone is not enough.
    /// assert_eq!(recognizer.identify(b"Stripe").crawler(), None);
    ///
    /// let (named_as, unknown) = recognizer.resolve("NeverSeenBot");
    /// assert_eq!((named_as, unknown.first().class()), (NamedAs::Unregistered, Class::Declared));
    /// ```
    #[doc(hidden)]
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

    /// Returns the unregistered agent in a header that also contains registered names, in the byte
    /// ranges `places`. `None` if the words outside these ranges declare no crawler and contain no
    /// name from the robots.txt.
    fn unregistered_agent(&self, header: Header<'_>, places: &[Range<usize>]) -> Option<Agent> {
        if !header.has_own_word_outside(places) {
            return None;
        }
        let mut header = header.without(places);
        let name = self.names.find(&header, &ClaimReader::of(&header)).cloned();
        header.ignore_descriptions();
        let agent = claimed(ClaimReader::of(&header).claim(), name.as_ref());
        let declares = agent.class() == Class::Declared && !agent.tokens().is_empty();
        (name.is_some() || declares).then_some(agent)
    }

    /// Returns the agent of a header that names no registered crawler, except possibly a framework.
    /// `framework` is true if the header contains a framework's name outside of the versions of
    /// products.
    fn unregistered(&self, header: &Header<'_>, framework: bool) -> Agent {
        let reader = ClaimReader::of(header);
        if let Some((framework, place)) = self.registry.framework(header, framework) {
            return self.built_with(framework, place, header, &reader);
        }
        let name = self.names.find(header, &reader);
        claimed(reader.claim(), name)
    }

    /// Returns the agent of a header that names a framework: the product before the framework's
    /// name. If there is no such product, the agent is the framework itself.
    fn built_with(
        &self,
        framework: &Arc<Crawler>,
        place: usize,
        header: &Header<'_>,
        reader: &ClaimReader<'_, '_>,
    ) -> Agent {
        let Some(product) = product_in_front(header, reader, place) else { return Agent::of(framework.clone()) };
        let name = self.names.find(header, reader);
        let own = ProductToken::from_name(product.as_bytes()).filter(|own| Some(own) != name && may_claim(own));
        let tokens = name.cloned().into_iter().chain(own).chain(framework.tokens.iter().cloned());
        // Some frameworks are software for federated servers, which fetch pages to create previews
        // for people. So an agent that is built with such a framework also has
        // [`Category::Preview`], unless its name suggests a crawler.
        let category = Some(framework.category).filter(|own| *own == Category::Preview && !crawls(product.as_bytes()));
        Agent::claimed(Claim { class: Class::Declared, category, product: Some(product) }, tokens.collect())
    }
}

/// Creates the agent that a header claims. `name` is the name from the robots.txt that was found in
/// the header, if any. The group for this name takes precedence over the group for the product that
/// the header declares.
fn claimed(claim: Claim, name: Option<&ProductToken>) -> Agent {
    let own = claim.product.as_deref().and_then(|product| ProductToken::from_name(product.as_bytes()));
    let own = own.filter(|own| Some(own) != name && may_claim(own));
    Agent::claimed(claim, name.cloned().into_iter().chain(own).collect())
}

#[derive(Debug, Default)]
pub(super) struct NamedCrawlers<'r> {
    /// The crawlers in the order of the header, each once. Frameworks, and all previewers except
    /// the first, are left out.
    pub(super) crawlers: Vec<&'r Arc<Crawler>>,
    /// The byte ranges of all registered names in the header, in order.
    pub(super) places: Vec<Range<usize>>,
    /// Whether the header contains a framework's name outside of the versions of products.
    pub(super) framework: bool,
    /// Pointers to the crawlers that were found after the first, including left-out previewers. A
    /// set finds repeated names quickly, even in a header of 64 KiB with thousands of names.
    further: HashSet<*const Crawler>,
    previewer: bool,
}

impl<'r> NamedCrawlers<'r> {
    pub(super) fn of(registry: &'r Registry, header: &Header<'_>) -> Self {
        let mut named = Self::default();
        for (crawler, place) in registry.find(header) {
            named.places.push(place);
            named.add(crawler);
        }
        named
    }

    fn add(&mut self, crawler: &'r Arc<Crawler>) {
        if crawler.is_framework {
            self.framework = true;
            return;
        }
        let is_previewer = crawler.category == Category::Preview;
        let is_new = match self.crawlers.first() {
            None => true,
            Some(first) => !Arc::ptr_eq(first, crawler) && self.further.insert(Arc::as_ptr(crawler)),
        };
        // Only the first previewer counts, because messengers also send the names of other
        // previewers ([`Recognizer::agents`]).
        if is_new && !(is_previewer && self.previewer) {
            self.previewer |= is_previewer;
            self.crawlers.push(crawler);
        }
    }
}

impl Registry {
    /// Returns the first framework in a header, and its position. Always searches the versions of
    /// products (`Nutch-1.10` in `FooBot/Nutch-1.10`). Searches other words only if
    /// `searches_all_words` is true, which means that [`NamedCrawlers::of`] found a framework's
    /// name in these words.
    ///
    /// In `FooBot/Nutch-1.10` and `FooBot/1.0 (Scrapy 2.11; …)`, the crawler is the product before
    /// the framework's name, not the framework.
    pub(super) fn framework<'r>(
        &'r self,
        header: &Header<'_>,
        searches_all_words: bool,
    ) -> Option<(&'r Arc<Crawler>, usize)> {
        if !searches_all_words && !header.has_named_version {
            return None;
        }
        let mut searched = Vec::new();
        let may_name = |word: &&Word| {
            let is_place = word.role == WordRole::Version || searches_all_words && word.may_name_a_crawler();
            is_place && word.text(header.bytes).first().is_some_and(u8::is_ascii_alphabetic)
        };
        header.words().filter(may_name).find_map(|word| {
            let (crawler, _) = self.named_at(word, header, &mut searched)?;
            crawler.is_framework.then_some((crawler, word.start))
        })
    }

    fn named(&self, name: &str) -> Option<&Arc<Crawler>> {
        let by_name = || self.crawlers.iter().find(|crawler| crawler.name.eq_ignore_ascii_case(name));
        let by_header = || self.with_header_name(name.as_bytes());
        // A string with a version or punctuation is a header, not a token.
        let token = ProductToken::from_name(name.as_bytes()).filter(|_| !name.contains(['/', '(', ';', ',']));
        let by_token =
            || token.and_then(|token| self.crawlers.iter().find(|crawler| crawler.tokens.first() == Some(&token)));
        by_name().or_else(by_header).or_else(by_token)
    }
}

fn product_in_front(header: &Header<'_>, reader: &ClaimReader<'_, '_>, place: usize) -> Option<String> {
    let mut parts = reader.declared_parts().filter(|part| {
        let is_library = |word: &Word| word.kinds.has(Kinds::LIBRARY);
        !header.words_of(part).iter().find(|word| word.may_name_a_crawler()).is_some_and(is_library)
    });
    parts.find_map(|part| Some(header.product_before(part, place)).filter(|product| !product.is_empty()))
}

/// Reports whether a string is a single word that does not name a browser, a library or an
/// application.
fn is_name(name: &str, identified: &Agent) -> bool {
    if name.contains(|char: char| char.is_whitespace() || matches!(char, '/' | '(' | ';' | ',')) {
        return false;
    }
    let is_common_to_browsers = |word: &Word| word.kinds.is_common_to_browsers() || word.kinds.has(Kinds::ENGINE);
    let header = Header::read(name.as_bytes());
    matches!(identified.class(), Class::Declared | Class::NonBrowser) && !header.words().any(is_common_to_browsers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Fallback;

    fn agent(file: &str, header: &str) -> Agent {
        Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(file.as_bytes())).identify(header.as_bytes())
    }

    #[test]
    fn an_unregistered_product_and_a_name_from_the_file_each_give_a_token() {
        let unknown = agent("", "NeverSeenBot/1.0");
        let want = (Class::Declared, Some("NeverSeenBot"), None);
        assert_eq!((unknown.class(), unknown.crawler(), unknown.category()), want);
        assert_eq!(unknown.tokens(), [ProductToken::new("neverseenbot")]);
        let named = agent("User-agent: Foo\nDisallow: /\n", "Foo/1.0");
        assert_eq!((named.class(), named.crawler()), (Class::NonBrowser, None));
        assert_eq!(named.tokens(), [ProductToken::new("foo")]);
        let browser = agent("", "Mozilla/5.0 (X11; Linux) Gecko/1 Firefox/2");
        assert_eq!((browser.class(), browser.crawler(), browser.tokens().len()), (Class::Browser, None, 0));
    }

    #[test]
    fn only_a_registered_crawler_has_a_registry_row() {
        let registered = agent("", "GPTBot/1.2");
        assert!(registered.is_registered());
        assert_eq!(registered.registered().map(|crawler| crawler.name.as_str()), Some("GPTBot"));
        assert_eq!(registered.category(), registered.registered().map(|crawler| crawler.category));
        for other in [agent("", "NeverSeenBot/1.0"), agent("", ""), Agent::empty()] {
            assert!(!other.is_registered() && other.registered().is_none(), "{other:?}");
        }
    }

    #[test]
    fn the_first_name_in_the_header_counts_if_several_names_match_equally() {
        let file = "User-agent: Foo\nUser-agent: Bar\nDisallow: /\n";
        assert_eq!(agent(file, "Foo/1 Bar/1").tokens()[0], ProductToken::new("foo"));
        assert_eq!(agent(file, "Bar/1 Foo/1").tokens()[0], ProductToken::new("bar"));
    }

    fn crawlers(header: &str) -> Vec<String> {
        let recognizer = Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..]));
        let agents = recognizer.agents(header.as_bytes());
        assert_eq!(agents.first().crawler(), recognizer.identify(header.as_bytes()).crawler(), "{header}");
        agents.iter().filter_map(Agent::crawler).map(str::to_owned).collect()
    }

    #[test]
    fn every_registered_name_in_a_header_gives_one_agent() {
        for (header, names) in [
            ("Mozilla/5.0 (compatible; CCBot/2.0; GPTBot/1.0)", &["CCBot", "GPTBot"][..]),
            ("Googlebot/2.1 GPTBot/1.0", &["Googlebot", "GPTBot"]),
            ("GPTBot CCBot/2.0 (compatible; gptbot/1.2)", &["GPTBot", "CCBot"]),
            // If a registered name is part of a longer registered name, only the longer name is
            // found.
            ("Googlebot-Image/1.0 Googlebot/2.1", &["Googlebot-Image", "Googlebot"]),
            ("Googlebot-Image/1.0", &["Googlebot-Image"]),
            ("TelegramBot (like TwitterBot)", &["TelegramBot"]),
            ("GPTBot/1.0 (+https://example.test/CCBot) like Googlebot", &["GPTBot"]),
            ("NeverSeenBot/1.0 GPTBot/1.0", &["GPTBot", "NeverSeenBot"]),
            ("NeverSeenBot/1.0 UnheardBot/1.0", &["NeverSeenBot"]),
            (
                "CCBot Bytespider ClaudeBot PetalBot GPTBot/1.2",
                &["CCBot", "Bytespider", "ClaudeBot", "PetalBot", "GPTBot"],
            ),
        ] {
            assert_eq!(crawlers(header), names, "{header}");
        }
    }

    #[test]
    fn other_preview_bots_in_the_header_of_a_preview_bot_are_not_agents() {
        let messages = "Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) \
                        Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0";
        assert_eq!(crawlers(messages), ["facebookexternalhit"]);
        assert_eq!(crawlers("facebookexternalhit/1.1 GPTBot/1.0"), ["facebookexternalhit", "GPTBot"]);
        assert_eq!(crawlers("GPTBot/1.0 facebookexternalhit/1.1"), ["GPTBot", "facebookexternalhit"]);
    }

    #[test]
    fn a_server_built_with_fedify_is_a_preview_agent_unless_it_is_named_a_bot() {
        let built_with = |product: &str| format!("{product} (Fedify/1.3.0; Deno/2.1.0; +https://example.test/)");
        for (product, category) in [("Example/1.0", Some(Category::Preview)), ("ExampleBot/1.0", None)] {
            let agent = agent("", &built_with(product));
            assert_eq!((agent.class(), agent.category()), (Class::Declared, category), "{product}");
            assert_eq!(agent.tokens()[1..], [ProductToken::new("fedify")]);
        }
        assert_eq!(agent("", "FooBot/Nutch-1.10").category(), None);
    }

    #[test]
    fn a_product_that_the_file_also_names_has_one_token() {
        let agent = agent("User-agent: NeverSeenBot\nDisallow: /\n", "NeverSeenBot/1.0");
        assert_eq!(agent.tokens(), [ProductToken::new("neverseenbot")]);
    }

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
    fn a_name_is_resolved_as_star_registered_header_or_unregistered() {
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
