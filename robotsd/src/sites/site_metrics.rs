//! Writes the metrics of the sites, the address lists, the registry and the rate store, from the
//! same data as `robotsd status`.

use std::collections::BTreeMap;
use std::sync::Arc;

use tower_robots::check::Severity;
use tower_robots::internals::Condition;
use tower_robots::live::Enforcement;

use super::appended_parts::AppendedParts;
use super::backend::BackendSource;
use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_robots::LiveSite;
use crate::config::RegistrySources;
use crate::counting::RequestOutcome;
use crate::metrics::family::{self, Family};
use crate::metrics::{Exposition, ResponseKey};
use crate::report::RateStoreReport;
use crate::webhooks::HookStatus;

const PART_STATES: [&str; 3] = ["appended", "last-good", "missing"];

const STATES: [&str; 4] =
    [Condition::Live.as_str(), Condition::LastGood.as_str(), Condition::Gated.as_str(), Condition::None.as_str()];

impl Sites {
    /// Writes the metrics of every site, in the order of the config. `listeners` contains the
    /// labels of the listeners, indexed by listener number.
    pub(crate) fn write_metrics(&self, exposition: &mut Exposition, listeners: &[Arc<str>]) {
        if let Some(RateStoreReport { state, calls, requests, .. }) = self.rate_store_report() {
            exposition.flag(&family::RATE_STORE_UP, &[], state == "used");
            for (family, counts) in [(&family::RATE_STORE_CALLS, calls), (&family::RATE_STORE_REQUESTS, requests)] {
                exposition.samples_by_label(family, &[], "result", counts.into_iter().map(|of| (of.kind, of.count)));
            }
        }
        if self.registry != RegistrySources::default() {
            exposition.flag(&family::REGISTRY_REJECTED, &[], self.registry_problems().next().is_some());
        }
        if let Some(identity) = self.identity_report() {
            let confirmed = identity.confirmed_lists();
            let lists = [("confirmed", confirmed), ("unconfirmed", identity.lists.len() - confirmed)];
            exposition.samples_by_label(&family::IDENTITY_LISTS, &[], "state", lists);
        }
        let hooks = self.hooks();
        let notify = hooks.iter().flat_map(|hooks| hooks.status("", ""));
        write_hooks(exposition, &family::NOTIFICATIONS, &[], notify);
        for site in self.iter() {
            for live in site.live_sites() {
                live.write_metrics(exposition, site.settings.robots.kind());
                let status: Vec<_> = hooks.iter().flat_map(|hooks| hooks.status(&site.name, &live.name)).collect();
                write_pending(exposition, &live.name, &status);
                write_hooks(exposition, &family::PUBLISH_REQUESTS, &[("site", &live.name)], status.into_iter());
            }
            if site.gate.is_on() {
                exposition.sample(&family::GATE_UNREAD, &[("site", &*site.name)], site.gate.pages.notes().len());
            }
            site.write_parts(exposition);
            site.write_requests(exposition, listeners);
            site.write_upstreams(exposition);
        }
    }
}

