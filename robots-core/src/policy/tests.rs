//! Tests the decisions of policies on files and agents. Each part of the policy has its own test
//! file.

mod exemptions;
mod grace;
mod impostors;
mod overrides;
mod paths;
mod refusals;
mod search_engines;
mod star;

use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::grace::Grace;
use super::*;
use crate::agent::{Category, Recognizer, Registry};
use crate::rules::{MatchBudget, PathForm, Reading, RobotsTxt, RuleSet};

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0";
const GPTBOT: &str =
    "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; GPTBot/1.2; +https://openai.com/gptbot)";
const GOOGLEBOT: &str = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)";
const UNKNOWN: &str = "Mozilla/5.0 (compatible; NeverHeardOfBot/1.0; +https://example.net/bot)";

struct Site {
    rules: RuleSet,
    recognizer: Recognizer,
}

impl Site {
    fn new(file: &str) -> Self {
        let robots = RobotsTxt::parse(file.as_bytes());
        let registry: &Arc<Registry> = Registry::builtin();
        Self {
            rules: robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value())),
            recognizer: Recognizer::new(registry.clone(), &robots),
        }
    }

    fn decide(&self, policy: &Policy, fields: &[&str], method: &str, target: &str) -> (Action, Reason) {
        let agents: Vec<_> =
            fields.iter().flat_map(|field| self.recognizer.agents(field.as_bytes()).to_vec()).collect();
        let path = policy.path(target.as_bytes());
        let decision = policy.decide(&self.rules, &agents, RequestFacts::new(method, &path));
        (decision.action, decision.reason)
    }
}

fn refusing() -> PolicyBuilder {
    Policy::builder().mode(Mode::Refuse)
}

/// Returns the builder of a policy that also refuses search engines, for tests of other parts of
/// the policy.
fn refusing_every_crawler() -> PolicyBuilder {
    refusing().with_override(Override::index_engines(Mode::Refuse))
}

const REFUSED: (Action, Reason) = (Action::Refuse, Reason::Disallowed);
const NO_GROUP: (Action, Reason) = (Action::Pass, Reason::NoGroup);
const EXEMPT: (Action, Reason) = (Action::Pass, Reason::Exempt);

#[test]
fn the_mode_decides_what_a_disallow_does() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    for (mode, want) in [
        (Mode::Off, (Action::Pass, Reason::Off)),
        (Mode::Observe, (Action::Pass, Reason::Observed)),
        (Mode::Tag, (Action::Tag, Reason::Disallowed)),
        (Mode::Refuse, REFUSED),
    ] {
        let policy = Policy::builder().mode(mode).build();
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/private/x"), want);
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/"), (Action::Pass, Reason::Allowed));
    }
    assert_eq!(Policy::default().mode, Mode::Observe);
}

#[test]
fn the_strictest_outcome_counts_if_a_request_has_several_agents() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    for fields in [[FIREFOX, GPTBOT], [GPTBOT, FIREFOX]] {
        assert_eq!(site.decide(&policy, &fields, "GET", "/"), REFUSED);
    }
    assert_eq!(site.decide(&policy, &[], "GET", "/"), NO_GROUP);
}

#[test]
fn a_crawler_obeys_the_group_of_its_family_unless_the_policy_disables_that() {
    let image = "Googlebot-Image/1.0";
    let site = Site::new("User-agent: Googlebot\nDisallow: /\n");
    assert_eq!(site.decide(&refusing_every_crawler().build(), &[image], "GET", "/"), REFUSED);
    let alone = refusing_every_crawler().without_family().build();
    assert_eq!(site.decide(&alone, &[image], "GET", "/"), NO_GROUP);
    assert_eq!(site.decide(&alone, &[GOOGLEBOT], "GET", "/"), REFUSED);
}

#[test]
fn a_decision_names_the_first_agent_with_the_strictest_outcome() {
    let site = Site::new("User-agent: GPTBot\nUser-agent: Googlebot\nDisallow: /\n");
    let policy = refusing_every_crawler().build();
    for (fields, agent) in [
        (&[FIREFOX, GPTBOT, GOOGLEBOT][..], 1),
        (&[GOOGLEBOT, GPTBOT], 0),
        (&[FIREFOX, FIREFOX], 0),
        (&[GPTBOT, FIREFOX], 0),
    ] {
        let agents: Vec<_> = fields.iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let decision = policy.decide(&site.rules, &agents, RequestFacts::of_target("GET", b"/"));
        assert_eq!(decision.agent, agent, "{fields:?}");
    }
}

