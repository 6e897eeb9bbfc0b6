//! Tests that the crawlers of search engines that people use are only tagged, unless an override
//! applies.

use super::*;

const BINGBOT: &str = "Mozilla/5.0 AppleWebKit/537.36 (KHTML, like Gecko; compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm) Chrome/141.0.0.0 Safari/537.36";
const INSPECTION: &str = "Mozilla/5.0 (compatible; Google-InspectionTool/1.0;)";
const SPARED: (Action, Reason) = (Action::Tag, Reason::SearchEngine);

#[test]
fn a_refusing_policy_tags_search_engines_that_people_use_and_refuses_the_rest() {
    let site = Site::new("User-agent: *\nDisallow: /private/\n\nUser-agent: Googlebot\nDisallow: /private/\n");
    let policy = refusing().build();
    for engine in [GOOGLEBOT, "Googlebot-Image/1.0", BINGBOT, "DuckDuckBot/1.1", INSPECTION] {
        assert_eq!(site.decide(&policy, &[engine], "GET", "/private/x"), SPARED, "{engine}");
        assert_eq!(site.decide(&policy, &[engine], "GET", "/x"), (Action::Pass, Reason::Allowed), "{engine}");
    }
    // These crawlers are registered as search engines, but feed no index that people use.
    for other in ["Wotbox/2.0", "Nutch/1.0", "PiplBot (+http://www.pipl.com/bot/)", "OAI-SearchBot/1.3", UNKNOWN] {
        assert_eq!(site.decide(&policy, &[other], "GET", "/private/x"), REFUSED, "{other}");
    }
    // An agent that is sent together with a search engine's name is judged separately.
    assert_eq!(site.decide(&policy, &[GOOGLEBOT, GPTBOT], "GET", "/private/x"), REFUSED);
    assert_eq!(site.decide(&policy, &[FIREFOX, GOOGLEBOT], "GET", "/private/x"), SPARED);
}

#[test]
fn only_the_refuse_mode_is_softened_to_a_tag_for_search_engines() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    for (mode, want) in [
        (Mode::Off, (Action::Pass, Reason::Off)),
        (Mode::Observe, (Action::Pass, Reason::Observed)),
        (Mode::Tag, (Action::Tag, Reason::Disallowed)),
        (Mode::Refuse, SPARED),
    ] {
        assert_eq!(site.decide(&Policy::builder().mode(mode).build(), &[GOOGLEBOT], "GET", "/x"), want, "{mode}");
    }
}

#[test]
fn the_last_matching_override_for_a_search_engine_wins_over_the_default() {
    let site = Site::new("User-agent: *\nUser-agent: Googlebot\nDisallow: /private/\nDisallow: /search\n");
    let decide = |policy: &Policy, field, target| site.decide(policy, &[field], "GET", target);
    let category = || Override::category(Category::Search, Mode::Refuse);
    let policy = refusing().with_override(category()).build();
    assert_eq!(decide(&policy, GOOGLEBOT, "/private/x"), REFUSED);
    assert_eq!(decide(&policy, INSPECTION, "/private/x"), SPARED, "it is of another category");
    let policy = refusing().with_override(category()).with_override(Override::index_engines(Mode::Observe)).build();
    assert_eq!(decide(&policy, GOOGLEBOT, "/private/x"), (Action::Pass, Reason::Observed));
    assert_eq!(decide(&policy, INSPECTION, "/private/x"), (Action::Pass, Reason::Observed));
    assert_eq!(decide(&policy, "Wotbox/2.0", "/private/x"), REFUSED);
    let policy = refusing()
        .with_override(Override::index_engines(Mode::Refuse))
        .with_override(Override::agent("bingbot", Mode::Tag).expect("a name"));
    let policy = policy.build();
    assert_eq!(decide(&policy, INSPECTION, "/private/x"), REFUSED);
    assert_eq!(decide(&policy, BINGBOT, "/private/x"), (Action::Tag, Reason::Disallowed), "the operator's own tag");
    // An override for a pattern applies only to the rule with this pattern.
    let pattern = Override::pattern("/search", Mode::Refuse).expect("a pattern");
    let policy = refusing().with_override(pattern).build();
    assert_eq!(decide(&policy, GOOGLEBOT, "/search"), REFUSED);
    assert_eq!(decide(&policy, GOOGLEBOT, "/private/"), SPARED);
    assert_eq!(decide(&policy, GOOGLEBOT, "/private/../search"), REFUSED, "in one of its forms it meets that rule");
    // An override that has ended does not apply.
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let policy = refusing().with_override(category().until(end)).build();
    let at = |now: SystemTime| {
        let clock = || now;
        let agents = [site.recognizer.identify(GOOGLEBOT.as_bytes())];
        policy
            .decide(
                &site.rules,
                &agents,
                RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", b"/search") },
            )
            .action
    };
    assert_eq!((at(end - Duration::from_secs(1)), at(end)), (Action::Refuse, Action::Tag));
}

