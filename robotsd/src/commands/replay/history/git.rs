//! The versions of a file in a git repository, as the command `git` has them.
//!
//! A version is in force from the moment at which its commit was made on the branch that is checked out. Of a merge that is the
//! merge itself: what stood on another branch before was not live. The order is that of the commits, whatever their dates are: a version
//! is no newer than those that came of it. The settings of the user do not change the answer.
//!
//! **A repository runs no program.** Its own config may be somebody else's, as in a checkout that was sent as an archive, and can name
//! programs. [`ALWAYS`], [`LOG`] and [`ENVIRONMENT`] keep git from running them. The config of the user and the system stays in force,
//! because `safe.directory` counts only there.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use super::{DatedVersion, FoundVersions, MOST_VERSIONS};
use crate::render::{printable, printable_path};

/// The file of a directory.
const FILE: &str = "robots.txt";

/// Options of every command. A file name is not a pattern. `-c` overrides settings of the user that change the answer, and settings of the
/// repository that name programs; an empty value names none.
const ALWAYS: &str = "--no-pager --literal-pathspecs -c log.showRoot=true -c log.follow=false -c log.diffMerges=separate \
                      -c log.mailmap=false -c core.pager=cat -c core.hooksPath=/dev/null -c core.fsmonitor= \
                      -c core.alternateRefsCommand=true -c alias.remote-none=";

/// Variables of every command. Git fetches an object that a partial clone lacks, by programs that the repository names. Git 2.45 and later
/// obeys `GIT_NO_LAZY_FETCH`. Earlier versions allow only the protocol "none", whose helper is the alias `remote-none`: [`ALWAYS`] empties it.
const ENVIRONMENT: [(&str, &str); 3] =
    [("GIT_OPTIONAL_LOCKS", "0"), ("GIT_NO_LAZY_FETCH", "1"), ("GIT_ALLOW_PROTOCOL", "none")];

/// One line for a commit, and one for what it made of the file. `-O` overrides a file that the repository names, which git would read.
const LOG: &str = "log --first-parent -m --raw --no-abbrev --no-renames --no-color --no-show-signature --no-ext-diff \
                   --no-textconv -O/dev/null --format=%H%x20%ct";

/// A commit that changed the file.
struct Change {
    commit: String,
    at: i64,
    /// As git writes it: `100644`, or `120000` for a link.
    mode: String,
    blob: String,
}

/// Whether a path is in a repository, or is one.
pub(super) fn has_repository(path: &Path) -> bool {
    let Ok(path) = path.canonicalize() else { return false };
    let is_bare = |folder: &Path| folder.join("HEAD").is_file() && folder.join("objects").is_dir();
    path.ancestors().any(|folder| folder.join(".git").exists() || is_bare(folder))
}

/// The versions of a file, or of the robots.txt of a directory, the newest first.
///
/// # Errors
///
/// If there is no `git`, it refuses, or no commit has the file.
pub(super) fn versions(path: &Path) -> io::Result<FoundVersions> {
    let shown = if path.is_dir() { path.join(FILE) } else { path.to_owned() };
    // Of a link git keeps the path that it leads to, not what is there.
    let file = shown.canonicalize().unwrap_or_else(|_| shown.clone());
    let folder = file.parent().unwrap_or(Path::new("/"));
    let name = file.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    let mut found = FoundVersions { file: shown.to_string_lossy().into_owned(), ..FoundVersions::default() };
    let changes = changes(folder, &name)?;
    let is_file = |change: &&Change| change.mode.starts_with("100") || change.is_removal();
    let files: Vec<_> = changes.iter().take_while(is_file).collect();
    read_blobs(folder, &files, &mut found)?;
    if let Some(change) = changes.get(files.len()).filter(|_| found.versions.len() == files.len()) {
        found.leave_out(&change.commit, "the file is a link there, or a part of another repository");
    }
    if git(folder, ["rev-parse", "--is-shallow-repository"])?.starts_with(b"true") {
        let fault = "the repository is a shallow clone, so versions before its oldest commit are not known: git fetch --unshallow";
        found.left_out.push(fault.to_owned());
    }
    if changes.is_empty() {
        return Err(io::Error::other(format!(
            "{}: no commit of its repository has this file: name one that is tracked",
            printable_path(&shown)
        )));
    }
    Ok(found)
}

impl Change {
    /// A file that was deleted has no rules.
    fn is_removal(&self) -> bool {
        self.mode.bytes().all(|digit| digit == b'0')
    }
}

/// The commits that changed a file, the newest first, and one more than may be read.
fn changes(folder: &Path, name: &str) -> io::Result<Vec<Change>> {
    let most = format!("--max-count={}", MOST_VERSIONS + 1);
    let log = git(folder, LOG.split(' ').chain([&*most, "--", name]))?;
    let mut changes: Vec<Change> = Vec::new();
    let mut commit: Option<(String, i64)> = None;
    for line in String::from_utf8_lossy(&log).lines() {
        // `:100644 100644 BEFORE AFTER M\trobots.txt`
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

/// Reads what the commits made of the file, as far as there is room: git says the size of each before its octets.
fn read_blobs(folder: &Path, changes: &[&Change], found: &mut FoundVersions) -> io::Result<()> {
    let mut git = command(folder);
    git.args(["cat-file", "--batch"]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut process = git.spawn()?;
    let names: String =
        changes.iter().filter(|change| !change.is_removal()).map(|change| format!("{}\n", change.blob)).collect();
    // All names fit into a pipe, so writing them waits for nothing.
    if let Some(mut questions) = process.stdin.take() {
        questions.write_all(names.as_bytes())?;
    }
    let mut answers = BufReader::new(process.stdout.take().ok_or(io::ErrorKind::BrokenPipe)?);
    let mut read = || {
        for change in changes {
            let size = if change.is_removal() { 0 } else { size_of_next(&mut answers, &change.commit)? };
            if !found.has_room_for(size, &change.commit) {
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
    // It may be about to write what there is no room for.
    let _ = process.kill();
    process.wait()?;
    done.map_err(|error: io::Error| io::Error::other(format!("{}: git: {error}", printable_path(folder))))
}

/// Reads `HASH blob SIZE`. For an object that is not there git writes `HASH missing`, or ends.
fn size_of_next(answers: &mut impl BufRead, commit: &str) -> io::Result<usize> {
    let mut line = String::new();
    answers.read_line(&mut line)?;
    let size = line.trim_end().rsplit(' ').next().and_then(|size| size.parse().ok());
    size.ok_or_else(|| {
        io::Error::other(format!(
            "the repository does not have the version of commit {commit}: it is damaged, or a partial clone, for which robotsd fetches \
             nothing: `git fsck` names damage, and if you trust the repository, `git log --patch -- FILE` fetches the versions"
        ))
    })
}

fn command(folder: &Path) -> Command {
    let mut command = Command::new("git");
    command.arg("-C").arg(folder).args(ALWAYS.split(' ')).envs(ENVIRONMENT);
    // A hook of git that calls this names its own repository.
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_GLOB_PATHSPECS", "GIT_ICASE_PATHSPECS"] {
        command.env_remove(name);
    }
    command
}

fn git<'a>(folder: &Path, arguments: impl IntoIterator<Item = &'a str>) -> io::Result<Vec<u8>> {
    let output = command(folder).args(arguments).output();
    let output = output.map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => io::Error::other(format!(
            "{}: it is in a git repository, and there is no command git to read its history with: install git, or name dated files",
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
