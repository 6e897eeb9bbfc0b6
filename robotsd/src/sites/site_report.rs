//! Reports the status and the history of sites, for the admin interface.

use std::time::SystemTime;

use tower_robots::agent::{Agent, Crawler, Registry};
use tower_robots::check::Report;
use tower_robots::live::{
    Cause, FetchStatus, HistoryEntry, Pending, ProblemKind, Reload, ReloadOutcomeKind, VersionHash,
};
use tower_robots::policy::{Mode, Override, Policy, Reason};

use super::backend::BackendSource;
use super::log_events::{self, CommandFlags};
use super::operator_changes::ChangeError;
use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_pages::SitePages;
use super::site_robots::LiveSite;
use crate::date::rfc3339;
use crate::names::quoted_list;
use crate::report::{
    FetchReport, Findings, HistoryReport, KindCount, LastReload, OverrideReport, PendingReport, PublishHookReport,
    RecordedReload, SiteReport, SiteTraffic, UpstreamReport,
};
use crate::upstream::{FailureKind, Origins, ServerStatus};

#[derive(Debug)]
pub(crate) struct WithoutRobots {
    pub(crate) name: String,
    /// Reason why there is no robots.txt, on one line.
    pub(crate) why: String,
}

impl Sites {
    pub(crate) fn report(&self) -> Vec<SiteReport> {
        let (hooks, flags) = (self.hooks(), self.fleet_flags());
        let of_site = |site: &ServedSite| {
            let (hooks, parts) = (hooks.clone(), site.robots.parts.clone());
            // Unanswered requests are counted per site, not per host, so their number is reported
            // only with the first robots.txt of the site.
            let (name, mut unanswered) = (site.name.clone(), site.unanswered());
            site.live_sites().into_iter().map(move |live| {
                let mut report = live.report(flags);
                if let Some(parts) = &parts {
                    report.append = parts.report();
                    report.problems.extend(parts.problems());
                }
                let status = hooks.as_ref().map(|hooks| hooks.status(&name, &live.name)).unwrap_or_default();
                report.on_publish = status.into_iter().map(|status| status.report).collect();
                report.problems.extend(report.on_publish.iter().filter_map(hook_problem));
                report.problems.extend(unanswered.take());
                report
            })
        };
        self.iter().flat_map(of_site).collect()
    }

    pub(crate) fn notify_report(&self) -> (Vec<PublishHookReport>, Vec<String>) {
        let status = self.hooks().map(|hooks| hooks.notify_status()).unwrap_or_default();
        let reports: Vec<_> = status.into_iter().map(|status| status.report).collect();
        let problem = |of: &PublishHookReport| {
            let event = of.version.as_ref()?;
            Some(format!("notify {}: {event}: {}", of.target, of.problem.as_ref()?))
        };
        let problems = reports.iter().filter_map(problem).collect();
        (reports, problems)
    }

    pub(crate) fn traffic(&self) -> Vec<SiteTraffic> {
        self.iter().map(ServedSite::traffic).collect()
    }

    pub(crate) fn history(&self, name: &str) -> Result<HistoryReport, ChangeError> {
        let (_, live) = self.named(name)?;
        let entries = live.robots.history();
        Ok(HistoryReport { site: live.name, entries: entries.iter().map(recorded).collect() })
    }

    pub(crate) fn missing_parts(&self) -> Vec<String> {
        let missing = |site: &ServedSite| {
            let missing = site.robots.parts.as_ref().map(|parts| parts.appendix.missing()).unwrap_or_default();
            let name = site.name.clone();
            missing
                .into_iter()
                .map(move |title| format!("site {name:?}: the list {title:?} is not available, so it is not appended"))
        };
        self.iter().flat_map(missing).collect()
    }

    /// Returns the sites without a robots.txt and, for a site with a folder, the hosts without a
    /// robots.txt.
    pub(crate) fn without_robots(&self) -> Vec<WithoutRobots> {
        let has_none = |live: &LiveSite| live.robots.with(|snapshot| snapshot.content.is_none());
        let mut without = Vec::new();
        for site in self.iter() {
            let live_sites = site.live_sites();
            if live_sites.is_empty() {
                without.push(WithoutRobots::new(site.name.to_string(), None));
            }
            let live_sites = live_sites.into_iter().filter(has_none);
            without.extend(live_sites.map(|live| WithoutRobots::new(live.name, live.robots.status().pending.as_ref())));
        }
        without
    }

