//! Reads inputs, such as the files on the command line, up to a maximum size. Also converts byte
//! offsets to lines and columns.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

use tower_robots::live::LiveRobots;

use crate::files;
use crate::render::printable_path;

#[derive(Clone, Debug)]
pub(crate) enum InputSource {
    Stdin,
    File(PathBuf),
    /// A file that was found by listing a folder. The file is read only if it is a regular file.
    Found(PathBuf),
}

impl InputSource {
    /// Returns the source of a path; `-` is standard input.
    pub(crate) fn of(path: &Path) -> Self {
        if path == Path::new("-") { Self::Stdin } else { Self::File(path.to_owned()) }
    }

    /// Returns the name of the source for messages. The caller must escape the name, because it may
    /// contain any character.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::Stdin => "<stdin>".to_owned(),
            Self::File(path) | Self::Found(path) => path.to_string_lossy().into_owned(),
        }
    }

    pub(crate) fn path(&self) -> Option<&Path> {
        match self {
            Self::Stdin => None,
            Self::File(path) | Self::Found(path) => Some(path),
        }
    }

    pub(crate) fn read(&self) -> io::Result<Vec<u8>> {
        match self {
            Self::Stdin => read_bounded(io::stdin().lock(), LiveRobots::MAX_FILE),
            Self::File(path) => read_bounded(open(path)?, LiveRobots::MAX_FILE),
            Self::Found(path) => read_bounded(files::open(path)?.0, LiveRobots::MAX_FILE),
        }
    }
}

/// Opens a file given on the command line. A pipe that a shell has created for `<(…)` is accepted,
/// because it already has a writer.
///
/// # Errors
///
/// Returns the error of the system, or [`InvalidInput`](io::ErrorKind::InvalidInput) if the file is
/// a FIFO. Opening a FIFO would block until it has a writer, perhaps forever.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    // The shell's pipe is `/dev/fd/63`. On Linux, this file is a link to `pipe:[4711]`, which is
    // not a path.
    let has_place = || path.canonicalize().is_ok_and(|place| !place.starts_with("/dev/fd"));
    if std::fs::metadata(path)?.file_type().is_fifo() && has_place() {
        let fault = "a FIFO blocks this command until another program writes to it: use a regular file, or send the \
                     text to standard input with \"-\"";
        return Err(io::Error::new(io::ErrorKind::InvalidInput, fault));
    }
    File::open(path)
}

/// Reads a whole file that was given on the command line. Rejects FIFOs, like [`open`].
pub(crate) fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Checks that at most one of the paths is standard input. A second read would find no data.
///
/// # Errors
///
/// Returns an error if more than one path is `-`.
pub(crate) fn stdin_once<'p>(paths: impl IntoIterator<Item = &'p PathBuf>) -> io::Result<()> {
    match paths.into_iter().filter(|path| *path == Path::new("-")).count() {
        0 | 1 => Ok(()),
        _ => Err(io::Error::other("standard input can be read only once: write \"-\" for one file only")),
    }
}

fn read_bounded(input: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    input.take(most + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most {
        let fault = match most {
            LiveRobots::MAX_FILE => "the input is larger than 8 MiB, so it cannot be a robots.txt".to_owned(),
            _ => format!("the input is larger than {limit} KiB, the limit for this kind of file", limit = most >> 10),
        };
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, fault));
    }
    Ok(bytes)
}

pub(crate) fn named(path: &Path, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", printable_path(path)))
}

/// Reads a file, or standard input for `-`. Errors contain the path of the file.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let source = InputSource::of(path);
    source.read().map_err(|error| named(Path::new(&source.name()), &error))
}

/// A function that reads a file: [`read`] for paths on the command line, [`read_configured`] for
/// paths in a config.
pub(crate) type ReadInput = fn(&Path) -> io::Result<Vec<u8>>;

/// Reads a file whose path is in a config. Rejects every FIFO, because it may have no writer. (The
/// pipe of a shell's `<(…)` cannot be in a config.) Errors contain the path of the file.
pub(crate) fn read_configured(path: &Path) -> io::Result<Vec<u8>> {
    read_found(path, LiveRobots::MAX_FILE)
}