#[test]
fn action_for_rule_equals_the_action_and_the_reason_of_a_decision() {
    let site = Site::new("User-agent: *\nDisallow: /search\nDisallow: /private\n");
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let policy = refusing()
        .exempt_agents(["DuckDuckBot"])
        .expect("a name")
        .with_override(Override::category(Category::Search, Mode::Observe).until(end))
        .with_override(Override::agent("bingbot", Mode::Refuse).expect("a name"))
        .with_override(Override::pattern("/search", Mode::Refuse).expect("a pattern"))
        .build();
    assert_eq!(policy.overrides.iter().filter_map(Override::rule_pattern).collect::<Vec<_>>(), [b"/search"]);
    for field in [GOOGLEBOT, BINGBOT, GPTBOT, "DuckDuckBot/1.1", "Wotbox/2.0"] {
        for (now, rule) in [(end, "/search"), (end, "/private"), (end - Duration::from_secs(1), "/private")] {
            let agent = site.recognizer.identify(field.as_bytes());
            let agent = crate::agent::Agent::from(agent.registered().expect("a crawler"));
            let clock = || now;
            let facts = RequestFacts { clock: Some(&clock), ..RequestFacts::of_target("GET", rule.as_bytes()) };
            let decision = policy.decide(&site.rules, std::slice::from_ref(&agent), facts);
            let want = (decision.action, decision.reason);
            assert_eq!(policy.action_for_rule(&agent, Some(rule.as_bytes()), now), want, "{field} {rule}");
            if rule == "/private" {
                assert_eq!(policy.action_for_rule(&agent, None, now), want, "{field}");
            }
        }
    }
}

#[test]
fn a_search_engine_from_a_custom_registry_is_also_only_tagged() {
    use crate::agent::{Crawler, Registry};
    let row = |is_index_engine| Crawler { is_index_engine, ..Crawler::new("Wotbox", Category::Search) };
    let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
    for (row, want) in [(row(false), REFUSED), (row(true), SPARED)] {
        let registry = Arc::new(Registry::builtin().extended_with([row]).expect("a row"));
        let site = Site { rules: robots.compile(Reading::Standard), recognizer: Recognizer::new(registry, &robots) };
        assert_eq!(site.decide(&refusing().build(), &["Wotbox/2.0"], "GET", "/x"), want);
    }
}

#[test]
fn no_index_engine_is_a_control_token_or_ignores_robots_txt() {
    let engines: Vec<_> = Registry::builtin().crawlers().filter(|crawler| crawler.is_index_engine).collect();
    assert!((25..40).contains(&engines.len()), "{}", engines.len());
    for engine in &engines {
        assert!(!engine.is_control && engine.obeys_robots != crate::agent::Obeys::No, "{}", engine.name);
    }
    for name in ["Googlebot", "Google-InspectionTool", "bingbot", "Applebot", "YandexBot", "Baiduspider", "DuckDuckBot"]
    {
        assert!(engines.iter().any(|engine| engine.name == name), "{name}");
    }
    for name in ["Wotbox", "Nutch", "PiplBot", "GPTBot", "OAI-SearchBot", "AmazonAdBot", "AdsBot-Google"] {
        assert!(engines.iter().all(|engine| engine.name != name), "{name}");
    }
}
