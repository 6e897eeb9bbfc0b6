//! Tests the effects of identities on decisions.

use super::*;
use crate::agent::{Identity, IdentityMethod, Refutation, UndecidedReason};

const VERIFIED: Identity = Identity::Verified(IdentityMethod::Range);
const REFUTED_CLAIM: Identity = Identity::Refuted(Refutation::NotListed);
const UNDECIDED: Identity = Identity::Undecided(UndecidedReason::Stale);
const ALL: [Identity; 5] = [VERIFIED, REFUTED_CLAIM, UNDECIDED, Identity::Unverifiable, Identity::Unclaimed];

const ALLOWED: (Action, Reason) = (Action::Pass, Reason::Allowed);
const SPARED: (Action, Reason) = (Action::Tag, Reason::SearchEngine);

fn decide(policy: &Policy, identity: Identity, field: &str, target: &str) -> (Action, Reason) {
    let site = Site::new("User-agent: *\nDisallow: /private/\nAllow: /private/open\n");
    let agents = site.recognizer.agents(field.as_bytes());
    let address = || Some([8, 8, 8, 8].into());
    let facts = RequestFacts { identity, address: Some(&address), ..RequestFacts::of_target("GET", target.as_bytes()) };
    let decision = policy.decide(&site.rules, &agents, facts);
    (decision.action, decision.reason)
}

#[test]
fn an_impostor_loses_by_default_only_the_privileges_of_the_claimed_name() {
    let policy = refusing().exempt_agents(["GPTBot"]).expect("a name");
    let policy = policy.with_override(Override::category(Category::Seo, Mode::Observe)).build();
    const AHREFS: &str = "Mozilla/5.0 (compatible; AhrefsBot/7.0; +http://ahrefs.com/robot/)";
    for identity in ALL {
        let is_refuted = identity == REFUTED_CLAIM;
        let of = |believed, refuted| if is_refuted { refuted } else { believed };
        let decide = |field, target| decide(&policy, identity, field, target);
        assert_eq!(decide(GOOGLEBOT, "/private/x"), of(SPARED, REFUSED), "{identity}");
        assert_eq!(decide(GPTBOT, "/private/x"), of(EXEMPT, REFUSED), "{identity}");
        assert_eq!(decide(AHREFS, "/private/x"), of((Action::Pass, Reason::Observed), REFUSED), "{identity}");
        for (field, target, want) in [
            (GOOGLEBOT, "/", ALLOWED),
            (GOOGLEBOT, "/private/open", ALLOWED),
            (UNKNOWN, "/private/x", REFUSED),
            (FIREFOX, "/private/x", NO_GROUP),
            (GOOGLEBOT, "/.well-known/x", EXEMPT),
        ] {
            assert_eq!(decide(field, target), want, "{identity} {field} {target}");
        }
    }
}

#[test]
fn impostors_are_tagged_or_refused_even_if_the_rules_allow_the_path() {
    let cases = [(Impostors::Tag, Mode::Tag, Action::Tag), (Impostors::Refuse, Mode::Refuse, Action::Refuse)];
    for (impostors, mode, action) in cases {
        // With the rules and this override alone, no request is tagged or refused.
        let lenient = || Override::pattern("/private/", Mode::Observe).expect("a pattern");
        let without = Policy::builder().mode(mode).with_override(lenient()).build();
        let policy = Policy::builder().mode(mode).with_override(lenient()).impostors(impostors).build();
        let impostor = (action, Reason::Impostor);
        for target in ["/", "/private/x", "/private/open"] {
            assert_eq!(decide(&policy, REFUTED_CLAIM, GOOGLEBOT, target), impostor, "{target}");
            assert_eq!(decide(&policy, REFUTED_CLAIM, UNKNOWN, target), impostor, "{target}");
            // No group applies to AdsBot-Google.
            let found = decide(&policy, REFUTED_CLAIM, "AdsBot-Google (+http://www.google.com/adsbot.html)", target);
            assert_eq!(found, impostor);
            // A browser does not claim to be a crawler.
            assert_eq!(decide(&policy, REFUTED_CLAIM, FIREFOX, target), NO_GROUP);
            for identity in ALL.into_iter().filter(|identity| *identity != REFUTED_CLAIM) {
                let as_without = decide(&without, identity, GOOGLEBOT, target);
                assert_eq!(decide(&policy, identity, GOOGLEBOT, target), as_without, "{identity} {target}");
            }
        }
        for target in ["/robots.txt", "/.well-known/x"] {
            assert_eq!(decide(&policy, REFUTED_CLAIM, GOOGLEBOT, target), EXEMPT);
        }
        // [`Mode::Refuse`] is stricter than [`Impostors::Tag`], so it decides on disallowed
        // requests.
        let refusing = refusing().impostors(impostors).build();
        assert_eq!(decide(&refusing, REFUTED_CLAIM, GOOGLEBOT, "/private/x").0, Action::Refuse);
    }
}

