//! The rules of a robots.txt for one agent, in a single call: for authors of crawlers, and for
//! questions about one.
//!
//! A crawler knows its own name, so a bare token or product is used as it is, without a lookup.
//! Only a whole header needs the [`Recognizer`].

use std::sync::Arc;

use super::recognizer::Recognizer;
use super::registry::Registry;
use crate::rules::{
    Access, CrawlDelay, Fallback, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet, Selection, Verdict,
};

/// The rules of a robots.txt for one agent; see [`RobotsTxt::for_agent`].
#[derive(Debug)]
pub struct AgentRules {
    rules: RuleSet,
    /// Tokens and fallback of each agent; a header may name several agents.
    named: Vec<(Vec<ProductToken>, Fallback)>,
}

impl RobotsTxt {
    /// Returns the rules of this file for one agent, as the agent itself reads them.
    ///
    /// The agent is one of these:
    ///
    /// - a product token, used as it is (`OurBot`);
    /// - a product and its version, which is ignored (`OurBot/2.0`, `OurBot 2.0` or `OurBot v2`);
    /// - a whole `User-Agent` header; a [`Recognizer`] with the built-in [`Registry`] finds the
    ///   name in it.
    ///
    /// Any other word after a blank is part of the name: `Our Bot/2.0` is `Our Bot`, and neither
    /// `Our` nor `OurBot`. An agent that no group names obeys `*` (RFC 9309, section 2.2.1).
    ///
    /// The file is read in [`Reading::Reference`], the reading of google/robotstxt, which most
    /// crawlers share. A server that enforces its file uses [`Reading::Standard`], which disallows
    /// more. For a crawler, `/private%2Fb` is not below `/private/`, but many servers return the
    /// same page for it. In `Reference` a name in the file ends at the first byte that is not a
    /// letter, `-` or `_` (RFC 9309, section 2.2.1). So `MJ12bot` and `Our Bot` do not find their
    /// own groups there. Agents with such names use `Standard`, with [`AgentRules::with_reading`].
    ///
    /// ```
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse("User-agent: OurBot\nDisallow: /private/\nCrawl-delay: 2\n");
    /// let ours = robots.for_agent("OurBot/2.0");
    /// assert!(ours.allows("/products"));
    /// assert!(!ours.allows("https://example.com/private/x?page=2"));
    /// assert_eq!(ours.rules_say("/private/x").line(), Some(2));
    /// assert_eq!(ours.crawl_delay().map(|delay| delay.interval().as_secs()), Some(2));
    /// ```
    pub fn for_agent(&self, agent: impl AsRef<[u8]>) -> AgentRules {
        AgentRules { rules: self.compile(Reading::Reference), named: obeyed(self, agent.as_ref()) }
    }
}

impl AgentRules {
    /// Reads the same file in another reading: `Standard` is what a server may enforce for the
    /// agent.
    ///
    /// ```
    /// use robots_core::rules::{Reading, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse("User-agent: *\nDisallow: /private/\n");
    /// let ours = robots.for_agent("OurBot");
    /// assert!(ours.allows("/private%2Fb"));
    /// assert!(!ours.with_reading(Reading::Standard).allows("/private%2Fb"));
    /// ```
    #[must_use]
    pub fn with_reading(self, reading: Reading) -> Self {
        let registry = Registry::builtin();
        let rules = self.rules.document().compile_with(reading, |name| registry.stands_for(name.value()));
        Self { rules, ..self }
    }

    /// Reports whether the agent may fetch a path, or a whole URL of this site. The site's
    /// `/robots.txt` is always allowed (RFC 9309, section 2.2.2).
    ///
    /// Only the path of a URL counts: the caller has to know that the file belongs to the URL's
    /// host. A string that begins neither with `/` nor with a scheme (`private/x`) is not a path,
    /// and no rule for `/private/` matches it; resolve links first.
    pub fn allows(&self, path: impl AsRef<[u8]>) -> bool {
        let path = path.as_ref();
        RequestPath::is_robots_txt_target(path) || self.rules_say(path).access() == Access::Allow
    }

