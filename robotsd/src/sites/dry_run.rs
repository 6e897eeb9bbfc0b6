//! Performs a dry run: finds the problems that serving a config would cause.

use std::fmt::Display;
use std::io::{self, Read};
use std::ops::Range;
use std::sync::Arc;
use std::time::SystemTime;

use tower_robots::agent::Registry;
use tower_robots::check::{Finding, Severity};
use tower_robots::live::{Enforcement, Gate, ProblemKind, RejectionKind, ReloadOutcome, WhenMissing};

use super::appended_parts::AppendedParts;
use super::gate_settings::GateSettings;
use super::inheritance::Inheritance;
use super::log_events::placed_finding;
use super::robots_opener::RobotsOpener;
use super::site_list::unused_switch_message;
use super::site_pages::NoteAbout;
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::config::{Config, RobotsSource, SiteConfig, load_registry};
use crate::date::rfc3339;
use crate::fetch::{RetrievalSettings, Retriever};
use crate::input;
use crate::log::Log;
use crate::pages::{MAX_BYTES, OwnHosts, SitemapSource, SitemapWalk};
use crate::render::{FoundProblem, grace_summary, shell_word};

#[derive(Debug)]
pub(crate) enum Problem {
    /// A problem with the source of a site's robots.txt, or a finding about the robots.txt. If the
    /// problem is an error, the site cannot be served as configured.
    Found(FoundProblem),
    /// Nothing would be enforced for one site or for all sites, although no operator has switched
    /// enforcement off.
    Unenforced(FoundProblem),
    /// The gate would hold a version. The first value is the gate's first objection, and the list
    /// contains all other objections.
    Waits(FoundProblem, Vec<String>),
}

/// The versions of robots.txt that a dry run compares new versions with.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DryRun<'a> {
    /// The versions in the state directory, which the next start would also use.
    AsServed,
    /// The baseline of each site, for `config check --gate`. The gate also protects the pages in
    /// these sitemaps.
    AtGate(&'a [SitemapSource]),
}

/// Opens or fetches every robots.txt, as a start of robotsd would. Never writes to the state
/// directory, and with [`DryRun::AtGate`] does not read it either.
pub(crate) fn find_problems(config: &Config, run: DryRun<'_>) -> Vec<Problem> {
    let diagnostic = |span: &Range<usize>, message: &str| config.diagnostic(Severity::Error, span, message);
    let state = match run {
        DryRun::AsServed => StateHandle::read_only(config),
        DryRun::AtGate(_) => StateHandle::in_memory(),
    };
    let registry = load_registry(&config.registry);
    let of_registry = registry.as_ref().err().map(|error| diagnostic(&config.registry_extra_span, &error.to_string()));
    let registry = registry.unwrap_or_else(|_| Arc::clone(Registry::builtin()));
    let inheritance = Arc::new(Inheritance::from_state_dir(state.directory.as_ref(), config));
    let opener = RobotsOpener::new(config, registry, state, &Log::without_output()).inheriting(&inheritance);
    let warning = |message: String| Problem::Found(FoundProblem::new(Severity::Warning, message));
    let of_all = global_switch_message(&opener.state).map(|switch| match switch {
        Err(problem) => Problem::Unenforced(diagnostic(&config.state_dir_span, &problem)),
        Ok(message) => warning(message),
    });
    let of_others = opener.state.unused_switches(config, &inheritance);
    let of_others = of_others.iter().map(|name| warning(unused_switch_message(name)));
    let problems_of_site =
        |site: &SiteConfig| DrySite { site, opener: &opener, run, config, diagnostic: &diagnostic }.problems();
    let of_config = of_registry.map(Problem::Found).into_iter().chain(of_all).chain(of_others);
    of_config.chain(config.sites.iter().flat_map(problems_of_site)).collect()
}

/// Returns a message if enforcement is switched off for all sites. The message is an `Err` if
/// enforcement is off only because the file of the kill switch cannot be read.
fn global_switch_message(state: &StateHandle) -> Option<Result<String, String>> {
    let directory = state.directory.as_ref().filter(|directory| directory.enforcement() == Enforcement::Off)?;
    Some(match directory.switch_problem() {
        Some(problem) => Err(format!("{problem}, so robotsd would enforce nothing for any site")),
        None => Ok(format!(
            "{}: enforcement is switched off for every site: to switch it on, run `robotsd enforce on`",
            directory.path().display()
        )),
    })
}

struct DrySite<'a> {
    site: &'a SiteConfig,
    opener: &'a RobotsOpener,
    run: DryRun<'a>,
    config: &'a Config,
    diagnostic: &'a dyn Fn(&Range<usize>, &str) -> FoundProblem,
}

