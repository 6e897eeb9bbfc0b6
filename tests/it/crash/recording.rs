//! Records what a program does to the files in a folder, in order, as `strace` sees it. Code that
//! forgets a sync is recorded like any other.

use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// System calls that change files, or that determine where the next write to a descriptor begins.
const CALLS: &str = "open,openat,creat,read,write,pwrite64,writev,pwritev,lseek,ftruncate,truncate,fallocate,fsync,fdatasync,\
                     rename,renameat,renameat2,link,linkat,symlink,symlinkat,unlink,unlinkat,rmdir,mkdir,mkdirat,\
                     copy_file_range,sendfile,statx";

/// A scenario looks up paths in this folder to leave marks in its recording. The folder does not
/// exist.
const MARKS: &str = "/crash-mark";

/// Environment variable of the recorded process: the folder of its files.
pub(super) const INSIDE: &str = "CRASH_INSIDE";

/// A change to a file in the recorded folder. Paths are relative to that folder, which is empty.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    MakeFolder(PathBuf),
    /// Creates a file, or opens an existing one, which is emptied if `is_emptied` is set.
    Open {
        path: PathBuf,
        is_emptied: bool,
    },
    /// Writes at the end of the file if `at` is `None`.
    Write {
        path: PathBuf,
        at: Option<usize>,
        bytes: Vec<u8>,
    },
    Resize {
        path: PathBuf,
        length: usize,
    },
    Rename {
        from: PathBuf,
        to: PathBuf,
    },
    Link {
        from: PathBuf,
        to: PathBuf,
    },
    Remove(PathBuf),
    /// Syncs a file or a folder.
    Sync(PathBuf),
    /// A mark that the scenario left at this point.
    Mark(String),
}

/// Returns the folder of the files; `None` if this process is not recorded.
pub(crate) fn folder_inside() -> Option<PathBuf> {
    std::env::var_os(INSIDE).map(PathBuf::from)
}

/// Leaves a mark in the recording of this process.
pub(crate) fn mark(what: &str) {
    assert!(fs::metadata(Path::new(MARKS).join(what)).is_err(), "{MARKS} is no folder");
}

/// Runs this test again, and returns what it and its children did to the files in `folder`. `name`
/// is the test's path in this binary. `None` if `strace` is not installed, which is an error in CI.
pub(crate) fn record(name: &str, folder: &Path) -> Option<Vec<Operation>> {
    let calls = folder.with_extension("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "--seccomp-bpf", "-y", "-xx", "-s", "16777216", "-e"]).arg(format!("trace={CALLS}"));
    strace.arg("-o").arg(&calls).arg(std::env::current_exe().unwrap());
    strace.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(INSIDE, folder);
    let output = match strace.output() {
        Err(error) if std::env::var_os("CI").is_none() => {
            println!("skipped: strace cannot be run: {error}");
            return None;
        }
        output => output.unwrap(),
    };
    let said = String::from_utf8_lossy(&output.stderr);
    if said.contains("ptrace") && !output.status.success() && std::env::var_os("CI").is_none() {
        println!("skipped: strace may not look at programs here: {said}");
        return None;
    }
    assert!(output.status.success(), "{}{said}", String::from_utf8_lossy(&output.stdout));
    let text = fs::read_to_string(&calls).unwrap();
    let mut reader = Reader { folder: fs::canonicalize(folder).unwrap(), descriptors: HashMap::new() };
    Some(calls_in_order(&text).iter().filter_map(|call| reader.read(call)).collect())
}

struct Call<'t> {
    thread: &'t str,
    name: &'t str,
    arguments: Vec<String>,
    result: String,
    line: &'t str,
}

/// Returns the calls of all threads in order. A sync is sorted by its end, every other call by its
/// beginning.
fn calls_in_order(text: &str) -> Vec<Call<'_>> {
    let mut begun: HashMap<&str, (usize, &str)> = HashMap::new();
    let mut calls: Vec<(usize, Call<'_>)> = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let Some((thread, rest)) = line.split_once(' ') else { continue };
        let rest = rest.trim_start();
        if let Some(first) = rest.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, (number, first));
            continue;
        }
        let (begin, whole) = match rest.split_once(" resumed>") {
            Some((_, second)) if rest.starts_with("<... ") => {
                let Some((begin, first)) = begun.remove(thread) else { continue };
                (begin, format!("{first}{second}"))
            }
            _ => (number, rest.to_owned()),
        };
        let Some((name, behind)) = rest.trim_start_matches("<... ").split_once(['(', ' ']) else { continue };
        let behind = if rest.starts_with("<... ") { whole.split_once('(').map_or("", |(_, it)| it) } else { behind };
        // Signals and process exits have no result.
        let Some((arguments, result)) = behind.rsplit_once(" = ") else { continue };
        let arguments = arguments.trim_end().strip_suffix(')').unwrap_or(arguments);
        let at = if name.ends_with("sync") { number } else { begin };
        let arguments = arguments.split(", ").map(str::to_owned).collect();
        calls.push((at, Call { thread, name, arguments, result: result.to_owned(), line }));
    }
    calls.sort_by_key(|(at, _)| *at);
    calls.into_iter().map(|(_, call)| call).collect()
}