    /// Returns a message about search engines that are only tagged although the mode of their site
    /// is `refuse`.
    pub(crate) fn spared_engines(&self) -> Option<String> {
        let registry = self.opener().registry;
        let sites = self.iter().map(|site| (&*site.name, &site.settings.policy));
        spared(&registry, sites.filter(|(_, policy)| policy.mode == Mode::Refuse))
    }
}

impl WithoutRobots {
    fn new(name: String, pending: Option<&Pending>) -> Self {
        Self { why: log_events::without_robots(&name, pending), name }
    }
}

impl ServedSite {
    /// Returns a problem if none of the recent requests was answered although a server is up. One
    /// or two unanswered requests are not a problem, because one slow page may be the cause.
    /// Servers that are down are reported separately.
    fn unanswered(&self) -> Option<String> {
        let origins = self.backend.as_ref().and_then(BackendSource::origins)?;
        let (count, last) = origins.unanswered().filter(|(count, _)| *count >= 3)?;
        let is_up = origins.status().iter().any(|server| server.outage.is_none());
        let last = format!("{}: {}", last.kind.as_str(), last.detail);
        is_up.then(|| format!("the upstreams answered none of the last {count} requests; the last error: {last}"))
    }

    fn traffic(&self) -> SiteTraffic {
        let origins = self.backend.as_ref().and_then(BackendSource::origins);
        let failures = origins.map(Origins::failures).unwrap_or_default();
        SiteTraffic {
            name: self.name.to_string(),
            requests: self.outcomes.total(),
            upstreams: origins.map(Origins::status).unwrap_or_default().into_iter().map(server).collect(),
            failures: failures.into_iter().map(|(kind, count)| KindCount::new(kind.as_str(), count)).collect(),
        }
    }
}

fn server(status: ServerStatus) -> UpstreamReport {
    let state = match status.outage.as_ref().map(|outage| outage.check) {
        None => "up",
        Some(FailureKind::Unresolved) => "unresolved",
        Some(_) => "out",
    };
    UpstreamReport {
        server: status.server,
        state: state.to_owned(),
        connections: status.connections.iter().map(|(_, count)| count).sum(),
        since: status.outage.as_ref().map(|outage| rfc3339(outage.since)),
        check: status.outage.as_ref().map(|outage| outage.check.as_str().to_owned()),
        why: status.outage.as_ref().map(|outage| outage.why.clone()),
        again_seconds: status.outage.map(|outage| outage.again.as_secs()),
    }
}

