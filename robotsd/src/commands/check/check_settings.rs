//! `robots-check.toml`: selects the lints for the robots.txt files of a folder, and the lowest
//! severity of findings that fails the check.
//!
//! The file is searched for in the folder of a robots.txt and in the folders above it, up to the
//! first folder that contains `.git`. Only the nearest settings file is used.

use std::path::{Path, PathBuf};
use std::{fs, io};

use toml::Spanned;
use tower_robots::check::{Lint, Severity};

use super::live::answer_lint;
use crate::commands::arguments::WithinArgs;
use crate::config::{ConfigError, Document, Fault, as_utf8, read_document, schema_of, tables, words};
use crate::evaluator::EvaluatorSettings;
use crate::input::{self, InputSource};
use crate::names::did_you_mean;

const NAME: &str = "robots-check.toml";

/// Maximum size of a settings file, in bytes. Parsed TOML needs about a hundred times as much
/// memory as its text.
const MAX_BYTES: u64 = 64 << 10;

/// Maximum number of folders that are searched. Real paths have fewer levels.
const MAX_FOLDERS: usize = 1_000;

tables! {
    RawCheckFile {
        /// Codes of the lints to check; all if the list is empty.
        select: Vec<Spanned<String>>,
        /// Codes of the lints to turn off.
        ignore: Vec<Spanned<String>>,
        /// Lowest severity that fails the check.
        deny: Option<Deny>,
    }
}

words! {
    /// Lowest severity that fails the check of a file.
    #[derive(clap::ValueEnum)]
    Deny {
        #[default]
        Errors = "errors",
        Warnings = "warnings",
        Notes = "notes",
    }
}

impl Document for RawCheckFile {
    const NAME: &'static str = "the file";
}

/// Settings for the files of one folder.
#[derive(Debug, Default)]
pub(in crate::commands) struct CheckFile {
    select: Vec<&'static str>,
    ignore: Vec<&'static str>,
    pub(super) deny: Option<Deny>,
}

impl CheckFile {
    pub(in crate::commands) fn schema() -> String {
        schema_of::<RawCheckFile>(NAME)
    }

    /// Finds the settings for a file: searches its folder and the folders above it. For standard
    /// input, the search begins in the folder of `stdin_filename`.
    pub(in crate::commands) fn find(
        source: &InputSource,
        stdin_filename: Option<&Path>,
        within: &WithinArgs,
    ) -> Result<Self, ConfigError> {
        let folder = source.path().or(stdin_filename).and_then(Path::parent).unwrap_or(Path::new(""));
        // The folder in `--stdin-filename` does not have to exist.
        let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
        let Ok(folder) = fs::canonicalize(folder) else { return Ok(Self::default()) };
        match nearest(&folder) {
            Some(path) => {
                let path = relative_path(&path);
                within.check_path_named(&path).map_err(ConfigError::without_place)?;
                // The settings file must be a regular file, because it is as untrusted as the
                // robots.txt, and a FIFO could block the command.
                let bytes = input::read_found(&path, MAX_BYTES).map_err(ConfigError::without_place)?;
                Self::parse(&path, &as_utf8(&path, bytes)?)
            }
            None => Ok(Self::default()),
        }
    }

    fn parse(path: &Path, text: &str) -> Result<Self, ConfigError> {
        let at = |faults| ConfigError { command: "check", ..ConfigError::at(path, text, faults) };
        let raw: RawCheckFile = read_document(text).map_err(at)?;
        let mut faults = Vec::new();
        let mut known = |codes: &[Spanned<String>]| -> Vec<&'static str> {
            let mut found = Vec::new();
            for code in codes {
                match Lint::of_code(code.get_ref()) {
                    Some(lint) => found.push(lint.code),
                    None => {
                        let (message, help) = unknown_code(code.get_ref());
                        faults.push(Fault::new(code.span(), message).help(help));
                    }
                }
            }
            found
        };
        let (select, ignore) = (known(&raw.select), known(&raw.ignore));
        if faults.is_empty() { Ok(Self { select, ignore, deny: raw.deny }) } else { Err(at(faults)) }
    }

    /// Returns `settings` without the lints that the settings file turns off. `--select` and
    /// `--ignore` take precedence over the keys of the file.
    pub(in crate::commands) fn settings(
        &self,
        settings: &EvaluatorSettings,
        select: &[&str],
        ignore: &[&str],
    ) -> EvaluatorSettings {
        let select = if select.is_empty() { &*self.select } else { select };
        let ignore = if ignore.is_empty() { &*self.ignore } else { ignore };
        let mut settings = settings.clone();
        for lint in Lint::all().iter().filter(|lint| !is_enabled(lint.code, select, ignore)) {
            settings.checks = settings.checks.allow(lint);
        }
        settings
    }
}

