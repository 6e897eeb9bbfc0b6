//! Tests the forms of paths, and the cost of matching a path.

use super::*;
use crate::policy::facts::FactsPath;

#[test]
fn alternative_spellings_of_a_path_do_not_bypass_a_rule() {
    let site = Site::new(
        "User-agent: GPTBot\nDisallow: /private/\nDisallow: /@adm/\nDisallow: /wiki/Special:\nDisallow: /p(1)/\n\
         Disallow: /x+y/\nDisallow: /q,r/\nDisallow: /m=n/\nDisallow: /*.pdf$\nDisallow: /a b/\nDisallow: /%7Bid%7D/\n",
    );
    let policy = refusing().build();
    let targets = "/%40adm/x /wiki/Special%3AExport /wiki/Speci%61l%3a /p%281%29/ /x%2By/ /q%2cr/ /m%3Dn/ \
        /a%20b/ /{id}/x /private;a/x /private;a=b/x?q /;/private/x /x/..;/private/x /.well-known/..;/private/x \
        //anything/private/x //private/a//../../x /x/..//private/x//../../x /x/%2e%2e//private/x//%2E./../x \
        /p%u0072ivate/x /docs/a.pdf/. /docs/a.pdf/x/.. /docs/a%2Epdf;v=1";
    for target in targets.split(' ') {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), REFUSED, "{target}");
        assert_eq!(site.decide(&policy, &[FIREFOX], "GET", target), NO_GROUP, "{target}");
    }
    let targets = "/go?u=https%3A%2F%2Fx%2Fprivate%2F /wiki/Talk%3AFoo /sale-50%-off /a;b/c //cdn.example/x \
        /private%3Ba/x /?/@adm/ /x%2By%2D /docs/a.pdf?x /docs/a.pdf.html";
    for target in targets.split(' ') {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
}

/// Returns a file with 16,000 wildcard rules that almost match a path of letters. The first rule of
/// the file does not match such a path.
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
    // Ordinary paths are matched exactly, in any form.
    for target in ["/x/abcdefgh/index.html?q=zz", "//x/../abcabc;v=1/zy"] {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
    let letters: String = (0..8000usize).map(|at| char::from(b'a' + (at * at / 7 % 8) as u8)).collect();
    for target in [format!("/zz{letters}"), format!("//a/x//../%u00CF;%5CC//%5C/zz{letters}/.")] {
        let agents: Vec<_> = [GPTBOT; 3].iter().map(|field| site.recognizer.identify(field.as_bytes())).collect();
        let decision = policy.decide(&site.rules, &agents, RequestFacts::of_target("GET", target.as_bytes()));
        let rule = decision.verdict.and_then(|verdict| verdict.rule()).expect("a rule");
        assert_eq!((decision.action, rule.pattern()), (Action::Refuse, &b"/first/"[..]));
    }
}

#[test]
fn an_allow_rule_with_an_escaped_query_matches_only_that_escape() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /p\nAllow: /*u=%3A\n");
    assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", "/p/%40?u=%3A"), (Action::Pass, Reason::Allowed));
    assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", "/p/%40?u=%3B"), REFUSED);
}

#[test]
fn path_forms_that_a_policy_leaves_out_are_not_checked() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    for (form, target) in [
        (PathForm::Resolved, "/x/../private/"),
        (PathForm::Merged, "//private/"),
        (PathForm::Decoded, "/private%2F"),
        (PathForm::Parameters, "/private;a/"),
        (PathForm::Unicode, "/private%u002F"),
        (PathForm::Authority, "//h/private/"),
    ] {
        let others: Vec<_> = PathForm::OPTIONAL.into_iter().filter(|other| *other != form).collect();
        let policy = refusing().forms(others).build();
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{form}");
        assert_eq!(site.decide(&refusing().build(), &[GPTBOT], "GET", target), REFUSED, "{form}");
    }
}

#[test]
fn every_spelling_of_a_path_matches_its_rule_and_other_paths_do_not() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /*/private/\nDisallow: /private/\nAllow: /private/open/\n");
    let policy = refusing().build();
    let targets = "/private/x /%70rivate/x //private/x /./private/x /x/../private/x /x/%2e%2e/private/x \
        /private/open/../x /private/open/..%2fx /private%2fx /private%5Cx http://example.com/private/x \
        /x#/../private/x /robots.txt#/../private/x /.well-known/#/../../private/x /private/open/#/../../x";
    for target in targets.split(' ') {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), REFUSED, "{target}");
    }
    let targets = "/private /private/open/x /%2570rivate/x /Private/x /go?u=https%3a%2f%2fx%2fprivate%2f \
        /sale-50%-off /x?../private /x#private/x /private/open/x#y";
    for target in targets.split(' ') {
        assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), (Action::Pass, Reason::Allowed), "{target}");
    }
}

#[test]
fn the_path_and_the_address_of_a_request_without_a_group_are_not_read() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    let policy = refusing().exempt_networks(["10.0.0.0/8"]).expect("a network").build();
    for (field, judged) in [(FIREFOX, false), (GOOGLEBOT, false), ("", false), (GPTBOT, true)] {
        let looked_up = Cell::new(0);
        let address = || {
            looked_up.set(looked_up.get() + 1);
            None
        };
        let clock = || panic!("nothing ends");
        let facts = RequestFacts {
            address: Some(&address),
            clock: Some(&clock),
            ..RequestFacts::of_target("GET", b"/x/..;a/%2e%2E//private%2Fx")
        };
        let agent = site.recognizer.identify(field.as_bytes());
        let decision = policy.decide_for(policy.mode, &site.rules, None, &agent, &facts, &mut MatchBudget::new());
        assert_eq!((decision.action, decision.reason), if judged { REFUSED } else { NO_GROUP }, "{field}");
        let is_read = matches!(&facts.path, FactsPath::Unread { read, .. } if read.get().is_some());
        assert_eq!((is_read, looked_up.get()), (judged, usize::from(judged)), "{field}");
    }
}

#[test]
fn a_request_target_is_checked_in_the_path_forms_of_the_policy() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /private/\n");
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let all = refusing().build();
    let none = refusing().forms([]).build();
    for (policy, action) in [(&all, Action::Refuse), (&none, Action::Pass)] {
        let facts = RequestFacts::of_target("GET", b"/x/../private/");
        assert_eq!(policy.decide(&site.rules, &agents, facts).action, action);
    }
}

#[test]
fn a_request_target_is_read_in_the_same_reading_as_the_rules() {
    let robots = RobotsTxt::parse(&b"User-agent: GPTBot\nDisallow: /%7Ejoe/\nDisallow: /.well-known/../\n"[..]);
    let agents = [Site::new("").recognizer.identify(GPTBOT.as_bytes())];
    let policy = refusing().build();
    for reading in [Reading::Standard, Reading::Reference, Reading::Legacy] {
        let rules = robots.compile(reading);
        let action =
            |target: &str| policy.decide(&rules, &agents, RequestFacts::of_target("GET", target.as_bytes())).action;
        assert_eq!(action("/%7Ejoe/x"), Action::Refuse, "{reading}");
        assert_eq!(action("/%7Ejane/x"), Action::Pass, "{reading}");
        // A path is exempt only if every form is exempt, even if the rules are compared with only
        // one form.
        assert_eq!(action("/.well-known/../x"), Action::Refuse, "{reading}");
        assert_eq!(action("/.well-known/x"), Action::Pass, "{reading}");
    }
}
