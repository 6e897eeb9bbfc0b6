//! `robotsd reload`: reloads robots.txt in a running robotsd, and shows the results.

use std::fmt::Write as _;
use std::process::ExitCode;

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::arguments::running::Running;
use super::output::standard_output::{plain, say, say_json};
use crate::admin::client::ask;
use crate::exit::{complain, fail};
use crate::report::ReloadReport;

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    running: Running,

    /// Reload this site only
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
}

/// Exit status: 0 when everything was accepted, 1 when something was not, 2 when robotsd could not be reached.
pub(crate) fn run(args: &ReloadArgs) -> ExitCode {
    let place = match args.running.place() {
        Ok(place) => place,
        Err(message) => return fail(&message),
    };
    let target = match &args.site {
        Some(site) => format!("/reload?site={}", utf8_percent_encode(site, NON_ALPHANUMERIC)),
        None => "/reload".to_owned(),
    };
    let report: ReloadReport = match ask(&place, &Method::POST, &target, complain) {
        Ok(report) => report,
        Err(error) => return fail(&error),
    };
    if args.running.json {
        if let Some(code) = say_json(&report) {
            return code;
        }
    } else {
        say(&text(&report));
    }
    let is_accepted = |outcome: &str| matches!(outcome, "published" | "unchanged");
    let sites = report.sites.iter().all(|site| is_accepted(&site.outcome));
    let config = report.config.as_ref().is_none_or(|config| is_accepted(&config.outcome));
    let registry = report.registry.as_ref().is_none_or(|registry| is_accepted(&registry.outcome));
    if sites && registry && config { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn text(report: &ReloadReport) -> String {
    let mut out = String::new();
    if let Some(config) = &report.config {
        let _ = writeln!(out, "config: {}: {}", plain(&config.outcome), plain(&config.message));
    }
    if let Some(registry) = &report.registry {
        let _ = writeln!(out, "registry: {}: {}", plain(&registry.outcome), plain(&registry.message));
    }
    for site in &report.sites {
        let grace = site
            .grace_end
            .as_ref()
            .map(|end| format!("; newly disallowed requests are only observed, until {} at the latest", plain(end)));
        let grace = grace.unwrap_or_default();
        let _ = writeln!(out, "{}: {}: {}{grace}", plain(&site.name), plain(&site.outcome), plain(&site.message));
    }
    out
}