    /// Returns the verdict of the file alone, with the rule, its line and its group. If a header
    /// names several agents, the first disallowed one counts.
    pub fn rules_say(&self, path: impl AsRef<[u8]>) -> Verdict<'_> {
        let path = self.rules.reading().path(&path);
        let verdicts = self.selections().map(|selection| selection.verdict(&path));
        let strictest = verdicts.min_by_key(|verdict| verdict.access() == Access::Allow);
        // Every header has an agent.
        strictest.unwrap_or_else(|| self.rules.select(&[], Fallback::Star).verdict(&path))
    }

    /// Returns how long the agent has to wait between two requests. `None` if its groups set no
    /// delay; the longest delay if a header names several agents.
    pub fn crawl_delay(&self) -> Option<CrawlDelay<'_>> {
        self.selections().filter_map(Selection::crawl_delay).max_by_key(CrawlDelay::interval)
    }

    /// Returns the file, with its [sitemaps](RobotsTxt::sitemaps) and everything else that concerns
    /// every agent.
    pub const fn document(&self) -> &RobotsTxt {
        self.rules.document()
    }

    fn selections(&self) -> impl Iterator<Item = Selection<'_>> {
        self.named.iter().map(|(tokens, fallback)| self.rules.select(tokens, *fallback))
    }
}

/// Returns the tokens of each agent, with the groups that it obeys if none names it; at least one
/// agent.
fn obeyed(file: &RobotsTxt, agent: &[u8]) -> Vec<(Vec<ProductToken>, Fallback)> {
    let agent = agent.trim_ascii();
    let (product, version) = agent.split_at(memchr::memchr(b'/', agent).unwrap_or(agent.len()));
    // A header has a comment, an address, or several products. A name may contain blanks, such as
    // `Screaming Frog SEO Spider`.
    let holds = |text: &[u8]| memchr::memmem::find(agent, text).is_some();
    let is_header =
        holds(b" (") || holds(b"://") || version.iter().any(|octet| matches!(octet, b' ' | b'(' | b';' | b','));
    if !is_header {
        let names = [Some(product), without_version(product)];
        return vec![(names.into_iter().flatten().map(ProductToken::new).collect(), Fallback::Star)];
    }
    let agents = Recognizer::new(Arc::clone(Registry::builtin()), file).agents(agent);
    // The asking client is a crawler, whatever its header looks like.
    agents.iter().map(|agent| (agent.tokens().to_vec(), agent.obeys_star().fallback())).collect()
}

