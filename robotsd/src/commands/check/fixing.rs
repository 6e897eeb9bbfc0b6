//! `--fix`, `--unsafe-fixes` and `--diff`: corrects files in place, or shows the differences.
//!
//! A file is replaced as a whole or not at all ([`replace`]). The effect of an unsafe fix on
//! crawlers is printed as in the output of `robotsd diff`.

use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::ops::Range;
use std::os::unix::fs::{MetadataExt, chown};
use std::path::{Path, PathBuf};

use imara_diff::{Algorithm, Diff, Hunk, InternedInput, Token};
use tower_robots::check::{FixedFile, Safety};
use tower_robots::internals;
use tower_robots::rules::{Reading, RobotsTxt};

use super::check_args::{CheckArgs, has_stdin};
use crate::commands::diff::{ChangesText, DiffNames, complain_of_timeout};
use crate::evaluator::{Evaluator, EvaluatorSettings, MAX_TIME, TimeBudget};
use crate::exit::complain;
use crate::input::InputSource;
use crate::render::{FindingFormat, plural, printable, printable_path, stderr};

/// Number of unchanged lines before and after a change in a unified diff.
const CONTEXT: u32 = 3;

/// Progress of `--fix` or `--diff` over all files.
pub(super) struct FixRun<'a> {
    pub(super) args: &'a CheckArgs,
    pub(super) corrected: usize,
    /// Number of findings that remain after the corrections; of these, `left_unsafe` have an unsafe
    /// fix.
    left: usize,
    left_unsafe: usize,
    /// Whether any correction or comparison reached its time limit.
    pub(super) is_cut: bool,
}

impl<'a> FixRun<'a> {
    pub(super) const fn new(args: &'a CheckArgs) -> Self {
        Self { args, corrected: 0, left: 0, left_unsafe: 0, is_cut: false }
    }

    /// Returns `source` if the file may be corrected. A link to a file outside the directory
    /// `argument` is an error.
    pub(super) fn check_permitted(
        &self,
        argument: &Path,
        source: InputSource,
    ) -> Result<InputSource, (PathBuf, io::Error)> {
        let Some(file) = source.path() else { return Ok(source) };
        if !self.args.fixing.fix || !argument.is_dir() {
            return Ok(source);
        }
        let place = |path: &Path| fs::canonicalize(path).map_err(|error| (file.to_owned(), error));
        if place(file)?.starts_with(place(argument)?) {
            return Ok(source);
        }
        let folder = printable_path(argument);
        let fault =
            format!("this link leads out of {folder}, so its target is not corrected: specify the target file itself");
        Err((file.to_owned(), io::Error::other(fault)))
    }

    /// Reports whether the corrected text is written to standard output. In that case, findings are
    /// written to standard error.
    pub(super) fn writes_to_stdout(&self) -> bool {
        self.args.fixing.fix && has_stdin(&self.args.paths)
    }

    /// Corrects a file. Returns the bytes to check for remaining findings, or `None` with `--diff`,
    /// because `--diff` only shows the differences.
    pub(super) fn correct(
        &mut self,
        out: &mut impl Write,
        name: &str,
        source: &InputSource,
        bytes: Vec<u8>,
        settings: &EvaluatorSettings,
    ) -> io::Result<Option<Vec<u8>>> {
        if !self.args.fixing.is_on() {
            return Ok(Some(bytes));
        }
        let before = RobotsTxt::parse(bytes);
        let time = TimeBudget::start();
        let fixed = FixedFile::of_while(&before, &settings.checks, self.args.fixing.safety(), &|| time.is_left());
        let after = fixed.robots.bytes();
        let is_changed = before.bytes() != after;
        if self.args.fixing.diff {
            write_difference(out, name, before.bytes(), after)?;
        } else if matches!(source, InputSource::Stdin) {
            out.write_all(after)?;
        } else if let (Some(path), true) = (source.path(), is_changed) {
            replace(path, before.bytes(), after)?;
        }
        self.corrected += fixed.applied.len();
        self.left += fixed.report.findings.len() + fixed.report.omitted();
        self.left_unsafe += fixed.report.fixes.count(Safety::Unsafe);
        if fixed.applied.iter().any(|(_, safety)| *safety == Safety::Unsafe) {
            // Without this flush, the output would be in the wrong order if stdout and stderr go to
            // the same terminal.
            out.flush()?;
            self.is_cut |= write_effect(&mut stderr(), name, &before, &fixed, settings)?;
        }
        if fixed.is_cut {
            self.is_cut = true;
            let again = if self.args.fixing.diff { "" } else { ": to correct the rest, run the command again" };
            let (name, most) = (printable(name), MAX_TIME.as_secs());
            let more = "some findings are not corrected yet";
            complain(&format_args!("{name}: the correction was stopped after {most} s, so {more}{again}"));
        }
        Ok((!self.args.fixing.diff).then(|| after.to_vec()))
    }

