//! The command-line interface: all commands, with the first line of their help.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory, Parser, Subcommand};

use crate::commands::agents::{self, AgentsArgs};
use crate::commands::audit::{self, AuditArgs};
use crate::commands::board::{self, BoardArgs};
use crate::commands::check::{self, CheckArgs};
use crate::commands::command_line::{CompletionsArgs, ManArgs, completions, man};
use crate::commands::config::{self, ConfigCommand};
use crate::commands::decisions::{AcceptArgs, EnforceArgs, RollbackArgs, accept, enforce, rollback};
use crate::commands::diff::{self, DiffArgs};
use crate::commands::edit::{self, EditArgs};
use crate::commands::explain::{self, ExplainArgs};
use crate::commands::fleet::{self, FleetCommand};
use crate::commands::lsp::{self, LspArgs};
use crate::commands::reload::{ReloadArgs, reload};
use crate::commands::replay::{self, ReplayArgs};
use crate::commands::running::{RunningSite, UpgradeArgs, history, upgrade};
use crate::commands::status::{self, StatusArgs};
use crate::commands::test::{self, TestArgs};
use crate::commands::tester::{self, TesterArgs};
use crate::commands::token::{self, TokenCommand};
use crate::exit;
use crate::render::printable;
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
    #[command(after_help = "Exit status: 0 after a stop or an upgrade. 2 if robotsd cannot start, or if a serving \
            thread ends.")]
    Serve(ServeArgs),
    /// Show the state of a running robotsd, and which of its sites need attention
    #[command(after_help = "Exit status: 0 if robotsd serves what its config says. 1 if it is starting or \
            draining, if the config or an included file was rejected, if a site is off or does \
            not serve the version in its source, if the state directory is not writable, or if the client has no \
            access to any site; with --problems, also if anything else needs \
            attention. 2 if robotsd cannot be reached or refuses the request.")]
    Status(StatusArgs),
    /// Make a running robotsd read its config, every robots.txt and their related files again, and
    /// show the result
    #[command(after_help = "Exit status: 0 if the config and all files were accepted, 1 if one of them was not, 2 if \
            robotsd (with --fleet, any replica) could not be reached.")]
    Reload(ReloadArgs),
    /// Replace a running robotsd with a new process of the installed program
    #[command(after_help = "Exit status: 0 if the new process serves, 1 if the old process continues, 2 if \
            robotsd could not be reached.")]
    Upgrade(UpgradeArgs),
    /// Publish the pending version of a site's robots.txt
    #[command(
        after_help = "Exit status: 0 if the version is live, 1 if it is live but could not be saved in the state \
            directory, 2 if it failed. Without a hash: 0 if no version is pending, 1 if one is. With --fleet: 1 if a \
            replica reports a problem, 2 (in a fleet with a name: 1) if a replica refused the request or could not be \
            reached."
    )]
    Accept(AcceptArgs),
    /// Restore the previous version of a site's robots.txt
    #[command(
        after_help = "Exit status: 0 if the previous version is live, 1 if it is live but could not be saved in \
            the state directory, 2 if it failed. With --diff: 1 if there is a version to restore. With --fleet: 1 if a \
            replica reports a problem, 2 (in a fleet with a name: 1) if a replica refused the request or could not be \
            reached."
    )]
    Rollback(RollbackArgs),
    /// Switch enforcement off or on, for one site or for all
    #[command(
        after_help = "Exit status: 0 if the switch was set, 1 if it was set but could not be saved in the state \
            directory, 2 if it failed. With --fleet: 1 if a replica reports a problem, 2 (in a fleet with a name: 1) \
            if a replica refused the request or could not be reached."
    )]
    Enforce(EnforceArgs),
    /// Show the reloads of a site and their results
    #[command(after_help = "Exit status: 0, or 2 if robotsd could not be reached.")]
    History(RunningSite),
    /// Show who changed what, and whose changes were refused
    #[command(after_help = "Exit status: 0, even if the config's audit file does not exist yet. 2 if the audit \
            file cannot be read, if the config names no audit file, or if there is no site with the name in --site.")]
    Audit(AuditArgs),
    /// Create, restore or show the document that the replicas of a fleet share
    #[command(subcommand)]
    Fleet(FleetCommand),
    /// Create a token for the admin interface
    #[command(subcommand)]
    Token(TokenCommand),
    /// Show which crawlers read robots.txt, and what they requested afterwards
    #[command(after_help = "Exit status: 0, or 2 if robotsd or a replica could not be reached, or a file could \
            not be read.")]
    Board(BoardArgs),
    /// Check robots.txt files before they are published
    #[command(after_help = "Exit status: 0 if all findings are less severe than --deny, or if --format is sarif and \
                            --deny is not given. 1 if a finding is at least as severe as --deny. 2 if a file could not \
                            be read (the other files are still checked), or if the correction of a file took too \
                            long.")]
    Check(CheckArgs),
    /// Explain what a robots.txt means for a crawler and a URL
    #[command(
        after_help = "Exit status: 0 whether the path is allowed or not; 2 if a file or an argument cannot be read."
    )]
    Explain(ExplainArgs),
    /// Show what changes for crawlers between two robots.txt files
    #[command(after_help = "Exit status: 0 even if crawlers are affected. 1 if --forbid forbids a change, or if a \
                            search engine loses more than --max-loss. 2 if a file \
            could not be read, --forbid names a crawler that does not exist, or comparing the \
            files took too long.")]
    Diff(DiffArgs),
    /// Block crawlers from a site, or allow them, with the smallest edit of its robots.txt
    #[command(after_help = "Exit status: 0 if the file is now as requested, 1 if --diff shows an edit, 2 if \
            the file could not be read or written, or if the effect of the edit could not be verified.")]
    Edit(EditArgs),
    /// Test a robots.txt against a file of expectations
    #[command(after_help = "Exit status: 0 if all expectations are met, 1 if one is not, 2 if a file could not \
            be read, is invalid, or misspells the name of a crawler.")]
    Test(TestArgs),
    /// Open the tester: a page that shows what a robots.txt means for crawlers
    #[command(after_help = "Exit status: 0 if the page was written. 2 if this build does not contain the page, or \
            the page could not be served or written.")]
    Tester(TesterArgs),
    /// Show what a robots.txt would have done to the requests of a log
    #[command(after_help = "Exit status: 0, or 1 if --against blocks a search engine from a path that it \
            requested, or an expectation is not met. 2 if an input could not be read (the others are still read), or \
            if no request has a User-Agent.")]
    Replay(ReplayArgs),
    /// Check a config file, or show it with its defaults
    #[command(subcommand)]
    Config(ConfigCommand),
    /// List and search the known crawlers, or identify User-Agent headers
    #[command(after_help = "Exit status: 0 if something was found, 1 if nothing was. With --verify: 0 if the \
            claim is verified, 1 if it is refuted, 3 otherwise. With --identify: 0.")]
    Agents(AgentsArgs),
    /// Check robots.txt files in an editor, as a language server on standard input and output
    ///
    /// Editors start this command. The handbook (how-to "Editors") has the configuration for each
    /// editor. The server fetches nothing, and reads only the edited file, robots-check.toml and
    /// the list of URLs in the initialization option "urls".
    #[command(after_help = "Exit status: 0 if the editor asked the server to shut down, 1 if the connection ended \
                            without this request.")]
    Lsp(LspArgs),
    /// Print a script that completes robotsd's commands and options in a shell
    #[command(after_help = "Exit status: 0.")]
    Completions(CompletionsArgs),
    /// Write the manual pages of robotsd and its commands
    #[command(after_help = "Exit status: 0, or 2 if a page could not be written.")]
    Man(ManArgs),
}