impl DrySite<'_> {
    fn problems(&self) -> Vec<Problem> {
        let Self { site, opener, run, .. } = self;
        let settings = opener.gate_settings(site, None);
        let gate = settings.gate(&opener.registry);
        let mut found = self.unreadable_files(&settings);
        if let DryRun::AtGate(sitemaps) = run {
            found.extend(self.read_for_gate(&settings, sitemaps));
        }
        let gate = gate.unwrap_or_else(|message| {
            found.push(self.at_span(&site.expectations_span, message));
            Gate::open()
        });
        let when_missing = match site.robots {
            // With `WhenMissing::Fail`, `open` waits for the first response.
            RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => WhenMissing::Fail,
            _ => WhenMissing::Unavailable,
        };
        // In a dry run with `AtGate`, the version is opened without a gate, because no other
        // version could be served instead. `gate_objections` later checks the version against the
        // gate.
        let opened_with = match run {
            DryRun::AsServed => gate.clone(),
            DryRun::AtGate(_) => Gate::open(),
        };
        let robots = match opener.open(site, opener.site_settings(site, opened_with), when_missing) {
            Ok(robots) => robots,
            Err(message) => {
                found.push(Problem::Found(self.at(&site.name, message)));
                return found;
            }
        };
        let of_parts = |parts: &AppendedParts| [parts.problems(), parts.left_out()].concat();
        let of_parts = robots.parts.as_ref().map(of_parts).unwrap_or_default();
        found.extend(of_parts.into_iter().chain(robots.ignored()).map(|text| self.warning(text)));
        for live in robots.live_sites(&site.name, &site.hosts) {
            found.extend(self.switch_problem_of(&live));
            found.extend(self.problems_of(&live));
            if matches!(run, DryRun::AtGate(_)) {
                found.extend(self.gate_objections(&live, &gate));
            }
        }
        found
    }

    /// Returns a problem for each file that the gate cannot read. An unreadable list of URLs is an
    /// error. An unreadable baseline is only a warning here, because the file may not exist yet.
    fn unreadable_files(&self, settings: &GateSettings) -> Vec<Problem> {
        let urls = self.site.gate_basis.urls.as_ref().zip(settings.pages.note_about(NoteAbout::Urls));
        let urls = urls.map(|(file, note)| self.at_span(&file.span(), note));
        let baseline = settings.pages.note_about(NoteAbout::Baseline);
        urls.into_iter().chain(baseline.map(|note| self.warning(note))).collect()
    }

    /// Reads the given sitemaps for the gate of the site. The sitemaps on the upstreams are not
    /// read, because a CI machine cannot reach the upstreams.
    fn read_for_gate(&self, settings: &GateSettings, sitemaps: &[SitemapSource]) -> Vec<Problem> {
        if !settings.is_on() {
            return vec![self.warning("the gate of this site is off, so every version would go live")];
        }
        let mut found = Vec::new();
        match (settings.baseline_path(), settings.pages.note_about(NoteAbout::Baseline)) {
            (None, _) => found.push(self.warning(
                "this site has no baseline, so the gate has no accepted version to compare the new version with: write \
                 baseline = \"robots.accepted.txt\" in [site.robots]",
            )),
            // With `AtGate`, an unreadable baseline is an error: otherwise, a misspelled path could
            // disable the gate unnoticed.
            (Some(path), Some(_)) => found.push(self.error(format!(
                "the baseline (the accepted version) cannot be read: copy the accepted version to {path}, and commit \
                 this file",
                path = path.display()
            ))),
            (Some(_), None) => {}
        }
        let hosts = OwnHosts::of(&self.site.hosts);
        let mut walk = SitemapWalk::within(&hosts, usize::MAX);
        let (mut retriever, make) = (None, || Retriever::new(&RetrievalSettings::default()));
        walk.walk(sitemaps.iter().cloned(), |source| open_sitemap(source, &mut retriever, make).map(Some));
        if let Some(problem) = walk.problem() {
            found.push(self.error(format!("the sitemaps cannot be read: {problem}")));
        }
        let listed = walk.listed();
        settings.pages.set_sitemaps(walk.into_pages(), listed);
        if settings.pages.count() == 0 {
            let advice = "give a sitemap with --sitemap, or a list of URLs as \"urls\" in [gate]";
            let fault = "the gate of this site cannot detect that search engines lose pages, because it has neither \
                a sitemap nor a list of URLs";
            found.push(self.warning(format!("{fault}: {advice}")));
        }
        found
    }

    /// Returns the gate's objections to the version in the source; `None` if the gate has no
    /// objections.
    fn gate_objections(&self, live: &LiveSite, gate: &Gate) -> Option<Problem> {
        let content = live.robots.with(|snapshot| snapshot.content.clone())?;
        let (report, places) = (content.report(), content.places.as_deref());
        let objections = gate.examine(content.robots(), report, None, places, &self.opener.registry);
        let mut texts = objections.iter().map(ToString::to_string);
        let first = format!("the gate would hold the version: {objection}", objection = texts.next()?);
        Some(Problem::Waits(self.at(&live.name, first), texts.collect()))
    }

    /// Returns the problem if enforcement is switched off for this robots.txt.
    fn switch_problem_of(&self, live: &LiveSite) -> Option<Problem> {
        let (name, status) = (&live.name, live.robots.status());
        if status.switch == Enforcement::On {
            return None;
        }
        Some(match status.state_problem(ProblemKind::UnreadSwitch) {
            Some(problem) => {
                let message = of_site(name, format!("{problem}, so robotsd would enforce nothing for this site"));
                Problem::Unenforced((self.diagnostic)(&self.config.state_dir_span, &message))
            }
            None => {
                let on = format!("to switch it on, run `robotsd enforce on --site {site}`", site = shell_word(name));
                let message = format!("enforcement is switched off: {on}");
                Problem::Found(FoundProblem::new(Severity::Warning, message).of_site(name))
            }
        })
    }

    fn problems_of(&self, live: &LiveSite) -> Vec<Problem> {
        // A source that has not been fetched yet is fetched now. A failed fetch is only a warning,
        // because a start would use the version in the state directory and fetch the source later.
        let last = live.robots.status().last_reload.outcome;
        if matches!(&last, ReloadOutcome::Kept { rejection, .. } if rejection.kind == RejectionKind::NotFetched) {
            let _ = live.robots.reload_blocking();
        }
        let status = live.robots.status();
        let snapshot = live.robots.snapshot();
        let at_place = |message: &dyn Display| Problem::Found(self.at(&live.name, message));
        let Some(content) = &snapshot.content else {
            return vec![match &status.last_reload.outcome {
                ReloadOutcome::Kept { rejection, .. } => at_place(rejection),
                _ => at_place(&status.last_reload),
            }];
        };
        // With `AtGate`, the state directory is not read, so the new rules are unknown.
        let is_strict = || self.site.is_strict(SystemTime::now()) && matches!(self.run, DryRun::AsServed);
        let grace = status.grace_end.filter(|_| status.grace_rules > 0 && is_strict()).map(|end| {
            let why = "the grace period of a rule begins when robotsd first reads the rule";
            let text = format!("{}: {why}", grace_summary(status.grace_rules, &rfc3339(end)));
            let note = self.config.diagnostic(Severity::Note, &self.site.robots_span, &of_site(&live.name, text));
            Problem::Found(note.of_site(&live.name))
        });
        // A start would serve the version in the state directory instead of a version that is not
        // accepted.
        let untaken = match &status.last_reload.outcome {
            ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. } => Some(at_place(&status.last_reload)),
            _ => None,
        };
        let origin = &status.last_reload.origin;
        // The findings are about the served version, whose line numbers may differ from the line
        // numbers of the source.
        let origin =
            if untaken.is_some() { format!("the version of {origin} that stays live") } else { origin.to_string() };
        let problem = |finding: &Finding| {
            let line = placed_finding(content, &origin, finding);
            Problem::Found(FoundProblem::finding(&origin, finding, line).of_site(&live.name))
        };
        let findings = content.report().findings.iter().filter(|finding| finding.severity > Severity::Note);
        // If `sitemaps` in `[gate]` is off, there is no warning about sitemaps on other hosts.
        let elsewhere = OwnHosts::of(&self.site.hosts).foreign_sitemap_message(content.robots());
        let elsewhere = elsewhere.filter(|_| self.site.gate_basis.sitemaps);
        let texts = snapshot.settings_without_effect().into_iter().chain(elsewhere);
        untaken
            .into_iter()
            .chain(grace)
            .chain(findings.map(problem))
            .chain(texts.map(|text| self.warning(text)))
            .collect()
    }

    fn warning(&self, problem: impl Display) -> Problem {
        Problem::Found(FoundProblem::new(Severity::Warning, problem.to_string()).of_site(&self.site.name))
    }

    fn error(&self, problem: impl Display) -> Problem {
        Problem::Found(FoundProblem::new(Severity::Error, problem.to_string()).of_site(&self.site.name))
    }

    fn at(&self, name: &str, problem: impl Display) -> FoundProblem {
        (self.diagnostic)(&self.site.robots_span, &of_site(name, problem)).of_site(name)
    }

    fn at_span(&self, span: &Range<usize>, problem: impl Display) -> Problem {
        let name = &self.site.name;
        Problem::Found((self.diagnostic)(span, &of_site(name, problem)).of_site(name))
    }
}

fn of_site(name: &str, problem: impl Display) -> String {
    format!("site {name:?}: {problem}")
}

pub(crate) fn open_sitemap(
    source: &SitemapSource,
    retriever: &mut Option<Retriever>,
    make: impl FnOnce() -> io::Result<Retriever>,
) -> Result<Box<dyn Read>, String> {
    let named = |error: &dyn Display| format!("{source}: {error}");
    match source {
        SitemapSource::File(path) => Ok(Box::new(input::open(path).map_err(|error| named(&error))?)),
        SitemapSource::Url(url) => {
            let retriever = match retriever {
                Some(known) => known,
                unmade => unmade.insert(make().map_err(|error| named(&error))?),
            };
            retriever.document(url, MAX_BYTES).map_err(|error| named(&error))
        }
    }
}
