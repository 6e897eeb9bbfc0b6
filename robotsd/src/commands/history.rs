//! `robotsd history`: the reloads of a site and their results.

use std::process::ExitCode;

use http::Method;

use super::arguments::running::{Running, asked, query};
use super::output::page::Page;
use super::output::standard_output::{say, say_json};
use crate::report::{HistoryReport, RecordedReload};

#[derive(Debug, clap::Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    running: Running,

    /// The site, by its name
    site: String,
}

/// Exit status: 0, or 2 where robotsd could not be reached.
pub(crate) fn run(args: &HistoryArgs) -> ExitCode {
    let target = query("/history", &[("site", &args.site)]);
    let report: HistoryReport = match asked(&args.running, &Method::GET, &target) {
        Ok(report) => report,
        Err(code) => return code,
    };
    if args.running.json {
        return say_json(&report).unwrap_or(ExitCode::SUCCESS);
    }
    say(&text(&report));
    ExitCode::SUCCESS
}

fn text(report: &HistoryReport) -> String {
    let mut page = Page::default();
    if report.entries.is_empty() {
        page.title(&format!("site {}: there was no reload yet", report.site));
    }
    for entry in &report.entries {
        describe(&mut page, entry);
    }
    page.into_string()
}

fn describe(page: &mut Page, entry: &RecordedReload) {
    let hash = entry.hash.as_ref().map(|hash| format!("  {}", hash.get(..23).unwrap_or(hash)));
    page.title(&format!("{}  {} ({}){}", entry.when, entry.outcome, entry.cause, hash.unwrap_or_default()));
    page.line("what", &entry.message);
    if let Some(effect) = &entry.effect {
        page.line("effect", effect);
    }
    let findings = entry.findings;
    if findings.errors + findings.warnings > 0 {
        let number = |count: usize, of: &str| format!("{count} {of}{}", if count == 1 { "" } else { "s" });
        let counts = [number(findings.errors, "error"), number(findings.warnings, "warning")];
        page.line("findings", &counts.join(", "));
    }
}
