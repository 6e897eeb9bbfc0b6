//! A dry run: the problems that serving a config would have.

use tower_robots::check::Severity;
use tower_robots::live::{ReloadOutcome, WhenMissing};

use super::robots_opener::RobotsOpener;
use super::site_robots::LiveSite;
use super::state_handle::StateHandle;
use crate::config::{self, Config, RobotsSource};
use crate::log::Log;
use crate::render::finding_line;

/// Opens every robots.txt as serving would, fetches included. Returns why sites cannot be served as their sources say, and
/// the errors that the check finds. State is neither read nor written.
pub(crate) fn rehearse(config: &Config) -> Vec<String> {
    let opener = match RobotsOpener::new(config, StateHandle::in_memory()) {
        Ok(opener) => opener,
        Err(message) => return vec![message],
    };
    let of_site = |site: &config::SiteConfig| {
        let problems = problems(site, &opener);
        problems.into_iter().map(|(name, problem)| format!("site {name:?}: {problem}")).collect::<Vec<_>>()
    };
    config.sites.iter().flat_map(of_site).collect()
}

fn problems(site: &config::SiteConfig, opener: &RobotsOpener) -> Vec<(String, String)> {
    let when_missing = match site.robots {
        // Waits for the first answer.
        RobotsSource::Upstream { .. } | RobotsSource::Url { .. } => WhenMissing::Fail,
        _ => WhenMissing::Unavailable,
    };
    let opened = opener.gate_settings(site).gate(&opener.registry);
    let opened =
        opened.and_then(|gate| opener.open(site, opener.site_settings(site, gate), when_missing, &Log::nowhere()));
    match opened {
        Ok(robots) => robots.lives(&site.name, &site.hosts).iter().flat_map(problems_of).collect(),
        Err(message) => vec![(site.name.clone(), message)],
    }
}

fn problems_of(live: &LiveSite) -> Vec<(String, String)> {
    let named = |problem: String| (live.name.clone(), problem);
    let status = live.robots.status();
    let snapshot = live.robots.snapshot();
    let Some(content) = snapshot.content() else {
        return vec![named(match status.last_reload().outcome() {
            ReloadOutcome::Kept { rejection, .. } => rejection.to_string(),
            _ => status.last_reload().to_string(),
        })];
    };
    let origin = status.last_reload().origin();
    let errors = content.report().findings().iter().filter(|finding| finding.severity() >= Severity::Error);
    errors.map(|finding| named(finding_line(origin, finding))).collect()
}