    /// Writes the number of corrections. Returns `true` if the command should write no more output.
    pub(super) fn finish(&self, out: &mut impl Write) -> io::Result<bool> {
        let fixing = &self.args.fixing;
        if !fixing.is_on() {
            return Ok(false);
        }
        let Self { corrected, left, left_unsafe, .. } = self;
        let verb = if fixing.diff { "would fix" } else { "fixed" };
        let need = if *left_unsafe == 1 { "needs" } else { "need" };
        // With `--unsafe-fixes`, all possible fixes have been applied, so the message need not name
        // the option.
        let has_more = *left_unsafe > 0 && !fixing.unsafe_fixes;
        let more = if has_more { format!(" ({left_unsafe} {need} --unsafe-fixes)") } else { String::new() };
        let message = format!("{verb} {corrected} of {}{more}", plural(corrected + left, "finding"));
        if matches!(self.args.format, FindingFormat::Text | FindingFormat::Concise)
            && !fixing.diff
            && !has_stdin(&self.args.paths)
        {
            writeln!(out, "{message}")?;
        } else {
            complain(&message);
        }
        Ok(fixing.diff || self.writes_to_stdout())
    }
}

/// Writes what the fixes change for crawlers. Returns `true` if the comparison took too long.
fn write_effect(
    out: &mut impl Write,
    name: &str,
    before: &RobotsTxt,
    fixed: &FixedFile,
    settings: &EvaluatorSettings,
) -> io::Result<bool> {
    let evaluator = |robots: &RobotsTxt| Evaluator::of(robots, Reading::Standard, settings);
    let diff = evaluator(before).diff(&evaluator(&fixed.robots), []);
    writeln!(out, "what the fixes in {file} change for crawlers:", file = printable(name))?;
    let names = DiffNames::new(name, &format!("{name} (fixed)"));
    writeln!(out, "{}", ChangesText { names: &names, diff: &diff, unread: &[] })?;
    if diff.is_cut {
        complain_of_timeout(name);
    }
    Ok(diff.is_cut)
}

/// Writes a unified diff that `patch` can apply, so the bytes of the file are not escaped.
pub(in crate::commands) fn write_difference(
    out: &mut impl Write,
    name: &str,
    before: &[u8],
    after: &[u8],
) -> io::Result<()> {
    if before == after {
        return Ok(());
    }
    let name = printable(name);
    // The `diff` program writes a tab after names that contain spaces.
    let end = if name.contains(' ') { "\t" } else { "" };
    writeln!(out, "--- {name}{end}\n+++ {name}{end}")?;
    let lines = InternedInput::new(before, after);
    // The algorithm Myers is much faster than Histogram on some files: for 30,000 changed lines
    // between unique lines, Myers takes 7 ms, and Histogram takes 6 s.
    let diff = Diff::compute(Algorithm::Myers, &lines);
    let mut changes = diff.hunks().peekable();
    while let Some(change) = changes.next() {
        // Changes with overlapping or adjacent context form one hunk.
        let mut hunk = vec![change];
        while let Some(next) =
            changes.next_if(|next| next.before.start <= hunk[hunk.len() - 1].before.end + 2 * CONTEXT)
        {
            hunk.push(next);
        }
        write_hunk(out, &lines, &hunk)?;
    }
    Ok(())
}

