//! Problems of config files, with the line and column of each, and where the config file is.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::{fmt, io};

use toml::Spanned;
use tower_robots::check::Severity;

use crate::render::{Diagnostic, complain_at, printable};

/// Why a config file is refused: every problem that was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigError {
    pub(crate) path: String,
    /// Why there is no text that could have problems.
    pub(crate) unreadable: Option<String>,
    /// In the order of the file; one at least where it could be read.
    pub(crate) problems: Vec<Diagnostic>,
    /// The command that shows every problem of the file.
    pub(crate) command: &'static str,
}

/// A problem of a value, before its line and column are known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
    /// The right value, if the message does not say it.
    pub(crate) help: Option<String>,
    /// The site that it is about, where others may have the same.
    pub(crate) site: Option<String>,
}

/// The problems of a file that is resolved to its end, so that all of them are reported at once.
#[derive(Debug, Default)]
pub(crate) struct Faults(pub(super) Vec<Fault>);

impl ConfigError {
    pub(super) fn unreadable(path: &Path, error: &io::Error) -> Self {
        let path = printable(path.as_os_str().as_encoded_bytes());
        let help = match error.kind() {
            io::ErrorKind::IsADirectory => ": name the file in it, such as robotsd.toml",
            io::ErrorKind::NotFound if path == USUAL_CONFIG => {
                "; it is the default: name another with --config FILE or ROBOTSD_CONFIG"
            }
            _ => "",
        };
        Self::without_place(format!("{path}: the config file cannot be read: {error}{help}"))
    }

    /// The message names the file.
    pub(crate) fn without_place(message: impl ToString) -> Self {
        Self { unreadable: Some(message.to_string()), ..Self::default() }
    }

    /// The problems of a text, of which there is one at least.
    pub(crate) fn at(path: &Path, text: &str, faults: Vec<Fault>) -> Self {
        let name = path.to_string_lossy();
        Self::with(path, text, faults, |fault| fault.diagnostic(Severity::Error, &name, text))
    }

    /// The same, each as a function shows it.
    pub(super) fn with(path: &Path, text: &str, mut faults: Vec<Fault>, shown: impl Fn(&Fault) -> Diagnostic) -> Self {
        // Stable: of two problems in one place the first found is the cause.
        faults.sort_by_key(|fault| fault.order(text));
        // Values that two parts of the settings are made from.
        faults.dedup();
        let problems = faults.iter().map(shown).collect();
        Self { path: path.to_string_lossy().into_owned(), problems, command: "config check", ..Self::default() }
    }

    /// Writes every problem to standard error, each with its line of the file.
    pub(crate) fn complain(&self) {
        self.unreadable.iter().for_each(|message| crate::exit::complain(message));
        complain_at(&self.problems);
    }
}

/// On one line: the first problem, and how many more there are.
impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, unreadable, problems, command, .. } = self;
        match (unreadable, &problems[..]) {
            (Some(message), _) => f.write_str(message),
            (None, [first, more @ ..]) if !more.is_empty() => {
                let path = printable(path.as_bytes());
                write!(f, "{first}; and {} more: `robotsd {command} {path}` shows them", more.len())
            }
            (None, problems) => problems.iter().try_for_each(|problem| problem.fmt(f)),
        }
    }
}

impl std::error::Error for ConfigError {}

impl Fault {
    /// The octet by which the problems of a text are ordered: what a table lacks stands behind what is wrong with its header.
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

    /// At the value of a list that the library refuses.
    pub(super) fn of_value(values: &[Spanned<String>], refused: &str, error: &dyn std::error::Error) -> Self {
        let value = values.iter().find(|value| value.get_ref() == refused);
        Self::new(value.map_or(0..0, Spanned::span), error.to_string())
    }

    pub(crate) fn at(self, path: &Path, text: &str) -> ConfigError {
        ConfigError::at(path, text, vec![self])
    }

    pub(super) fn diagnostic(&self, severity: Severity, name: &str, text: &str) -> Diagnostic {
        Diagnostic::new(severity, name, text, &self.span, &self.message)
            .help(self.help.clone())
            .of_site(self.site.clone())
    }
}

/// A value of a file, which says where it stands when it is at fault.
pub(crate) trait Placed {
    fn fault(&self, message: impl Into<String>) -> Fault;
}

impl<T> Placed for Spanned<T> {
    fn fault(&self, message: impl Into<String>) -> Fault {
        Fault::new(self.span(), message)
    }
}

/// The value that a text stands for.
pub(crate) fn parsed<T: FromStr<Err: fmt::Display>>(text: &Spanned<String>) -> Result<T, Fault> {
    text.get_ref().parse().map_err(|error: T::Err| text.fault(error.to_string()))
}

impl Faults {
    /// The value, or none once its problem is noted.
    pub(super) fn keep<T>(&mut self, result: Result<T, Fault>) -> Option<T> {
        result.map_err(|fault| self.push(fault)).ok()
    }

    /// The values, or none once the problems of all are noted.
    pub(super) fn keep_all<T>(&mut self, results: impl IntoIterator<Item = Result<T, Fault>>) -> Option<Vec<T>> {
        // All of them are looked at, also after the first problem.
        let results: Vec<_> = results.into_iter().map(|result| self.keep(result)).collect();
        results.into_iter().collect()
    }

    pub(super) fn push(&mut self, fault: Fault) {
        self.0.push(fault);
    }
}

/// The place of the config, if nothing says otherwise.
pub(crate) const USUAL_CONFIG: &str = "/etc/robotsd/robotsd.toml";

/// The variable of the environment that names another.
pub(crate) const CONFIG_VARIABLE: &str = "ROBOTSD_CONFIG";

/// The config of a command that needs one.
#[derive(Debug, clap::Args)]
pub(crate) struct ConfigArgument {
    /// The config file [default: $ROBOTSD_CONFIG, else /etc/robotsd/robotsd.toml]
    #[arg(value_name = "FILE", conflicts_with = "config")]
    file: Option<PathBuf>,

    /// The same, as other commands take it
    #[arg(long, short, value_name = "FILE")]
    config: Option<PathBuf>,
}

impl ConfigArgument {
    pub(crate) fn path(&self) -> PathBuf {
        let named = self.config.as_ref().or(self.file.as_ref()).cloned();
        named.or_else(config_of_environment).unwrap_or_else(|| USUAL_CONFIG.into())
    }
}

/// The config that the environment names.
pub(crate) fn config_of_environment() -> Option<PathBuf> {
    std::env::var_os(CONFIG_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// The config of a command that can do without one: the usual one counts where there is one.
pub(crate) fn config_if_any(named: Option<&Path>) -> Option<PathBuf> {
    let usual = || Some(PathBuf::from(USUAL_CONFIG)).filter(|path| path.exists());
    named.map(Path::to_path_buf).or_else(config_of_environment).or_else(usual)
}
