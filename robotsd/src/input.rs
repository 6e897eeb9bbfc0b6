//! Reading the files of the command line, with a bound on their size, and finding line and column in them.

use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tower_robots::live::MAX_FILE;

use crate::render::printable;

/// Where a robots.txt is read from.
#[derive(Clone, Debug)]
pub(crate) enum InputSource {
    Stdin,
    File(PathBuf),
}

impl InputSource {
    /// `-` is standard input.
    pub(crate) fn of(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path.to_owned()) }
    }

    /// Its name in messages; it may hold any character.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stdin => read_bounded(io::stdin().lock()),
            Self::File(path) => read_bounded(File::open(path)?),
        }
    }
}

/// Refuses to read standard input twice: the second reading would find an empty file, which looks like an answer.
///
/// # Errors
///
/// If several of the paths are `-`.
pub(crate) fn stdin_once<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> io::Result<()> {
    match paths.into_iter().filter(|path| *path == Path::new("-")).count() {
        0 | 1 => Ok(()),
        _ => Err(io::Error::other("standard input can be read once only: name a file in place of all but one \"-\"")),
    }
}

fn read_bounded(input: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(MAX_FILE + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 8 MiB, so it cannot be a robots.txt"));
    }
    Ok(bytes)
}

/// Reads a file, or standard input for `-`; the error names it.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let source = InputSource::of(path);
    source
        .read()
        .map_err(|error| io::Error::new(error.kind(), format!("{}: {error}", printable(source.name().as_bytes()))))
}

/// Line and column of an octet of a text, in characters, both from 1.
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    let before = text.get(..at).unwrap_or(text);
    let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
    (before.matches('\n').count() + 1, column)
}