/// Writes the counts of webhook requests. Hooks with the same target host are counted together.
fn write_hooks(
    exposition: &mut Exposition,
    family: &Family,
    of: &[(&'static str, &str)],
    hooks: impl Iterator<Item = HookStatus>,
) {
    let mut counts: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for hook in hooks {
        let (delivered, given_up) = counts.entry(hook.report.target).or_default();
        (*delivered, *given_up) = (*delivered + hook.counts.0, *given_up + hook.counts.1);
    }
    for (target, (delivered, given_up)) in counts {
        let outcomes = [("delivered", delivered), ("given-up", given_up)];
        exposition.samples_by_label(family, &[of, &[("target", &*target)]].concat(), "outcome", outcomes);
    }
}

fn write_pending(exposition: &mut Exposition, site: &str, hooks: &[HookStatus]) {
    let mut targets: BTreeMap<&str, bool> = BTreeMap::new();
    for HookStatus { report, .. } in hooks {
        *targets.entry(&report.target).or_default() |= matches!(&*report.state, "sending" | "failed");
    }
    for (target, is_pending) in targets {
        exposition.flag(&family::PUBLISH_PENDING, &[("site", site), ("target", target)], is_pending);
    }
}

impl ServedSite {
    fn write_parts(&self, exposition: &mut Exposition) {
        for part in self.robots.parts.as_ref().map(AppendedParts::report).unwrap_or_default() {
            let labels = [("site", &*self.name), ("part", &*part.name)];
            exposition.state(&family::APPEND_PARTS, &labels, &PART_STATES, &part.state);
        }
    }

    fn write_requests(&self, exposition: &mut Exposition, listeners: &[Arc<str>]) {
        let totals = self.outcomes.totals();
        let site = ("site", &*self.name);
        let faults = self.live_sites().iter().map(|live| live.robots.status().faults).sum();
        let outcomes = RequestOutcome::ALL.map(RequestOutcome::as_str).into_iter().zip(totals.decisions);
        exposition.samples_by_label(&family::DECISIONS, &[site], "outcome", outcomes.chain([("failed", faults)]));
        exposition.sample(&family::QUESTIONS_WITHOUT_USER_AGENT, &[site], totals.without_agent);
        let kept: u64 = self.live_sites().iter().map(|live| live.robots.status().kept_fields).sum();
        exposition.sample(&family::FIELDS_KEPT, &[site], kept);
        for (crawler, counts) in &totals.crawlers.requests {
            for ((outcome, identity), count) in counts {
                let labels = [site, ("crawler", crawler), ("outcome", outcome.as_str()), ("identity", identity)];
                exposition.sample(&family::CRAWLER_REQUESTS, &labels, count);
            }
        }
        for (crawler, counts) in &totals.crawlers.robots_txt {
            for (code, count) in counts {
                let labels = [site, ("crawler", crawler), ("code", &*code.to_string())];
                exposition.sample(&family::ROBOTS_TXT_REQUESTS, &labels, count);
            }
        }
        write_responses(exposition, &self.name, &totals.responses, listeners);
        for (family, totals) in [
            (&family::DECISION_DURATION, totals.decision_durations),
            (&family::HTTP_DURATION, totals.response_durations),
        ] {
            if !totals.is_empty() {
                exposition.histogram(family, &[site], &totals);
            }
        }
    }

    fn write_upstreams(&self, exposition: &mut Exposition) {
        let Some(origins) = self.backend.as_ref().and_then(BackendSource::origins) else { return };
        for server in origins.status() {
            let labels = [("site", &*self.name), ("address", &*server.server)];
            exposition.flag(&family::UPSTREAM_HEALTHY, &labels, server.outage.is_none());
            let connections = server.connections.into_iter().map(|(state, count)| (state.as_str(), count));
            exposition.samples_by_label(&family::UPSTREAM_CONNECTIONS, &labels, "state", connections);
        }
        let failures = origins.failures();
        let failures = failures.iter().map(|(kind, count)| (kind.as_str(), *count));
        let outcomes = [("answered", origins.answered_requests())].into_iter().chain(failures);
        exposition.samples_by_label(&family::UPSTREAM_REQUESTS, &[("site", &*self.name)], "outcome", outcomes);
    }
}

/// Writes the counts of a site's responses. `site` is empty for responses that belong to no site.
pub(crate) fn write_responses(
    exposition: &mut Exposition,
    site: &str,
    responses: &BTreeMap<ResponseKey, u64>,
    listeners: &[Arc<str>],
) {
    for (key, count) in responses {
        let listener = listeners.get(usize::from(key.listener)).map_or("other", |label| label);
        let labels = [("listener", listener), ("site", site), ("code", &*key.code()), ("method", key.method())];
        exposition.sample(&family::HTTP_REQUESTS, &labels, count);
    }
}

impl LiveSite {
    fn write_metrics(&self, exposition: &mut Exposition, source: &str) {
        let snapshot = self.robots.snapshot();
        let status = self.robots.status();
        let content = snapshot.content.as_ref();
        let site = ("site", &*self.name);

        let hash = content.map(|content| content.hash().to_string()).unwrap_or_default();
        let mode = snapshot.policy.mode.as_str();
        exposition.sample(&family::SITE_INFO, &[site, ("hash", &hash), ("mode", mode), ("source", source)], 1);
        exposition.state(&family::SITE_STATE, &[site], &STATES, status.condition().as_str());
        let is_enforced = content.is_some() && status.enforcement == Enforcement::On;
        exposition.flag(&family::SITE_ENFORCED, &[site], is_enforced);
        exposition.flag(&family::SITE_PENDING, &[site], status.pending.as_ref().is_some());
        if let Some(content) = content {
            exposition.timestamp(&family::SITE_PUBLISHED, &[site], status.since);
            let findings = Severity::ALL.map(|severity| (severity.as_str(), content.report().count(severity)));
            exposition.samples_by_label(&family::SITE_FINDINGS, &[site], "severity", findings);
        }
        for reload in self.counts.report() {
            let labels = [site, ("cause", &*reload.cause), ("outcome", &*reload.outcome)];
            exposition.sample(&family::RELOADS, &labels, reload.count);
        }
    }
}