fn write_hunk(out: &mut impl Write, lines: &InternedInput<&[u8]>, changes: &[Hunk]) -> io::Result<()> {
    let ([first, ..], [.., last]) = (changes, changes) else { return Ok(()) };
    let lines_before = first.before.start.min(CONTEXT);
    let lines_after = (lines.before.len() as u32 - last.before.end).min(CONTEXT);
    let old = first.before.start - lines_before..last.before.end + lines_after;
    let new = first.after.start - lines_before..last.after.end + lines_after;
    writeln!(out, "@@ -{} +{} @@", unified_range(&old), unified_range(&new))?;
    let mut at = old.start;
    for change in changes {
        write_lines(out, b' ', lines, &lines.before, at..change.before.start)?;
        write_lines(out, b'-', lines, &lines.before, change.before.clone())?;
        write_lines(out, b'+', lines, &lines.after, change.after.clone())?;
        at = change.before.end;
    }
    write_lines(out, b' ', lines, &lines.before, at..old.end)
}

/// Formats a range of lines for a unified diff: the number of the first line (counted from 1), and
/// the count of lines if it is not 1. An empty range has the number of the line before it.
fn unified_range(lines: &Range<u32>) -> String {
    match lines.len() {
        0 => format!("{},0", lines.start),
        1 => format!("{}", lines.start + 1),
        count => format!("{},{count}", lines.start + 1),
    }
}

fn write_lines(
    out: &mut impl Write,
    sign: u8,
    lines: &InternedInput<&[u8]>,
    file: &[Token],
    range: Range<u32>,
) -> io::Result<()> {
    for token in &file[range.start as usize..range.end as usize] {
        let line = lines.interner[*token];
        out.write_all(&[sign])?;
        out.write_all(line)?;
        // In unified diffs, only line feeds end lines, and a lone carriage return is an ordinary
        // character.
        if !line.ends_with(b"\n") {
            writeln!(out, "\n\\ No newline at end of file")?;
        }
    }
    Ok(())
}

/// Replaces the content of a file. `read` is the content that the caller read from the file.
///
/// The new file is written next to the old file, with the same mode, owner and group, and then
/// renamed. If the path is a symbolic link, its target is replaced. Returns an error, and does not
/// change the file, if it is read-only or has another hard link, if its group cannot be kept, or if
/// its content has changed since the caller read it.
pub(in crate::commands) fn replace(path: &Path, read: &[u8], bytes: &[u8]) -> io::Result<()> {
    let path = fs::canonicalize(path)?;
    let metadata = fs::metadata(&path)?;
    refuse(&metadata)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    let unwritable = |error: io::Error| {
        io::Error::new(
            error.kind(),
            format!("the corrected file cannot be written to {folder}: {error}", folder = folder.display()),
        )
    };
    let temporary_path = folder.join(format!(".robots-{}.tmp", std::process::id()));
    let replaced = internals::replace(&path, &temporary_path, |file| {
        file.write_all(bytes)?;
        copy_owner(&temporary_path, &metadata)?;
        file.set_permissions(metadata.permissions())?;
        file.sync_all()?;
        if fs::read(&path)? != read {
            let why = "another program changed the file during the correction, so nothing was written: run the \
                command again";
            return Err(io::Error::other(why));
        }
        Ok(())
    });
    replaced.map(drop).map_err(unwritable)
}

fn refuse(metadata: &Metadata) -> io::Result<()> {
    let refusal = |fault: &str| {
        Err(io::Error::other(format!(
            "{fault}: the file was not changed; to get the corrected text, pipe the file to standard input (-)"
        )))
    };
    if !metadata.is_file() {
        return refusal("this is not a regular file, so it cannot be replaced");
    }
    if metadata.permissions().readonly() {
        return refusal("the file is read-only");
    }
    match metadata.nlink().saturating_sub(1) {
        0 => Ok(()),
        1 => refusal("the file has a second name (a hard link), which would keep the old text"),
        names => refusal(&format!("the file has {names} other names (hard links), which would keep the old text")),
    }
}

