//! The store in which processes share what they count of crawlers, where the config has one.

use crate::config::Config;
use crate::date::rfc3339;
use crate::log::{Log, LogEvent, LogLevel};
use crate::metrics::{Exposition, family};
use crate::report::{KindCount, RateStoreReport};
use crate::shared_rate::{SharedRate, StoreChange, StoreUsage};

/// Begins to use the store of a config. One that has the same goes on with it.
pub(super) fn renewed(before: Option<&SharedRate>, config: &Config, log: &Log) -> Result<Option<SharedRate>, String> {
    let Some(settings) = &config.rate_store else { return Ok(None) };
    if let Some(same) = before.filter(|before| before.settings() == settings) {
        return Ok(Some(same.clone()));
    }
    let (place, log) = (settings.place(), log.clone());
    let changed = move |change| {
        let message = match change {
            StoreChange::Used => {
                return log.say(LogEvent::RateStore, format!("{place} answers: crawlers are counted there"));
            }
            StoreChange::Partly(why) => {
                format!("a part of {place} is not asked: {why}; each process counts the crawlers there for itself")
            }
            StoreChange::Lost(why) => format!("{place} is not asked: {why}; each process counts crawlers for itself"),
        };
        log.say_at(LogLevel::Warn, LogEvent::RateStore, message);
    };
    let store = SharedRate::start(settings.clone(), changed);
    store.map(Some).map_err(|error| format!("the store of rates: no thread can be started: {error}"))
}

/// For the status.
pub(super) fn report(store: &SharedRate) -> RateStoreReport {
    let report = store.report();
    let counts = |kinds: &[(&str, u64)]| kinds.iter().map(|(kind, count)| KindCount::new(kind, *count)).collect();
    let (trouble_since, trouble) = report.trouble.map(|(at, why)| (rfc3339(at), why)).unzip();
    let of = report.counts;
    RateStoreReport {
        place: report.place,
        state: match report.usage {
            StoreUsage::Used => "used",
            StoreUsage::Partly => "partly",
            StoreUsage::Out => "out",
        }
        .to_owned(),
        unasked: None,
        trouble,
        trouble_at: trouble_since,
        outages: of.outages,
        calls: counts(&[("answered", of.answered), ("late", of.late), ("failed", of.failed)]),
        requests: counts(&[
            ("allowed", of.allowed),
            ("denied", of.denied),
            ("alone", of.alone),
            ("known-allowed", of.known_allowed),
            ("known-denied", of.known_denied),
        ]),
    }
}

pub(super) fn write_metrics(store: &SharedRate, exposition: &mut Exposition) {
    let RateStoreReport { state, calls, requests, .. } = report(store);
    exposition.holds(&family::RATE_STORE_UP, &[], state == "used");
    for KindCount { kind, count } in &calls {
        exposition.sample(&family::RATE_STORE_CALLS, &[("result", kind)], *count);
    }
    for KindCount { kind, count } in &requests {
        exposition.sample(&family::RATE_STORE_REQUESTS, &[("result", kind)], *count);
    }
}