impl LiveSite {
    fn report(&self, flags: [CommandFlags; 2]) -> SiteReport {
        let snapshot = self.robots.snapshot();
        let status = self.robots.status();
        let history = self.robots.history();
        let reload = &status.last_reload;
        let content = snapshot.content.as_ref();
        SiteReport {
            name: self.name.clone(),
            hosts: self.hosts.clone(),
            state: status.condition().as_str().to_owned(),
            origin: reload.origin.to_string(),
            mode: snapshot.policy.mode.as_str().to_owned(),
            overrides: snapshot.policy.overrides.iter().map(exception).collect(),
            enforcement: status.enforcement.as_str().to_owned(),
            switch: status.switch.as_str().to_owned(),
            switch_problem: status.state_problem(ProblemKind::UnreadSwitch).map(str::to_owned),
            hash: content.map(|content| content.hash().to_string()),
            since: content.map(|_| rfc3339(status.since)),
            // If the clock was set back, the age is 0.
            age_seconds: content.map(|_| status.since.elapsed().map_or(0, |age| age.as_secs())),
            findings: Findings::of(|severity| content.map_or(0, |content| content.report().count(severity))),
            findings_summary: status.report.as_deref().and_then(Report::summary),
            last_reload: Some(LastReload {
                when: history.last().map(|entry| rfc3339(entry.when)),
                cause: reload.cause.as_str().to_owned(),
                outcome: reload.outcome.kind().as_str().to_owned(),
                message: reload.to_string(),
            }),
            not_taken_since: not_taken_since(&history).map(rfc3339),
            reloads: self.counts.report(),
            pending: status.pending.as_ref().map(|pending| PendingReport {
                hash: pending.hash().to_string(),
                origin: pending.origin().to_owned(),
                since: rfc3339(pending.since),
                objections: pending.objections.iter().map(ToString::to_string).collect(),
                effect: effect_of(&history, pending.hash()),
                instead: current_source_content(pending, &status.last_read, &history),
            }),
            decided: decided(&history, status.live).map(recorded),
            before: status.before.map(|hash| hash.to_string()),
            grace_end: status.grace_end.map(rfc3339),
            grace_rules: status.grace_rules,
            faults: status.faults,
            callback_faults: status.callback_faults,
            fetch: status.fetch.as_ref().map(fetching),
            append: Vec::new(),
            on_publish: Vec::new(),
            next: log_events::next_steps(&self.name, &snapshot, &status, flags),
            watched_pages: self.pages.as_deref().map(SitePages::report),
            problems: {
                let waits = status.pending.as_ref().filter(|_| status.live.is_none());
                let unready = waits.map(|pending| log_events::without_robots(&self.name, Some(pending)));
                let of_state = status.state_problems.iter().map(|problem| &problem.text);
                let of_robots = status.watch_problem.iter().chain(of_state).cloned();
                let of_policy = snapshot.misspelled_overrides().into_iter().chain(snapshot.settings_without_effect());
                let of_gate = self.pages.as_deref().map(SitePages::notes).unwrap_or_default();
                let of_gate = of_gate.into_iter().map(|note| format!("gate: {note}"));
                unready.into_iter().chain(of_robots).chain(of_policy).chain(of_gate).collect()
            },
        }
    }
}

/// Returns the effect that the history records for this version.
fn effect_of(history: &[HistoryEntry], hash: VersionHash) -> Option<String> {
    history.iter().rev().filter(|entry| entry.hash == Some(hash)).find_map(|entry| entry.effect.clone())
}

/// Describes what the source contains now; `None` if the source still contains the pending version.
/// The content may differ after a rollback, or may no longer be a valid robots.txt.
fn current_source_content(pending: &Pending, read: &Reload, history: &[HistoryEntry]) -> Option<String> {
    let Some(hash) = read.outcome.hash() else { return Some(read.to_string()) };
    let effect = effect_of(history, hash).map(|effect| format!(": {effect}")).unwrap_or_default();
    let held = || {
        format!(
            "{origin} now contains version {version}, not the pending version{effect}",
            origin = read.origin,
            version = hash.short()
        )
    };
    (hash != pending.hash()).then(held)
}

/// Returns the start of the current series of failed reloads.
fn not_taken_since(history: &[HistoryEntry]) -> Option<SystemTime> {
    use ReloadOutcomeKind::{Kept, ModeChanged, SwitchedOff, SwitchedOn};
    let is_reload = |entry: &&HistoryEntry| !matches!(entry.outcome, SwitchedOn | SwitchedOff | ModeChanged);
    let reloads = history.iter().rev().filter(is_reload);
    reloads.take_while(|entry| entry.outcome == Kept).last().map(|entry| entry.when)
}

/// Returns the operator's decision that published the live version. Ignores history entries about a
/// version that was only opened again, at a start or for a new config.
pub(super) fn decided(history: &[HistoryEntry], live: Option<VersionHash>) -> Option<&HistoryEntry> {
    use ReloadOutcomeKind::{Absent, Published};
    let brought = |entry: &&HistoryEntry| matches!(entry.outcome, Published | Absent) && !entry.cause.is_opening();
    let last = history.iter().rev().find(brought)?;
    let is_decision = matches!(last.cause, Cause::Accept | Cause::Rollback);
    Some(last).filter(|entry| is_decision && entry.hash == live)
}

