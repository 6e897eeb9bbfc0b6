//! `robotsd status`: what a running robotsd does, and for which sites.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::Duration;

use http::Method;

use super::{Running, plain, say, say_json};
use crate::admin::client::ask;
use crate::admin::{SiteReport, StatusReport};
use crate::cli::fail;

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    running: Running,
}

/// Ends with 0 when it serves, with 1 when it starts or drains, with 2 when it cannot be asked.
pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    let place = match args.running.place() {
        Ok(place) => place,
        Err(message) => return fail(&message),
    };
    let report: StatusReport = match ask(&place, &Method::GET, "/status") {
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
    if report.state == "serving" { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn text(report: &StatusReport) -> String {
    let mut out = format!(
        "robotsd {} is {} for {}, process {}\n",
        plain(&report.version),
        plain(&report.state),
        for_people(report.uptime_seconds),
        report.pid
    );
    for listener in &report.listeners {
        let _ = writeln!(
            out,
            "listener {}://{}{}: {}, {}",
            plain(&listener.scheme),
            plain(&listener.address),
            listener.name.as_ref().map(|name| format!(" ({})", plain(name))).unwrap_or_default(),
            plain(&listener.kind),
            plain(&listener.socket)
        );
    }
    if let Some(connections) = report.connections {
        let _ = writeln!(out, "connections: at most {connections}");
    }
    for site in &report.sites {
        out.push('\n');
        describe(&mut out, site);
    }
    out
}

fn describe(out: &mut String, site: &SiteReport) {
    let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
    let _ = writeln!(out, "site {} ({}): {}", plain(&site.name), plain(&hosts), plain(&site.state));
    let _ = writeln!(out, "  robots.txt: {}", plain(&site.origin));
    match (&site.hash, site.age_seconds) {
        (Some(hash), Some(age)) => {
            let _ =
                writeln!(out, "  version:    {}, live for {}", plain(hash.get(..23).unwrap_or(hash)), for_people(age));
        }
        _ => {
            let _ = writeln!(out, "  version:    none, so nothing is enforced");
        }
    }
    let switch = if site.enforcement == "off" { ", but enforcement is switched off" } else { "" };
    let _ = writeln!(out, "  mode:       {}{switch}", plain(&site.mode));
    if let Some(end) = &site.grace_end {
        let _ = writeln!(out, "  grace:      some of it is only observed until {}", plain(end));
    }
    let findings = site.findings;
    let _ = writeln!(
        out,
        "  findings:   {} errors, {} warnings, {} notes",
        findings.errors, findings.warnings, findings.notes
    );
    if let Some(reload) = site.last_reload.as_ref().filter(|reload| reload.outcome == "kept") {
        let _ = writeln!(out, "  not taken:  {}", plain(&reload.message));
    }
    if let Some(pending) = &site.pending {
        let _ = writeln!(out, "  waiting:    {} since {}", plain(&pending.hash), plain(&pending.since));
        for objection in &pending.objections {
            let _ = writeln!(out, "              {}", plain(objection));
        }
    }
    if site.faults > 0 {
        let _ = writeln!(out, "  faults:     {} requests passed because judging them failed", site.faults);
    }
    for trouble in &site.troubles {
        let _ = writeln!(out, "  trouble:    {}", plain(trouble));
    }
}

fn for_people(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}
