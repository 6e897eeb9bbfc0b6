use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::grace::Grace;
use super::*;
use crate::agent::{Category, Recognizer, Registry};
use crate::rules::{MatchBudget, PathForm, PathForms, Reading, RequestPath, RobotsTxt, RuleSet};

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
        let path = policy.path(target.as_bytes());
        let decision = policy.decide(&self.rules, &agents, Facts::new(method, &path));
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
    // A server that does not know a method, or not its case, answers with the page.
    for (method, want) in [
        ("GET", REFUSED),
        ("HEAD", REFUSED),
        ("get", REFUSED),
        ("GeT", REFUSED),
        ("FOO", REFUSED),
        ("GETX", REFUSED),
        ("POST", NO_GROUP),
        ("post", REFUSED),
        ("VERSION-CONTROL", NO_GROUP),
    ] {
        assert_eq!(site.decide(&policy, &[UNKNOWN], method, "/"), want, "{method}");
        assert_eq!(site.decide(&policy, &[GPTBOT], method, "/"), REFUSED, "{method}");
    }
    let policy = refusing().star_methods(["Post"]).expect("a method").build();
    assert_eq!(site.decide(&policy, &[UNKNOWN], "POST", "/"), REFUSED);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "GET", "/"), NO_GROUP);
    assert_eq!(site.decide(&policy, &[UNKNOWN], "FOO", "/"), REFUSED);
}

#[test]
fn no_spelling_of_a_path_is_a_way_past_a_rule() {
    let site = Site::new(
        "User-agent: GPTBot\nDisallow: /private/\nDisallow: /@adm/\nDisallow: /wiki/Special:\nDisallow: /p(1)/\n\
         Disallow: /x+y/\nDisallow: /q,r/\nDisallow: /m=n/\nDisallow: /*.pdf$\nDisallow: /a b/\nDisallow: /%7Bid%7D/\n",
    );
    let policy = refusing().build();
    for target in [
        "/%40adm/x",
        "/wiki/Special%3AExport",
        "/wiki/Speci%61l%3a",
        "/p%281%29/",
        "/x%2By/",
        "/q%2cr/",
        "/m%3Dn/",
        "/a%20b/",
        "/{id}/x",
        "/private;a/x",
        "/private;a=b/x?q",
        "/;/private/x",
        "/x/..;/private/x",
        "/.well-known/..;/private/x",
        "//anything/private/x",
        "//private/a//../../x",
        "/x/..//private/x//../../x",
        "/x/%2e%2e//private/x//%2E./../x",
        "/p%u0072ivate/x",
        "/docs/a.pdf/.",
        "/docs/a.pdf/x/..",
        "/docs/a%2Epdf;v=1",
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), REFUSED, "{target}");
        assert_eq!(site.decide(&policy, &[FIREFOX], "GET", target), NO_GROUP, "{target}");
    }
    for target in [
        "/go?u=https%3A%2F%2Fx%2Fprivate%2F",
        "/wiki/Talk%3AFoo",
        "/sale-50%-off",
        "/a;b/c",
        "//cdn.example/x",
        "/private%3Ba/x",
        "/?/@adm/",
        "/x%2By%2D",
        "/docs/a.pdf?x",
        "/docs/a.pdf.html",
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
}

/// 16,000 wildcards that nearly match a path of letters, behind a rule that does not match it.
fn costly_file() -> String {
    let letters = |mut seed: usize| -> String {
        let mut letter = || {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            char::from(b'a' + (seed >> 60) as u8 % 8)
        };
        (0..6).map(|_| letter()).collect()
    };
    let rules: String = (0..16_000).map(|at| format!("Disallow: /*{}*zz\n", letters(at + 1))).collect();
    format!("User-agent: GPTBot\nUser-agent: Bytespider\nDisallow: /first/\n{rules}")
}

