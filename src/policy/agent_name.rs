//! The names of crawlers in a policy.

use super::error::PolicyError;
use crate::agent::{Agent, NamedAs, Recognizer, Registry};
use crate::rules::{ProductToken, RobotsTxt};

/// The token of a configured name: as in robots.txt, `GPTBot/1.2` is `GPTBot`.
///
/// A policy has no registry, so a name that is unknown to the built-in one may be right.
pub(super) fn called(name: &str) -> Result<ProductToken, PolicyError> {
    let token = ProductToken::from_name(name.as_bytes()).ok_or_else(|| PolicyError::agent_name(name, None))?;
    let registry = Registry::builtin();
    let named = Recognizer::new(registry.clone(), &RobotsTxt::parse(&b""[..])).resolve(name);
    if named.named_as() == NamedAs::Registered {
        return Ok(token);
    }
    if is_header(name) {
        return Err(PolicyError::agent_name(name, named.agent().crawler()));
    }
    let joined: String = name.split_whitespace().collect();
    match registry.crawler(&joined) {
        Some(crawler) if joined != name.trim() => Err(PolicyError::agent_name(name, Some(crawler.name()))),
        _ => Ok(token),
    }
}

/// Whether an agent goes by this name: its crawler's, its own token, or one that its crawler sends. Not its whole chain: an
/// entry for Googlebot is not for Applebot.
pub(super) fn is_called(agent: &Agent, name: &ProductToken) -> bool {
    let is_name = |other: &str| other.as_bytes().eq_ignore_ascii_case(name.as_bytes());
    agent.tokens().first() == Some(name)
        || agent.crawler().is_some_and(is_name)
        || agent.registered().is_some_and(|crawler| crawler.header_names().any(is_name))
}

/// Whether a text is more than a name and its version: `Mozilla/5.0 (compatible; …)`, `FooBot/1.0 BarBot/2.0`.
fn is_header(name: &str) -> bool {
    let behind_name = name.trim().split_once('/').map_or("", |(_, behind)| behind);
    name.contains(['(', ';', ',']) || behind_name.contains(|char: char| char == '/' || char.is_whitespace())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_that_no_agent_can_have_is_refused_with_the_right_one() {
        const ANY: &str = "write one such as \"GPTBot\"";
        for (name, right) in [
            ("GPT Bot", "write \"GPTBot\""),
            ("google bot", "write \"Googlebot\""),
            ("Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)", "write \"GPTBot\""),
            ("GPTBot/1.2 (+https://openai.com/gptbot)", "write \"GPTBot\""),
            ("AcmeBot/1.0 (+https://acme.example/bot)", "write \"AcmeBot\""),
            ("Mozilla/5.0 (X11; Linux x86_64) Gecko/20100101 Firefox/128.0", ANY),
            ("*", ANY),
            ("", ANY),
        ] {
            let error = called(name).expect_err(name).to_string();
            assert_eq!(error, format!("{name:?} is not a crawler's name: {right}"));
        }
    }

    #[test]
    fn names_that_an_agent_can_have_are_taken() {
        let identify = |header: &str| {
            Recognizer::new(Registry::builtin().clone(), &RobotsTxt::parse(&b""[..])).identify(header.as_bytes())
        };
        for (name, header) in [
            ("gptbot", "GPTBot/1.2"),
            ("GPTBot/1.2", "GPTBot/1.2"),
            (" Better Uptime Bot ", "Better Uptime Bot/1.0"),
            // A name that a crawler sends, not the one it is listed under.
            ("HaosouSpider", "360Spider"),
            ("Yahoo! Slurp", "Mozilla/5.0 (compatible; Yahoo! Slurp; http://help.yahoo.com/help/us/ysearch/slurp)"),
            ("AcmeBot", "AcmeBot/1.0 (+https://acme.example/bot)"),
            ("Acme Crawler", "Acme Crawler/1.0"),
        ] {
            assert!(is_called(&identify(header), &called(name).expect(name)), "{name}");
        }
    }
}
