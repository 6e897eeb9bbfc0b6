//! `robotsd reload`: reads robots.txt again now and says what came of it.

use std::fmt::Write as _;
use std::process::ExitCode;

use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};

use super::running::{Running, plain, say, say_json};
use crate::admin::ReloadReport;
use crate::admin::client::ask;
use crate::exit::fail;

#[derive(Debug, clap::Args)]
pub(crate) struct ReloadArgs {
    #[command(flatten)]
    running: Running,

    /// Only this site, by its name
    #[arg(long, value_name = "NAME")]
    site: Option<String>,
}

/// Ends with 0 when everything was taken, with 1 when something was not, with 2 when it could not be asked for.
pub(crate) fn run(args: &ReloadArgs) -> ExitCode {
    let place = match args.running.place() {
        Ok(place) => place,
        Err(message) => return fail(&message),
    };
    let target = match &args.site {
        Some(site) => format!("/reload?site={}", utf8_percent_encode(site, NON_ALPHANUMERIC)),
        None => "/reload".to_owned(),
    };
    let report: ReloadReport = match ask(&place, &Method::POST, &target) {
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
    let taken = |outcome: &str| matches!(outcome, "published" | "unchanged");
    let sites = report.sites.iter().all(|site| taken(&site.outcome));
    let config = report.config.as_ref().is_none_or(|config| taken(&config.outcome));
    let registry = report.registry.as_ref().is_none_or(|registry| taken(&registry.outcome));
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
        let _ = writeln!(out, "{}: {}: {}", plain(&site.name), plain(&site.outcome), plain(&site.message));
    }
    out
}
