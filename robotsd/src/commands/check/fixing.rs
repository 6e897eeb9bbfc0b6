//! `--fix`, `--unsafe-fixes` and `--diff`: files corrected in place, or the difference that would make.
//!
//! A file is replaced whole or not at all ([`replace`]). What an unsafe fix changes for crawlers is printed, as `robotsd diff`
//! prints it.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use similar::TextDiff;
use tower_robots::check::{FixedFile, Safety, Severity, fix};
use tower_robots::rules::{Reading, RobotsTxt};

use super::check_settings::CheckFile;
use super::replaced_file::replace;
use crate::commands::arguments::within::WithinArgs;
use crate::commands::diff::{DiffNames, write_effects};
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::exit::complain;
use crate::input::InputSource;
use crate::render::printable;
use crate::retrieval::{is_url, shown_url};

#[derive(clap::Args, Debug)]
pub(super) struct FixArgs {
    /// Correct the files where that changes nothing for any crawler; - writes the corrected text to standard output
    #[arg(long, group = "fixing")]
    fix: bool,

    /// Show the changes that --fix would make, and make none; end with 1 if there are any
    #[arg(long, group = "fixing", conflicts_with = "format")]
    diff: bool,

    /// With --fix or --diff: also what changes the effect of the file, which is printed, or could be meant otherwise
    #[arg(long, requires = "fixing")]
    unsafe_fixes: bool,

    /// Read no robots-check.toml
    #[arg(long)]
    isolated: bool,
}

/// What was corrected in all files so far, and the options that count for it.
pub(super) struct FixRun<'a> {
    pub(super) args: &'a FixArgs,
    pub(super) within: &'a WithinArgs,
    /// The name that standard input has.
    pub(super) stdin_filename: Option<&'a Path>,
    /// Whether options say which lints to look for, and which not.
    pub(super) has_select: bool,
    pub(super) has_ignore: bool,
    /// Whether options say what fails the check.
    pub(super) has_threshold: bool,
    pub(super) is_for_people: bool,
    pub(super) is_stdin: bool,
    /// What is wrong with files of settings, each of which may be for many files.
    pub(super) faults: BTreeSet<String>,
    pub(super) corrected: usize,
    /// What is left: findings, and those of them whose fix is unsafe.
    pub(super) left: usize,
    pub(super) left_unsafe: usize,
}

/// What is to be done with a file.
pub(super) enum PreparedFile {
    /// Check it, with these settings; the severity fails it.
    Check { bytes: Vec<u8>, settings: Box<EvaluatorSettings>, threshold: Option<Severity> },
    /// Nothing more: the difference is shown.
    Shown { is_changed: bool },
    /// It could not be read, or written.
    Failed(String),
    /// Nothing more: its settings are those of another file, and what is wrong with them was said.
    FailedAgain,
}

impl FixArgs {
    const fn is_on(&self) -> bool {
        self.fix || self.diff
    }

    const fn safety(&self) -> Safety {
        if self.unsafe_fixes { Safety::Unsafe } else { Safety::Safe }
    }

    /// Why these paths cannot be corrected.
    pub(super) fn refusal(&self, paths: &[PathBuf]) -> Option<String> {
        let option = if self.fix { "--fix" } else { "--diff" };
        if !self.is_on() {
            return None;
        }
        if paths.is_empty() {
            return Some(format!("{option} corrects files: name the robots.txt"));
        }
        if let Some(url) = paths.iter().filter_map(|path| path.to_str()).find(|word| is_url(word)) {
            let url = shown_url(url);
            return Some(format!("{option} corrects files, not what a site serves: name the file in place of {url}"));
        }
        (self.fix && paths.len() > 1 && paths.iter().any(|path| path == Path::new("-")))
            .then(|| "--fix writes the text of standard input to standard output: name - alone, or files".to_owned())
    }
}

