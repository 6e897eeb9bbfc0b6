//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::commands::agents::{self, AgentsArgs};
use crate::commands::check::{self, CheckArgs};
use crate::commands::config::{self, ConfigArgs};
use crate::commands::diff::{self, DiffArgs};
use crate::commands::explain::{self, ExplainArgs};
use crate::commands::history::{self, HistoryArgs};
use crate::commands::operate::{self, AcceptArgs, EnforceArgs, RollbackArgs};
use crate::commands::reload::{self, ReloadArgs};
use crate::commands::replay::{self, ReplayArgs};
use crate::commands::status::{self, StatusArgs};
use crate::commands::test::{self, TestArgs};
use crate::serve::{self, ServeArgs};

#[derive(Debug, Parser)]
#[command(name = "robotsd", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: CliCommand,
}

#[derive(Debug, Subcommand)]
enum CliCommand {
    /// Serve and enforce robots.txt in front of sites
    Serve(ServeArgs),
    /// Say what a running robotsd does, and for which sites
    Status(StatusArgs),
    /// Have a running robotsd read robots.txt again, and say what came of it
    Reload(ReloadArgs),
    /// Bring a version of a site's robots.txt live that waits to be accepted
    Accept(AcceptArgs),
    /// Bring the version of a site's robots.txt live that was accepted before
    Rollback(RollbackArgs),
    /// Turn enforcement off, or on again, of one site or of all
    Enforce(EnforceArgs),
    /// Say what was tried for a site, and what came of it
    History(HistoryArgs),
    /// Say what is wrong with a robots.txt before crawlers read it
    Check(CheckArgs),
    /// Say what a robots.txt means for a crawler and a URL
    Explain(ExplainArgs),
    /// Say what changes for crawlers from one robots.txt to another
    Diff(DiffArgs),
    /// Say whether a robots.txt allows and disallows what it is expected to
    Test(TestArgs),
    /// Say what a robots.txt would have done to the traffic of a log
    Replay(ReplayArgs),
    /// Check a config file, or show it with its defaults
    Config(ConfigArgs),
    /// List and search the crawlers that are known, or identify headers
    Agents(AgentsArgs),
}

pub(crate) fn run() -> ExitCode {
    match Cli::parse().command {
        CliCommand::Serve(args) => serve::run(&args),
        CliCommand::Status(args) => status::run(&args),
        CliCommand::Reload(args) => reload::run(&args),
        CliCommand::Accept(args) => operate::accept(&args),
        CliCommand::Rollback(args) => operate::roll_back(&args),
        CliCommand::Enforce(args) => operate::enforce(&args),
        CliCommand::History(args) => history::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Diff(args) => diff::run(&args),
        CliCommand::Test(args) => test::run(&args),
        CliCommand::Replay(args) => replay::run(&args),
        CliCommand::Config(args) => config::run(&args),
        CliCommand::Agents(args) => agents::run(&args),
    }
}
