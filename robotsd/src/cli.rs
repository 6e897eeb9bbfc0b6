//! The command line.

use std::process::ExitCode;

use clap::{Parser, Subcommand};

use crate::agents::AgentsArgs;
use crate::check::CheckArgs;
use crate::config::ConfigArgs;
use crate::control::{AcceptArgs, EnforceArgs, HistoryArgs, ReloadArgs, RollbackArgs, StatusArgs};
use crate::diff::DiffArgs;
use crate::expect::TestArgs;
use crate::explain::ExplainArgs;
use crate::replay::ReplayArgs;
use crate::serve::ServeArgs;
use crate::{agents, check, config, control, diff, expect, explain, replay, serve};

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
        Command::Status(args) => control::run_status(&args),
        Command::Reload(args) => control::run_reload(&args),
        Command::Accept(args) => control::accept(&args),
        Command::Rollback(args) => control::roll_back(&args),
        Command::Enforce(args) => control::enforce(&args),
        Command::History(args) => control::run_history(&args),
        Command::Check(args) => check::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Diff(args) => diff::run(&args),
        Command::Test(args) => expect::run(&args),
        Command::Replay(args) => replay::run(&args),
        Command::Config(args) => config::run(&args),
        Command::Agents(args) => agents::run(&args),
    }
}
