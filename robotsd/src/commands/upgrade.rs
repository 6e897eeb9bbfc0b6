//! `robotsd upgrade`: has a new process of the program take the place of a running one.

use std::process::ExitCode;

use http::Method;

use super::arguments::running::{Running, asked};
use super::output::standard_output::{plain, say, say_json};
use crate::report::UpgradeReport;

#[derive(Debug, clap::Args)]
pub(crate) struct UpgradeArgs {
    #[command(flatten)]
    running: Running,
}

/// Exit status: 0 when the new process serves, 1 when the one before goes on, 2 when robotsd could not be reached.
pub(crate) fn run(args: &UpgradeArgs) -> ExitCode {
    let report: UpgradeReport = match asked(&args.running, &Method::POST, "/upgrade") {
        Ok(report) => report,
        Err(code) => return code,
    };
    if args.running.json {
        if let Some(code) = say_json(&report) {
            return code;
        }
    } else {
        say(&format!("{}: {}\n", plain(&report.state), plain(&report.message)));
    }
    if report.state == "done" { ExitCode::SUCCESS } else { ExitCode::from(1) }
}
