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
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
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
        Command::Serve(args) => serve::run(&args),
        Command::Status(args) => status::run(&args),
        Command::Reload(args) => reload::run(&args),
        Command::Accept(args) => operate::accept(&args),
        Command::Rollback(args) => operate::roll_back(&args),
        Command::Enforce(args) => operate::enforce(&args),
        Command::History(args) => history::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Test(args) => test::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Agents(args) => agents::run(&args),
    }
}
