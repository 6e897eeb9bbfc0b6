//! Tests overrides of the mode.

use super::*;

#[test]
fn a_lenient_override_for_one_rule_does_not_affect_another_rule() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /old/\nDisallow: /private/\n");
    let policy =
        refusing().with_override(Override::pattern("/old/", Mode::Observe).expect("a name or a pattern")).build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/old/x"), (Action::Pass, Reason::Observed));
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/old/../open/"), (Action::Pass, Reason::Observed));
    for target in ["/old/../private/x", "/old/..;/private/x", "/old/..%2fprivate/x"] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), REFUSED, "{target}");
    }
}

#[test]
fn a_decision_between_rules_with_the_same_mode_shows_the_one_for_the_sent_path() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /old/\nDisallow: /private/\n");
    let shown = |builder: PolicyBuilder| {
        let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
        let decision =
            builder.build().decide(&site.rules, &agents, RequestFacts::of_target("GET", b"/old/../private/x"));
        let rule = decision.verdict.and_then(|verdict| verdict.rule()).expect("a rule");
        (decision.action, String::from_utf8_lossy(rule.pattern()).into_owned())
    };
    let over = |pattern: &str, mode| Override::pattern(pattern, mode).expect("a pattern");
    let tagging = || Policy::builder().mode(Mode::Tag);
    assert_eq!(shown(tagging()), (Action::Tag, "/old/".to_owned()));
    assert_eq!(shown(tagging().with_override(over("/private/", Mode::Tag))), (Action::Tag, "/old/".to_owned()));
    let want = (Action::Refuse, "/private/".to_owned());
    assert_eq!(shown(tagging().with_override(over("/private/", Mode::Refuse))), want);
    assert_eq!(shown(tagging().with_override(over("/old/", Mode::Off))), (Action::Tag, "/private/".to_owned()));
}

#[test]
fn the_last_matching_override_wins() {
    let site = Site::new("User-agent: *\nDisallow: /search\nDisallow: /\n");
    let policy = refusing()
        .with_override(Override::category(Category::Search, Mode::Tag))
        .with_override(Override::agent("gptbot", Mode::Observe).expect("a name or a pattern"))
        .with_override(Override::pattern("/se%61rch", Mode::Off).expect("a name or a pattern"))
        .build();
    let tagged = (Action::Tag, Reason::Disallowed);
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/x"), tagged);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/x"), (Action::Pass, Reason::Observed));
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/search?q=1"), (Action::Pass, Reason::Off));
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/x"), REFUSED);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/search"), (Action::Pass, Reason::Off));
}

#[test]
fn an_override_for_a_category_applies_only_to_registered_crawlers() {
    let scraper = "PriceMonitor/1.0 (+https://example.net/bot)";
    let site = Site::new("User-agent: PriceMonitor\nUser-agent: UptimeRobot\nDisallow: /\n");
    assert_eq!(site.recognizer.identify(scraper.as_bytes()).category(), Some(Category::Monitoring));
    let policy = refusing().with_override(Override::category(Category::Monitoring, Mode::Off)).build();
    assert_eq!(site.decide(&policy, &["UptimeRobot/2.0"], "GET", "/"), (Action::Pass, Reason::Off));
    assert_eq!(site.decide(&policy, &[scraper], "GET", "/"), REFUSED);
}

#[test]
fn an_override_for_an_agent_does_not_apply_to_its_family() {
    let site = Site::new("User-agent: Googlebot\nDisallow: /\n");
    let policy =
        refusing().with_override(Override::agent("Googlebot", Mode::Tag).expect("a name or a pattern")).build();
    let applebot = "Mozilla/5.0 (compatible; Applebot/0.1; +http://www.apple.com/go/applebot)";
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/"), (Action::Tag, Reason::Disallowed));
    assert_eq!(site.decide(&policy, &[applebot], "GET", "/"), (Action::Tag, Reason::SearchEngine));
    let policy = refusing_every_crawler()
        .with_override(Override::agent("Googlebot", Mode::Tag).expect("a name or a pattern"))
        .build();
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/"), (Action::Tag, Reason::Disallowed));
    assert_eq!(site.decide(&policy, &[applebot], "GET", "/"), REFUSED);
}

#[test]
fn an_override_applies_until_its_end() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let policy = refusing()
        .with_override(Override::agent("GPTBot", Mode::Tag).expect("a name or a pattern"))
        .with_override(Override::agent("GPTBot", Mode::Observe).expect("a name or a pattern").until(end))
        .build();
    let at = |now: Option<SystemTime>| {
        let clock = || now.expect("a clock is asked only where there is one");
        let clock = now.is_some().then_some(&clock as &dyn Fn() -> SystemTime);
        let facts = RequestFacts { clock, ..RequestFacts::of_target("GET", b"/x") };
        policy.decide(&site.rules, &[site.recognizer.identify(GPTBOT.as_bytes())], facts).action
    };
    assert_eq!(at(Some(end - Duration::from_secs(1))), Action::Pass);
    assert_eq!(at(Some(end)), Action::Tag, "the one before it counts again");
    assert_eq!(at(None), Action::Pass, "without a clock it has not ended");
}

#[test]
fn a_pattern_override_matches_a_rule_to_which_the_legacy_reading_adds_a_slash() {
    let robots = RobotsTxt::parse(&b"User-agent: GPTBot\nDisallow: private/\nDisallow: /other/\n"[..]);
    let site = Site {
        rules: robots.compile(Reading::Legacy),
        recognizer: Recognizer::new(Registry::builtin().clone(), &robots),
    };
    let over = Override::pattern("/private/", Mode::Tag).expect("a pattern");
    let policy = refusing().with_override(over).build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/private/x"), (Action::Tag, Reason::Disallowed));
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/other/x"), REFUSED);
}

#[test]
fn a_policy_lists_its_overrides_in_their_order() {
    let overrides = [Override::category(Category::Search, Mode::Tag), Override::category(Category::Feed, Mode::Off)];
    let policy = overrides.iter().cloned().fold(refusing(), PolicyBuilder::with_override).build();
    assert_eq!(policy.overrides, overrides);
}