pub(crate) fn run() -> ExitCode {
    let cli = match parsed(std::env::args_os()) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    exit::output_exit_code(match cli.command {
        CliCommand::Serve(args) => Ok(serve::run(&args)),
        CliCommand::Status(args) => status::run(&args),
        CliCommand::Reload(args) => reload(&args),
        CliCommand::Upgrade(args) => upgrade(&args),
        CliCommand::Accept(args) => accept(&args),
        CliCommand::Rollback(args) => rollback(&args),
        CliCommand::Enforce(args) => enforce(&args),
        CliCommand::History(args) => history(&args),
        CliCommand::Audit(args) => audit::run(&args),
        CliCommand::Fleet(command) => fleet::run(&command),
        CliCommand::Token(command) => token::run(&command),
        CliCommand::Board(args) => board::run(&args),
        CliCommand::Check(args) => check::run(&args),
        CliCommand::Explain(args) => explain::run(&args),
        CliCommand::Diff(args) => diff::run(&args),
        CliCommand::Edit(args) => edit::run(&args),
        CliCommand::Test(args) => test::run(&args),
        CliCommand::Tester(args) => tester::run(&args),
        CliCommand::Replay(args) => replay::run(&args),
        CliCommand::Config(command) => Ok(config::run(&command)),
        CliCommand::Agents(args) => agents::run(&args),
        CliCommand::Lsp(args) => Ok(lsp::run(&args)),
        CliCommand::Completions(args) => completions(&args, Cli::command()),
        CliCommand::Man(args) => man(&args, Cli::command()),
    })
}

/// Parses the command line. Unprintable characters are escaped in errors, because errors contain
/// the arguments, and an argument may be a file name that someone else has chosen.
fn parsed(words: impl Iterator<Item = OsString>) -> Result<Cli, clap::Error> {
    let words: Vec<OsString> = words.collect();
    Cli::try_parse_from(&words).map_err(|error| {
        let shown = words.iter().map(|word| printable(word.as_encoded_bytes()));
        Cli::try_parse_from(shown).err().unwrap_or(error)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_escape_control_characters_of_arguments() {
        for words in [
            &["robotsd", "check", "--format", "a\n::error::b\u{1b}[2J"][..],
            &["robotsd", "check\n\u{202e}"],
            &["robotsd", "test", "a", "\u{3164}\u{9b}1m"],
            &["robotsd", "check", "--for\u{1b}=x"],
        ] {
            let error = parsed(words.iter().map(OsString::from)).expect_err("an error").to_string();
            assert!(!error.contains(['\u{1b}', '\u{202e}', '\u{3164}', '\u{9b}']), "{error:?}");
            assert!(!error.lines().any(|line| line.starts_with("::")), "{error}");
            assert!(error.contains("\\u{") || error.contains("\\n"), "{error}");
        }
    }

    #[test]
    fn the_wait_option_is_valid_only_for_the_fleet_status() {
        for (words, is_right) in [
            (&["status", "--wait", "30s"][..], false),
            (&["status", "--fleet", "--wait", "30s"], true),
            (&["fleet", "status", "--wait", "30s"], true),
        ] {
            let read = parsed(["robotsd"].iter().chain(words).map(OsString::from));
            assert_eq!(read.is_ok(), is_right, "{words:?}");
        }
    }
}