#[test]
fn a_request_that_would_take_too_long_to_judge_counts_as_disallowed() {
    let site = Site::new(&costly_file());
    let policy = refusing().build();
    // Ordinary paths are judged exactly, in any form.
    for target in ["/x/abcdefgh/index.html?q=zz", "//x/../abcabc;v=1/zy"] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
    let letters: String = (0..8000usize).map(|at| char::from(b'a' + (at * at / 7 % 8) as u8)).collect();
    for target in [format!("/zz{letters}"), format!("//a/x//../%u00CF;%5CC//%5C/zz{letters}/.")] {
        let path = policy.path(target.as_bytes());
        let agents: Vec<_> = [GPTBOT; 3].iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let decision = policy.decide(&site.rules, &agents, Facts::new("GET", &path));
        let rule = decision.verdict().and_then(|verdict| verdict.rule()).expect("a rule");
        assert_eq!((decision.action(), rule.pattern()), (Action::Refuse, &b"/first/"[..]));
    }
}

#[test]
fn a_lenient_override_for_one_rule_opens_no_other() {
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
fn an_escape_in_a_query_keeps_what_an_allow_gives() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /p\nAllow: /*u=%3A\n");
    assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", "/p/%40?u=%3A"), (Action::Pass, Reason::Allowed));
    assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", "/p/%40?u=%3B"), REFUSED);
}

#[test]
fn forms_that_a_site_leaves_out_are_not_judged() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    for (form, target) in [
        (PathForm::Resolved, "/x/../private/"),
        (PathForm::Merged, "//private/"),
        (PathForm::Decoded, "/private%2F"),
        (PathForm::Parameters, "/private;a/"),
        (PathForm::Unicode, "/private%u002F"),
        (PathForm::Authority, "//h/private/"),
    ] {
        let policy = refusing().forms(PathForms::ALL.without(form)).build();
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{form}");
        assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", target), REFUSED, "{form}");
    }
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
        ("/.well-known/..;/private/x", REFUSED),
        ("/.well-known/x;a", EXEMPT),
        ("/.well-known%2Fx", REFUSED),
        ("/%2ewell-known/@x", EXEMPT),
    ] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), want, "{target}");
    }
    let policy = refusing().exempt_paths(["/healthz$"]).expect("a pattern").build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthz"), EXEMPT);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthzz"), REFUSED);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/.well-known/x"), REFUSED);
}

#[test]
fn the_last_override_that_fits_wins() {
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
fn an_override_for_an_agent_is_not_for_its_family() {
    let site = Site::new("User-agent: Googlebot\nDisallow: /\n");
    let policy =
        refusing().with_override(Override::agent("Googlebot", Mode::Tag).expect("a name or a pattern")).build();
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

#[test]
fn exceptions_of_vendors_may_be_ignored() {
    let adsbot = "AdsBot-Google (+http://www.google.com/adsbot.html)";
    let star = Site::new("User-agent: *\nDisallow: /\n");
    assert_eq!(star.decide(&refusing().build(), &[adsbot], "GET", "/"), NO_GROUP);
    let ignoring = refusing().star_exceptions(StarExceptions::Ignore).build();
    assert_eq!(star.decide(&ignoring, &[adsbot], "GET", "/"), REFUSED);
    let named = Site::new("User-agent: AdsBot-Google\nDisallow: /\n");
    assert_eq!(named.decide(&refusing().build(), &[adsbot], "GET", "/"), REFUSED);
}

#[test]
fn an_empty_header_is_held_by_scope_or_as_told() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    for (empty, scope, want) in [
        (EmptyAgent::ByScope, StarScope::Declared, NO_GROUP),
        (EmptyAgent::ByScope, StarScope::NonBrowser, REFUSED),
        (EmptyAgent::Hold, StarScope::Nobody, REFUSED),
        (EmptyAgent::Exempt, StarScope::Everyone, NO_GROUP),
    ] {
        let policy = refusing().star_scope(scope).star_empty(empty).build();
        for field in ["", " \t"] {
            assert_eq!(site.decide(&policy, &[field], "GET", "/"), want, "{empty:?} {scope:?}");
        }
    }
}

#[test]
fn a_family_is_followed_unless_told_otherwise() {
    let image = "Googlebot-Image/1.0";
    let site = Site::new("User-agent: Googlebot\nDisallow: /\n");
    assert_eq!(site.decide(&refusing().build(), &[image], "GET", "/"), REFUSED);
    assert_eq!(site.decide(&refusing().without_family().build(), &[image], "GET", "/"), NO_GROUP);
    assert_eq!(site.decide(&refusing().without_family().build(), &[GOOGLEBOT], "GET", "/"), REFUSED);
}

#[test]
fn exempt_agents_and_networks_pass_unjudged() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let policy = refusing().exempt_agents(["gptbot"]).expect("a name").build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/"), EXEMPT);
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/"), REFUSED);
    // An exempt agent beside another does not cover for it.
    assert_eq!(site.decide(&policy, &[GPTBOT, GOOGLEBOT], "GET", "/"), REFUSED);
    let policy = refusing().exempt_networks(["10.0.0.0/8".parse().expect("a network")]).build();
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let path = RequestPath::new(b"/");
    for (address, action) in
        [(Some("10.1.2.3"), Action::Pass), (Some("11.1.2.3"), Action::Refuse), (None, Action::Refuse)]
    {
        let address = address.map(|address| address.parse().expect("an address"));
        let find = || address;
        let facts = Facts::new("GET", &path).with_address(&find);
        assert_eq!(policy.decide(&site.rules, &agents, facts).action(), action, "{address:?}");
    }
}

#[test]
fn what_speaks_for_a_person_is_recorded_or_exempts() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let weigh = |policy: &Policy, evidence: HumanEvidence<'_>| {
        let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
        let path = RequestPath::new(b"/");
        let decision = policy.decide(&site.rules, &agents, Facts::new("GET", &path));
        let decision = policy.weigh(decision, &evidence);
        (decision.action(), decision.reason(), decision.signs().names().collect::<Vec<_>>())
    };
    let browsing = || HumanEvidence::new().fetch_metadata(b"none", b"navigate", b"document");
    let cookies = || HumanEvidence::new().cookies(b"a=1; sid=2;staff");
    let record = refusing().session_cookies(["sid"]).expect("a name").build();
    let refused = |signs: &[&'static str]| (Action::Refuse, Reason::Disallowed, signs.to_vec());
    assert_eq!(weigh(&record, HumanEvidence::new()), refused(&[]));
    assert_eq!(weigh(&record, cookies()), refused(&["session-cookie"]));
    assert_eq!(weigh(&record, browsing()), refused(&["fetch-metadata"]));
    let from_here = browsing().referer(b"https://Example.com/x", b"example.com");
    assert_eq!(weigh(&record, from_here), refused(&["fetch-metadata", "own-referer"]));
    // Anybody can send a referer, and no browser sends these.
    assert_eq!(weigh(&record, HumanEvidence::new().referer(b"https://example.com/", b"example.com")), refused(&[]));
    for (site, mode, destination) in [
        ("none", "navigate", "image"),
        ("none", "no-cors", "document"),
        ("", "navigate", "document"),
        ("none", "navigate", ""),
    ] {
        let evidence = HumanEvidence::new().fetch_metadata(site.as_bytes(), mode.as_bytes(), destination.as_bytes());
        assert_eq!(weigh(&record, evidence), refused(&[]), "{site} {mode} {destination}");
    }
    let exempt = refusing().session_cookies(["sid"]).expect("a name").suspect_human(SuspectHuman::Exempt).build();
    assert_eq!(weigh(&exempt, cookies()), (Action::Pass, Reason::SuspectHuman, vec!["session-cookie"]));
    assert_eq!(weigh(&exempt, HumanEvidence::new()), refused(&[]));
    let staff = refusing().exempt_cookies(["staff"]).expect("a name").build();
    assert_eq!(weigh(&staff, cookies()).0, Action::Pass);
    assert_eq!(weigh(&staff, HumanEvidence::new().cookies(b"staffroom=1")).0, Action::Refuse);
}

#[test]
fn an_override_holds_until_it_ends() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let end = SystemTime::UNIX_EPOCH + Duration::from_secs(1000);
    let policy = refusing()
        .with_override(Override::agent("GPTBot", Mode::Tag).expect("a name or a pattern"))
        .with_override(Override::agent("GPTBot", Mode::Observe).expect("a name or a pattern").until(end))
        .build();
    let at = |now: Option<SystemTime>| {
        let path = RequestPath::new(b"/x");
        let facts = Facts::new("GET", &path);
        let clock = || now.expect("a clock is asked only where there is one");
        let facts = if now.is_some() { facts.with_clock(&clock) } else { facts };
        policy.decide(&site.rules, &[site.recognizer.identify(GPTBOT.as_bytes())], facts).action()
    };
    assert_eq!(at(Some(end - Duration::from_secs(1))), Action::Pass);
    assert_eq!(at(Some(end)), Action::Tag, "the one before it counts again");
    assert_eq!(at(None), Action::Pass, "nobody knows that it has ended");
}

#[test]
fn what_was_allowed_a_moment_ago_is_in_grace() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let hours = |hours: u64| Duration::from_secs(3600 * hours);
    let old = Site::new("User-agent: *\nDisallow: /old\nDisallow: /shop/\nAllow: /shop/open\n").rules;
    let site = Site::new(
        "User-agent: *\nDisallow: /new\nDisallow: /shop/\n\nUser-agent: GPTBot\nDisallow: /old\nDisallow: /all\n",
    );
    let mut grace = Grace::new(hours(24), start + hours(100));
    grace.add(start, old.into());
    let policy = refusing().build();
    let at = |hour: u64, fields: &[&str], target: &str| {
        let path = RequestPath::new(target.as_bytes());
        let clock = || start + hours(hour);
        let facts = Facts::new("GET", &path).with_clock(&clock);
        let agents: Vec<_> = fields.iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let decision = policy.decide_with_grace(&site.rules, Some(&grace), &agents, facts);
        (decision.action(), decision.reason())
    };
    let in_grace = (Action::Pass, Reason::Grace);
    for (fields, target, then) in [
        (&[UNKNOWN][..], "/new", in_grace),
        (&[UNKNOWN], "/shop/x", REFUSED),
        // Its rule is as old as the other's; what outweighed it is gone.
        (&[UNKNOWN], "/shop/open", in_grace),
        // The rule has moved to a group of its own.
        (&[GPTBOT], "/old", REFUSED),
        (&[GPTBOT], "/all", in_grace),
        (&[GPTBOT, UNKNOWN], "/shop/x", REFUSED),
        (&[UNKNOWN, UNKNOWN], "/new", in_grace),
    ] {
        assert_eq!(at(101, fields, target), then, "{target}");
        assert_eq!(at(124, fields, target), REFUSED, "{target}");
    }
    assert_eq!(grace.end(), start + hours(124));
}

#[test]
fn a_request_that_obeys_no_group_costs_nothing_of_its_path_and_address() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    let policy = refusing().exempt_networks(["10.0.0.0/8".parse().expect("a network")]).build();
    for (field, judged) in [(FIREFOX, false), (GOOGLEBOT, false), ("", false), (GPTBOT, true)] {
        let looked_up = Cell::new(0);
        let address = || {
            looked_up.set(looked_up.get() + 1);
            None
        };
        let clock = || panic!("nothing ends");
        let facts = Facts::of_target("GET", b"/x/..;a/%2e%2E//private%2Fx").with_address(&address).with_clock(&clock);
        let agent = site.recognizer.identify(field.as_bytes());
        let decision = policy.decide_for(&site.rules, None, &agent, &facts, &mut MatchBudget::new());
        assert_eq!((decision.action(), decision.reason()), if judged { REFUSED } else { NO_GROUP }, "{field}");
        assert_eq!((!facts.is_unread(), looked_up.get()), (judged, usize::from(judged)), "{field}");
    }
}

#[test]
fn a_target_is_read_in_the_forms_of_the_policy() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let all = refusing().build();
    let none = refusing().forms(PathForms::NONE).build();
    for (policy, action) in [(&all, Action::Refuse), (&none, Action::Pass)] {
        let facts = Facts::of_target("GET", b"/x/../private/");
        assert_eq!(policy.decide(&site.rules, &agents, facts).action(), action);
    }
}

#[test]
fn an_override_with_a_slash_fits_a_rule_that_is_read_with_one() {
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
fn holds_to_star_says_what_a_decision_does() {
    let star = Site::new("User-agent: *\nDisallow: /\n");
    for policy in [refusing().build(), refusing().star_scope(StarScope::Everyone).build()] {
        for field in [GPTBOT, GOOGLEBOT, UNKNOWN, FIREFOX, "", "curl/8.5.0", "kube-probe/1.29", "AdsBot-Google"] {
            let held = policy.holds_to_star(&star.recognizer.identify(field.as_bytes()));
            assert_eq!(star.decide(&policy, &[field], "GET", "/") == REFUSED, held, "{field}");
        }
    }
    let policy = refusing().build();
    assert!(policy.holds_to_star(&star.recognizer.identify(UNKNOWN.as_bytes())));
    assert!(!policy.holds_to_star(&star.recognizer.identify(FIREFOX.as_bytes())));
}

#[test]
fn a_decision_is_about_the_first_of_the_agents_with_the_strictest_outcome() {
    let site = Site::new("User-agent: GPTBot\nUser-agent: Googlebot\nDisallow: /\n");
    let policy = refusing().build();
    let path = RequestPath::new(b"/");
    for (fields, agent) in [
        (&[FIREFOX, GPTBOT, GOOGLEBOT][..], 1),
        (&[GOOGLEBOT, GPTBOT], 0),
        (&[FIREFOX, FIREFOX], 0),
        (&[GPTBOT, FIREFOX], 0),
    ] {
        let agents: Vec<_> = fields.iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        assert_eq!(policy.decide(&site.rules, &agents, Facts::new("GET", &path)).agent(), agent, "{fields:?}");
    }
}

#[test]
fn each_sign_of_a_person_counts_by_itself() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().session_cookies(["sid"]).expect("a name").suspect_human(SuspectHuman::Exempt).build();
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let path = RequestPath::new(b"/");
    let reason = |evidence: HumanEvidence<'_>| {
        let decision = policy.decide(&site.rules, &agents, Facts::new("GET", &path));
        policy.weigh(decision, &evidence).reason()
    };
    assert_eq!(reason(HumanEvidence::new().cookies(b"sid=1")), Reason::SuspectHuman);
    let browsing = HumanEvidence::new().fetch_metadata(b"none", b"navigate", b"document");
    assert_eq!(reason(browsing), Reason::SuspectHuman);
    assert_eq!(reason(HumanEvidence::new().cookies(b"other=1")), Reason::Disallowed);
}

#[test]
fn an_agent_is_called_by_its_crawlers_name_or_by_its_own_token() {
    // A registered crawler whose name is no token of its own, and an unregistered one.
    let site = Site::new("User-agent: NeverHeardOfBot\nUser-agent: Googlebot-Image\nDisallow: /\n");
    for (field, name) in [(UNKNOWN, "neverheardofbot"), ("Googlebot-Image/1.0", "googlebot-image")] {
        let policy = refusing().exempt_agents([name]).expect("a name").build();
        assert_eq!(site.decide(&policy, &[field], "GET", "/"), EXEMPT, "{name}");
    }
    let differing = Registry::builtin().crawlers().find_map(|crawler| {
        let agent = site.recognizer.identify(crawler.name().as_bytes());
        let own = agent.tokens().first()?.to_string();
        let is_one = agent.crawler() == Some(crawler.name());
        (is_one && !own.eq_ignore_ascii_case(crawler.name())).then(|| (crawler.name().to_owned(), own))
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
        (Reason::Disallowed, "disallowed"),
    ] {
        assert_eq!(reason.as_str(), name);
    }
}

#[test]
fn a_policy_lists_its_overrides_in_their_order() {
    let overrides = [Override::category(Category::Search, Mode::Tag), Override::category(Category::Feed, Mode::Off)];
    let policy = overrides.iter().cloned().fold(refusing(), PolicyBuilder::with_override).build();
    assert_eq!(policy.overrides(), overrides);
}

#[test]
fn grace_ends_at_its_very_end() {
    let start = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let old = Site::new("User-agent: GPTBot\nDisallow: /\n").rules;
    let length = Duration::from_secs(100);
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let path = RequestPath::new(b"/");
    let at = |grace: &Grace, now: SystemTime| {
        let clock = || now;
        let facts = Facts::new("GET", &path).with_clock(&clock);
        refusing().build().decide_with_grace(&site.rules, Some(grace), &agents, facts).reason()
    };
    let tick = Duration::from_nanos(1);
    let alone = Grace::new(length, start);
    assert_eq!(at(&alone, start + length - tick), Reason::Grace);
    assert_eq!(at(&alone, start + length), Reason::Disallowed);
    // An earlier version that disallows the same ends it, at its own end.
    let mut with_earlier = Grace::new(length, start + length / 2);
    with_earlier.add(start, old.into());
    assert_eq!(at(&with_earlier, start + length - tick), Reason::Grace);
    assert_eq!(at(&with_earlier, start + length), Reason::Disallowed);
}
