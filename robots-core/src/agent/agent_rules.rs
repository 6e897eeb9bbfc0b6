//! A robots.txt as one agent reads it, in one line: for authors of crawlers, and for questions about one.
//!
//! A crawler knows its own name, so nothing is looked up for a bare token or a product: both are taken as they are. Only a
//! whole header needs the [`Recognizer`].

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
    /// The rules that apply to the agent; a header may name several agents.
    named: Vec<(Vec<ProductToken>, Fallback)>,
}

impl RobotsTxt {
    /// The rules of this file for one agent, as the agent itself reads them.
    ///
    /// The agent is a product token, taken as it is (`OurBot`), a product with its version, of which the name counts
    /// (`OurBot/2.0`, `OurBot 2.0` or `OurBot v2`), or a whole `User-Agent` header, in which a [`Recognizer`] with the built-in
    /// [`Registry`] finds the name. Another word behind a blank is a part of the name: `Our Bot/2.0` is `Our Bot`, and neither
    /// `Our` nor `OurBot`. An agent that no group names obeys `*` (RFC 9309, section 2.2.1).
    ///
    /// The file is read in [`Reading::Reference`], the one of google/robotstxt, which most crawlers share. A server that
    /// enforces its file reads it in [`Reading::Standard`], and so refuses more: to a crawler `/private%2Fb` is no
    /// path below `/private/`, but many a server serves the same page there. In `Reference` a name of the file ends at the
    /// first octet that is no letter, `-` or `_` (RFC 9309, section 2.2.1), and then is none of `MJ12bot` or `Our Bot`: an agent
    /// with such a name finds no group of its own there, and asks in `Standard`, by [`AgentRules::with_reading`].
    ///
    /// ```
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse("User-agent: OurBot\nDisallow: /private/\nCrawl-delay: 2\n");
    /// let ours = robots.for_agent("OurBot/2.0");
    /// assert!(ours.allows("/products"));
    /// assert!(!ours.allows("https://example.com/private/x?page=2"));
    /// assert_eq!(ours.verdict("/private/x").line(), Some(2));
    /// assert_eq!(ours.crawl_delay().map(|delay| delay.interval().as_secs()), Some(2));
    /// ```
    pub fn for_agent(&self, agent: impl AsRef<[u8]>) -> AgentRules {
        AgentRules { rules: self.compile(Reading::Reference), named: obeyed(self, agent.as_ref()) }
    }
}

impl AgentRules {
    /// The same file in another reading: `Standard` for what a server may hold the agent to.
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

    /// Whether the agent may fetch a path, or a whole URL of this site. The site's `/robots.txt` always may be
    /// (RFC 9309, section 2.2.2).
    ///
    /// Of a URL the path counts, not the host: whether the file is that of the URL's site, the caller knows. A text that begins neither
    /// with `/` nor with a scheme (`private/x`) is no path, and no rule for `/private/` matches it: resolve links first.
    pub fn allows(&self, path: impl AsRef<[u8]>) -> bool {
        let path = path.as_ref();
        RequestPath::is_robots_txt_target(path) || self.verdict(path).access() == Access::Allow
    }

    /// The word of the file alone, with the rule, its line and its group behind it. Of several agents of a header the
    /// first that is disallowed counts.
    pub fn verdict(&self, path: impl AsRef<[u8]>) -> Verdict<'_> {
        let path = self.rules.reading().path(&path);
        let verdicts = self.selections().map(|selection| selection.verdict(&path));
        let strictest = verdicts.min_by_key(|verdict| verdict.access() == Access::Allow);
        // There is an agent in every header.
        strictest.unwrap_or_else(|| self.rules.select(&[], Fallback::Star).verdict(&path))
    }

    /// How long the agent shall wait between two requests, where its groups say so; the longest for several agents of a
    /// header.
    pub fn crawl_delay(&self) -> Option<CrawlDelay<'_>> {
        self.selections().filter_map(Selection::crawl_delay).max_by_key(CrawlDelay::interval)
    }

    /// The file, for its [sitemaps](RobotsTxt::sitemaps) and whatever else is for every agent.
    pub const fn document(&self) -> &RobotsTxt {
        self.rules.document()
    }

    fn selections(&self) -> impl Iterator<Item = Selection<'_>> {
        self.named.iter().map(|(tokens, fallback)| self.rules.select(tokens, *fallback))
    }
}

/// The tokens of the agents, each with what it obeys where no group names it; at least one.
fn obeyed(file: &RobotsTxt, agent: &[u8]) -> Vec<(Vec<ProductToken>, Fallback)> {
    let agent = agent.trim_ascii();
    let (product, version) = agent.split_at(memchr::memchr(b'/', agent).unwrap_or(agent.len()));
    // A comment, an address, or more than one product. A name may have blanks, as `Screaming Frog SEO Spider`.
    let holds = |text: &[u8]| memchr::memmem::find(agent, text).is_some();
    let is_header =
        holds(b" (") || holds(b"://") || version.iter().any(|octet| matches!(octet, b' ' | b'(' | b';' | b','));
    if !is_header {
        let names = [Some(product), without_version(product)];
        return vec![(names.into_iter().flatten().map(ProductToken::new).collect(), Fallback::Star)];
    }
    let agents = Recognizer::new(Arc::clone(Registry::builtin()), file).agents(agent);
    // The client that asks is a crawler, whatever its header looks like.
    agents.iter().map(|agent| (agent.tokens().to_vec(), agent.obeys_star().fallback())).collect()
}

/// The name in front of a version (`OurBot 2.0`), which counts where no group has both: to crawlers a name ends at the blank.
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
            // A token is taken as it is: the registry is not asked what else it obeys.
            ("Googlebot-Image", "/star"),
            ("OurBotX", "/star"),
            // A version is no part of the name, however it is written; another word is.
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
        // AdsBot obeys no `*`; of two names each counts.
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
            // The group for one version is its own where a reading has the name whole.
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
            assert_eq!((star.verdict(target).access(), star.verdict(target).line()), (Access::Disallow, Some(12)));
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
