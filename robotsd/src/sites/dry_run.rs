//! A dry run: the problems that serving a config would have.

use std::fmt::Display;
use std::ops::Range;
use std::path::Path;

use tower_robots::check::{Finding, Severity};
use tower_robots::live::{Enforcement, Gate, RejectionKind, Reload, ReloadOutcome, WhenMissing};

use super::robots_opener::RobotsOpener;
use super::site_list::switch_of_other;
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::config::{self, Config, RobotsSource};
use crate::log::Log;
use crate::render::{Diagnostic, finding_line, shell_word};

/// A problem that serving a config would have.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A site cannot be served as its source says: the line of the config that names it.
    At(Diagnostic),
    /// Nothing would be enforced, for the site or for all, although no operator switched that off.
    Unenforced(Diagnostic),
    /// A robots.txt has an error.
    Error(String),
    /// A warning of the check, which serving logs.
    Warning(String),
}

/// Opens every robots.txt as serving would, fetches included. Returns why sites cannot be served as their sources say, and
/// the errors and warnings that the check finds. The state directory is read, as the start would read it, and not written.
pub(crate) fn rehearse(path: &Path, config: &Config) -> Vec<Problem> {
    let name = path.to_string_lossy();
    let diagnostic =
        |span: &Range<usize>, message: &str| Diagnostic::new(Severity::Error, &name, &config.text, span, message);
    let opener = match RobotsOpener::new(config, StateHandle::read_only(config)) {
        Ok(opener) => opener,
        Err(message) => return vec![Problem::At(diagnostic(&config.registry_extra_span, &message))],
    };
    let of_all = switch_of_all(&opener.state).map(|switch| match switch {
        Err(trouble) => Problem::Unenforced(diagnostic(&config.state_dir_span, &trouble)),
        Ok(message) => Problem::Warning(message),
    });
    let problems_of_site = |site: &config::SiteConfig| {
        let at = |message: String| Problem::At(diagnostic(&site.robots_span, &message));
        let unenforced = |message: String| Problem::Unenforced(diagnostic(&config.state_dir_span, &message));
        let gate = opener.gate_settings(site).gate(&opener.registry);
        match gate {
            Ok(gate) => problems(site, &opener, gate, &at, &unenforced),
            Err(message) => {
                vec![Problem::At(diagnostic(&site.expectations_span, &of_site(&site.name, message)))]
            }
        }
    };
    let of_others = opener.state.switches_of_others(config);
    let of_others = of_others.iter().map(|name| Problem::Warning(switch_of_other(name)));
    of_all.into_iter().chain(of_others).chain(config.sites.iter().flat_map(problems_of_site)).collect()
}

/// What is to be said about a switch of all sites that is off: that it is, or why it is taken for off.
fn switch_of_all(state: &StateHandle) -> Option<Result<String, String>> {
    let directory = state.directory().filter(|directory| directory.enforcement() == Enforcement::Off)?;
    Some(match directory.switch_trouble() {
        Some(trouble) => Err(format!("{trouble}, so nothing would be enforced for any site")),
        None => Ok(format!(
            "{}: enforcement is switched off for every site: `robotsd enforce on` turns it on",
            directory.path().display()
        )),
    })
}

fn problems(
    site: &config::SiteConfig,
    opener: &RobotsOpener,
    gate: Gate,
    at: &dyn Fn(String) -> Problem,
    unenforced: &dyn Fn(String) -> Problem,
) -> Vec<Problem> {
    let when_missing = match site.robots {
        // Waits for the first answer.
        RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => WhenMissing::Fail,
        _ => WhenMissing::Unavailable,
    };
    let opened = opener.open(site, opener.site_settings(site, gate), when_missing, &Log::nowhere());
    match opened {
        Ok(robots) => {
            let lives = robots.lives(&site.name, &site.hosts);
            let problems = |live| switch_of(live, unenforced).into_iter().chain(problems_of(live, at));
            lives.iter().flat_map(problems).collect()
        }
        Err(message) => vec![at(of_site(&site.name, message))],
    }
}

fn of_site(name: &str, problem: impl Display) -> String {
    format!("site {name:?}: {problem}")
}

/// A switch of the site alone that is off.
fn switch_of(live: &LiveSite, unenforced: &dyn Fn(String) -> Problem) -> Option<Problem> {
    let status = live.robots.status();
    if status.switch() == Enforcement::On {
        return None;
    }
    Some(match status.unread_switch() {
        Some(trouble) => unenforced(of_site(&live.name, format!("{trouble}, so nothing would be enforced"))),
        None => {
            let name = &live.name;
            Problem::Warning(of_site(
                name,
                format!("enforcement is switched off: `robotsd enforce on --site {}` turns it on", shell_word(name)),
            ))
        }
    })
}

fn is_not_fetched(reload: &Reload) -> bool {
    matches!(reload.outcome(), ReloadOutcome::Kept { rejection, .. } if rejection.kind() == RejectionKind::NotFetched)
}

fn problems_of(live: &LiveSite, at: &dyn Fn(String) -> Problem) -> Vec<Problem> {
    // A site with a version in the state directory starts with that one, and is fetched behind it.
    if is_not_fetched(live.robots.status().last_reload()) {
        let _ = live.robots.reload().wait();
    }
    let status = live.robots.status();
    let snapshot = live.robots.snapshot();
    let Some(content) = snapshot.content() else {
        let reason = match status.last_reload().outcome() {
            ReloadOutcome::Kept { rejection, .. } => rejection.to_string(),
            _ => status.last_reload().to_string(),
        };
        return vec![at(of_site(&live.name, reason))];
    };
    // What stands in the state directory is served in its place.
    let untaken = match status.last_reload().outcome() {
        ReloadOutcome::Kept { .. } | ReloadOutcome::Gated { .. } => Some(at(of_site(&live.name, status.last_reload()))),
        _ => None,
    };
    let origin = status.last_reload().origin();
    // Its lines are not those of what the source holds now.
    let origin =
        if untaken.is_some() { format!("the version of {origin} that stays live") } else { origin.to_string() };
    let problem = |finding: &Finding| {
        let line = of_site(&live.name, finding_line(&origin, finding));
        match finding.severity() {
            Severity::Error => Some(Problem::Error(line)),
            Severity::Warning => Some(Problem::Warning(line)),
            Severity::Note => None,
        }
    };
    untaken.into_iter().chain(content.report().findings().iter().filter_map(problem)).collect()
}
