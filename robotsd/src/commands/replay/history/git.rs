//! Reads the versions of a file in a git repository with the command `git`.
//!
//! A version is in force from the time of its commit on the branch that is checked out. The content
//! of a merged branch is in force from the time of the merge commit. If the date of a commit is
//! later than the date of the next commit, the date of the next commit is used. The user's git
//! config does not affect the result.
//!
//! **The settings of a repository cannot make git run a program.** The git config of a repository
//! can contain the names of programs, and may be untrusted, for example if the checkout was sent as
//! an archive. [`GIT_OPTIONS`], [`LOG`] and [`ENVIRONMENT`] prevent git from running these
//! programs. The config of the user and of the system stays in force, because git reads
//! `safe.directory` only from this config.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{DatedVersion, FoundVersions, MAX_VERSIONS};
use crate::render::{printable, printable_path};

/// Name of the file that is read if a path is a directory.
const FILE: &str = "robots.txt";

/// Options of every git command. `--literal-pathspecs` prevents git from treating file names as
/// patterns. `-c` overrides user settings that would change the result, and repository settings
/// that contain the names of programs. If the value of such a repository setting is empty, git runs
/// no program.
const GIT_OPTIONS: &str = "--no-pager --literal-pathspecs -c log.showRoot=true -c log.follow=false -c log.diffMerges=separate \
                      -c log.mailmap=false -c core.pager=cat -c core.hooksPath=/dev/null -c core.fsmonitor= \
                      -c core.alternateRefsCommand=true -c alias.remote-none=";

/// Environment variables of every git command. The variables prevent git from fetching objects that
/// are missing in a partial clone. To fetch these objects, git would run programs from the config
/// of the repository. Git 2.45 and later obeys `GIT_NO_LAZY_FETCH`. For earlier versions,
/// `GIT_ALLOW_PROTOCOL` allows only the protocol "none". To use this protocol, git runs the alias
/// `remote-none`, which [`GIT_OPTIONS`] defines as a command that does nothing.
const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// Git command that prints one line per commit, followed by one line about the change of the file
/// in this commit. Without `-O`, git would read a file that the repository's config can name.
const LOG: &str = "log --first-parent -m --raw --no-abbrev --no-renames --no-color --no-show-signature --no-ext-diff \
                   --no-textconv -O/dev/null --format=%H%x20%ct";

struct Change {
    commit: String,
    at: i64,
    /// Mode as git writes it: `100644`, or `120000` for a link.
    mode: String,
    blob: String,
}

pub(super) fn has_repository(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let is_bare = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    path.ancestors().any(|folder| folder.join(".git").exists() || is_bare(folder))
}

/// Returns the versions of a file, or of the robots.txt in a directory, the newest first.
///
/// # Errors
///
/// Returns an error if `git` is not installed or fails, or if no commit contains the file.
pub(super) fn versions(path: &Path) -> io::Result<FoundVersions> {
    let shown = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    // For a symbolic link, git stores the path of the target, not its content.
    let file = shown.canonicalize().unwrap_or_else(|_| shown.clone());
    let folder = file.parent().unwrap_or(Path::new("/"));
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = FoundVersions { file: shown.to_string_lossy().into_owned(), ..FoundVersions::default() };
    let changes = changes(folder, &name)?;
    let is_file = |change: &&Change| change.mode.starts_with("100") || change.is_removal();
    let files: Vec<_> = changes.iter().take_while(is_file).collect();
    read_blobs(folder, &files, &mut found)?;
    if let Some(change) = changes.get(files.len()).filter(|_| found.versions.len() == files.len()) {
        found.leave_out(&change.commit, "in that version, the file is a symbolic link, or part of another repository");
    }
    if git(folder, ["rev-parse", "--is-shallow-repository"])?.starts_with(b"true") {
        let fault = "the repository is a shallow clone, so versions before its oldest commit are unknown: run `git \
         fetch --unshallow`";
        found.left_out.push(fault.to_owned());
    }
    if changes.is_empty() {
        return Err(io::Error::other(format!(
            "{}: no commit of its repository contains this file: specify a file that git tracks",
            printable_path(&shown)
        )));
    }
    Ok(found)
}

