//! Tests which refused requests a `RefusalCase` covers.

use super::super::refusals::{RefusalCase, RefusalTable, RefusedRequest};
use super::*;
use crate::agent::{Identity, IdentityMethod, Refutation};
use crate::rules::PathPattern;

const CHATGPT_USER: &str = "Mozilla/5.0 (compatible; ChatGPT-User/1.0; +https://openai.com/bot)";
const CURL: &str = "curl/8.5.0";

const FILE: &str = "User-agent: *\nDisallow: /\n\n\
                    Sitemap: https://site.test/maps/all.xml\nSitemap: /maps/relative.xml\nSitemap:\n\
                    License: https://site.test/terms/license.xml\n";

/// Returns the index of the case that covers a request.
fn found(cases: Vec<RefusalCase>, agent: &str, identity: Option<Identity>, target: &str) -> Option<usize> {
    let site = Site::new(FILE);
    let agents = site.recognizer.agents(agent.as_bytes());
    let path = Policy::default().path(target.as_bytes());
    let request = RefusedRequest { agent: agents.first(), identity, path: &path, robots: site.rules.document() };
    let table = RefusalTable(cases.into_iter().map(|case| (case, ())).collect());
    table.find(&request).map(|(at, ())| at)
}

fn case() -> RefusalCase {
    RefusalCase::default()
}

fn of<const N: usize>(crawlers: [Crawlers; N]) -> RefusalCase {
    RefusalCase { crawlers: crawlers.into(), ..case() }
}

fn named(name: &str) -> Crawlers {
    Crawlers::agent(name).expect(name)
}

fn at<const N: usize>(patterns: [&str; N]) -> RefusalCase {
    RefusalCase { paths: patterns.map(|pattern| PathPattern::parse(pattern).expect(pattern)).into(), ..case() }
}

#[test]
fn a_refusal_case_covers_its_selected_crawlers_and_user_fetchers_only_by_name() {
    let training = Crawlers::Category(Category::AiTraining);
    let operator = |name: &str| of([Crawlers::Operator(name.into())]);
    for (selected, agent, want) in [
        (case(), GPTBOT, true),
        (case(), UNKNOWN, true),
        (case(), CURL, true),
        (case(), FIREFOX, false),
        (case(), CHATGPT_USER, false),
        (of([named("gptbot")]), GPTBOT, true),
        (of([named("GPTBot")]), GOOGLEBOT, false),
        (of([named("NeverHeardOfBot")]), UNKNOWN, true),
        (of([named("ChatGPT-User")]), CHATGPT_USER, true),
        (of([training.clone()]), GPTBOT, true),
        (of([training.clone()]), GOOGLEBOT, false),
        (of([training.clone()]), UNKNOWN, false),
        (operator("openai"), GPTBOT, true),
        (operator("OpenAI"), CHATGPT_USER, false),
        (operator("OpenAI"), GOOGLEBOT, false),
        (of([Crawlers::Category(Category::UserFetch)]), CHATGPT_USER, false),
        (of([Crawlers::IndexEngines]), GOOGLEBOT, true),
        (of([Crawlers::IndexEngines]), GPTBOT, false),
        (of([training.clone(), named("ChatGPT-User")]), CHATGPT_USER, true),
        (of([training, Crawlers::IndexEngines]), GOOGLEBOT, true),
    ] {
        let shown = format!("{selected:?}");
        assert_eq!(found(vec![selected], agent, None, "/x").is_some(), want, "{shown} {agent}");
    }
}

#[test]
fn a_case_covers_the_paths_and_identities_that_it_selects() {
    let refuted = || RefusalCase { identities: vec!["refuted"], ..case() };
    let verified = Some(Identity::Verified(IdentityMethod::Range));
    for (selected, identity, target, want) in [
        (at(["/a/"]), None, "/a/x", true),
        (at(["/a/"]), None, "/b/x", false),
        (at(["/a/", "/b/"]), None, "/b/x", true),
        (at(["/*.pdf$"]), None, "/a/x.pdf", true),
        (at(["/a/"]), None, "//a/x", true),
        (at(["/a/"]), None, "/b/..%2fa/x", true),
        (refuted(), Some(Identity::Refuted(Refutation::NotListed)), "/", true),
        (refuted(), verified, "/", false),
        (refuted(), None, "/", false),
        (RefusalCase { identities: vec![RefusalCase::UNCHECKED], ..case() }, None, "/", true),
        (RefusalCase { identities: vec!["refuted", "verified"], ..case() }, verified, "/", true),
        (RefusalCase { identities: vec!["verified"], ..at(["/a/"]) }, None, "/a/", false),
    ] {
        let shown = format!("{selected:?}");
        assert_eq!(found(vec![selected], GPTBOT, identity, target).is_some(), want, "{shown} {target}");
    }
}

#[test]
fn the_first_case_that_covers_a_request_decides() {
    let cases = || vec![of([Crawlers::IndexEngines]), at(["/a/"]), case()];
    for (agent, target, want) in [(GOOGLEBOT, "/a/", 0), (GPTBOT, "/a/", 1), (GPTBOT, "/b/", 2)] {
        assert_eq!(found(cases(), agent, None, target), Some(want), "{agent} {target}");
    }
    assert_eq!(found(Vec::new(), GPTBOT, None, "/a/"), None);
}

#[test]
fn no_refusal_case_covers_robots_txt_security_txt_sitemaps_or_licences() {
    for (target, want) in [
        ("/robots.txt", false),
        ("/robots.txt?x", false),
        ("/security.txt", false),
        ("/.well-known/security.txt", false),
        ("/maps/all.xml", false),
        ("/maps/all.xml?page=2", false),
        ("/maps/%61ll.xml", false),
        ("//maps/all.xml", false),
        ("/a/..%2fmaps/all.xml", false),
        ("/maps/relative.xml", false),
        ("/terms/license.xml", false),
        ("/", true),
        ("/maps/", true),
        ("/maps/all.xml.gz", true),
        ("/terms/license.xml/x", true),
        ("/a/robots.txt", true),
    ] {
        assert_eq!(found(vec![case()], GPTBOT, None, target).is_some(), want, "{target}");
        assert_eq!(found(vec![of([named("GPTBot")])], GPTBOT, None, target).is_some(), want, "{target}, by name");
    }
}
