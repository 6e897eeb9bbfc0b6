//! The rules of a robots.txt for a polite crawler. The file is interpreted in two [`Reading`]s, and
//! the crawler obeys the stricter of the two verdicts.
//!
//! A crawler does not know how a site's server interprets the site's robots.txt. Most crawlers use
//! [`Reading::Reference`], and this crate's server side enforces [`Reading::Standard`].

use std::cmp::Reverse;

use super::keyword::ValueError;
use super::{
    Access, CrawlDelay, Fallback, Name, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet, Selection, Verdict,
};

/// The rules of a robots.txt for one crawler. [`RobotsTxt::for_token`] creates them.
#[derive(Debug)]
pub struct AgentRules {
    /// The compiled file, one element per reading that the crawler obeys; never empty.
    readings: Vec<RuleSet>,
    /// The agents that were recognised from the crawler's name or `User-Agent` header; never empty.
    /// Each element contains the tokens of an agent, and whether the agent obeys `*` if no group
    /// names one of these tokens.
    agents: Vec<(Vec<ProductToken>, Fallback)>,
    stands_for: fn(Name<'_>) -> Vec<ProductToken>,
}

impl RobotsTxt {
    /// Returns the rules of this file that a polite crawler with this name should obey.
    ///
    /// The token is the crawler's own name (`OurBot`). A version (`OurBot/2.0`, `OurBot 2.0` or
    /// `OurBot v2`) is ignored. Any other word after a space belongs to the name: the name in `Our
    /// Bot/2.0` is `Our Bot`. If no group names the crawler, it obeys the groups for `*` (RFC 9309,
    /// section 2.2.1).
    ///
    /// A path is disallowed if [`Reading::Standard`] or [`Reading::Reference`] disallows it:
    /// - Names in the file are compared both in full (`Our2Bot`) and as google/robotstxt shortens
    ///   them (`Our`).
    /// - All spellings of a path are equal: `/%6fur/x` is `/our/x` (RFC 9309, section 2.2.2).
    /// - All [forms](super::PathForm) of a path are checked, such as `/our/x` for `//our/x`.
    ///
    /// To use only one reading, call [`AgentRules::with_reading`].
    ///
    /// # Errors
    ///
    /// Returns an error if the value is a whole `User-Agent` header. To find the crawler's name in
    /// a header, use `RobotsTxt::for_agent` (feature `registry`).
    ///
    /// ```
    /// use robots_core::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse("User-agent: Our2Bot\nDisallow: /our/\n");
    /// let ours = robots.for_token("Our2Bot")?;
    /// assert!(ours.allows("/products"));
    /// assert!(!ours.allows("/%6fur/x"));
    /// assert!(robots.for_token("Mozilla/5.0 (compatible; Our2Bot/1.0)").is_err());
    /// # Ok::<(), robots_core::rules::ValueError>(())
    /// ```
    pub fn for_token(&self, token: impl AsRef<[u8]>) -> Result<AgentRules, ValueError> {
        let token = token.as_ref();
        let Some(tokens) = product_tokens(token) else {
            let fault = "is a whole User-Agent header: write the name of the crawler, such as \"OurBot\"";
            return Err(ValueError::of_any(&String::from_utf8_lossy(token), fault));
        };
        Ok(AgentRules::new(self, vec![(tokens, Fallback::Star)], |_| Vec::new()))
    }
}

impl AgentRules {
    pub(crate) fn new(
        file: &RobotsTxt,
        agents: Vec<(Vec<ProductToken>, Fallback)>,
        stands_for: fn(Name<'_>) -> Vec<ProductToken>,
    ) -> Self {
        let readings = [Reading::Standard, Reading::Reference];
        Self { readings: readings.map(|reading| file.compile_with(reading, stands_for)).into(), agents, stands_for }
    }

    /// Uses only one reading instead of both. If this method is called several times, the last call
    /// decides.
    ///
    /// With [`Reading::Reference`], the verdict and its line are the same as in google/robotstxt.
    /// This reading cuts group names at the first byte that is not a letter, `-` or `_`. For
    /// example, a group for `Our2Bot` is read as a group for `Our`, so no group matches the agent
    /// `Our2Bot`.
    ///
    /// ```
    /// use robots_core::{Reading, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse("User-agent: *\nDisallow: /private/\n");
    /// let ours = robots.for_token("OurBot")?;
    /// assert!(!ours.allows("/private%2Fb"));
    /// assert!(ours.with_reading(Reading::Reference).allows("/private%2Fb"));
    /// # Ok::<(), robots_core::rules::ValueError>(())
    /// ```
    #[must_use]
    pub fn with_reading(self, reading: Reading) -> Self {
        let rules = self.document().compile_with(reading, self.stands_for);
        Self { readings: vec![rules], ..self }
    }

    /// Reports whether the crawler may fetch a path, or a whole URL of this site. A crawler may
    /// always fetch the site's `/robots.txt` (RFC 9309, section 2.2.2).
    ///
    /// The host of a URL is ignored: the caller must use the file of that host. Resolve relative
    /// links before the call: `private/x` is treated as `/private/x`.
    pub fn allows(&self, path: impl AsRef<[u8]>) -> bool {
        let path = path.as_ref();
        RequestPath::is_robots_txt_url(path) || self.verdict(path).access() == Access::Allow
    }

    /// Returns the verdict of the rules, with the deciding rule, its line and its group. If only
    /// one reading disallows the path, returns the verdict of that reading. If both readings
    /// disallow the path, returns the verdict of `Standard`.
    ///
    /// Unlike [`allows`](Self::allows), this method applies the rules to `/robots.txt`.
    #[expect(clippy::expect_used, reason = "the lists of readings and of agents are never empty")]
    pub fn verdict(&self, path: impl AsRef<[u8]>) -> Verdict<'_> {
        let verdicts = self.readings.iter().flat_map(|rules| {
            let path = rules.reading().path(&path);
            self.selections(rules).map(move |selection| selection.verdict(&path))
        });
        let strictest = verdicts.min_by_key(|verdict| verdict.access() == Access::Allow);
        strictest.expect("there is a reading and an agent")
    }