/// Gives the new file the group of the old file and, if the user is root, also the owner of the old
/// file. The group must be kept, because a server may have access to the file only as a member of
/// the group.
fn copy_owner(path: &Path, metadata: &Metadata) -> io::Result<()> {
    let own = fs::metadata(path)?;
    if own.uid() != metadata.uid() && chown(path, Some(metadata.uid()), Some(metadata.gid())).is_ok() {
        return Ok(());
    }
    if own.gid() == metadata.gid() {
        return Ok(());
    }
    chown(path, None, Some(metadata.gid())).map_err(|error| {
        let fault = format!(
            "the corrected file cannot get the owner group (GID {group}) of the original file ({error}), so nothing was \
             written",
            group = metadata.gid()
        );
        io::Error::new(error.kind(), format!("{fault}: to get the corrected text, pipe the file to standard input (-)"))
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn differences_are_written_as_a_unified_patch() {
        let mut out = Vec::new();
        write_difference(&mut out, "robots.txt", b"a\r\nb\xff\nc", b"a\r\nd\xff\nc").expect("a vector takes all");
        let want = b"--- robots.txt\n+++ robots.txt\n@@ -1,3 +1,3 @@\n a\r\n-b\xff\n+d\xff\n c\n\\ No newline at end of file\n";
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(want));
        out.clear();
        write_difference(&mut out, "a b.txt", b"a\rb\r", b"c\r").expect("a vector takes all");
        let want = "--- a b.txt\t\n+++ a b.txt\t\n@@ -1 +1 @@\n-a\rb\r\n\\ No newline at end of file\n+c\r\n\\ No newline at end of file\n";
        assert_eq!(String::from_utf8_lossy(&out), want);
        out.clear();
        write_difference(&mut out, "robots.txt", b"", b"a\n").expect("a vector takes all");
        assert_eq!(String::from_utf8_lossy(&out), "--- robots.txt\n+++ robots.txt\n@@ -0,0 +1 @@\n+a\n");
        out.clear();
        write_difference(&mut out, "robots.txt", b"a\n", b"a\n").expect("a vector takes all");
        assert_eq!(out, b"");
    }

    #[test]
    fn changes_are_one_hunk_if_their_context_touches() {
        let file = |changed: [usize; 2]| -> String {
            (1..=20).map(|line| format!("{line}{}\n", if changed.contains(&line) { "!" } else { "" })).collect()
        };
        let hunks = |changed| {
            let mut out = Vec::new();
            let (old, new) = (file([0, 0]), file(changed));
            write_difference(&mut out, "robots.txt", old.as_bytes(), new.as_bytes()).expect("a vector takes all");
            let text = String::from_utf8(out).expect("UTF-8");
            text.lines().filter(|line| line.starts_with("@@")).map(str::to_owned).collect::<Vec<_>>()
        };
        assert_eq!(hunks([2, 9]), ["@@ -1,12 +1,12 @@"]);
        assert_eq!(hunks([2, 10]), ["@@ -1,5 +1,5 @@", "@@ -7,7 +7,7 @@"]);
        assert_eq!(hunks([1, 20]), ["@@ -1,4 +1,4 @@", "@@ -17,4 +17,4 @@"]);
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).expect("a file").permissions().mode() & 0o777
    }

    #[test]
    fn the_target_of_a_symlink_is_replaced_and_keeps_its_mode() {
        let folder = tempfile::tempdir().expect("a folder");
        let (file, link) = (folder.path().join("real.txt"), folder.path().join("robots.txt"));
        fs::write(&file, "old").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
        symlink("real.txt", &link).expect("a link");
        replace(&link, b"old", b"new").expect("a replaced file");
        assert_eq!(fs::read(&file).expect("a file"), b"new");
        assert_eq!(mode(&file), 0o640);
        assert!(fs::symlink_metadata(&link).expect("a link").is_symlink());
        assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), 2);
    }

    #[test]
    fn a_replacement_is_refused_if_it_would_lose_changes_links_or_protection() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("robots.txt");
        let refused = |names: usize, want: &str| {
            let error = replace(&file, b"old", b"new").expect_err(want).to_string();
            assert!(error.contains(want), "{error}");
            assert_eq!(fs::read_dir(folder.path()).expect("a folder").count(), names);
        };
        fs::write(&file, "saved").expect("a file");
        refused(1, "another program changed the file during the correction");
        assert_eq!(fs::read(&file).expect("a file"), b"saved");
        fs::write(&file, "old").expect("a file");
        fs::hard_link(&file, folder.path().join("other")).expect("a link");
        refused(2, "the file has a second name (a hard link)");
        fs::remove_file(folder.path().join("other")).expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).expect("a mode");
        refused(1, "the file is read-only");
        assert_eq!(fs::read(&file).expect("a file"), b"old");
        assert_eq!(mode(&file), 0o444);
    }
}