/// Tools of the site's own team are treated as impostors if they send the name of a crawler.
#[test]
fn exempt_networks_and_cookies_also_exempt_impostors() {
    let policy = refusing().impostors(Impostors::Refuse).exempt_cookies(["team"]).expect("a name");
    let exempt = policy.clone().exempt_networks(["8.8.8.0/24"]).expect("a network").build();
    for field in [GOOGLEBOT, "AdsBot-Google (+http://www.google.com/adsbot.html)"] {
        assert_eq!(decide(&exempt, REFUTED_CLAIM, field, "/"), EXEMPT);
    }
    let policy = policy.build();
    let site = Site::new("");
    let agents = site.recognizer.agents(GOOGLEBOT.as_bytes());
    let decision = policy.decide(
        &site.rules,
        &agents,
        RequestFacts { identity: REFUTED_CLAIM, ..RequestFacts::of_target("GET", b"/") },
    );
    assert_eq!((decision.action, decision.reason), (Action::Refuse, Reason::Impostor));
    let weighed = policy.weigh(decision, &HumanEvidence::default().cookies(b"team=1"));
    assert_eq!((weighed.action, weighed.reason), EXEMPT);
}

#[test]
fn exemptions_and_lenient_overrides_by_name_can_require_an_identity() {
    let lenient = |needed| {
        let policy = refusing().identity_needed(needed).exempt_agents(["GPTBot"]).expect("a name");
        policy.with_override(Override::agent("bingbot", Mode::Tag).expect("a name")).build()
    };
    const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";
    for (needed, believed) in [
        (IdentityNeeded::Claimed, &[VERIFIED, UNDECIDED, Identity::Unverifiable, Identity::Unclaimed][..]),
        (IdentityNeeded::Undecided, &[VERIFIED, UNDECIDED]),
        (IdentityNeeded::Verified, &[VERIFIED]),
    ] {
        for identity in ALL {
            let is_believed = believed.contains(&identity);
            let policy = lenient(needed);
            let of = |granted, else_| if is_believed { granted } else { else_ };
            assert_eq!(decide(&policy, identity, GPTBOT, "/private/x"), of(EXEMPT, REFUSED), "{needed} {identity}");
            let tagged = (Action::Tag, Reason::Disallowed);
            let mode = if identity == REFUTED_CLAIM { REFUSED } else { SPARED };
            assert_eq!(decide(&policy, identity, BINGBOT, "/private/x"), of(tagged, mode), "{needed} {identity}");
            // The default tag of search engines applies to every claim that is not refuted.
            assert_eq!(decide(&policy, identity, GOOGLEBOT, "/private/x"), mode, "{needed} {identity}");
        }
    }
    // An override that is stricter than the mode applies to every claim.
    let strict = Policy::builder().identity_needed(IdentityNeeded::Verified);
    let strict = strict.with_override(Override::agent("GPTBot", Mode::Refuse).expect("a name")).build();
    for identity in ALL {
        assert_eq!(decide(&strict, identity, GPTBOT, "/private/x"), REFUSED, "{identity}");
    }
    // An override for a rule applies to requests with any claim.
    let rule = refusing().identity_needed(IdentityNeeded::Verified);
    let rule = rule.with_override(Override::pattern("/private/", Mode::Observe).expect("a pattern")).build();
    for identity in ALL {
        assert_eq!(decide(&rule, identity, GPTBOT, "/private/x"), (Action::Pass, Reason::Observed), "{identity}");
    }
}
