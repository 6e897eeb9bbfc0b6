//! `robotsd status`: what a running robotsd does, site by site.

use std::process::ExitCode;
use std::time::Duration;

use http::Method;

use super::running::{Running, asked, say, say_json};
use super::wrap::Page;
use crate::report::{FetchReport, ListenerReport as Listener, NextStep, SiteReport, StatusReport};

#[derive(Debug, clap::Args)]
pub(crate) struct StatusArgs {
    #[command(flatten)]
    running: Running,
}

/// Exit status: 0 when it serves, 1 when it starts or drains, 2 when it cannot be reached.
pub(crate) fn run(args: &StatusArgs) -> ExitCode {
    let report: StatusReport = match asked(&args.running, &Method::GET, "/status") {
        Ok(report) => report,
        Err(code) => return code,
    };
    if args.running.json {
        if let Some(code) = say_json(&report) {
            return code;
        }
    } else {
        say(&text(&report, &args.running));
    }
    if report.state == "serving" { ExitCode::SUCCESS } else { ExitCode::from(1) }
}

fn text(report: &StatusReport, running: &Running) -> String {
    let mut page = Page::default();
    page.title(&format!(
        "robotsd {} is {} for {}, process {}",
        report.version,
        report.state,
        for_people(report.uptime_seconds),
        report.pid
    ));
    for listener in &report.listeners {
        let name = listener.name.as_ref().map(|name| format!(" ({name})")).unwrap_or_default();
        let Listener { scheme, address, kind, socket, .. } = listener;
        page.title(&format!("listener {scheme}://{address}{name}: {kind}, {socket}"));
    }
    if let Some(connections) = report.connections {
        page.title(&format!("connections: at most {connections}"));
    }
    if report.enforcement == "off" {
        page.title("ENFORCEMENT IS OFF FOR EVERY SITE: no request is refused, tagged or recorded");
    }
    report.troubles.iter().for_each(|trouble| page.line("trouble", trouble));
    advise(&mut page, &report.next, running);
    for site in &report.sites {
        page.blank();
        describe(&mut page, site, running);
    }
    page.into_string()
}

fn describe(page: &mut Page, site: &SiteReport, running: &Running) {
    let hosts = if site.hosts.is_empty() { "every host".to_owned() } else { site.hosts.join(", ") };
    page.title(&format!("site {} ({hosts}): {}", site.name, site.state));
    page.line("robots.txt", &site.origin);
    match (&site.hash, site.age_seconds) {
        (Some(hash), Some(age)) => {
            page.line("version", &format!("{}, live for {}", short(hash), for_people(age)));
        }
        _ => page.line("version", "none, so nothing is enforced"),
    }
    if let Some(before) = &site.before {
        page.line("before it", short(before));
    }
    if site.enforcement == "off" {
        let whose = if site.switch == "off" { "the switch of this site" } else { "the switch of every site" };
        page.line("enforced", &format!("OFF, by {whose}: every request passes"));
    }
    match &*site.mode {
        "observe" => page.line("mode", "observe: disallowed requests pass, and are logged"),
        "off" => page.line("mode", "off: disallowed requests pass, and are not logged"),
        mode => page.line("mode", mode),
    }
    for over in &site.overrides {
        let end = match (&over.until, over.ended) {
            (Some(until), false) => format!(" until {until}"),
            (Some(until), true) => format!(", but that ended {until}"),
            (None, _) => String::new(),
        };
        page.line("override", &format!("{}: {}{end}", over.of, over.mode));
    }
    if let Some(end) = &site.grace_end {
        page.line("grace", &format!("newly disallowed requests are only observed, until {end} at the latest"));
    }
    let findings = site.findings;
    page.line(
        "findings",
        &format!("{} errors, {} warnings, {} notes", findings.errors, findings.warnings, findings.notes),
    );
    if let Some(reload) = site.last_reload.as_ref().filter(|reload| reload.outcome == "kept") {
        page.line("not taken", &reload.message);
    }
    if let Some(pending) = &site.pending {
        page.line("waiting", &format!("{} since {}", short(&pending.hash), pending.since));
        pending.objections.iter().for_each(|objection| page.line("", objection));
    }
    if let Some(fetch) = &site.fetch {
        describe_fetch(page, fetch);
    }
    if site.faults > 0 {
        page.line("faults", &format!("{} requests passed because judging them failed", site.faults));
    }
    if site.callback_faults > 0 {
        let count = site.callback_faults;
        page.line(
            "faults",
            &format!("{count} lines are missing from the log because writing them failed; the decisions stood"),
        );
    }
    site.troubles.iter().for_each(|trouble| page.line("trouble", trouble));
    advise(page, &site.next, running);
}

fn describe_fetch(page: &mut Page, fetch: &FetchReport) {
    match &fetch.confirmed {
        Some(confirmed) => page.line("fetched", &format!("confirmed {confirmed}, again at {}", fetch.next)),
        None => page.line("fetched", &format!("not yet confirmed since the start, again at {}", fetch.next)),
    }
    if let Some(since) = &fetch.failing_since {
        page.line("", &format!("failing since {since}, {} times in a row", fetch.failures));
    }
    if let Some(until) = &fetch.held_until {
        page.line("", &format!("missing at its source; the live version stays in force until {until}"));
    }
}

fn advise(page: &mut Page, steps: &[NextStep], running: &Running) {
    for (number, step) in steps.iter().enumerate() {
        let label = if number == 0 { "next" } else { "" };
        if step.command.is_empty() {
            page.line(label, &step.what);
        } else {
            page.line(label, &format!("{}:", step.what));
            let is_ours = step.command.get(1).is_some_and(|command| command != "check");
            let command = if is_ours { running.command(&step.command) } else { step.command.clone() };
            page.command(&command);
        }
    }
}

/// A prefix of a hash that distinguishes versions, and that `accept` takes.
fn short(hash: &str) -> &str {
    hash.get(..23).unwrap_or(hash)
}

fn for_people(seconds: u64) -> String {
    humantime::format_duration(Duration::from_secs(seconds)).to_string()
}
