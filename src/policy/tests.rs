use std::sync::Arc;

use super::*;
use crate::agent::{Category, Recognizer, Registry};
use crate::rules::{Reading, RequestPath, RobotsTxt};

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
        let agents: Vec<_> = fields.iter().map(|field| self.recognizer.identify(field.as_bytes())).collect();
        let path = RequestPath::new(target.as_bytes());
        let decision = policy.decide(&self.rules, &agents, &Facts::new(method, &path));
        (decision.action(), decision.reason())
    }
}

fn refusing() -> PolicyBuilder {
    Policy::builder().mode(Mode::Refuse)
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
    assert_eq!(Policy::default().mode(), Mode::Observe);
}

#[test]
fn star_is_for_crawlers_that_say_so() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let policy = refusing().build();
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
fn star_is_for_get_and_head_and_a_name_for_every_method() {
    let site = Site::new("User-agent: *\nDisallow: /\nUser-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    for (method, want) in [("GET", REFUSED), ("HEAD", REFUSED), ("POST", NO_GROUP), ("get", NO_GROUP)] {
        assert_eq!(site.decide(&policy, &[UNKNOWN], method, "/"), want, "{method}");
        assert_eq!(site.decide(&policy, &[GPTBOT], method, "/"), REFUSED, "{method}");
    }
    let policy = refusing().star_methods(["POST"]).build();
    assert_eq!(site.decide(&policy, &[UNKNOWN], "POST", "/"), REFUSED);
}

#[test]
fn the_scope_of_star_widens_step_by_step() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let steps = [GPTBOT, UNKNOWN, "curl/8.5.0", "", FIREFOX];
    let scopes =
        [StarScope::Registered, StarScope::Declared, StarScope::Automation, StarScope::NonBrowser, StarScope::Everyone];
    for (reach, scope) in [StarScope::Nobody].into_iter().chain(scopes).enumerate() {
        let policy = refusing().star_scope(scope).build();
        for (step, field) in steps.iter().enumerate() {
            let want = if step < reach { REFUSED } else { NO_GROUP };
            assert_eq!(site.decide(&policy, &[field], "GET", "/"), want, "{scope:?} {field}");
        }
    }
}

#[test]
fn exempt_categories_are_held_only_when_named() {
    let policy = refusing().build();
    let monitor = "Mozilla/5.0+(compatible; UptimeRobot/2.0; http://www.uptimerobot.com/)";
    assert_eq!(Site::new("User-agent: *\nDisallow: /\n").decide(&policy, &[monitor], "GET", "/"), NO_GROUP);
    assert_eq!(Site::new("User-agent: UptimeRobot\nDisallow: /\n").decide(&policy, &[monitor], "GET", "/"), REFUSED);
}

#[test]
fn of_several_agents_the_strictest_counts() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    for fields in [[FIREFOX, GPTBOT], [GPTBOT, FIREFOX]] {
        assert_eq!(site.decide(&policy, &fields, "GET", "/"), REFUSED);
    }
    assert_eq!(site.decide(&policy, &[], "GET", "/"), NO_GROUP);
}

#[test]
fn a_path_is_exempt_only_if_every_form_is() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    for (target, want) in [
        ("/robots.txt", EXEMPT),
        ("/robots.txt?x=/private/", EXEMPT),
        ("/robots.txt/x", REFUSED),
        ("/robots.txtx", REFUSED),
        ("/.well-known/acme-challenge/token", EXEMPT),
        ("/.well-known/..%2fprivate/x", REFUSED),
        ("/.well-known/../private/x", REFUSED),
        ("//.well-known/x", REFUSED),
        ("/.well-known", REFUSED),
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), want, "{target}");
    }
    let policy = refusing().exempt_paths(["/healthz$", ""]).build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthz"), EXEMPT);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthzz"), REFUSED);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/.well-known/x"), REFUSED);
}

#[test]
fn the_last_override_that_fits_wins() {
    let site = Site::new("User-agent: *\nDisallow: /search\nDisallow: /\n");
    let policy = refusing()
        .with_override(Override::category(Category::Search, Mode::Tag))
        .with_override(Override::agent("gptbot", Mode::Observe))
        .with_override(Override::pattern("/search", Mode::Off))
        .build();
    let tagged = (Action::Tag, Reason::Disallowed);
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/x"), tagged);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/x"), (Action::Pass, Reason::Observed));
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/search?q=1"), (Action::Pass, Reason::Off));
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/x"), REFUSED);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/search"), (Action::Pass, Reason::Off));
}

#[test]
fn an_override_for_an_agent_is_not_for_its_family() {
    let site = Site::new("User-agent: Googlebot\nDisallow: /\n");
    let policy = refusing().with_override(Override::agent("Googlebot", Mode::Tag)).build();
    let applebot = "Mozilla/5.0 (compatible; Applebot/0.1; +http://www.apple.com/go/applebot)";
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/"), (Action::Tag, Reason::Disallowed));
    assert_eq!(site.decide(&policy, &[applebot], "GET", "/"), REFUSED);
}

#[test]
fn every_spelling_of_a_path_meets_the_rule_and_no_other_path_does() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /*/private/\nDisallow: /private/\nAllow: /private/open/\n");
    let policy = refusing().build();
    for target in [
        "/private/x",
        "/%70rivate/x",
        "//private/x",
        "/./private/x",
        "/x/../private/x",
        "/x/%2e%2e/private/x",
        "/private/open/../x",
        "/private/open/..%2fx",
        "/private%2fx",
        "/private%5Cx",
        "http://example.com/private/x",
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), REFUSED, "{target}");
    }
    for target in [
        "/private",
        "/private/open/x",
        "/%2570rivate/x",
        "/Private/x",
        "/go?u=https%3a%2f%2fx%2fprivate%2f",
        "/sale-50%-off",
        "/x?../private",
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
}
