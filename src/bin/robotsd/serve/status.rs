//! What the sites are like, for whoever asks.

use std::time::SystemTime;

use tower_robots::check::Severity;

use super::sites::{Site, Sites};
use crate::admin::{Findings, LastReload, PendingReport, SiteReport};

impl Sites {
    /// Every site, in the order of the config.
    pub(crate) fn report(&self) -> Vec<SiteReport> {
        self.iter().map(Site::report).collect()
    }

    /// The names of the sites that have nothing to enforce yet.
    pub(crate) fn without_robots(&self) -> impl Iterator<Item = &str> {
        let has_none = |site: &&Site| site.live.with(|snapshot| snapshot.content().is_none());
        self.iter().filter(has_none).map(|site| &*site.name)
    }
}

impl Site {
    fn report(&self) -> SiteReport {
        let snapshot = self.live.snapshot();
        let status = self.live.status();
        let history = self.live.history();
        let reload = status.last_reload();
        let content = snapshot.content();
        let count = |severity| content.map_or(0, |content| content.report().count(severity));
        SiteReport {
            name: self.name.to_string(),
            hosts: self.hosts.clone(),
            state: status.condition().as_str().to_owned(),
            origin: reload.origin().to_owned(),
            mode: snapshot.policy().mode().as_str().to_owned(),
            enforcement: status.enforcement().as_str().to_owned(),
            hash: content.map(|content| content.hash().to_string()),
            since: content.map(|_| date(status.since())),
            // A clock that was set back makes nothing older.
            age_seconds: content.map(|_| status.since().elapsed().map_or(0, |age| age.as_secs())),
            findings: Findings {
                errors: count(Severity::Error),
                warnings: count(Severity::Warning),
                notes: count(Severity::Note),
            },
            last_reload: Some(LastReload {
                when: history.iter().map(|entry| entry.when()).max().map(date),
                cause: reload.cause().as_str().to_owned(),
                outcome: reload.outcome().kind().as_str().to_owned(),
                message: reload.to_string(),
            }),
            pending: status.pending().map(|pending| PendingReport {
                hash: pending.hash().to_string(),
                since: date(pending.since()),
                objections: pending.objections().iter().map(ToString::to_string).collect(),
            }),
            before: status.before().map(|hash| hash.to_string()),
            grace_end: status.grace_end().map(date),
            faults: status.faults(),
            troubles: [status.watch_trouble(), status.state_trouble()]
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .collect(),
        }
    }
}

fn date(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
