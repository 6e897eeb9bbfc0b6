//! What the sites are like, for whoever asks.

use std::time::SystemTime;

use tower_robots::check::Severity;
use tower_robots::policy::Override;
use tower_robots::source::HistoryEntry;
use tower_robots::source::fetch::FetchStatus;

use super::advice;
use super::operate::Refusal;
use super::sites::{Site, Sites};
use crate::admin::{
    FetchReport, Findings, HistoryReport, LastReload, OverrideReport, PendingReport, RecordedReload, SiteReport,
};

impl Sites {
    /// Every site, in the order of the config.
    pub(crate) fn report(&self) -> Vec<SiteReport> {
        self.iter().map(Site::report).collect()
    }

    /// What was tried for a site, and what came of it.
    pub(crate) fn history(&self, name: &str) -> Result<HistoryReport, Refusal> {
        let site = self.named(name)?;
        let entries = site.live.history();
        Ok(HistoryReport { site: site.name.to_string(), entries: entries.iter().map(recorded).collect() })
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
            overrides: snapshot.policy().overrides().iter().map(exception).collect(),
            enforcement: status.enforcement().as_str().to_owned(),
            switch: status.switch().as_str().to_owned(),
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
            reloads: self.tally.report(),
            pending: status.pending().map(|pending| PendingReport {
                hash: pending.hash().to_string(),
                origin: pending.origin().to_owned(),
                since: date(pending.since()),
                objections: pending.objections().iter().map(ToString::to_string).collect(),
            }),
            before: status.before().map(|hash| hash.to_string()),
            grace_end: status.grace_end().map(date),
            faults: status.faults(),
            fetch: status.fetch().map(fetching),
            next: advice::for_site(&self.name, &snapshot, &status),
            troubles: [status.watch_trouble(), status.state_trouble()]
                .into_iter()
                .flatten()
                .map(str::to_owned)
                .collect(),
        }
    }
}

fn exception(over: &Override) -> OverrideReport {
    OverrideReport {
        of: over.to_string(),
        mode: over.mode().as_str().to_owned(),
        until: over.end().map(date),
        ended: over.end().is_some_and(|end| end <= SystemTime::now()),
    }
}

fn fetching(fetch: &FetchStatus) -> FetchReport {
    FetchReport {
        confirmed: fetch.confirmed().map(date),
        failing_since: fetch.failing_since().map(date),
        failures: fetch.failures(),
        held_until: fetch.held_until().map(date),
        next: date(fetch.next_fetch()),
    }
}

fn recorded(entry: &HistoryEntry) -> RecordedReload {
    RecordedReload {
        when: date(entry.when()),
        cause: entry.cause().as_str().to_owned(),
        outcome: entry.outcome().as_str().to_owned(),
        origin: entry.origin().to_owned(),
        hash: entry.hash().map(|hash| hash.to_string()),
        findings: Findings {
            errors: entry.findings(Severity::Error),
            warnings: entry.findings(Severity::Warning),
            notes: entry.findings(Severity::Note),
        },
        effect: entry.effect().map(str::to_owned),
        message: entry.detail().to_owned(),
    }
}

fn date(time: SystemTime) -> String {
    humantime::format_rfc3339_seconds(time).to_string()
}
