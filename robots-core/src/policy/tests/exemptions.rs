//! Tests requests that pass because of exempt paths, agents or networks, or because of signs of a
//! person.

use super::*;

#[test]
fn a_path_is_exempt_only_if_every_form_of_it_is_exempt() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().build();
    for (targets, want) in [
        ("/robots.txt /robots.txt?x=/private/ /.well-known/acme-challenge/token /.well-known/x;a", EXEMPT),
        ("/%2ewell-known/@x /.well-known/x#y", EXEMPT),
        ("/robots.txt/x /robots.txtx /.well-known/..%2fprivate/x /.well-known/../private/x", REFUSED),
        ("//.well-known/x /.well-known /.well-known/..;/private/x /.well-known%2Fx", REFUSED),
        ("/robots.txt#x /robots.txt#/../private/x /.well-known/#/../../private/x", REFUSED),
    ] {
        for target in targets.split(' ') {
            assert_eq!(site.decide(&policy, &[GPTBOT], "GET", target), want, "{target}");
        }
    }
    let policy = refusing().exempt_paths(["/healthz$"]).expect("a pattern").build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthz"), EXEMPT);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/healthzz"), REFUSED);
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/.well-known/x"), EXEMPT);
}

#[test]
fn exempt_patterns_are_compared_once_per_request_and_within_its_budget() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let costly = (0..1000).map(|at| format!("/*{at:04}")).chain(["/*aaaa".to_owned()]);
    let policy = refusing().exempt_paths(costly).expect("patterns").build();
    let long = "a".repeat(8000);
    // A comparison of one form with all patterns takes two thirds of the budget.
    for (fields, target, want) in [
        (&[GPTBOT][..], format!("/{long}"), EXEMPT),
        (&[GPTBOT, GPTBOT, GPTBOT], format!("/{long}"), EXEMPT),
        (&[GPTBOT], "/x/../aaaa".to_owned(), EXEMPT),
        (&[GPTBOT], format!("/x/../{long}"), REFUSED),
    ] {
        assert_eq!(site.decide(&policy, fields, "GET", &target), want, "{} {fields:?}", &target[..10]);
    }
}

#[test]
fn requests_of_exempt_agents_and_networks_pass() {
    let site = Site::new("User-agent: *\nDisallow: /\n");
    let policy = refusing_every_crawler().exempt_agents(["gptbot"]).expect("a name").build();
    assert_eq!(site.decide(&policy, &[GPTBOT], "GET", "/"), EXEMPT);
    assert_eq!(site.decide(&policy, &[GOOGLEBOT], "GET", "/"), REFUSED);
    // An exempt agent does not exempt the other agent of the same request.
    assert_eq!(site.decide(&policy, &[GPTBOT, GOOGLEBOT], "GET", "/"), REFUSED);
    let policy = refusing().exempt_networks(["10.0.0.0/8"]).expect("a network").build();
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let cases = [(Some("10.1.2.3"), Action::Pass), (Some("11.1.2.3"), Action::Refuse), (None, Action::Refuse)];
    for (address, action) in cases {
        let address = address.map(|address| address.parse().expect("an address"));
        let find = || address;
        let facts = RequestFacts { address: Some(&find), ..RequestFacts::of_target("GET", b"/") };
        assert_eq!(policy.decide(&site.rules, &agents, facts).action, action, "{address:?}");
    }
}

#[test]
fn signs_of_a_person_are_recorded_or_exempt_the_request() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let weigh = |policy: &Policy, evidence: HumanEvidence<'_>| {
        let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
        let decision = policy.decide(&site.rules, &agents, RequestFacts::of_target("GET", b"/"));
        let decision = policy.weigh(decision, &evidence);
        (decision.action, decision.reason, decision.signs.names().collect::<Vec<_>>())
    };
    let browsing = || HumanEvidence::default().fetch_metadata(b"none", b"navigate", b"document");
    let cookies = || HumanEvidence::default().cookies(b"a=1; sid=2;staff");
    let record = refusing().session_cookies(["sid"]).expect("a name").build();
    let refused = |signs: &[&'static str]| (Action::Refuse, Reason::Disallowed, signs.to_vec());
    assert_eq!(weigh(&record, HumanEvidence::default()), refused(&[]));
    assert_eq!(weigh(&record, cookies()), refused(&["session-cookie"]));
    assert_eq!(weigh(&record, browsing()), refused(&["fetch-metadata"]));
    let from_here = browsing().referer(b"https://Example.com/x", b"example.com");
    assert_eq!(weigh(&record, from_here), refused(&["fetch-metadata", "own-referer"]));
    // Any client can send a `Referer`, and no browser sends these combinations of fetch metadata.
    assert_eq!(weigh(&record, HumanEvidence::default().referer(b"https://example.com/", b"example.com")), refused(&[]));
    for (site, mode, destination) in [
        ("none", "navigate", "image"),
        ("none", "no-cors", "document"),
        ("", "navigate", "document"),
        ("none", "navigate", ""),
    ] {
        let evidence =
            HumanEvidence::default().fetch_metadata(site.as_bytes(), mode.as_bytes(), destination.as_bytes());
        assert_eq!(weigh(&record, evidence), refused(&[]), "{site} {mode} {destination}");
    }
    let exempt = refusing().session_cookies(["sid"]).expect("a name").suspect_human(SuspectHuman::Exempt).build();
    assert_eq!(weigh(&exempt, cookies()), (Action::Pass, Reason::SuspectHuman, vec!["session-cookie"]));
    assert_eq!(weigh(&exempt, HumanEvidence::default()), refused(&[]));
    let staff = refusing().exempt_cookies(["staff"]).expect("a name").build();
    assert_eq!(weigh(&staff, cookies()).0, Action::Pass);
    assert_eq!(weigh(&staff, HumanEvidence::default().cookies(b"staffroom=1")).0, Action::Refuse);
}

#[test]
fn a_single_sign_of_a_person_is_enough_for_an_exemption() {
    let site = Site::new("User-agent: GPTBot\nDisallow: /\n");
    let policy = refusing().session_cookies(["sid"]).expect("a name").suspect_human(SuspectHuman::Exempt).build();
    let agents = [site.recognizer.identify(GPTBOT.as_bytes())];
    let reason = |evidence: HumanEvidence<'_>| {
        let decision = policy.decide(&site.rules, &agents, RequestFacts::of_target("GET", b"/"));
        policy.weigh(decision, &evidence).reason
    };
    assert_eq!(reason(HumanEvidence::default().cookies(b"sid=1")), Reason::SuspectHuman);
    let browsing = HumanEvidence::default().fetch_metadata(b"none", b"navigate", b"document");
    assert_eq!(reason(browsing), Reason::SuspectHuman);
    assert_eq!(reason(HumanEvidence::default().cookies(b"other=1")), Reason::Disallowed);
}