/// Returns the name before a version (`OurBot 2.0`). It counts if no group has both: for crawlers a
/// name ends at the blank.
fn without_version(product: &[u8]) -> Option<&[u8]> {
    let blank = memchr::memrchr(b' ', product)?;
    let is_version = matches!(&product[blank + 1..], [b'v' | b'V', digit, ..] | [digit, ..] if digit.is_ascii_digit());
    is_version.then(|| product[..blank].trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "User-agent: OurBot\nDisallow: /ours\n\nUser-agent: Googlebot\nDisallow: /google\n\n\
                        User-agent: MJ12bot\nDisallow: /mj\n\nUser-agent: *\nDisallow: /star\nDisallow: /robots.txt\n";

    #[test]
    fn an_agent_is_named_by_token_product_or_header() {
        let robots = RobotsTxt::parse(FILE);
        for (agent, disallowed) in [
            ("OurBot", "/ours"),
            ("ourbot/2.0", "/ours"),
            ("OurBot/2.0 (+https://example.com/bot)", "/ours"),
            ("Mozilla/5.0 (compatible; OurBot/2.0; +https://example.com/bot)", "/ours"),
            ("Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)", "/google"),
            // A token is used as it is: the registry is not asked for further tokens.
            ("Googlebot-Image", "/star"),
            ("OurBotX", "/star"),
            // A version is not part of the name, however it is written; another word is.
            ("OurBot 2.0", "/ours"),
            ("ourbot  v2", "/ours"),
            ("OurBot 2.0/beta", "/ours"),
            ("OurBot 2.0 (+https://example.com/bot)", "/ours"),
            ("OurBot vNext", "/star"),
            ("OurBot2.0", "/star"),
            ("Our Bot/1.0", "/star"),
            ("Our Bot 1.0", "/star"),
            ("2.0", "/star"),
            ("", "/star"),
            ("*", "/star"),
        ] {
            let rules = robots.for_agent(agent);
            let found: Vec<_> =
                ["/ours", "/google", "/mj", "/star"].into_iter().filter(|path| !rules.allows(path)).collect();
            assert_eq!(found, [disallowed], "{agent}");
        }
        // AdsBot does not obey `*`; if a header has two names, each counts.
        assert!(robots.for_agent("AdsBot-Google (+http://www.google.com/adsbot.html)").allows("/star"));
        let both = robots.for_agent("Mozilla/5.0 (compatible; Googlebot/2.1; OurBot/2.0; +https://example.com/bot)");
        assert!(!both.allows("/google") && !both.allows("/ours") && both.allows("/star"));
    }

    #[test]
    fn every_header_of_the_registry_is_read_as_the_recognizer_reads_it() {
        let mut headers = 0;
        for crawler in Registry::builtin().crawlers() {
            let Some(token) = crawler.tokens.first() else { continue };
            let robots = RobotsTxt::parse(format!("User-agent: {token}\nDisallow: /\n"));
            let is_header = |example: &&String| example.contains('(') || example.matches('/').count() > 1;
            for example in crawler.examples.iter().filter(is_header) {
                headers += 1;
                let rules = robots.for_agent(example).with_reading(Reading::Standard);
                assert!(!rules.allows("/x"), "{example}");
            }
        }
        assert!(headers > 200, "{headers}");
    }

    #[test]
    fn a_name_with_digits_is_found_in_the_standard_reading() {
        let mj = RobotsTxt::parse(FILE).for_agent("MJ12bot/v1.4.8");
        assert!(mj.allows("/mj") && !mj.allows("/star"));
        let mj = mj.with_reading(Reading::Standard);
        assert!(!mj.allows("/mj") && mj.allows("/star"));
    }

    #[test]
    fn a_name_with_a_blank_is_found_in_the_standard_reading() {
        let robots = RobotsTxt::parse("User-agent: Our Bot\nDisallow: /a\n\nUser-agent: OtherBot 3\nDisallow: /b\n");
        for (agent, reading, disallowed) in [
            ("Our Bot/2.0", Reading::Reference, None),
            ("Our Bot/2.0", Reading::Standard, Some("/a")),
            ("Our Bot 2.0", Reading::Standard, Some("/a")),
            ("OurBot/2.0", Reading::Standard, None),
            // A group for one version is separate if the reading keeps the whole name.
            ("OtherBot 3", Reading::Standard, Some("/b")),
            ("OtherBot 4", Reading::Standard, None),
            ("OtherBot 4", Reading::Reference, Some("/b")),
        ] {
            let rules = robots.for_agent(agent).with_reading(reading);
            assert_eq!(["/a", "/b"].into_iter().find(|path| !rules.allows(path)), disallowed, "{agent} {reading:?}");
        }
    }

    #[test]
    fn the_file_itself_may_always_be_fetched_whatever_it_says() {
        let star = RobotsTxt::parse(FILE).for_agent("AnyBot");
        for target in ["/robots.txt", "/robots.txt?x", "https://example.com/robots.txt"] {
            assert!(star.allows(target), "{target}");
            assert_eq!((star.rules_say(target).access(), star.rules_say(target).line()), (Access::Disallow, Some(12)));
        }
        assert!(!star.allows("/robots.txt.bak"));
    }

    #[test]
    fn text_and_octets_of_every_kind_are_taken() {
        let text = String::from("User-agent: *\nDisallow: /x\nCrawl-delay: 3\nSitemap: https://example.com/s.xml\n");
        for robots in [
            RobotsTxt::parse(text.as_str()),
            RobotsTxt::parse(&text),
            RobotsTxt::parse(text.as_bytes()),
            RobotsTxt::parse(text.clone().into_bytes()),
            RobotsTxt::from(Arc::from(text.as_bytes())),
            RobotsTxt::parse(text.clone()),
        ] {
            let rules = robots.for_agent(String::from("OurBot"));
            assert!(!rules.allows("/x") && !rules.allows(b"/x") && !rules.allows(String::from("/x")));
            assert_eq!(rules.crawl_delay().map(|delay| delay.line()), Some(3));
            assert_eq!(rules.document().sitemaps().len(), 1);
        }
    }
}
