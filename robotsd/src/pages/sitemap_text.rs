//! A reader for the text of a sitemap. The reader decompresses the text, makes it valid UTF-8, and
//! tracks the position. Only the current part of the text is kept in memory.

use std::fmt;
use std::io::{self, BufRead, Cursor, ErrorKind, Read};

use flate2::read::MultiGzDecoder;

use crate::input::{AtMost, DecoderReader, TooManyBytes};
use crate::render::{printable, truncated};

/// Size of the read buffer, in bytes.
const BUFFER: usize = 32 << 10;

/// Maximum size of one tag, comment, text or CDATA section, in bytes. The size is limited, because
/// the parser stores each part in memory. The longest legitimate parts are articles in feeds.
pub(super) const MAX_PART_BYTES: usize = 2 << 20;

const REPLACEMENT: &[u8] = "\u{fffd}".as_bytes();

/// Line and column, in characters, both from 1.
pub(super) type LineColumn = (usize, usize);

pub(super) struct SitemapText<'a> {
    bytes: Box<dyn Read + 'a>,
    /// Bytes that were read but not decoded yet, because they may be an incomplete character.
    raw: Vec<u8>,
    is_at_end: bool,
    /// Error that ended reading. The error is returned after the text before the error has been
    /// consumed.
    fault: Option<io::Error>,
    text: Vec<u8>,
    /// Number of bytes of `text` that have been consumed.
    consumed: usize,
    pub(super) place: LineColumn,
    /// Position of the beginning of the current tag, comment, text or CDATA section, and the number
    /// of its bytes that have been consumed.
    pub(super) part: LineColumn,
    part_bytes: usize,
}

impl<'a> SitemapText<'a> {
    /// Opens a document, and decompresses it if needed. Replaces invalid UTF-8, which titles may
    /// contain.
    pub(super) fn of(bytes: impl Read + 'a) -> Result<Self, SitemapFault> {
        let (head, bytes) = beginning(AtMost::new(bytes, MAX_BYTES), 2)?;
        let bytes: Box<dyn Read + 'a> = match head[..] {
            [0x1F, 0x8B] => {
                let bytes = MultiGzDecoder::new(Cursor::new(head).chain(bytes));
                let named =
                    |error| SitemapFault::of_document(&format_args!("the sitemap cannot be decompressed: {error}"));
                Box::new(AtMost::new(DecoderReader { bytes, named }, MAX_BYTES))
            }
            _ => Box::new(Cursor::new(head).chain(bytes)),
        };
        let (mut raw, bytes) = beginning(bytes, 3)?;
        match raw[..] {
            [0xEF, 0xBB, 0xBF] => raw.clear(),
            // UTF-16 is recognised even without a byte order mark, because UTF-8 text contains no
            // zero byte.
            [0xFE, 0xFF, ..] | [0xFF, 0xFE, ..] | [0, ..] | [_, 0, ..] => {
                return Err(SitemapFault::of_document(&"the sitemap is UTF-16: save it as UTF-8"));
            }
            _ => {}
        }
        let bytes = Box::new(Cursor::new(std::mem::take(&mut raw)).chain(bytes));
        let (is_at_end, fault, text, consumed, part_bytes) = Default::default();
        Ok(Self { bytes, raw, is_at_end, fault, text, consumed, place: (1, 1), part: (1, 1), part_bytes })
    }

    /// Begins a part (a tag, comment, text or CDATA section). Reading fails if the part is longer
    /// than [`MAX_PART_BYTES`].
    pub(super) const fn begin_part(&mut self) {
        (self.part, self.part_bytes) = (self.place, 0);
    }

    /// Skips white space. Returns the next byte without consuming it; `None` at the end of the
    /// text.
    pub(super) fn skip_blank(&mut self) -> Result<Option<u8>, SitemapFault> {
        loop {
            let text = self.fill_buf()?;
            let blank = text.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
            let next = text.get(blank).copied();
            let is_over = text.is_empty();
            self.consume(blank);
            self.begin_part();
            if next.is_some() || is_over {
                return Ok(next);
            }
        }
    }

    /// Reads a line, including its line end. Returns `None` at the end of the text.
    pub(super) fn line<'b>(&mut self, line: &'b mut Vec<u8>) -> Result<Option<&'b [u8]>, SitemapFault> {
        self.begin_part();
        line.clear();
        self.read_until(b'\n', line)?;
        Ok((!line.is_empty()).then_some(line))
    }

    /// Reads more bytes, and decodes all complete characters. The buffer is always filled, because
    /// quick-xml parses a document type differently at the end of a buffer. With partly filled
    /// buffers, the result would depend on the size of network packets.
    fn refill(&mut self) -> io::Result<()> {
        self.text.clear();
        self.consumed = 0;
        let mut filled = self.raw.len();
        self.raw.resize(BUFFER, 0);
        while filled < BUFFER && !self.is_at_end && self.fault.is_none() {
            match self.bytes.read(&mut self.raw[filled..]) {
                Ok(0) => self.is_at_end = true,
                Ok(read) => filled += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => self.fault = Some(error),
            }
        }
        self.raw.truncate(filled);
        let rest = decode(&self.raw, self.is_at_end, &mut self.text);
        self.raw.drain(..filled - rest);
        if self.text.is_empty() { self.fault.take().map_or(Ok(()), Err) } else { Ok(()) }
    }
}