/// Reports whether a lint is enabled. If `select` is empty, every lint is selected.
pub(super) fn is_enabled(code: &str, select: &[&str], ignore: &[&str]) -> bool {
    (select.is_empty() || select.contains(&code)) && !ignore.contains(&code)
}

impl Deny {
    pub(super) const fn threshold(self) -> Severity {
        match self {
            Self::Errors => Severity::Error,
            Self::Warnings => Severity::Warning,
            Self::Notes => Severity::Note,
        }
    }
}

/// Returns the error and the hint for a code that settings files cannot contain: an unknown code,
/// or the code of a lint about servers' responses.
fn unknown_code(code: &str) -> (String, String) {
    if answer_lint(code).is_some() {
        let message = format!("the lint {code:?} checks answers of servers, but these settings apply only to files");
        return (message, "remove this code; to turn the lint off for a URL, use `--ignore`".to_owned());
    }
    let hint = did_you_mean(code, Lint::all().iter().map(|lint| lint.code));
    let hint = hint.unwrap_or_else(|| "`robotsd check --explain` lists all codes".to_owned());
    (format!("no lint has the code {code:?}"), hint)
}

/// Finds the nearest settings file, in the folder or in the folders above it.
fn nearest(folder: &Path) -> Option<PathBuf> {
    for folder in folder.ancestors().take(MAX_FOLDERS) {
        let file = folder.join(NAME);
        // Any error that does not count as absence means that there is a file: the caller tries to
        // read it, and reports the error.
        if !matches!(fs::metadata(&file), Err(error) if is_absent(&error)) {
            return Some(file);
        }
        if folder.join(".git").exists() {
            break;
        }
    }
    None
}

fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::PermissionDenied)
}

/// Returns the path relative to the working directory if the file is below this directory.
fn relative_path(path: &Path) -> PathBuf {
    let here = std::env::current_dir().and_then(fs::canonicalize);
    here.ok().and_then(|here| path.strip_prefix(here).ok()).map_or_else(|| path.to_owned(), Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_cases::check_cases;

    fn error(text: &str) -> String {
        CheckFile::parse(Path::new("robots-check.toml"), text).expect_err("an error").to_string()
    }

    #[test]
    fn errors_contain_the_position_and_the_correction() {
        check_cases("check_settings_mistakes.txt", |text| error(text) + "\n");
    }

    #[test]
    fn the_nearest_settings_file_up_to_the_repository_root_is_used() {
        let top = tempfile::tempdir().expect("a folder");
        let top = fs::canonicalize(top.path()).expect("a folder");
        fs::create_dir_all(top.join("repository/.git")).expect("a folder");
        fs::create_dir_all(top.join("repository/public/en")).expect("a folder");
        fs::write(top.join(NAME), "").expect("a file");
        assert_eq!(nearest(&top.join("repository/public")), None);
        fs::write(top.join("repository").join(NAME), "").expect("a file");
        assert_eq!(nearest(&top.join("repository/public/en")), Some(top.join("repository").join(NAME)));
        fs::write(top.join("repository/public").join(NAME), "").expect("a file");
        assert_eq!(nearest(&top.join("repository/public/en")), Some(top.join("repository/public").join(NAME)));
        assert_eq!(nearest(&top), Some(top.join(NAME)));
    }
}
