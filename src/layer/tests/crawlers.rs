//! Tests of the records that handlers and observers get for allowed requests of crawlers.

use super::*;
use crate::agent::{Category, Class};
use crate::rules::Access;

const RULES: &str =
    "User-agent: GPTBot\nDisallow: /drafts/\nAllow: /drafts/open\n\nUser-agent: curl\nDisallow: /drafts/\n";

fn robots(mode: Mode) -> LiveRobots {
    live_by(RULES, Policy::builder().mode(mode))
}

/// Returns the record in the extensions of a request.
async fn crawler(layer: RobotsLayer, request: Request<Body>) -> Option<Record> {
    ask(layer, request).await.extensions().get().cloned()
}

#[tokio::test]
async fn handlers_get_the_record_of_allowed_and_disallowed_crawlers() {
    let layer = RobotsLayer::new(robots(Mode::Tag)).with_crawler_extension();
    let cases = [
        ("/drafts/x", GPTBOT, "GPTBot", Reason::Disallowed, Some(Access::Disallow), Some(("/drafts/", 2))),
        ("/drafts/open", GPTBOT, "GPTBot", Reason::Allowed, Some(Access::Allow), Some(("/drafts/open", 3))),
        ("/", GPTBOT, "GPTBot", Reason::Allowed, Some(Access::Allow), None),
        ("/.well-known/x", GPTBOT, "GPTBot", Reason::Exempt, None, None),
        ("/drafts/x", GOOGLEBOT, "Googlebot", Reason::NoGroup, None, None),
        ("/drafts/x", "NewBot/1.0 (+https://new.example/bot)", "NewBot", Reason::NoGroup, None, None),
        // curl is not a crawler, but has a group.
        ("/", "curl/8.5.0", "curl", Reason::Allowed, Some(Access::Allow), None),
        // For a request for the robots.txt itself, the layer's own response has the record.
        ("/robots.txt", GPTBOT, "GPTBot", Reason::Exempt, None, None),
    ];
    for (target, agent, name, reason, access, rule) in cases {
        let crawler = crawler(layer.clone(), get(target, agent)).await.expect("a crawler");
        assert_eq!((crawler.name(), crawler.reason, crawler.access), (name, reason, access), "{target} {agent}");
        assert_eq!(crawler.rule.as_deref().zip(crawler.line), rule, "{target} {agent}");
        assert_eq!(crawler.action == Action::Tag, access == Some(Access::Disallow));
    }
    for agent in [FIREFOX, "python-requests/2.32", ""] {
        assert!(crawler(layer.clone(), get("/drafts/x", agent)).await.is_none(), "{agent}");
    }
    let crawler = crawler(layer, get("/", GPTBOT)).await.expect("a crawler");
    assert_eq!((crawler.agent.class(), crawler.agent.category()), (Class::Registered, Some(Category::AiTraining)));
}

#[tokio::test]
async fn an_exempt_agent_that_only_the_robots_txt_names_counts_as_a_crawler() {
    let policy = Policy::builder().mode(Mode::Refuse).exempt_agents(["AcmeMonitor"]).expect("a name");
    let layer = RobotsLayer::new(live_by("User-agent: AcmeMonitor\nDisallow: /\n", policy)).with_crawler_extension();
    for target in ["/drafts/x", "/robots.txt"] {
        let exempt = crawler(layer.clone(), get(target, "AcmeMonitor/1.0")).await.expect("a group is for it");
        assert_eq!((exempt.reason, exempt.access, exempt.action), (Reason::Exempt, None, Action::Pass));
        assert_eq!(exempt.agent.tokens()[0].to_string(), "acmemonitor");
    }
    for target in ["/drafts/x", "/robots.txt"] {
        assert!(crawler(layer.clone(), get(target, FIREFOX)).await.is_none(), "{target}");
    }
}

#[test]
fn an_answer_contains_the_record_if_the_layer_adds_it_to_requests() {
    let layer = RobotsLayer::new(robots(Mode::Tag));
    let request = get("/", GPTBOT);
    let with = layer.clone().with_crawler_extension().decide(&OriginalRequest::of(&request)).respond(None);
    assert_eq!(with.record.expect("a crawler").name(), "GPTBot");
    assert!(layer.decide(&OriginalRequest::of(&request)).respond(None).record.is_none());
    assert!(layer.with_crawler_records().decide(&OriginalRequest::of(&request)).respond(None).record.is_some());
}

