//! Collects the events that the library emits, for tests.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// The level and target of an event, and its message or all of its fields.
pub(crate) type Emitted<D = String> = (Level, &'static str, D);

/// The fields of an event, including its message.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fields(pub(crate) BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}

#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<Emitted<Fields>>>>);

impl Subscriber for Events {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("tower_robots")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields::default();
        event.record(&mut fields);
        self.0.lock().unwrap().push((*event.metadata().level(), event.metadata().target(), fields));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Returns the events that `work` emits on this thread, with all fields.
pub(crate) fn events_with_fields(work: impl FnOnce()) -> Vec<Emitted<Fields>> {
    let events = Events::default();
    tracing::subscriber::with_default(events.clone(), work);
    let events = events.0.lock().unwrap();
    events.clone()
}

/// Returns level, target and message of the events that `work` emits on this thread.
pub(crate) fn events(work: impl FnOnce()) -> Vec<Emitted> {
    let message = |mut fields: Fields| fields.0.remove("message").unwrap_or_default();
    events_with_fields(work).into_iter().map(|(level, target, fields)| (level, target, message(fields))).collect()
}