    /// Returns the time that the crawler should wait between two requests: the longest delay that
    /// any reading finds in the crawler's groups. `None` if these groups have no delay.
    pub fn crawl_delay(&self) -> Option<CrawlDelay<'_>> {
        let selections = self.readings.iter().flat_map(|rules| self.selections(rules));
        let delays = selections.filter_map(Selection::longest_crawl_delay);
        delays.max_by_key(|delay| (delay.interval(), Reverse(delay.line())))
    }

    /// Returns the parsed file, for example to read its [sitemaps](RobotsTxt::sitemaps).
    pub fn document(&self) -> &RobotsTxt {
        self.readings[0].document()
    }

    fn selections<'r>(&'r self, rules: &'r RuleSet) -> impl Iterator<Item = Selection<'r>> {
        self.agents.iter().map(|(tokens, fallback)| rules.select(tokens, *fallback))
    }
}

/// Returns the tokens of a product name, which may include a version. `None` if the value is a
/// whole `User-Agent` header.
pub(crate) fn product_tokens(agent: &[u8]) -> Option<Vec<ProductToken>> {
    let agent = agent.trim_ascii();
    let (product, version) = agent.split_at(memchr::memchr(b'/', agent).unwrap_or(agent.len()));
    // Only a header contains a comment, a URL, or more than one product. Spaces alone do not
    // indicate a header, because names may contain spaces (`Screaming Frog SEO Spider`).
    let holds = |text: &[u8]| memchr::memmem::find(agent, text).is_some();
    let is_header =
        holds(b" (") || holds(b"://") || version.iter().any(|byte| matches!(byte, b' ' | b'(' | b';' | b','));
    let names = [Some(product), without_version(product)];
    (!is_header).then(|| names.into_iter().flatten().map(ProductToken::new).collect())
}