#[tokio::test]
async fn a_request_with_several_agents_gets_the_record_of_the_most_restricted_crawler() {
    let layer = RobotsLayer::new(robots(Mode::Tag)).with_crawler_extension();
    let cases = [([FIREFOX, GOOGLEBOT], "Googlebot", None), ([GOOGLEBOT, GPTBOT], "GPTBot", Some(Access::Disallow))];
    for (agents, name, access) in cases {
        let request = with(get("/drafts/x", agents[0]), "user-agent", agents[1]);
        let crawler = crawler(layer.clone(), request).await.expect("a crawler");
        assert_eq!((crawler.name(), crawler.access), (name, access));
    }
}

#[tokio::test]
async fn a_refusal_has_the_record_extension_and_no_request_has_one_without_the_option() {
    let layer = RobotsLayer::new(robots(Mode::Refuse));
    let refused = crawler(layer.clone().with_crawler_extension(), get("/drafts/x", GPTBOT)).await.expect("a crawler");
    assert_eq!((refused.action, refused.line), (Action::Refuse, Some(2)));
    assert!(crawler(layer, get("/", GPTBOT)).await.is_none(), "it was not asked for");
}

#[tokio::test]
async fn no_extension_is_added_without_a_file_or_while_enforcement_is_off() {
    let live = robots(Mode::Refuse);
    let layer = RobotsLayer::new(live.clone()).with_crawler_extension();
    live.set_enforcement(Enforcement::Off).expect("there is nothing to write");
    for target in ["/drafts/x", "/robots.txt"] {
        assert!(crawler(layer.clone(), get(target, GPTBOT)).await.is_none(), "{target}");
    }
    live.set_enforcement(Enforcement::On).expect("there is nothing to write");
    assert!(crawler(layer, get("/", GPTBOT)).await.is_some());
}

#[tokio::test]
async fn crawler_observers_are_notified_of_every_request_of_a_crawler() {
    let (notified, sink) = noting(Vec::new());
    let live = robots(Mode::Refuse);
    let layer = RobotsLayer::new(live.clone())
        .on_crawler(|event| panic!("{} is too much", event.record.name()))
        .on_crawler(move |event| {
            let target = String::from_utf8_lossy(event.request.target()).into_owned();
            let status = event.status.map(|status| status.as_u16());
            sink.lock().push((event.record.name().to_owned(), target, status));
        });
    let mut statuses = Vec::new();
    for (target, agent) in [
        ("/robots.txt", GPTBOT),
        ("/?a", GPTBOT),
        ("/drafts/x", GPTBOT),
        ("/", GOOGLEBOT),
        ("/robots.txt", FIREFOX),
        ("/drafts/x", FIREFOX),
    ] {
        statuses.push(ask(layer.clone(), get(target, agent)).await.status().as_u16());
    }
    assert_eq!(statuses, [200, 200, 403, 200, 200, 200]);
    let want = [
        ("GPTBot", "/robots.txt", Some(200)),
        ("GPTBot", "/?a", None),
        ("GPTBot", "/drafts/x", Some(403)),
        ("Googlebot", "/", None),
    ];
    let want = want.map(|(agent, target, status)| (agent.to_owned(), target.to_owned(), status));
    assert_eq!(*notified.lock(), want);
    assert_eq!((live.status().callback_faults, live.status().faults), (4, 0), "one for each panic");
    // An observer alone does not add a record to the extensions.
    assert!(crawler(layer, get("/", GPTBOT)).await.is_none());
}

#[cfg(feature = "serde")]
#[tokio::test]
async fn a_record_is_serialised_with_the_fields_of_the_log() {
    let layer = RobotsLayer::new(robots(Mode::Observe)).with_crawler_extension();
    let json = |crawler: Option<Record>| serde_json::to_string(&crawler).expect("JSON");
    assert_eq!(
        json(crawler(layer.clone(), get("/drafts/x", GPTBOT)).await),
        r#"{"agent":"GPTBot","class":"registered","category":"ai-training","identity":null,"action":"pass","reason":"observed","would":"refuse","access":"disallow","group":"GPTBot","group_size":1,"rule":"/drafts/","line":2,"form":"standard"}"#
    );
    assert_eq!(
        json(crawler(layer, get("/", GOOGLEBOT)).await),
        r#"{"agent":"Googlebot","class":"registered","category":"search","identity":null,"action":"pass","reason":"no-group","would":"pass","access":null,"group":null,"group_size":0,"rule":null,"line":null,"form":"standard"}"#
    );
}
