//! Tests of tagged requests and of the verdict field.

use super::*;

#[tokio::test]
async fn a_tagged_request_has_the_verdict_field_and_the_record_as_an_extension() {
    let response = ask(RobotsLayer::new(live(Mode::Tag)), get("/drafts/x", GPTBOT)).await;
    assert_eq!(response.status(), StatusCode::OK);
    let want = r#"disallow;agent="GPTBot";rule="/drafts/";line=2"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
    assert_eq!(response.extensions().get::<Record>().and_then(|record| record.line), Some(2));
}

#[tokio::test]
async fn a_disallowed_search_engine_is_tagged_with_the_reason_instead_of_refused() {
    let file = "User-agent: *\nDisallow: /drafts/\n";
    let ask_as = async |policy: PolicyBuilder, agent: &str| {
        ask(RobotsLayer::new(live_by(file, policy)), get("/drafts/x", agent)).await
    };
    let refusing = || Policy::builder().mode(Mode::Refuse);
    let spared = ask_as(refusing(), GOOGLEBOT).await;
    assert_eq!(spared.status(), StatusCode::OK);
    let want = r#"disallow;agent="Googlebot";rule="/drafts/";line=2;reason=search-engine"#;
    assert_eq!(field(&spared, "saw-robots-verdict"), Some(want));
    let record = spared.extensions().get::<Record>().expect("a record");
    assert_eq!((record.action, record.reason), (Action::Tag, Reason::SearchEngine));
    // With the mode `tag`, the field contains no reason. With the mode `refuse`, other crawlers are
    // refused.
    let tagged = ask_as(Policy::builder().mode(Mode::Tag), GOOGLEBOT).await;
    assert_eq!(field(&tagged, "saw-robots-verdict"), Some(r#"disallow;agent="Googlebot";rule="/drafts/";line=2"#));
    for agent in [GPTBOT, "Wotbox/2.0"] {
        assert_eq!(ask_as(refusing(), agent).await.status(), StatusCode::FORBIDDEN, "{agent}");
    }
    let refused = refusing().with_override(crate::policy::Override::index_engines(Mode::Refuse));
    assert_eq!(ask_as(refused, GOOGLEBOT).await.status(), StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn tags_and_refusals_contain_the_path_form_that_matched_the_rule() {
    let target = "/x/..;/drafts/x";
    let response = ask(RobotsLayer::new(live(Mode::Tag)), get(target, GPTBOT)).await;
    let want = r#"disallow;agent="GPTBot";rule="/drafts/";line=2;form=parameters"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
    let refused = text(ask(RobotsLayer::new(live(Mode::Refuse)), get(target, GPTBOT)).await).await;
    assert!(refused.contains("form=parameters"), "{refused}");
    let plain = text(ask(RobotsLayer::new(live(Mode::Refuse)), get("/drafts/x", GPTBOT)).await).await;
    assert!(!plain.contains("form="), "{plain}");
    let request = with(get(target, GPTBOT), "accept", "application/json");
    let problem = text(ask(RobotsLayer::new(live(Mode::Refuse)), request).await).await;
    assert!(problem.contains(r#""form":"parameters""#), "{problem}");
}

#[tokio::test]
async fn a_verdict_field_that_the_client_sends_is_removed() {
    for (mode, ours) in [(Mode::Off, 0), (Mode::Observe, 0), (Mode::Tag, 1)] {
        for agent in [FIREFOX, GPTBOT] {
            let mut request = get("/drafts/x", agent);
            for name in ["robots-verdict", "robots_verdict"] {
                add(&mut request, name, "allow");
                add(&mut request, name, "allow");
            }
            let response = ask(RobotsLayer::new(live(mode)), request).await;
            let seen: Vec<_> = response.headers().get_all("saw-robots-verdict").iter().collect();
            assert_eq!(seen.len(), if agent == GPTBOT { ours } else { 0 }, "{mode} {agent}");
            assert!(seen.iter().all(|value| value.as_bytes().starts_with(b"disallow")));
            assert_eq!(field(&response, "saw-robots_verdict"), None);
        }
    }
}

#[tokio::test]
async fn a_connection_field_of_the_client_cannot_remove_the_verdict_field() {
    let request = with(with(get("/drafts/x", GPTBOT), "connection", "close, Robots-Verdict"), "connection", "te");
    let response = ask(RobotsLayer::new(live(Mode::Tag)), request).await;
    assert_eq!(field(&response, "saw-connection"), Some("close, te"));
    assert!(field(&response, "saw-robots-verdict").is_some());
}

#[tokio::test]
async fn a_rule_with_non_ascii_characters_is_percent_encoded_in_the_tag() {
    let file = "User-agent: GPTBot\nDisallow: /caf\u{e9}\"\\\x01\n";
    let live = live_by(file, Policy::builder().mode(Mode::Tag));
    let response = ask(RobotsLayer::new(live), get("/caf%C3%A9\"\\%01", GPTBOT)).await;
    // The rule contains a raw control character, and the request contains `%01`. So the rule does
    // not match.
    assert_eq!(field(&response, "saw-robots-verdict"), None);
    let file = "User-agent: GPTBot\nDisallow: /caf\u{e9}\"\\\n";
    let live = live_by(file, Policy::builder().mode(Mode::Tag));
    let response = ask(RobotsLayer::new(live), get("/caf%C3%A9\"\\x", GPTBOT)).await;
    let want = r#"disallow;agent="GPTBot";rule="/caf%C3%A9%22%5C";line=2"#;
    assert_eq!(field(&response, "saw-robots-verdict"), Some(want));
}

#[tokio::test]
async fn an_inner_layer_keeps_the_verdict_field_of_the_outer_layer() {
    let inner = RobotsLayer::new(LiveRobots::text("# open\n").open().expect("open"));
    let outer = RobotsLayer::new(live(Mode::Tag));
    let response =
        outer.layer(inner.layer(service_fn(app))).oneshot(get("/drafts/x", GPTBOT)).await.expect("infallible");
    assert!(field(&response, "saw-robots-verdict").is_some());
}

#[test]
fn respond_sets_the_verdict_field_of_a_forwarded_request_and_pass_keeps_it() {
    let mut request = with(get("/drafts/x", GPTBOT), "robots-verdict", "allow");
    let answer = RobotsLayer::new(live(Mode::Tag)).decide(&OriginalRequest::of(&request)).respond(None);
    let field = answer.record.as_ref().expect("a record").to_field();
    assert!(answer.respond(&mut request).is_none());
    assert_eq!(request.headers().get_all("robots-verdict").iter().collect::<Vec<_>>(), [field]);
    assert!(request.extensions().get::<Record>().is_some());
    assert!(Answer::pass().respond(&mut request).is_none());
    assert!(request.headers().contains_key("robots-verdict"), "a layer outside has tagged it");
}
