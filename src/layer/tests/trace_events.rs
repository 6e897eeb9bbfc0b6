//! The event of a disallowed request, as a subscriber gets it.

use std::collections::BTreeMap;

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record as SpanRecord};
use tracing::{Event as TracingEvent, Metadata, Subscriber};

use super::*;

/// Keeps the fields of the events of this thread.
#[derive(Clone, Default)]
struct Fields(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

impl Subscriber for Fields {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target() == "tower_robots::layer"
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &SpanRecord<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &TracingEvent<'_>) {
        struct Collect(BTreeMap<String, String>);
        impl Visit for Collect {
            fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
                self.0.insert(field.name().to_owned(), format!("{value:?}"));
            }
        }
        let mut fields = Collect(BTreeMap::new());
        event.record(&mut fields);
        self.0.lock().push(fields.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn an_event_names_host_path_and_rule() {
    let events = Fields::default();
    // Where another test's thread meets the place of the event first while this one subscribes, it would stay without a subscriber.
    ask(RobotsLayer::new(live(Mode::Refuse)), get("/drafts/", GPTBOT)).await;
    let _default = tracing::subscriber::set_default(events.clone());
    let request = with(get("/drafts/%0Ax?token=secret", GPTBOT), "host", "example.com");
    ask(RobotsLayer::new(live(Mode::Refuse)), request).await;
    ask(RobotsLayer::new(live(Mode::Refuse)), get("/", GPTBOT)).await;
    let events = events.0.lock();
    let [event] = &events[..] else { panic!("{events:?}") };
    for (field, want) in [
        ("agent", "\"GPTBot\""),
        ("host", "\"example.com\""),
        ("path", "/drafts/%0Ax"),
        ("rule", "\"/drafts/\""),
        ("line", "2"),
        ("decision", "\"refuse\""),
        ("reason", "\"disallowed\""),
        ("would", "\"refuse\""),
        ("message", "robots.txt disallows the request"),
    ] {
        assert_eq!(event.get(field).map(String::as_str), Some(want), "{field}");
    }
}

#[cfg(feature = "axum08")]
#[tokio::test]
async fn the_first_target_without_its_prefix_is_warned_of() {
    let events = Fields::default();
    let _default = tracing::subscriber::set_default(events.clone());
    let live = live(Mode::Refuse);
    for _ in 0..2 {
        let mut request = get("/x", GPTBOT);
        request.extensions_mut().insert(axum::extract::OriginalUri(Uri::from_static("/drafts/x")));
        assert_eq!(ask(RobotsLayer::new(&live), request).await.status(), StatusCode::OK);
    }
    assert_eq!(live.status().stripped_targets, 2);
    let events = events.0.lock();
    let [event] = &events[..] else { panic!("{events:?}") };
    assert!(event["message"].contains("use RobotsLayer::for_axum08 there"), "{event:?}");
}