impl Change {
    /// Reports whether the commit deleted the file. The version then has no rules.
    fn is_removal(&self) -> bool {
        self.mode.bytes().all(|digit| digit == b'0')
    }
}

/// Returns the commits that changed a file, the newest first: at most one commit more than the
/// limit, so that the caller detects that the limit is exceeded.
fn changes(folder: &Path, name: &str) -> io::Result<Vec<Change>> {
    let most = format!("--max-count={}", MAX_VERSIONS + 1);
    let log = git(folder, LOG.split(' ').chain([&*most, "--", name]))?;
    let mut changes: Vec<Change> = Vec::new();
    let mut commit: Option<(String, i64)> = None;
    for line in String::from_utf8_lossy(&log).lines() {
        // The line about a change looks like `:100644 100644 BEFORE AFTER M\trobots.txt`.
        let Some(change) = line.strip_prefix(':') else {
            let read = line.split_once(' ').and_then(|(hash, at)| Some((hash.to_owned(), at.parse().ok()?)));
            commit = read.or(commit);
            continue;
        };
        let mut words = change.split(' ').skip(1);
        let (Some((hash, at)), Some(mode), Some(blob)) = (commit.take(), words.next(), words.nth(1)) else { continue };
        let at = changes.last().map_or(at, |newer| newer.at.min(at));
        let commit = hash.get(..12).unwrap_or(&hash).to_owned();
        changes.push(Change { commit, at, mode: mode.to_owned(), blob: blob.to_owned() });
    }
    Ok(changes)
}

/// Reads the content of the file in these commits, up to the limits. To check the limits, uses the
/// size that git prints before each version.
fn read_blobs(folder: &Path, changes: &[&Change], found: &mut FoundVersions) -> io::Result<()> {
    let mut git = command(folder);
    git.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = git.spawn()?;
    let names: String =
        changes.iter().filter(|change| !change.is_removal()).map(|change| format!("{}\n", change.blob)).collect();
    // The names of all blobs fit into the buffer of a pipe, so writing them does not block.
    if let Some(mut questions) = process.stdin.take() {
        questions.write_all(names.as_bytes())?;
    }
    let mut answers = BufReader::new(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let mut read = || {
        for change in changes {
            let size = if change.is_removal() { 0 } else { size_of_next(&mut answers, &change.commit)? };
            if !found.fits_limits(size, &change.commit) {
                break;
            }
            let mut bytes = vec![0; size];
            answers.read_exact(&mut bytes)?;
            if !change.is_removal() {
                answers.read_exact(&mut [0])?;
            }
            found.versions.push(DatedVersion { at: change.at, source: change.commit.clone(), bytes });
        }
        Ok(())
    };
    let done = read();
    drop(answers);
    // If the limits are exceeded, git may still be writing further versions, so it is stopped.
    let _ = process.kill();
    process.wait()?;
    done.map_err(|error: io::Error| io::Error::other(format!("{}: git: {error}", printable_path(folder))))
}

/// Reads a line `HASH blob SIZE`, and returns the size. For a missing object, git prints `HASH
/// missing`, or exits.
fn size_of_next(answers: &mut impl BufRead, commit: &str) -> io::Result<usize> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let size = line.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok());
    size.ok_or_else(|| {
        io::Error::other(format!(
            "the repository does not contain the file of commit {commit}: the repository is damaged, or a partial \
             clone (robotsd does not fetch the missing files). `git fsck` reports damage; if you trust the repository, \
             `git log --patch -- FILE` fetches the versions"
        ))
    })
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(GIT_OPTIONS.split(' ')).envs(ENVIRONMENT);
    // If a git hook runs robotsd, git has set the variables below for the repository of the hook.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"] {
        command.env_remove(name);
    }
    command
}

fn git<'a>(folder: &Path, arguments: impl IntoIterator<Item = &'a str>) -> io::Result<Vec<u8>> {
    let output = command(folder).args(arguments).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "{}: this folder is in a git repository, but the command git is not installed: install git, or specify \
             files with a date in their names",
            printable_path(folder)
        )),
        _ => io::Error::other(format!("git: {error}")),
    })?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(io::Error::other(format!("{}: git: {}", printable_path(folder), printable(why.trim()))))
}
