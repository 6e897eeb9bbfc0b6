//! `robotsd config`: checks a config file as serving it would, or shows it with all its defaults.

use std::process::ExitCode;

use clap::Subcommand;
use tower_robots::check::Severity;

use super::output::say;
use crate::config::{Config, ConfigArgument, schema};
use crate::exit::{FAILED, answer, complain};
use crate::pages::SitemapSource;
use crate::render::{complain_at, plural};
use crate::sites::{self, DryRun, Problem};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a config file and every robots.txt it names, as serving them would
    ///
    /// It opens no port, so one that is in use is found by serve only, and asks no upstream but for a robots.txt.
    ///
    /// All that does not depend on a fault is examined in spite of it: sites beside one whose keys are wrong, say, and their files.
    ///
    /// Exit status: 0 if all is well or there are warnings only, 1 if a robots.txt cannot be served, has errors or would wait at
    /// the gate, or a kill switch in the state directory cannot be read, 2 if the config has a fault or its admin socket cannot be
    /// made. A config with keys of an earlier robotsd is printed as it is written now.
    Check {
        #[command(flatten)]
        config: ConfigArgument,

        /// Compare each robots.txt with the baseline of its site, as the gate would, and with nothing in the state directory: for CI
        #[arg(long)]
        gate: bool,

        /// A sitemap whose pages the gate is to watch too: a file or a URL; may be repeated
        #[arg(long, value_name = "FILE|URL", requires = "gate")]
        sitemap: Vec<SitemapSource>,
    },
    /// Write a config file with every default that it leaves out
    Show {
        #[command(flatten)]
        config: ConfigArgument,
    },
    /// Write the JSON schema of the config, for editors: `#:schema FILE` in its first line names it
    Schema,
}

pub(crate) fn run(command: &ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { config, gate, sitemap } => {
            let run = if *gate { DryRun::AtGate(sitemap) } else { DryRun::AsServed };
            let path = config.path();
            let (config, error) = Config::examine(&path);
            if let Some(error) = &error {
                error.complain();
                if let Some(text) = &error.translation {
                    complain(&"the file as it is written now is on standard output");
                    say(text);
                }
            }
            let Some(config) = config else { return ExitCode::from(FAILED) };
            let found = config.review();
            complain_at(&found);
            let count = |severity| found.iter().filter(|found| found.severity == severity).count();
            let cannot_start = count(Severity::Error) > 0;
            let (mut errors, mut warnings, mut waits, mut is_unenforced) = (0, count(Severity::Warning), 0, false);
            for problem in sites::rehearse(&path, &config, run) {
                match &problem {
                    Problem::At(at) | Problem::Unenforced(at) | Problem::Waits(at, _) => complain_at([at]),
                    Problem::Error(message) | Problem::Warning(message) => complain(message),
                }
                match problem {
                    Problem::At(_) | Problem::Error(_) => errors += 1,
                    Problem::Unenforced(_) => is_unenforced = true,
                    Problem::Warning(_) => warnings += 1,
                    Problem::Waits(_, others) => {
                        waits += 1;
                        others.iter().for_each(|other| complain(&format!("  {other}")));
                    }
                }
            }
            if error.is_some() {
                return ExitCode::from(FAILED);
            }
            let (listeners, sites) = (config.listeners.len(), config.sites.len());
            let verdict = match (errors, is_unenforced) {
                _ if cannot_start => "cannot be served here",
                (0, _) if waits > 0 => "has versions that would wait at the gate",
                (0, false) => "can be served",
                (0, true) => "can be served, but not enforced: a kill switch cannot be read",
                _ => &*format!("{} in what its sites serve", plural(errors, "error")),
            };
            let warned = if warnings > 0 { format!(", warnings: {warnings}") } else { String::new() };
            let code =
                if cannot_start { ExitCode::from(FAILED) } else { answer(errors + waits == 0 && !is_unenforced) };
            say(&format!("{}: {verdict}; listeners: {listeners}, sites: {sites}{warned}\n", path.display()));
            code
        }
        ConfigCommand::Schema => {
            say(&schema());
            ExitCode::SUCCESS
        }
        ConfigCommand::Show { config } => match Config::show(&config.path()) {
            Ok(text) => {
                say(&text);
                ExitCode::SUCCESS
            }
            Err(error) => {
                error.complain();
                ExitCode::from(FAILED)
            }
        },
    }
}