impl FixRun<'_> {
    /// Corrects a file where that is wanted, with the settings that are for it.
    pub(super) fn prepare(
        &mut self,
        out: &mut impl Write,
        name: &str,
        source: &InputSource,
        bytes: Vec<u8>,
        settings: &EvaluatorSettings,
    ) -> io::Result<PreparedFile> {
        let file = match self.args.isolated {
            true => Ok(CheckFile::default()),
            false => CheckFile::find(source, self.stdin_filename, self.within),
        };
        let file = match file {
            Ok(file) => file,
            Err(error) => {
                let error = error.to_string();
                let is_new = self.faults.insert(error.clone());
                return Ok(if is_new { PreparedFile::Failed(error) } else { PreparedFile::FailedAgain });
            }
        };
        let (settings, threshold) = (
            file.settings(settings, self.has_select, self.has_ignore),
            file.threshold().filter(|_| !self.has_threshold),
        );
        if !self.args.is_on() {
            return Ok(PreparedFile::Check { bytes, settings: settings.into(), threshold });
        }
        let corrected = self.corrected;
        match self.correct(out, name, source, bytes, &settings) {
            Ok(Some(bytes)) => Ok(PreparedFile::Check { bytes, settings: settings.into(), threshold }),
            Ok(None) => Ok(PreparedFile::Shown { is_changed: self.corrected > corrected }),
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(error),
            Err(error) => Ok(PreparedFile::Failed(format!("{}: {error}", printable(name.as_bytes())))),
        }
    }

    /// A file that an argument stands for. One that a link leads to out of a directory is not corrected.
    pub(super) fn permitted(&self, argument: &Path, source: InputSource) -> Result<InputSource, (PathBuf, io::Error)> {
        let InputSource::File(file) = &source else { return Ok(source) };
        if !self.args.fix || !argument.is_dir() {
            return Ok(source);
        }
        let place = |path: &Path| fs::canonicalize(path).map_err(|error| (file.clone(), error));
        if place(file)?.starts_with(place(argument)?) {
            return Ok(source);
        }
        let folder = printable(argument.as_os_str().as_encoded_bytes());
        let fault = format!("this leads out of {folder}, so it is not corrected: name the file that is meant");
        Err((file.clone(), io::Error::other(fault)))
    }

    /// Whether the findings go to standard error, because standard output has the corrected text.
    pub(super) const fn is_filter(&self) -> bool {
        self.args.fix && self.is_stdin
    }

    /// The corrected file, once it is written; none where only the difference is shown.
    fn correct(
        &mut self,
        out: &mut impl Write,
        name: &str,
        source: &InputSource,
        bytes: Vec<u8>,
        settings: &EvaluatorSettings,
    ) -> io::Result<Option<Vec<u8>>> {
        let before = RobotsTxt::parse(bytes);
        let fixed = fix(&before, &settings.checks, self.args.safety());
        let after = fixed.robots().bytes();
        let is_changed = before.bytes() != after;
        if self.args.diff {
            write_difference(out, name, before.bytes(), after)?;
        } else if matches!(source, InputSource::Stdin) {
            out.write_all(after)?;
        } else if let (InputSource::File(path), true) = (source, is_changed) {
            replace(path, before.bytes(), after)?;
        }
        self.corrected += fixed.applied().len();
        self.left += fixed.report().findings().len() + fixed.report().omitted();
        self.left_unsafe += fixed.report().fixes().count(Safety::Unsafe);
        if fixed.applied().iter().any(|applied| applied.safety() == Safety::Unsafe) {
            // Before it what was written so far, so that both are in order where they go to one place.
            out.flush()?;
            write_effect(&mut io::stderr().lock(), name, &before, &fixed, settings)?;
        }
        Ok((!self.args.diff).then(|| after.to_vec()))
    }

    /// Writes what was corrected. True where that is all there is to say.
    pub(super) fn finish(&self, out: &mut impl Write) -> io::Result<bool> {
        let fixing = self.args;
        if !fixing.is_on() {
            return Ok(false);
        }
        let Self { corrected, left, left_unsafe, .. } = self;
        let verb = if fixing.diff { "would fix" } else { "fixed" };
        let all = corrected + left;
        let findings = if all == 1 { "finding" } else { "findings" };
        let need = if *left_unsafe == 1 { "needs" } else { "need" };
        let more = match left_unsafe {
            0 => String::new(),
            // With --unsafe-fixes those are left that did not succeed.
            _ if fixing.unsafe_fixes => String::new(),
            count => format!(" ({count} {need} --unsafe-fixes)"),
        };
        let message = format!("{verb} {corrected} of {all} {findings}{more}");
        if self.is_for_people && !fixing.diff && !self.is_stdin {
            writeln!(out, "{message}")?;
        } else {
            complain(&message);
        }
        Ok(fixing.diff || self.is_filter())
    }
}

