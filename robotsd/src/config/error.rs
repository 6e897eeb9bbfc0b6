//! Defines the errors of config files, each with its line and column, and the functions that find
//! the config file.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use toml::Spanned;
use tower_robots::check::Severity;

use crate::render::{FoundProblem, complain_at, printable};

#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigError {
    pub(crate) path: String,
    pub(crate) unreadable: Option<String>,
    /// The problems in the order of the file; not empty if the file could be read.
    pub(crate) problems: Vec<FoundProblem>,
    /// The command that shows every problem of the file.
    pub(crate) command: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    /// The correction; `None` if the message already contains it.
    pub(crate) help: Option<String>,
    /// Name of the affected site, if other sites may have the same problem.
    pub(crate) site: Option<String>,
}

/// The problems that were found in a config. Resolving continues after a problem, because all
/// problems are reported together.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(super) Vec<Fault>);

impl ConfigError {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let path = printable(path.as_os_str().as_encoded_bytes());
        let help = match error.kind() {
            io::ErrorKind::IsADirectory => "; write the path of a file in this folder, such as robotsd.toml",
            io::ErrorKind::NotFound if path == DEFAULT_CONFIG => {
                "; robotsd uses this path by default: to use another config, give --config FILE or set ROBOTSD_CONFIG"
            }
            _ => "",
        };
        Self::without_place(format!("{path}: the config file cannot be read: {error}{help}"))
    }

    /// Creates an error without a position. `message` must contain the path of the file.
    pub(crate) fn without_place(message: impl ToString) -> Self {
        Self { unreadable: Some(message.to_string()), ..Self::default() }
    }

    /// Creates an error from problems in a TOML file; `faults` must not be empty.
    pub(crate) fn at(path: &Path, text: &str, faults: Vec<Fault>) -> Self {
        let name = path.to_string_lossy();
        Self::with(path, text, faults, |fault| fault.diagnostic(Severity::Error, &name, text))
    }

    /// Like [`at`](Self::at), but creates each diagnostic with the function `shown`.
    pub(super) fn with(
        path: &Path,
        text: &str,
        mut faults: Vec<Fault>,
        shown: impl Fn(&Fault) -> FoundProblem,
    ) -> Self {
        // The sort is stable. If several problems have the same position, the problem that was
        // found first stays first, because that problem usually causes the other problems.
        faults.sort_by_key(|fault| fault.order(text));
        // Two functions may report the same problem with a value.
        faults.dedup();
        let problems = faults.iter().map(shown).collect();
        Self { path: path.to_string_lossy().into_owned(), problems, command: "config check", ..Self::default() }
    }

    pub(crate) fn complain(&self) {
        self.unreadable.iter().for_each(|message| crate::exit::complain(message));
        complain_at(&self.problems);
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, unreadable, problems, command, .. } = self;
        match (unreadable, &problems[..]) {
            (Some(message), _) => f.write_str(message),
            (None, [first, more @ ..]) if !more.is_empty() => {
                let path = printable(path.as_bytes());
                write!(
                    f,
                    "{first}; further problems: {count} (`robotsd {command} {path}` shows them)",
                    count = more.len()
                )
            }
            (None, problems) => problems.iter().try_for_each(|problem| problem.fmt(f)),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Fault {
    /// Returns the byte offset that problems are sorted by. An error about a missing key has the
    /// position of its table's header, but is sorted after problems inside the header.
    pub(super) fn order(&self, text: &str) -> usize {
        let Range { start, end } = self.span;
        let is_header = text[start..].starts_with('[') && (start == 0 || text[..start].ends_with('\n'));
        if is_header { end } else { start }
    }

    pub(crate) fn new(span: Range<usize>, message: impl Into<String>) -> Self {
        Self { span, message: message.into(), help: None, site: None }
    }

    pub(crate) fn help(self, help: impl Into<Option<String>>) -> Self {
        Self { help: help.into(), ..self }
    }

    pub(super) fn of_site(self, site: &str) -> Self {
        Self { site: Some(site.to_owned()), ..self }
    }

    /// Creates an error about the value `refused`, which `tower_robots` does not accept. The
    /// position of the error is the position of this value in `values`.
    pub(super) fn of_value(values: &[Spanned<String>], refused: &str, error: &dyn std::error::Error) -> Self {
        let value = values.iter().find(|value| value.get_ref() == refused);
        Self::new(value.map_or(0..0, Spanned::span), error.to_string())
    }

    pub(crate) fn at(self, path: &Path, text: &str) -> ConfigError {
        ConfigError::at(path, text, vec![self])
    }

    pub(super) fn diagnostic(&self, severity: Severity, name: &str, text: &str) -> FoundProblem {
        let problem = FoundProblem::at(severity, name, text, &self.span, &self.message);
        let problem = self.help.iter().fold(problem, |problem, help| problem.help(help));
        self.site.iter().fold(problem, |problem, site| problem.of_site(site))
    }
}

pub(crate) trait Placed {
    fn fault(&self, message: impl Into<String>) -> Fault;
}

impl<T> Placed for Spanned<T> {
    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.span(), message)
    }
}

pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(text: &Spanned<String>) -> Result<T, Fault> {
    text.get_ref().parse().map_err(|error: T::Err| text.fault(error.to_string()))
}

impl Faults {
    /// Returns the value of `result`. If `result` is an error, adds the error to the problems and
    /// returns `None`.
    pub(super) fn keep<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.push(fault)).ok()
    }

    /// Returns the values of all results. If some results are errors, adds all of these errors to
    /// the problems and returns `None`.
    pub(super) fn keep_all<T>(&mut self, results: impl IntoIterator<Item = Result<T, Fault>>) -> Option<Vec<T>> {
        // All results are examined before they are combined, because stopping at the first error
        // would lose the other errors.
        let results: Vec<_> = results.into_iter().map(|result| self.keep(result)).collect();
        results.into_iter().collect()
    }

    pub(super) fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }
}

pub(crate) const DEFAULT_CONFIG: &str = "/etc/robotsd/robotsd.toml";

pub(crate) const CONFIG_VARIABLE: &str = "ROBOTSD_CONFIG";

/// The config argument of a command that needs a config.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgument {
    /// The config file [default: $ROBOTSD_CONFIG, else /etc/robotsd/robotsd.toml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,

    /// Same as FILE, for consistency with other commands
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgument {
    pub(crate) fn path(&self) -> PathBuf {
        let named = self.config.as_ref().or(self.file.as_ref()).cloned();
        named.or_else(config_of_environment).unwrap_or_else(|| DEFAULT_CONFIG.into())
    }
}

pub(crate) fn config_of_environment() -> Option<PathBuf> {
    std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

pub(crate) fn config_if_any(named: Option<&Path>) -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(DEFAULT_CONFIG)).filter(|path| path.exists());
    named.map(Path::to_path_buf).or_else(config_of_environment).or_else(usual)
}
