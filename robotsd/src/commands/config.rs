//! `robotsd config`: checks a config file as `serve` would, or shows it with all its defaults.

use std::io::{self, Write as _};
use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;
use tower_robots::check::Severity;

use super::check::CheckFile;
use super::output::print_text;
use crate::config::{Config, ConfigArgument, ConfigError, local_token_files, schema};
use crate::exit::{FAILED, exit_code_for, fail};
use crate::expectations::ExpectationsFile;
use crate::pages::SitemapSource;
use crate::render::{FoundProblem, ProblemFormat, plural, stdout, write_problems};
use crate::sites::{self, DryRun, Problem};

#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a config file and every robots.txt that it names, as serve would
    ///
    /// The check opens no port, so only serve finds a port that is in use. It contacts upstreams
    /// only to fetch a robots.txt.
    ///
    /// If the config has a syntax error, only that error is reported. After any other error, the
    /// check continues with everything that the error does not affect: if the keys of one site are
    /// wrong, for example, the other sites and their files are still checked. If an included file
    /// has an error, its last good copy in the state directory is checked instead, as serve would
    /// use it.
    ///
    /// Exit status: 0 if there are no problems or only warnings. 1 if a robots.txt cannot be
    /// served, has errors or would be held at the gate, or if a kill switch in the state directory
    /// cannot be read. 2 if the config or an included file has an error, the admin socket cannot be
    /// created, or the state directory is a file.
    Check {
        #[command(flatten)]
        config: ConfigArgument,

        /// Compare each robots.txt with the baseline of its site, as the gate would, without using
        /// the state directory; meant for CI
        #[arg(long)]
        gate: bool,

        /// A sitemap whose pages the gate should watch, too: a file or a URL; may be repeated
        #[arg(long, value_name = "FILE|URL", requires = "gate")]
        sitemap: Vec<SitemapSource>,

        /// Output format of problems; a problem that several sites share is written once
        #[arg(long, value_enum, default_value_t = ProblemFormat::Text)]
        format: ProblemFormat,
    },
    /// Print a config file, with the default of every key that it leaves out
    #[command(after_help = "Exit status: 0, or 2 if the config has an error.")]
    Show {
        #[command(flatten)]
        config: ConfigArgument,
    },
    /// Print the JSON schema of the config, for editors: `#:schema FILE` in the first line of a
    /// config refers to it
    #[command(after_help = "Exit status: 0.")]
    Schema {
        /// The kind of file
        #[arg(value_enum, default_value_t = SchemaOf::Config)]
        of: SchemaOf,
    },
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum SchemaOf {
    /// robotsd.toml
    Config,
    /// A file of expectations for `robotsd test`, such as robots.test.toml
    Expectations,
    /// robots-check.toml
    Check,
}

pub(crate) fn run(command: &ConfigCommand) -> ExitCode {
    match command {
        ConfigCommand::Check { config, gate, sitemap, format } => {
            let run = if *gate { DryRun::AtGate(sitemap) } else { DryRun::AsServed };
            check(&config.path(), run, *format).unwrap_or_else(|error| fail(&error))
        }
        ConfigCommand::Schema { of } => {
            print_text(&match of {
                SchemaOf::Config => schema(),
                SchemaOf::Expectations => ExpectationsFile::schema(),
                SchemaOf::Check => CheckFile::schema(),
            });
            ExitCode::SUCCESS
        }
        ConfigCommand::Show { config } => match Config::show(&config.path()) {
            Ok(text) => {
                print_text(&text);
                ExitCode::SUCCESS
            }
            Err(error) => {
                error.complain();
                ExitCode::from(FAILED)
            }
        },
    }
}

fn check(path: &Path, run: DryRun<'_>, format: ProblemFormat) -> io::Result<ExitCode> {
    let (config, error) = Config::examine(path);
    let refused = config.iter().flat_map(|config| &config.included.refused);
    let errors: Vec<_> = error.iter().chain(refused.clone().map(|refused| &refused.error)).collect();
    let mut found: Vec<FoundProblem> = Vec::new();
    for ConfigError { unreadable, problems, .. } in &errors {
        found.extend(unreadable.iter().map(|message| FoundProblem::new(Severity::Error, message.clone())));
        found.extend(problems.iter().cloned());
    }
    let served = refused.map(|refused| FoundProblem::new(Severity::Warning, refused.outcome()));
    found.extend(served);
    let review = config.as_ref().map(Config::review).unwrap_or_default();
    let count = |severity| review.iter().filter(|found| found.severity == severity).count();
    let cannot_start = count(Severity::Error) > 0;
    let (mut by_severity, mut waits, mut unenforced) = ([0, count(Severity::Warning), 0], 0, 0);
    found.extend(review);
    for problem in config.iter().flat_map(|config| sites::find_problems(config, run)) {
        let mut others = Vec::new();
        let (count, problem) = match problem {
            Problem::Found(found) => (&mut by_severity[found.severity as usize], found),
            Problem::Unenforced(found) => (&mut unenforced, found),
            Problem::Waits(found, more) => {
                others = more;
                (&mut waits, found)
            }
        };
        *count += 1;
        found.push(problem);
        found.extend(others.into_iter().map(|other| FoundProblem::new(Severity::Error, format!("  {other}"))));
    }
    let [_, warnings, errors_of_sites] = by_severity;
    let mut out = stdout();
    write_problems(&mut out, format, found)?;
    out.flush()?;
    let Some(config) = config.filter(|_| error.is_none()) else { return Ok(ExitCode::from(FAILED)) };
    let (listeners, sites) = (config.listeners.len(), config.sites.len());
    let refused = config.included.refused.len();
    let verdict = match (errors_of_sites, unenforced) {
        _ if cannot_start => "cannot be served: correct the errors above",
        _ if refused > 0 => &*format!(
            "can be served, but without the changes in included files with errors: {files}",
            files = plural(refused, "file")
        ),
        (0, _) if waits > 0 => "can be served, but the gate would hold new versions of a robots.txt",
        (0, 0) => "can be served",
        (0, _) => "can be served, but a kill switch cannot be read, so rules would not be enforced",
        _ => &*format!("has {errors} in the files that its sites serve", errors = plural(errors_of_sites, "error")),
    };
    let warned = if warnings > 0 { format!(", warnings: {warnings}") } else { String::new() };
    if format == ProblemFormat::Text {
        let admin = config.admin.iter().filter(|admin| !admin.is_default_socket || !admin.listeners.is_empty());
        let files = local_token_files(path, config.state_dir.as_deref());
        for way in admin.flat_map(|admin| admin.ways_to_change(&files)) {
            print_text(&format!("changes: {way}\n"));
        }
        print_text(&format!("{}: {verdict}; listeners: {listeners}, sites: {sites}{warned}\n", path.display()));
    }
    let is_faulty = cannot_start || refused > 0;
    Ok(if is_faulty { ExitCode::from(FAILED) } else { exit_code_for(errors_of_sites + waits + unenforced == 0) })
}