fn hook_problem(hook: &PublishHookReport) -> Option<String> {
    let why = hook.problem.as_ref()?;
    Some(match &*hook.state {
        "delivered" => {
            format!("on_publish {url}: a restart sends this request again, because {why}", url = hook.target)
        }
        "failed" => format!(
            "on_publish {url}: {why}; caches may keep the old robots.txt until their copy expires",
            url = hook.target
        ),
        _ => format!("on_publish {url}: {why}; robotsd will send the request again", url = hook.target),
    })
}

fn exception(over: &Override) -> OverrideReport {
    OverrideReport {
        of: over.to_string(),
        mode: over.mode.as_str().to_owned(),
        until: over.until.map(rfc3339),
        ended: over.until.is_some_and(|end| end <= SystemTime::now()),
    }
}

fn fetching(fetch: &FetchStatus) -> FetchReport {
    FetchReport {
        confirmed: fetch.confirmed.map(rfc3339),
        failing_since: fetch.failing_since.map(rfc3339),
        failures: fetch.failures,
        held_until: fetch.held_until.map(rfc3339),
        next: rfc3339(fetch.next_fetch),
    }
}

pub(super) fn recorded(entry: &HistoryEntry) -> RecordedReload {
    RecordedReload {
        when: rfc3339(entry.when),
        cause: entry.cause.as_str().to_owned(),
        outcome: entry.outcome.as_str().to_owned(),
        origin: entry.origin.to_string(),
        hash: entry.hash.map(|hash| hash.to_string()),
        findings: Findings::of(|severity| entry.findings(severity)),
        effect: entry.effect.as_deref().map(str::to_owned),
        message: entry.detail.to_owned(),
        who: entry.by.who.clone(),
        reason: entry.by.reason.clone(),
    }
}

fn spared<'a>(registry: &Registry, refusing: impl Iterator<Item = (&'a str, &'a Policy)>) -> Option<String> {
    let engines: Vec<(&Crawler, Agent)> =
        registry.crawlers().filter(|crawler| crawler.is_index_engine).map(|engine| (engine, engine.into())).collect();
    let now = SystemTime::now();
    let mut is_spared = vec![false; engines.len()];
    let mut sites = Vec::new();
    for (name, policy) in refusing {
        let mut any = false;
        for ((_, agent), is_spared) in engines.iter().zip(&mut is_spared) {
            if policy.action_for_rule(agent, None, now).1 == Reason::SearchEngine {
                (any, *is_spared) = (true, true);
            }
        }
        if any {
            sites.push(name);
        }
    }
    if sites.is_empty() {
        return None;
    }
    let engines = engines.iter().zip(is_spared).filter(|(_, is_spared)| *is_spared);
    let names: Vec<_> = engines.map(|((engine, _), _)| engine.name.as_str()).collect();
    Some(format!(
        "requests of these search engines are only tagged, because search engines remove refused pages from their \
         index: {crawlers}. To refuse these requests, write \"index\" = \"refuse\" in [site.modes]. Sites: {sites}",
        crawlers = names.join(", "),
        sites = quoted_list(sites)
    ))
}

#[cfg(test)]
mod tests {
    use tower_robots::agent::Category;

    use super::*;

    #[test]
    fn search_engines_that_a_refusing_site_only_tags_are_listed_with_the_site() {
        let refusing = || Policy::builder().mode(Mode::Refuse);
        let (plain, none) =
            (refusing().build(), refusing().with_override(Override::index_engines(Mode::Refuse)).build());
        let few = refusing().with_override(Override::category(Category::Search, Mode::Refuse)).build();
        let line = |sites: &[(&'static str, &Policy)]| spared(Registry::builtin(), sites.iter().copied());
        let all = line(&[("a", &plain), ("b", &none)]).expect("a line");
        assert!(
            all.starts_with(
                "requests of these search engines are only tagged, because search engines remove \
            refused pages from their index: Googlebot, "
            ),
            "{all}"
        );
        assert!(all.contains(", bingbot, ") && !all.contains("Wotbox") && all.ends_with(" Sites: \"a\""), "{all}");
        let testers = line(&[("a", &few)]).expect("a line");
        assert!(testers.contains("Google-InspectionTool") && !testers.contains("Googlebot"), "{testers}");
        assert_eq!((line(&[("b", &none)]), line(&[])), (None, None));
    }
}