#[test]
fn an_agent_can_be_exempted_by_its_crawlers_name_or_by_its_own_token() {
    // The file names an unregistered crawler and a registered crawler.
    let site = Site::new("User-agent: NeverHeardOfBot\nUser-agent: Googlebot-Image\nDisallow: /\n");
    for (field, name) in [(UNKNOWN, "neverheardofbot"), ("Googlebot-Image/1.0", "googlebot-image")] {
        let policy = refusing().exempt_agents([name]).expect("a name").build();
        assert_eq!(site.decide(&policy, &[field], "GET", "/"), EXEMPT, "{name}");
    }
    let differing = Registry::builtin().crawlers().find_map(|crawler| {
        let agent = site.recognizer.identify(crawler.name.as_bytes());
        let own = agent.tokens().first()?.to_string();
        let is_one = agent.crawler() == Some(&crawler.name) && !crawler.is_index_engine;
        (is_one && !own.eq_ignore_ascii_case(&crawler.name)).then(|| (crawler.name.to_owned(), own))
    });
    let (name, token) = differing.expect("a crawler whose token is not its name");
    let site = Site::new(&format!("User-agent: {token}\nDisallow: /\n"));
    assert_eq!(site.decide(&refusing().build(), &[&name], "GET", "/"), REFUSED, "{name} {token}");
    for called in [&name, &token] {
        let policy = refusing().exempt_agents([called]).expect("a name").build();
        assert_eq!(site.decide(&policy, &[&name], "GET", "/"), EXEMPT, "{called}");
    }
}

#[test]
fn actions_and_reasons_have_the_names_that_logs_and_fields_show() {
    for (action, name) in [(Action::Pass, "pass"), (Action::Tag, "tag"), (Action::Refuse, "refuse")] {
        assert_eq!(action.as_str(), name);
    }
    for (reason, name) in [
        (Reason::NothingKnown, "nothing-known"),
        (Reason::KillSwitch, "kill-switch"),
        (Reason::Exempt, "exempt"),
        (Reason::NoGroup, "no-group"),
        (Reason::Allowed, "allowed"),
        (Reason::Off, "off"),
        (Reason::SuspectHuman, "suspect-human"),
        (Reason::Observed, "observed"),
        (Reason::Grace, "grace"),
        (Reason::SearchEngine, "search-engine"),
        (Reason::Disallowed, "disallowed"),
    ] {
        assert_eq!(reason.as_str(), name);
    }
}

#[test]
fn a_policy_value_that_can_match_nothing_is_refused_with_an_explanation() {
    let builder = Policy::builder;
    for (refused, message) in [
        (
            builder().exempt_paths(["/a", "healthz"]).err(),
            "\"healthz\" is not a path pattern: it matches nothing unless it begins with \"/\" or \"*\"",
        ),
        (builder().exempt_paths([""]).err(), "\"\" is not a path pattern"),
        (Override::pattern("a/", Mode::Off).err(), "\"a/\" is not a path pattern: it matches nothing"),
        (
            builder().wildcard_methods(["GET", "G T"]).err(),
            "\"G T\" is not a registered method: write one such as \"GET\"",
        ),
        (builder().wildcard_methods(["GTE", "HEAD"]).err(), "\"GTE\" is not a registered method"),
        (builder().wildcard_methods(["*"]).err(), "\"*\" is not a method: list each method by its name"),
        (
            builder().exempt_networks(["10.0.0.0/8".to_owned(), "10.0.0.1/8".to_owned()]).err(),
            "\"10.0.0.1/8\" is not a network: the address bits after the prefix length must be zero",
        ),
        (builder().wildcard_methods([""]).err(), "\"\" is not a registered method"),
        (builder().wildcard_methods([""; 0]).err(), "\"wildcard_methods\" is an empty list"),
        (builder().exempt_agents(["GPTBot", "*"]).err(), "\"*\" is not a crawler's name: write one such as \"GPTBot\""),
        (Override::agent(" ", Mode::Off).err(), "\" \" is not a crawler's name"),
        (
            builder().exempt_cookies(["sid=1"]).err(),
            "\"sid=1\" is not a cookie's name: write the part before \"=\", such as \"session\"",
        ),
        (builder().session_cookies([""]).err(), "\"\" is not a cookie's name"),
        (builder().session_cookies([" a"]).err(), "\" a\" is not a cookie's name"),
        (builder().session_cookies(["a;b"]).err(), "\"a;b\" is not a cookie's name"),
    ] {
        let error = refused.expect(message);
        assert!(error.to_string().starts_with(message), "{error}");
        assert!(message.starts_with(&format!("{:?}", error.text())), "{error}");
    }
    let policy = builder()
        .exempt_paths(["/.well-known/", "*.css$"])
        .and_then(|policy| policy.wildcard_methods(["get", "VERSION-CONTROL"]))
        .and_then(|policy| policy.exempt_agents(["GPTBot/1.2", "Screaming Frog SEO Spider"]))
        .and_then(|policy| policy.exempt_cookies(["__Host-sid", "caf\u{e9}"]));
    assert_eq!(policy.err(), None);
}