/// Returns the product name without its version, such as `OurBot` for `OurBot 2.0`; `None` if the
/// name has no version. The result is used only if no group matches the whole name.
fn without_version(product: &[u8]) -> Option<&[u8]> {
    let blank = memchr::memrchr(b' ', product)?;
    let is_version = matches!(&product[blank + 1..], [b'v' | b'V', digit, ..] | [digit, ..] if digit.is_ascii_digit());
    is_version.then(|| product[..blank].trim_ascii_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "User-agent: OurBot\nDisallow: /ours\n\nUser-agent: Googlebot\nDisallow: /google\n\n\
                        User-agent: *\nDisallow: /star\nDisallow: /robots.txt\n";

    fn rules(file: impl AsRef<[u8]>, token: &str) -> AgentRules {
        RobotsTxt::parse(file).for_token(token).expect("a token")
    }

    #[test]
    fn a_token_is_a_name_with_or_without_its_version() {
        for (token, disallowed) in [
            ("OurBot", "/ours"),
            ("ourbot/2.0", "/ours"),
            ("Googlebot-Image", "/star"),
            ("OurBotX", "/star"),
            ("OurBot 2.0", "/ours"),
            ("ourbot  v2", "/ours"),
            ("OurBot 2.0/beta", "/ours"),
            ("OurBot vNext", "/star"),
            ("OurBot2.0", "/star"),
            ("Our Bot/1.0", "/star"),
            ("Our Bot 1.0", "/star"),
            ("2.0", "/star"),
            ("", "/star"),
            ("*", "/star"),
        ] {
            let rules = rules(FILE, token);
            let found: Vec<_> = ["/ours", "/google", "/star"].into_iter().filter(|path| !rules.allows(path)).collect();
            assert_eq!(found, [disallowed], "{token}");
        }
    }

    #[test]
    fn a_whole_user_agent_header_is_rejected_as_a_token() {
        let headers = "OurBot/2.0 (+https://example.com/bot) | OurBot (+bot@example.com) | \
            Mozilla/5.0 (compatible; OurBot/2.0; +https://example.com/bot) | OurBot/2.0 Nutch/1.10 | \
            OurBot/2.0; https://example.com/bot";
        for header in headers.split(" | ") {
            let error = RobotsTxt::parse(FILE).for_token(header).expect_err(header).to_string();
            assert!(error.ends_with("is a whole User-Agent header: write the name of the crawler, such as \"OurBot\""));
        }
    }

    #[test]
    fn ours_names_with_digits_dots_and_spaces_match_as_a_whole() {
        for name in ["Our2Bot", "MJ12bot", "008", "archive.org_bot", "Our Bot", "Yahoo! Slurp", "OurBot"] {
            for token in [name.to_owned(), name.to_uppercase(), format!("{name}/2.0")] {
                let rules = rules(format!("User-agent: {name}\nDisallow: /\n"), &token);
                assert!(!rules.allows("/x"), "{token}");
                assert_eq!(rules.verdict("/x").line(), Some(2), "{token}");
            }
        }
    }

    #[test]
    fn ours_a_path_is_disallowed_if_either_reading_disallows_it() {
        for (pattern, path, [standard, reference]) in [
            ("/our/", "/our/x", [true, true]),
            ("/our/", "/%6fur/x", [true, false]),
            ("/%6Fur/", "/our/x", [true, false]),
            ("/café", "/café", [true, false]),
            ("/café", "/caf%C3%A9", [true, true]),
            ("/café", "/caf%c3%a9", [true, false]),
            ("/caf%c3%a9", "/café", [true, false]),
            ("/our/", "//our/x", [true, false]),
            ("/our/", "/a/../our/x", [true, false]),
            ("/our/", "/our%2Fx", [true, false]),
            ("/our/x", "/our;a=b/x", [true, false]),
            ("/*.php$", "/a.php;b", [true, false]),
            ("/our/", "https://example.com/%6fur/x", [true, false]),
            ("/our/", "our/x", [true, false]),
            ("/b/", "//a/b/", [true, true]),
            // An escaped `*` is a literal `*` with `Reading::Standard`, and stays an escape with
            // `Reading::Reference`.
            ("/a%2Ab", "/a%2Ab", [true, true]),
            // Only `Legacy` adds a leading slash, and `AgentRules` does not use `Legacy` by
            // default.
            ("our/", "/our/x", [false, false]),
            ("/our/", "/ours", [false, false]),
        ] {
            let ask = || rules(format!("User-agent: *\nDisallow: {pattern}\n"), "OurBot");
            let refuses = |reading| !ask().with_reading(reading).allows(path);
            let found = [Reading::Standard, Reading::Reference].map(refuses);
            assert_eq!(found, [standard, reference], "{pattern} {path}");
            assert_eq!(!ask().allows(path), standard || reference, "{pattern} {path}");
        }
    }

    #[test]
    fn ours_the_verdict_has_the_line_of_the_reading_that_disallows() {
        let file = "User-agent: Our Bot\nDisallow: /a\n\nUser-agent: OtherBot 3\nDisallow: /b\n\n\
                    User-agent: *\nDisallow: /c\n";
        for (token, path, line) in [
            ("Our Bot/2.0", "/a", Some(2)),
            // With `Reading::Reference`, no group names this crawler, so the group for `*` applies.
            ("Our Bot/2.0", "/c", Some(8)),
            // With `Reading::Reference`, a name in the file ends at the first space.
            ("Our", "/a", Some(2)),
            ("OtherBot 4", "/b", Some(5)),
            ("OtherBot 4", "/c", Some(8)),
            ("OtherBot", "/d", None),
        ] {
            let rules = rules(file, token);
            assert_eq!(rules.verdict(path).line(), line, "{token} {path}");
            assert_eq!(rules.allows(path), line.is_none(), "{token} {path}");
        }
    }

    #[test]
    fn ours_the_longest_delay_counts_for_a_crawler() {
        for (file, token, delay) in [
            ("User-agent: a\nCrawl-delay: 2\nCrawl-delay: 10\nCrawl-delay: 3\n", "a", Some((10, 3))),
            ("User-agent: a\nCrawl-delay: 2\nDisallow:\nUser-agent: A\nCrawl-delay: 7\n", "a", Some((7, 5))),
            ("User-agent: a\nCrawl-delay: 2\nCrawl-delay: 2\n", "a", Some((2, 2))),
            ("User-agent: a\nCrawl-delay: 2\nDisallow:\nUser-agent: *\nCrawl-delay: 7\n", "a", Some((2, 2))),
            ("User-agent: a2\nCrawl-delay: 2\nDisallow:\nUser-agent: *\nCrawl-delay: 7\n", "a2", Some((7, 5))),
            ("User-agent: a2\nCrawl-delay: 9\nDisallow:\nUser-agent: *\nCrawl-delay: 7\n", "a2", Some((9, 2))),
            ("User-agent: a\nCrawl-delay: 0\n", "a", None),
            ("User-agent: b\nCrawl-delay: 5\n", "a", None),
        ] {
            let rules = rules(file, token);
            let found = rules.crawl_delay().map(|delay| (delay.interval().as_secs(), delay.line()));
            assert_eq!(found, delay, "{file}");
        }
    }

    #[test]
    fn rfc_2_2_2_robots_txt_itself_is_allowed_even_if_a_rule_disallows_it() {
        let star = rules(FILE, "AnyBot");
        for target in ["/robots.txt", "/robots.txt?x", "https://example.com/robots.txt"] {
            assert!(star.allows(target), "{target}");
            assert_eq!((star.verdict(target).access(), star.verdict(target).line()), (Access::Disallow, Some(9)));
        }
        assert!(!star.allows("/robots.txt.bak"));
    }

    #[test]
    fn strings_and_bytes_of_every_type_are_accepted() {
        let text = String::from("User-agent: *\nDisallow: /x\nCrawl-delay: 3\nSitemap: https://example.com/s.xml\n");
        for robots in [
            RobotsTxt::parse(text.as_str()),
            RobotsTxt::parse(&text),
            RobotsTxt::parse(text.as_bytes()),
            RobotsTxt::parse(text.clone().into_bytes()),
            RobotsTxt::from(std::sync::Arc::from(text.as_bytes())),
            RobotsTxt::parse(text.clone()),
        ] {
            let rules = robots.for_token(String::from("OurBot")).expect("a token");
            assert!(!rules.allows("/x") && !rules.allows(b"/x") && !rules.allows(String::from("/x")));
            assert_eq!(rules.crawl_delay().map(|delay| delay.line()), Some(3));
            assert_eq!(rules.document().sitemaps().len(), 1);
        }
    }
}
