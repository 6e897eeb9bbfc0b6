//! The lines that a site writes to the log: disallowed requests, reloads, upstreams.

use tower_robots::check::Severity;
use tower_robots::layer::{Event, Record};
use tower_robots::live::{RejectionKind, Reload, ReloadOutcome, Snapshot};
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::PathForm;

use super::site_name::SiteName;
use crate::edge::{AccessFields, Peer, X_REQUEST_ID};
use crate::log::{Log, LogEntry, LogPrivacy};
use crate::render::finding_line;
use crate::upstream::UpstreamEvent;

/// One line for every request that robots.txt disallows.
pub(super) fn event(site: SiteName, log: Log, privacy: LogPrivacy) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    move |event| {
        let record = event.record();
        let hash = record.hash().short();
        let done = match (record.action(), record.reason()) {
            (Action::Refuse, _) => "refused",
            (Action::Tag, _) => "tagged",
            (Action::Pass, Reason::Observed | Reason::Grace) => "observed",
            _ => "passed",
        };
        if let Some(notes) = event.extensions().get::<AccessFields>() {
            note(notes, done, record);
        }
        log.write(&LogEntry {
            event: done,
            suspect_human: Some(record.signs().names().collect::<Vec<_>>().join(", "))
                .filter(|signs| !signs.is_empty()),
            request_id: event.headers().get(X_REQUEST_ID).and_then(|id| id.to_str().ok()),
            site: Some(&site),
            agent: Some(record.agent()),
            category: record.category().map(|category| category.as_str()),
            identity: Some("claimed"),
            decision: Some(record.access().as_str()),
            reason: Some(record.reason().as_str()),
            status: event.status().map(|status| status.as_u16()),
            group: Some(record.group()),
            rule: Some(record.rule()),
            line: Some(record.line()),
            form: Some(record.form()).filter(|form| *form != PathForm::Standard).map(PathForm::as_str),
            robots_hash: Some(hash),
            method: Some(event.method().as_str()),
            path: Some(privacy.target(&String::from_utf8_lossy(event.target()))),
            address: event.extensions().get::<Peer>().and_then(|peer| privacy.address(peer.address.ip())),
            ..LogEntry::now()
        });
    }
}

/// What the log of requests says of a request that robots.txt disallows.
fn note(notes: &AccessFields, done: &'static str, record: &Record) {
    notes.add("agent", record.agent());
    if let Some(category) = record.category() {
        notes.add("category", category.as_str());
    }
    notes.add("identity", "claimed");
    notes.add("decision", record.access().as_str());
    notes.add("action", done);
    notes.add("reason", record.reason().as_str());
    notes.add("group", record.group());
    notes.add("rule", record.rule());
    notes.add("line", record.line());
    if record.form() != PathForm::Standard {
        notes.add("form", record.form().as_str());
    }
    notes.add("robots_hash", record.hash().short());
}

/// One line for every reload, and the errors and warnings that the check found in what went live.
pub(super) fn reload(site: SiteName, log: Log) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
    move |reload, snapshot| {
        let (event, hash) = match reload.outcome() {
            ReloadOutcome::Published { hash, .. } => ("published", Some(hash.short())),
            ReloadOutcome::Unchanged { hash, .. } => ("unchanged", Some(hash.short())),
            ReloadOutcome::Absent { .. } => ("absent", None),
            ReloadOutcome::Kept { rejection, live, .. } => {
                let event = match rejection.kind() {
                    RejectionKind::Held => "held",
                    RejectionKind::Unreachable => "unreachable",
                    _ => "rejected",
                };
                (event, live.map(|hash| hash.short()))
            }
            ReloadOutcome::Gated { pending, .. } => ("gated", Some(pending.hash().short())),
            _ => ("reloaded", None),
        };
        log.write(&LogEntry {
            event,
            site: Some(&site),
            reason: Some(reload.cause().as_str()),
            robots_hash: hash,
            message: Some(reload.to_string()),
            ..LogEntry::now()
        });
        let (ReloadOutcome::Published { .. }, Some(content)) = (reload.outcome(), snapshot.content()) else { return };
        for finding in content.report().findings().iter().filter(|finding| finding.severity() >= Severity::Warning) {
            log.write(&LogEntry {
                event: "finding",
                site: Some(&site),
                reason: Some(finding.code()),
                line: Some(finding.line()),
                message: Some(finding_line(reload.origin(), finding)),
                ..LogEntry::now()
            });
        }
    }
}

/// One line for every change of an upstream's standing, and for requests without an answer at most one a second and kind.
pub(super) fn upstream(site: SiteName, log: Log) -> impl Fn(&UpstreamEvent) + Send + Sync + 'static {
    move |event| {
        let detail = &event.detail;
        log.write(&LogEntry {
            event: "upstream",
            site: Some(&site),
            reason: Some(event.kind.as_str()),
            message: Some(match event.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now()
        });
    }
}
