//! The rules of a robots.txt for the crawlers that a `User-Agent` header names.

use std::sync::Arc;

use super::recognizer::Recognizer;
use super::registry::Registry;
use crate::rules::{AgentRules, Fallback, RobotsTxt, product_tokens};

impl RobotsTxt {
    /// Returns the rules of this file that a crawler should obey.
    ///
    /// `agent` is a product token (see [`RobotsTxt::for_token`]) or a whole `User-Agent` header. If
    /// `agent` is a header, a [`Recognizer`] with the built-in [`Registry`] finds the crawler's
    /// name. If a header names several crawlers, a path is allowed only if it is allowed for all of
    /// them.
    ///
    /// ```
    /// use robots_core::RobotsTxt;
    ///
    /// let robots = RobotsTxt::parse("User-agent: OurBot\nDisallow: /private/\nCrawl-delay: 2\n");
    /// let ours = robots.for_agent("OurBot/2.0 (+https://example.com/bot)");
    /// assert!(ours.allows("/products"));
    /// assert!(!ours.allows("https://example.com/private/x?page=2"));
    /// assert_eq!(ours.verdict("/private/x").line(), Some(2));
    /// assert_eq!(ours.crawl_delay().map(|delay| delay.interval().as_secs()), Some(2));
    /// ```
    pub fn for_agent(&self, agent: impl AsRef<[u8]>) -> AgentRules {
        let agents = match product_tokens(agent.as_ref()) {
            Some(tokens) => vec![(tokens, Fallback::Star)],
            None => {
                let agents = Recognizer::new(Arc::clone(Registry::builtin()), self).agents(agent.as_ref());
                // The caller of this function is a crawler, so `*` applies even if the header looks
                // like the header of a browser.
                agents.iter().map(|agent| (agent.tokens().to_vec(), agent.obeys_star().fallback())).collect()
            }
        };
        AgentRules::new(self, agents, |name| Registry::builtin().stands_for(name.value()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Reading;

    const FILE: &str = "User-agent: OurBot\nDisallow: /ours\n\nUser-agent: Googlebot\nDisallow: /google\n\n\
                        User-agent: *\nDisallow: /star\n";

    #[test]
    fn for_agent_accepts_a_product_token_or_a_user_agent_header() {
        let robots = RobotsTxt::parse(FILE);
        for (agent, disallowed) in [
            ("OurBot", "/ours"),
            ("OurBot/2.0", "/ours"),
            ("OurBot/2.0 (+https://example.com/bot)", "/ours"),
            ("OurBot 2.0 (+https://example.com/bot)", "/ours"),
            ("Mozilla/5.0 (compatible; OurBot/2.0; +https://example.com/bot)", "/ours"),
            ("Mozilla/5.0 (compatible; Googlebot-Image/1.0; +http://www.google.com/bot.html)", "/google"),
            // A token selects only the group that names this token, not the groups for the
            // crawler's other tokens.
            ("Googlebot-Image", "/star"),
        ] {
            let rules = robots.for_agent(agent);
            let found: Vec<_> = ["/ours", "/google", "/star"].into_iter().filter(|path| !rules.allows(path)).collect();
            assert_eq!(found, [disallowed], "{agent}");
        }
        // AdsBot does not obey `*`. If a header names two crawlers, the rules of both apply.
        assert!(robots.for_agent("AdsBot-Google (+http://www.google.com/adsbot.html)").allows("/star"));
        let both = robots.for_agent("Mozilla/5.0 (compatible; Googlebot/2.1; OurBot/2.0; +https://example.com/bot)");
        assert!(!both.allows("/google") && !both.allows("/ours") && both.allows("/star"));
    }

    #[test]
    fn ours_names_with_digits_and_differently_encoded_paths_match() {
        for (file, agent, path) in [
            ("User-agent: Our2Bot\nDisallow: /\n", "Our2Bot", "/x"),
            ("User-agent: Our2Bot\nDisallow: /\n", "Mozilla/5.0 (compatible; Our2Bot/1.0; +https://a.example/)", "/x"),
            ("User-agent: *\nDisallow: /our/\n", "Our2Bot", "/%6fur/x"),
            ("User-agent: *\nDisallow: /café\n", "OurBot", "/café"),
        ] {
            let rules = RobotsTxt::parse(file).for_agent(agent);
            assert!(!rules.allows(path), "{agent} {path}");
            assert_eq!(rules.verdict(path).line(), Some(2), "{agent} {path}");
            assert!(rules.with_reading(Reading::Reference).allows(path), "{agent} {path}");
        }
    }

    #[test]
    fn every_example_header_of_the_registry_selects_the_group_of_its_crawler() {
        let mut headers = 0;
        for crawler in Registry::builtin().crawlers() {
            let Some(token) = crawler.tokens.first() else { continue };
            let robots = RobotsTxt::parse(format!("User-agent: {token}\nDisallow: /\n"));
            let is_header = |example: &&String| example.contains('(') || example.matches('/').count() > 1;
            for example in crawler.examples.iter().filter(is_header) {
                headers += 1;
                assert!(!robots.for_agent(example).allows("/x"), "{example}");
            }
        }
        assert!(headers > 200, "{headers}");
    }
}
