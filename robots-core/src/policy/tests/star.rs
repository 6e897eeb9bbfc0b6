//! Tests which agents and methods the groups for `*` apply to.

use super::*;

#[test]
fn the_star_group_applies_to_declared_crawlers_and_not_to_browsers_or_tools() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let policy = refusing_every_crawler().build();
    for held in [GPTBOT, GOOGLEBOT, UNKNOWN] {
        assert_eq!(site.decide(&policy, &[held], "GET", "/x"), REFUSED, "{held}");
    }
    for free in [
        FIREFOX,
        "",
        "curl/8.5.0",
        "kube-probe/1.29",
        "ELB-HealthChecker/2.0",
        "Mozilla/5.0 (compatible; Let's Encrypt validation server; +https://www.letsencrypt.org)",
        "Stripe/1.0 (+https://stripe.com/docs/webhooks)",
        "AdsBot-Google (+http://www.google.com/adsbot.html)",
    ] {
        assert_eq!(site.decide(&policy, &[free], "GET", "/x"), NO_GROUP, "{free}");
    }
}

#[test]
fn star_rules_apply_to_get_head_and_unknown_methods_and_named_rules_to_all() {
    let site = Site::new("User-agent: *\nDisallow: /\nUser-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    // Servers answer unknown methods, such as `get` and `FOO`, with the page.
    for (methods, want) in [("GET HEAD get GeT FOO GETX post", REFUSED), ("POST VERSION-CONTROL", NO_GROUP)] {
        for method in methods.split(' ') {
            assert_eq!(site.decide(&policy, &[UNKNOWN], method, "/"), want, "{method}");
            assert_eq!(site.decide(&policy, &[GPTBOT], method, "/"), REFUSED, "{method}");
        }
    }
    let policy = refusing().wildcard_methods(["Post"]).expect("a method").build();
    assert_eq!(site.decide(&policy, &[UNKNOWN], "POST", "/"), REFUSED);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/"), NO_GROUP);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "FOO", "/"), REFUSED);
}

#[test]
fn each_wider_wildcard_scope_applies_the_star_group_to_more_agents() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let steps = [GPTBOT, UNKNOWN, "curl/8.5.0", "", FIREFOX];
    let scopes = [
        WildcardScope::Registered,
        WildcardScope::Declared,
        WildcardScope::Automation,
        WildcardScope::NonBrowser,
        WildcardScope::Everyone,
    ];
    for (reach, scope) in [WildcardScope::Nobody].into_iter().chain(scopes).enumerate() {
        let policy = refusing().wildcard_scope(scope).build();
        for (step, field) in steps.iter().enumerate() {
            let want = if step < reach { REFUSED } else { NO_GROUP };
            assert_eq!(site.decide(&policy, &[field], "GET", "/"), want, "{scope:?} {field}");
        }
    }
}

#[test]
fn agents_of_exempt_categories_obey_only_groups_that_name_them() {
    let policy = refusing().build();
    let monitor = "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)";
    assert_eq!(Site::new("User-agent: *\nDisallow: /\n").decide(&policy, &[monitor], "GET", "/"), NO_GROUP);
    assert_eq!(Site::new("User-agent: UptimeRobot\nDisallow: /\n").decide(&policy, &[monitor], "GET", "/"), REFUSED);
}

#[test]
fn a_policy_may_ignore_vendor_exceptions_from_the_star_group() {
    let adsbot = "AdsBot-Google (+http://www.google.com/adsbot.html)";
    let star = Site::new("User-agent: *\nDisallow: /\n");
    assert_eq!(star.decide(&refusing().build(), &[adsbot], "GET", "/"), NO_GROUP);
    let ignoring = refusing().wildcard_exceptions(WildcardExceptions::Ignore).build();
    assert_eq!(star.decide(&ignoring, &[adsbot], "GET", "/"), REFUSED);
    let named = Site::new("User-agent: AdsBot-Google\nDisallow: /\n");
    assert_eq!(named.decide(&refusing().build(), &[adsbot], "GET", "/"), REFUSED);
}

#[test]
fn an_empty_user_agent_obeys_star_by_scope_or_by_configuration() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    for (empty, scope, want) in [
        (EmptyAgent::ByScope, WildcardScope::Declared, NO_GROUP),
        (EmptyAgent::ByScope, WildcardScope::NonBrowser, REFUSED),
        (EmptyAgent::Hold, WildcardScope::Nobody, REFUSED),
        (EmptyAgent::Exempt, WildcardScope::Everyone, NO_GROUP),
    ] {
        let policy = refusing().wildcard_scope(scope).wildcard_empty(empty).build();
        for field in ["", " \t"] {
            assert_eq!(site.decide(&policy, &[field], "GET", "/"), want, "{empty:?} {scope:?}");
        }
    }
}

#[test]
fn holds_to_star_agrees_with_the_decision() {
    let star = Site::new("User-agent: *\nDisallow: /\n");
    let everyone = refusing_every_crawler().wildcard_scope(WildcardScope::Everyone);
    for policy in [refusing_every_crawler().build(), everyone.build()] {
        for field in [GPTBOT, GOOGLEBOT, UNKNOWN, FIREFOX, "", "curl/8.5.0", "kube-probe/1.29", "AdsBot-Google"] {
            let held = policy.holds_to_star(&star.recognizer.identify(field.as_bytes()));
            assert_eq!(star.decide(&policy, &[field], "GET", "/") == REFUSED, held, "{field}");
        }
    }
    let policy = refusing().build();
    assert!(policy.holds_to_star(&star.recognizer.identify(UNKNOWN.as_bytes())));
    assert!(!policy.holds_to_star(&star.recognizer.identify(FIREFOX.as_bytes())));
}
