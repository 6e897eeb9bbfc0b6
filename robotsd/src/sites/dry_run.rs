//! A dry run: the problems that serving a config would have.

use std::fmt::Display;
use std::path::Path;

use tower_robots::check::{Finding, Severity};
use tower_robots::live::{ReloadOutcome, WhenMissing};

use super::robots_opener::RobotsOpener;
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::config::{self, Config, RobotsSource};
use crate::log::Log;
use crate::render::{Diagnostic, finding_line};

/// A problem that serving a config would have.
#[derive(Debug)]
pub(crate) enum Problem {
    /// A site cannot be served as its source says: the line of the config that names it.
    At(Diagnostic),
    /// The registry cannot be used, or a robots.txt has an error.
    Error(String),
    /// A warning of the check, which serving logs.
    Warning(String),
}

/// Opens every robots.txt as serving would, fetches included. Returns why sites cannot be served as their sources say, and
/// the errors and warnings that the check finds. State is neither read nor written.
pub(crate) fn rehearse(path: &Path, config: &Config) -> Vec<Problem> {
    let opener = match RobotsOpener::new(config, StateHandle::in_memory()) {
        Ok(opener) => opener,
        Err(message) => return vec![Problem::Error(message)],
    };
    let problems_of_site = |site: &config::SiteConfig| {
        let name = path.to_string_lossy();
        let at = |message: String| {
            Problem::At(Diagnostic::new(Severity::Error, &name, &config.text, &site.robots_span, &message))
        };
        problems(site, &opener, &at)
    };
    config.sites.iter().flat_map(problems_of_site).collect()
}

fn problems(site: &config::SiteConfig, opener: &RobotsOpener, at: &dyn Fn(String) -> Problem) -> Vec<Problem> {
    let when_missing = match site.robots {
        // Waits for the first answer.
        RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => WhenMissing::Fail,
        _ => WhenMissing::Unavailable,
    };
    let opened = opener.gate_settings(site).gate(&opener.registry);
    let opened =
        opened.and_then(|gate| opener.open(site, opener.site_settings(site, gate), when_missing, &Log::nowhere()));
    match opened {
        Ok(robots) => robots.lives(&site.name, &site.hosts).iter().flat_map(|live| problems_of(live, at)).collect(),
        Err(message) => vec![at(of_site(&site.name, message))],
    }
}

fn of_site(name: &str, problem: impl Display) -> String {
    format!("site {name:?}: {problem}")
}

fn problems_of(live: &LiveSite, at: &dyn Fn(String) -> Problem) -> Vec<Problem> {
    let status = live.robots.status();
    let snapshot = live.robots.snapshot();
    let Some(content) = snapshot.content() else {
        let reason = match status.last_reload().outcome() {
            ReloadOutcome::Kept { rejection, .. } => rejection.to_string(),
            _ => status.last_reload().to_string(),
        };
        return vec![at(of_site(&live.name, reason))];
    };
    let origin = status.last_reload().origin();
    let problem = |finding: &Finding| {
        let line = of_site(&live.name, finding_line(origin, finding));
        match finding.severity() {
            Severity::Error => Some(Problem::Error(line)),
            Severity::Warning => Some(Problem::Warning(line)),
            Severity::Note => None,
        }
    };
    content.report().findings().iter().filter_map(problem).collect()
}