impl BufRead for SitemapText<'_> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.part_bytes > MAX_PART_BYTES {
            let message =
                format_args!("a tag, comment or text is longer than {limit} MiB", limit = MAX_PART_BYTES >> 20);
            return Err(io::Error::other(SitemapFault::at(self.part, &message)));
        }
        if self.consumed == self.text.len() {
            self.refill()?;
        }
        Ok(&self.text[self.consumed..])
    }

    fn consume(&mut self, amount: usize) {
        let consumed = &self.text[self.consumed..][..amount];
        if let Some(end) = memchr::memrchr(b'\n', consumed) {
            self.place = (self.place.0 + memchr::memchr_iter(b'\n', consumed).count(), 1);
            self.place.1 += characters(&consumed[end + 1..]);
        } else {
            self.place.1 += characters(consumed);
        }
        self.consumed += amount;
        self.part_bytes += amount;
    }
}

impl Read for SitemapText<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(buffer)?;
        self.consume(read);
        Ok(read)
    }
}

/// Returns the first `length` bytes, or fewer at the end of the input, and a reader of the
/// remaining input.
fn beginning<R: Read>(mut bytes: R, length: usize) -> Result<(Vec<u8>, R), SitemapFault> {
    let mut head = Vec::new();
    bytes.by_ref().take(length as u64).read_to_end(&mut head)?;
    Ok((head, bytes))
}

/// Appends bytes as text, like [`String::from_utf8_lossy`]. Returns the number of remaining bytes,
/// which may be the beginning of a character.
fn decode(bytes: &[u8], is_end: bool, text: &mut Vec<u8>) -> usize {
    let mut chunks = bytes.utf8_chunks().peekable();
    while let Some(chunk) = chunks.next() {
        text.extend_from_slice(chunk.valid().as_bytes());
        let invalid = chunk.invalid();
        let is_incomplete = || std::str::from_utf8(invalid).is_err_and(|error| error.error_len().is_none());
        if chunks.peek().is_none() && !is_end && is_incomplete() {
            return invalid.len();
        }
        if !invalid.is_empty() {
            text.extend_from_slice(REPLACEMENT);
        }
    }
    0
}

fn characters(text: &[u8]) -> usize {
    text.iter().filter(|byte| **byte & 0xC0 != 0x80).count()
}

/// Maximum size of a decompressed sitemap, in bytes (the limit of the protocol).
pub(crate) const MAX_BYTES: usize = 50 << 20;

/// Maximum length of a message, in characters. Messages of the XML parser contain names of
/// elements, which can be very long.
const MAX_SHOWN_LENGTH: usize = 160;

/// An error in a sitemap. `Display` does not include the name of the sitemap: `line 2, column 14:
/// …`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum SitemapFault {
    #[error("the sitemap is larger than {limit} MiB", limit = MAX_BYTES >> 20)]
    TooLarge,
    /// The document is malformed, or is not a sitemap. `place` is `None` if the error concerns the
    /// whole document.
    #[error("{}{message}", .place.map(|(line, column)| format!("line {line}, column {column}: ")).unwrap_or_default())]
    Broken { place: Option<LineColumn>, message: String },
}

impl SitemapFault {
    pub(super) fn of_document(message: &dyn fmt::Display) -> Self {
        Self::Broken { place: None, message: shown(message) }
    }

    pub(super) fn at(place: LineColumn, message: &dyn fmt::Display) -> Self {
        Self::Broken { place: Some(place), message: shown(message) }
    }

    /// Converts an error that occurred while reading: an exceeded limit, a syntax error, or an
    /// error of the source.
    pub(super) fn from_io_error(error: &io::Error) -> Self {
        match error.get_ref().and_then(|cause| cause.downcast_ref::<Self>()) {
            Some(fault) => fault.clone(),
            None if TooManyBytes::is_cause_of(error) => Self::TooLarge,
            None => Self::of_document(error),
        }
    }

    /// Formats the error with the name of its document: `sitemap.xml:2:14: …`.
    pub(super) fn in_document(&self, name: &dyn fmt::Display) -> String {
        match self {
            Self::Broken { place: Some((line, column)), message } => format!("{name}:{line}:{column}: {message}"),
            Self::Broken { .. } | Self::TooLarge => format!("{name}: {self}"),
        }
    }
}

impl From<io::Error> for SitemapFault {
    fn from(error: io::Error) -> Self {
        Self::from_io_error(&error)
    }
}

fn shown(message: &dyn fmt::Display) -> String {
    truncated(&printable(message.to_string()), MAX_SHOWN_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_message_with_foreign_content_is_short_and_safe_to_print() {
        let fault = SitemapFault::at((2, 3), &"</\u{1b}[31m>");
        assert_eq!(fault.in_document(&"s.xml"), "s.xml:2:3: </\\u{1b}[31m>");
        assert_eq!(fault.to_string(), "line 2, column 3: </\\u{1b}[31m>");
        let long = SitemapFault::of_document(&"\u{e9}".repeat(1 << 20)).in_document(&"s.xml");
        assert_eq!(long, format!("s.xml: {}…", "\u{e9}".repeat(MAX_SHOWN_LENGTH)));
    }
}
