//! Tests of requests whose sender is checked.

use super::*;
use crate::agent::{IdentityMethod, UndecidedReason};
use crate::policy::{IdentityNeeded, Impostors, Override};
use crate::rules::Access;

const FILE: &str = "User-agent: GPTBot\nDisallow: /drafts/\nAllow: /drafts/open\n";
const BINGBOT: &str = "Mozilla/5.0 (compatible; bingbot/2.0; +http://www.bing.com/bingbot.htm)";

fn layer(mode: Mode, impostors: Impostors) -> RobotsLayer {
    layer_of(Policy::builder().mode(mode).impostors(impostors).identity_needed(IdentityNeeded::Verified))
}

fn layer_of(policy: PolicyBuilder) -> RobotsLayer {
    RobotsLayer::new(live_by(FILE, policy)).identity_from(|extensions| extensions.get::<Identity>().copied())
}

fn from(agent: &str, target: &str, identity: Identity) -> Request<Full<Bytes>> {
    let mut request = get(target, agent);
    request.extensions_mut().insert(identity);
    request
}

#[tokio::test]
async fn an_impostor_is_refused_even_if_the_file_allows_the_request() {
    let (notified, sink) = noting(Vec::new());
    let layer = layer(Mode::Refuse, Impostors::Refuse).on_disallowed(move |event| {
        let record = event.record;
        let rule = record.rule.as_deref().map(str::to_owned).zip(record.line);
        sink.lock().push((record.reason, record.access, rule, record.identity));
    });
    // A rule allows the first request. No rule matches the second. No group applies to the third.
    for (agent, target) in [(GPTBOT, "/drafts/open"), (GPTBOT, "/"), (BINGBOT, "/drafts/x")] {
        let response = ask(layer.clone(), from(agent, target, REFUTED)).await;
        assert_eq!(response.status(), StatusCode::FORBIDDEN, "{agent} {target}");
        let record = response.extensions().get::<Record>().expect("a record").clone();
        assert_eq!((record.action, record.reason), (Action::Refuse, Reason::Impostor));
        let body = text(response).await;
        let name = record.name().to_owned();
        assert!(body.contains(&format!("The request is not from {name}, although it claims to be.\n")), "{body}");
        assert!(!body.contains("Disallow") && !body.contains("does not let"), "{body}");
    }
    let of = |access, rule: Option<(&str, usize)>| {
        let rule = rule.map(|(rule, line)| (rule.to_owned(), line));
        (Reason::Impostor, access, rule, Some(REFUTED))
    };
    let allowed = Some(Access::Allow);
    let want = [of(allowed, Some(("/drafts/open", 3))), of(allowed, None), of(None, None)];
    assert_eq!(*notified.lock(), want);

    for identity in [
        Identity::Verified(IdentityMethod::Range),
        Identity::Undecided(UndecidedReason::Stale),
        Identity::Unverifiable,
        Identity::Unclaimed,
    ] {
        assert_eq!(ask(layer.clone(), from(GPTBOT, "/", identity)).await.status(), StatusCode::OK, "{identity}");
    }
    assert_eq!(ask(layer.clone(), from(GPTBOT, "/robots.txt", REFUTED)).await.status(), StatusCode::OK);
}

#[tokio::test]
async fn a_refusal_does_not_reveal_why_a_signature_is_invalid() {
    let signed = Identity::Refuted(Refutation::Expired);
    let response = ask(layer(Mode::Refuse, Impostors::Refuse), from(GPTBOT, "/drafts/x", signed)).await;
    let body = text(response).await;
    assert!(body.contains("The robots.txt does not let GPTBot fetch this path."), "{body}");

    // Even if the rule does not cause a refusal, the request is refused because its sender is an
    // impostor.
    let lenient = Override::pattern("/drafts/", Mode::Observe).expect("a pattern");
    let response = ask(
        layer_of(Policy::builder().mode(Mode::Refuse).impostors(Impostors::Refuse).with_override(lenient)),
        from(GPTBOT, "/drafts/x", signed),
    )
    .await;
    let body = text(response).await;
    assert!(body.contains("The signature of the request is not valid. The robots.txt does not let GPTBot"), "{body}");
    assert!(body.contains("Disallow: /drafts/        (line 2)") && !body.contains("expired"), "{body}");
}

#[tokio::test]
async fn the_verdict_field_contains_the_result_of_the_identity_check() {
    for (mode, agent, target, identity, want) in [
        (
            Mode::Tag,
            GPTBOT,
            "/drafts/x",
            REFUTED,
            "disallow;agent=\"GPTBot\";rule=\"/drafts/\";line=2;identity=refuted",
        ),
        (
            Mode::Tag,
            GPTBOT,
            "/drafts/x",
            Identity::Verified(IdentityMethod::Rdns),
            "disallow;agent=\"GPTBot\";rule=\"/drafts/\";line=2;identity=verified",
        ),
        (Mode::Tag, BINGBOT, "/", REFUTED, "allow;agent=\"bingbot\";reason=impostor;identity=refuted"),
    ] {
        let mut request = from(agent, target, identity);
        let layer = layer(mode, Impostors::Tag);
        assert!(layer.respond(&mut request).is_none());
        assert_eq!(request.headers()[Record::FIELD], want);
    }
}

#[tokio::test]
async fn handlers_receive_the_result_of_the_identity_check() {
    let layer = layer(Mode::Refuse, Impostors::Observe).with_crawler_extension();
    for (agent, identity) in [(GPTBOT, REFUTED), (BINGBOT, Identity::Verified(IdentityMethod::Range))] {
        let mut request = from(agent, "/", identity);
        assert!(layer.respond(&mut request).is_none());
        assert_eq!(request.extensions().get::<Record>().and_then(|crawler| crawler.identity), Some(identity));
    }
    // The sender of this request was not checked.
    let mut request = get("/", GPTBOT);
    assert!(layer.respond(&mut request).is_none());
    assert_eq!(request.extensions().get::<Record>().expect("a crawler").identity, None);
}