/// Where the next write to a descriptor begins.
#[derive(Clone, Copy)]
enum Next {
    End,
    At(usize),
}

struct Reader<'t> {
    folder: PathBuf,
    /// The key includes the thread, because the thread that opens a file also writes it.
    descriptors: HashMap<(&'t str, String), Next>,
}

impl<'t> Reader<'t> {
    fn read(&mut self, call: &Call<'t>) -> Option<Operation> {
        let Call { thread, name, arguments, result, line } = call;
        let (name, is_at) = match *name {
            "openat" | "renameat" | "renameat2" | "linkat" | "symlinkat" | "unlinkat" | "mkdirat" => (&name[..], true),
            name => (name, false),
        };
        let argument = |at: usize| arguments.get(at).unwrap_or_else(|| panic!("{line}"));
        if name == "statx" {
            let path = bytes(argument(1))?;
            return String::from_utf8(path)
                .ok()?
                .strip_prefix(MARKS)?
                .strip_prefix('/')
                .map(|mark| Operation::Mark(mark.to_owned()));
        }
        if result.starts_with("-1") || result.starts_with('?') {
            return None;
        }
        let count = || result.split(['<', ' ']).next().unwrap().parse::<usize>().unwrap_or_else(|_| panic!("{line}"));
        let named = |at: usize| self.below(&bytes(argument(at))?);
        let first = usize::from(is_at);
        if is_at && !argument(0).starts_with("AT_FDCWD") {
            assert!(self.opened(argument(0)).is_none(), "relative to a folder: {line}");
            return None;
        }
        match name {
            "open" | "openat" | "creat" => {
                let path = named(first)?;
                let flags = if name == "creat" { "O_CREAT|O_TRUNC" } else { argument(first + 1) };
                let next = if flags.contains("O_APPEND") { Next::End } else { Next::At(0) };
                self.descriptors.insert((thread, count().to_string()), next);
                let is_emptied = flags.contains("O_TRUNC");
                (flags.contains("O_CREAT") || is_emptied).then_some(Operation::Open { path, is_emptied })
            }
            "mkdir" | "mkdirat" => named(first).map(Operation::MakeFolder),
            "rmdir" | "unlink" | "unlinkat" => named(first).map(Operation::Remove),
            "rename" | "renameat" | "renameat2" | "link" | "linkat" => {
                let second = if is_at { 3 } else { 1 };
                let (from, to) = (named(first), named(second));
                assert_eq!(from.is_some(), to.is_some(), "from elsewhere: {line}");
                let (from, to) = (from?, to?);
                Some(if name.starts_with("rename") {
                    Operation::Rename { from, to }
                } else {
                    Operation::Link { from, to }
                })
            }
            "fsync" | "fdatasync" => self.opened(argument(0)).map(Operation::Sync),
            "ftruncate" => {
                let length = argument(1).parse().unwrap();
                self.opened(argument(0)).map(|path| Operation::Resize { path, length })
            }
            "lseek" | "read" | "write" => {
                let path = self.opened(argument(0))?;
                let descriptor = argument(0).split('<').next().unwrap().to_owned();
                let next = self
                    .descriptors
                    .get_mut(&(*thread, descriptor))
                    .unwrap_or_else(|| panic!("opened by whom? {line}"));
                let at = match next {
                    Next::At(at) if name == "lseek" => {
                        *at = count();
                        return None;
                    }
                    Next::At(at) => {
                        let before = *at;
                        *at += count();
                        Some(before)
                    }
                    Next::End => None,
                };
                let mut bytes = if name == "write" { bytes(argument(1))? } else { return None };
                bytes.truncate(count());
                Some(Operation::Write { path, at, bytes })
            }
            _ => {
                let text = format!("{arguments:?}");
                let is_ours = (0..arguments.len()).any(|at| self.opened(argument(at)).is_some() || named(at).is_some());
                assert!(!is_ours, "the recording knows no such call: {text}");
                None
            }
        }
    }

    /// Returns the path of a descriptor, relative to the folder.
    fn opened(&self, descriptor: &str) -> Option<PathBuf> {
        let (_, path) = descriptor.split_once('<')?;
        // A removed file is ignored.
        if path.ends_with("(deleted)") {
            return None;
        }
        self.below(&unescaped(path.strip_suffix('>')?)?)
    }

    fn below(&self, path: &[u8]) -> Option<PathBuf> {
        let path = Path::new(std::str::from_utf8(path).ok()?);
        path.strip_prefix(&self.folder).ok().map(Path::to_owned)
    }
}

fn bytes(quoted: &str) -> Option<Vec<u8>> {
    unescaped(quoted.strip_prefix('"')?.strip_suffix('"')?)
}

fn unescaped(text: &str) -> Option<Vec<u8>> {
    if !text.starts_with("\\x") {
        return Some(text.as_bytes().to_vec());
    }
    text.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).ok()).collect()
}
