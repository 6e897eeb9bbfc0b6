//! Counts and logs decision requests whose original request is missing or malformed. A client may
//! be able to cause many such requests. Therefore, each kind of error is logged at most once per
//! second and preset, with the number of errors so far.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use super::preset::Preset;
use crate::config::{OnError, QuestionSettings};
use crate::log::{Log, LogEntry, LogEvent};
use crate::metrics::EventCounter;
use crate::word_enum::word_enum;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct QuestionError {
    /// The preset of the decision request; `None` if the preset or the site in the decision request
    /// is unknown.
    preset: Option<Preset>,
    pub(super) fault: QuestionFault,
    place: &'static str,
}

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum QuestionFault {
        Missing = "missing",
        Repeated = "repeated",
        Unreadable = "unreadable",
        UnknownPreset = "unknown-preset",
        UnknownSite = "unknown-site",
    }
}

/// Time during which the status reports a problem after an invalid decision request, in seconds.
const TROUBLE: u64 = 3600;

impl QuestionError {
    pub(super) const UNKNOWN_SITE: Self =
        Self { preset: None, fault: QuestionFault::UnknownSite, place: "the question" };
    pub(super) const UNKNOWN_PRESET: Self =
        Self { preset: None, fault: QuestionFault::UnknownPreset, place: "the path" };

    pub(super) const fn new(preset: Preset, fault: QuestionFault, place: &'static str) -> Self {
        Self { preset: Some(preset), fault, place }
    }

    pub(super) const fn missing(preset: Preset, place: &'static str) -> Self {
        Self::new(preset, QuestionFault::Missing, place)
    }

    fn message(&self) -> String {
        let place = self.place;
        match (self.fault, self.preset) {
            (QuestionFault::Missing, Some(preset)) => format!("{}: {place} is missing", preset.as_str()),
            (QuestionFault::Repeated, Some(preset)) => format!("{}: {place} is repeated", preset.as_str()),
            (QuestionFault::Unreadable, Some(preset)) => format!("{}: {place} is malformed", preset.as_str()),
            (QuestionFault::UnknownSite, _) => {
                format!("{place} contains an unknown site: write the name of a [[site]], as in /-/site/NAME/auth/nginx")
            }
            (QuestionFault::UnknownPreset, _) | (_, None) => {
                let known = Preset::IN_PATHS.map(Preset::as_str).join(", ");
                format!("{place} contains an unknown preset: write /-/auth/ and one of {known}")
            }
        }
    }
}

#[derive(Debug)]
pub(crate) struct QuestionErrors {
    log: Log,
    pub(super) settings: QuestionSettings,
    start: Instant,
    counts: [[EventCounter; QuestionFault::ALL.len()]; Preset::ALL.len() + 1],
    without_agent: [AtomicU64; Preset::ALL.len()],
}

impl QuestionErrors {
    pub(crate) fn new(log: Log, settings: QuestionSettings) -> Self {
        let (counts, without_agent) = Default::default();
        Self { log, settings, start: Instant::now(), counts, without_agent }
    }

    /// Counts an error. Logs the error, unless an error of the same kind and preset was logged
    /// within the last second.
    pub(super) fn report(&self, error: QuestionError) {
        let is_passed = self.settings.on_error == OnError::Pass;
        self.report_as(error, if is_passed { "let through without a decision" } else { "refused" });
    }

    /// Counts and logs a malformed decision request that did not prevent a decision. Logs at most
    /// once per second, like [`report`](Self::report).
    pub(super) fn report_odd(&self, error: QuestionError) {
        self.report_as(error, "decided with the strictest interpretation of the decision request");
    }

    /// Counts and logs a gRPC call that gets an error status. Logs at most once per second, like
    /// [`report`](Self::report). After such a call, the proxy allows or rejects the client's
    /// request, depending on its own configuration.
    pub(super) fn report_failed_call(&self) {
        let error = QuestionError::new(Preset::EnvoyGrpc, QuestionFault::Unreadable, "the message");
        self.report_as(
            error,
            "answered with a gRPC error; the config of the proxy determines whether the request passes",
        );
    }

    pub(crate) fn totals(&self) -> [(&'static str, u64); QuestionFault::ALL.len()] {
        let total = |fault| self.counts.iter().map(|of_preset| of_preset[fault as usize].total()).sum();
        QuestionFault::ALL.map(|fault| (fault.as_str(), total(fault)))
    }

    /// Returns a message for each kind of recent error that only a wrong configuration of the proxy
    /// can cause.
    pub(crate) fn problems(&self) -> impl Iterator<Item = String> {
        let done = if self.settings.on_error == OnError::Pass { "let through without a decision" } else { "refused" };
        let of_proxies = [QuestionFault::Missing, QuestionFault::UnknownPreset, QuestionFault::UnknownSite];
        let is_recent = |fault| self.counts.iter().any(|counts| counts[fault as usize].is_recent(self.start, TROUBLE));
        of_proxies.into_iter().filter(move |fault| is_recent(*fault)).map(move |fault| {
            let (word, total) = self.totals()[fault as usize];
            format!(
                "within the last hour, invalid decision requests of proxies were {done} (reason: {word}; {total} \
                 since the start): the log events \"undecided\" show what the proxy must send"
            )
        })
    }

    fn report_as(&self, error: QuestionError, done: &str) {
        let preset = error.preset.map_or(Preset::ALL.len(), |preset| preset as usize);
        let count = &self.counts[preset][error.fault as usize];
        if count.count(self.start).is_none() {
            return;
        }
        let total = count.total();
        self.log.write(&LogEntry {
            reason: Some(error.fault.as_str()),
            message: Some(format!("{}: {done} ({total} so far)", error.message())),
            ..LogEntry::now(LogEvent::Undecided)
        });
    }

    /// Counts a decision request if its original request has no `User-Agent`, and logs the first
    /// such request of each preset. Without a `User-Agent`, crawlers cannot be recognised. Some
    /// proxies send this field only if they are configured to do so.
    pub(super) fn report_missing_agent(&self, preset: Preset) {
        if self.without_agent[preset as usize].fetch_add(1, Ordering::Relaxed) > 0 {
            return;
        }
        self.log.write(&LogEntry {
            reason: Some(preset.as_str()),
            message: Some(
                "a decision request contained no User-Agent, so no crawler was recognised: if this happens for every \
                 client, configure the proxy to send this field"
                    .to_owned(),
            ),
            ..LogEntry::now(LogEvent::NoUserAgent)
        });
    }
}