/// Reads a regular file of at most `most` bytes. Errors contain the path of the file.
pub(crate) fn read_found(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let bytes = files::open(path).and_then(|(file, _)| read_bounded(file, most));
    bytes.map_err(|error| named(path, &error))
}

/// A reader that returns at most a given number of bytes. If the input is longer, reading fails
/// with an error that contains [`TooManyBytes`], because truncated input must not be treated as
/// complete input.
#[derive(Debug)]
pub(crate) struct AtMost<R> {
    bytes: R,
    left: usize,
}

#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the input is larger than the limit")]
pub(crate) struct TooManyBytes;

impl<R> AtMost<R> {
    pub(crate) const fn new(bytes: R, most: usize) -> Self {
        Self { bytes, left: most }
    }
}

impl<R: Read> Read for AtMost<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len().min(self.left.max(1));
        let read = self.bytes.read(&mut buffer[..room])?;
        self.left = self.left.checked_sub(read).ok_or_else(|| io::Error::other(TooManyBytes))?;
        Ok(read)
    }
}

impl TooManyBytes {
    pub(crate) fn is_cause_of(error: &io::Error) -> bool {
        error.get_ref().is_some_and(|cause| cause.is::<Self>())
    }
}

/// A wrapper around a decoder. Converts the errors of the decoder (invalid or incomplete data) with
/// the function `named`. Errors of the underlying reader are returned unchanged.
#[derive(Debug)]
pub(crate) struct DecoderReader<R, F> {
    pub(crate) bytes: R,
    pub(crate) named: F,
}

impl<R: Read, E: std::error::Error + Send + Sync + 'static, F: Fn(io::Error) -> E> Read for DecoderReader<R, F> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.bytes.read(buffer).map_err(|error| match error.kind() {
            io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                io::Error::other((self.named)(error))
            }
            _ => error,
        })
    }
}

/// Returns the line and column of a byte position in `text`, like [`Places::at`].
pub(crate) fn place(text: &str, at: usize) -> (usize, usize) {
    Places::of(text).at(at)
}

/// Minimum distance between two positions in `Places::known`, in bytes.
const STRIDE: usize = 1 << 10;

/// Finds the lines and columns of many byte positions in one string. Each look-up reads only a
/// small part of the string.
#[derive(Debug)]
pub(crate) struct Places<'t> {
    text: &'t str,
    /// Some byte positions with their line and column, in ascending order.
    known: Vec<(usize, (usize, usize))>,
}

impl<'t> Places<'t> {
    pub(crate) fn of(text: &'t str) -> Self {
        let mut known = vec![(0, (1, 1))];
        let mut place = (1, 1);
        for (at, char) in text.char_indices() {
            if at >= known.len() * STRIDE {
                known.push((at, place));
            }
            place = position_after(place, char);
        }
        Self { text, known }
    }

    /// Returns the line and column of a byte position. Line and column are counted from 1. The
    /// column is counted in characters.
    pub(crate) fn at(&self, byte: usize) -> (usize, usize) {
        let before = self.known.partition_point(|(at, _)| *at <= byte).saturating_sub(1);
        let (start, place) = self.known[before];
        let chars = self.text[start..].char_indices().take_while(|(at, _)| start + at < byte);
        chars.fold(place, |place, (_, char)| position_after(place, char))
    }
}

const fn position_after((line, column): (usize, usize), char: char) -> (usize, usize) {
    if char == '\n' { (line + 1, 1) } else { (line, column + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_consists_of_a_line_and_a_column_in_characters() {
        let text = ["a\n\u{e9}b\n", &"x\u{1f916}\n".repeat(2_000), &"\u{e9}".repeat(3_000), "\nlast"].concat();
        let places = Places::of(&text);
        for (at, _) in text.char_indices().step_by(97).chain([(0, 'a'), (text.len(), ' '), (text.len() + 9, ' ')]) {
            let before = text.get(..at).unwrap_or(&text);
            let column = before.rsplit('\n').next().unwrap_or("").chars().count() + 1;
            assert_eq!(places.at(at), (before.matches('\n').count() + 1, column), "{at}");
        }
    }
}