/// Writes what the fixes change for crawlers.
fn write_effect(
    out: &mut impl Write,
    name: &str,
    before: &RobotsTxt,
    fixed: &FixedFile,
    settings: &EvaluatorSettings,
) -> io::Result<()> {
    let evaluator = |robots: &RobotsTxt| Evaluator::new(robots.bytes().to_vec(), Reading::Standard, settings);
    let diff = evaluator(before).diff(&evaluator(fixed.robots()), []);
    writeln!(out, "the effect of the fixes in {}:", printable(name.as_bytes()))?;
    write_effects(out, &DiffNames::new(name, &format!("{name} (fixed)")), &diff, &[])
}

/// Writes a unified diff, which `patch` reads: the octets of the file as they are.
fn write_difference(out: &mut impl Write, name: &str, before: &[u8], after: &[u8]) -> io::Result<()> {
    let lines = |file: &'_ [u8]| -> Vec<Vec<u8>> {
        file.split_inclusive(|octet| *octet == b'\n').map(<[u8]>::to_vec).collect()
    };
    let (old, new) = (lines(before), lines(after));
    let [old, new] = [&old, &new].map(|lines| lines.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let diff = TextDiff::configure().newline_terminated(true).diff_slices(&old, &new);
    let name = printable(name.as_bytes());
    if before != after {
        // As diff has it: a tab ends a name with spaces.
        let end = if name.contains(' ') { "\t" } else { "" };
        writeln!(out, "--- {name}{end}\n+++ {name}{end}")?;
    }
    for hunk in diff.unified_diff().iter_hunks() {
        writeln!(out, "{}", hunk.header())?;
        for change in hunk.iter_changes() {
            write!(out, "{}", change.tag())?;
            out.write_all(change.value())?;
            // A line ends with a line feed there: a carriage return alone is one of its octets.
            if !change.value().ends_with(b"\n") {
                writeln!(out, "\n\\ No newline at end of file")?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_is_a_patch() {
        let mut out = Vec::new();
        write_difference(&mut out, "robots.txt", b"a\r\nb\xff\nc", b"a\r\nd\xff\nc").expect("a vector takes all");
        let want = b"--- robots.txt\n+++ robots.txt\n@@ -1,3 +1,3 @@\n a\r\n-b\xff\n+d\xff\n c\n\\ No newline at end of file\n";
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(want));
        out.clear();
        write_difference(&mut out, "a b.txt", b"a\rb\r", b"c\r").expect("a vector takes all");
        let want = "--- a b.txt\t\n+++ a b.txt\t\n@@ -1 +1 @@\n-a\rb\r\n\\ No newline at end of file\n+c\r\n\\ No newline at end of file\n";
        assert_eq!(String::from_utf8_lossy(&out), want);
        out.clear();
        write_difference(&mut out, "robots.txt", b"a\n", b"a\n").expect("a vector takes all");
        assert_eq!(out, b"");
    }
}
