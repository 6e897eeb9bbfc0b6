//! Converts arbitrary bytes to text that is safe to print or to type into a shell. All writes to
//! standard output and standard error go through this module, so that no output can control a
//! terminal.
//!
//! On a terminal, every non-printing character is escaped. In a pipe or file, bytes are unchanged,
//! so that `patch` can read a diff. In JSON output, non-printing characters always become JSON
//! escapes.

use std::fmt::{self, Display};
use std::io::{self, BufWriter, IsTerminal, StderrLock, StdoutLock, Write};
use std::ops::Range;
use std::path::Path;

use askama::filters::Escaper;
use serde::Serialize;

/// Returns bytes or a string as printable text on one line.
pub(crate) fn printable(bytes: impl AsRef<[u8]>) -> String {
    printable_with_span(bytes.as_ref(), 0..0).0
}

/// An askama escaper for text templates, which escapes line ends and other non-printing characters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Printable;

impl Escaper for Printable {
    fn write_escaped_str<W: fmt::Write>(&self, mut report: W, text: &str) -> fmt::Result {
        report.write_str(&printable(text))
    }
}

pub(crate) fn printable_path(path: impl AsRef<Path>) -> String {
    printable(path.as_ref().as_os_str().as_encoded_bytes())
}

/// Returns the first 16 hex digits of a version's hash. Messages contain hashes in this form, and
/// every command accepts this form.
pub(crate) fn short_hash(hash: &str) -> &str {
    let digits = hash.strip_prefix("sha256:").unwrap_or(hash);
    digits.get(..16).unwrap_or(digits)
}

pub(crate) fn plural(number: usize, what: &str) -> String {
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}

/// Formats the number of new rules during a grace period, as in
/// `2 rules are enforced from 2026-11-30T08:00:00Z at the latest`.
pub(crate) fn grace_summary(rules: usize, end: &str) -> String {
    let what = match rules {
        // If there are no new rules, the new restrictions are crawl delays.
        0 => "new restrictions are".to_owned(),
        1 => "1 rule is".to_owned(),
        rules => format!("{rules} rules are"),
    };
    format!("{what} enforced from {end} at the latest")
}

/// Returns the first `most` characters of `text`, with an ellipsis if there are more.
pub(crate) fn truncated(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

pub(super) fn is_printable(char: char) -> bool {
    matches!(char, '"' | '\'' | '\\') || (char.escape_debug().len() == 1 && !looks_blank(char))
}

/// Reports whether `text` is displayed as it is: no character is escaped or invisible, and none
/// combines with the preceding text.
pub(crate) fn is_displayed_unchanged(text: &str) -> bool {
    let unquoted = text.replace(['"', '\'', '\\'], "_");
    unquoted.escape_debug().eq(unquoted.chars()) && !text.contains(looks_blank)
}

/// Reports whether a character looks blank although Unicode classifies it as printable: Hangul
/// fillers and the Braille blank.
const fn looks_blank(char: char) -> bool {
    matches!(char, '\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')
}

/// Returns bytes as printable text on one line, with the position of a byte range in that text.
///
/// A tab becomes four spaces. Any other non-printing character and any byte that is not UTF-8 is
/// escaped. A range that begins or ends inside a character is extended to the whole character.
pub(super) fn printable_with_span(bytes: &[u8], span: Range<usize>) -> (String, Range<usize>) {
    let mut text = String::with_capacity(bytes.len());
    let (mut start, mut end) = (None, 0);
    let mut at = 0;
    let mut push = |piece: &str, bytes: usize| {
        if at + bytes > span.start && start.is_none() {
            start = Some(text.len());
        }
        text.push_str(piece);
        if at < span.end {
            end = text.len();
        }
        at += bytes;
    };
    for chunk in bytes.utf8_chunks() {
        for char in chunk.valid().chars() {
            let length = char.len_utf8();
            match char {
                '\t' => push("    ", length),
                _ if is_printable(char) => push(char.encode_utf8(&mut [0; 4]), length),
                _ if looks_blank(char) => push(&char.escape_unicode().to_string(), length),
                _ => push(&char.escape_debug().to_string(), length),
            }
        }
        for byte in chunk.invalid() {
            push(&format!("\\x{byte:02x}"), 1);
        }
    }
    let start = start.unwrap_or(text.len());
    (text, start..end.max(start))
}

/// The bytes at the beginning and end of a style sequence (ECMA-48, SGR).
const STYLE: (&[u8], u8) = (b"\x1b[", b'm');

/// Maximum length of the parameters of a style sequence, in bytes.
const MAX_STYLE_LENGTH: usize = 24;

/// Returns standard output, buffered. Text is written when the buffer is full, flushed or dropped.
pub(crate) fn stdout() -> BufWriter<PrintableWriter<StdoutLock<'static>>> {
    BufWriter::new(PrintableWriter::to(io::stdout().lock(), EscapeMode::Terminal))
}

/// Returns standard output for snippets. On a terminal, style sequences are not escaped, so quoted
/// text must be passed through [`printable`] first.
pub(crate) fn styled_stdout() -> BufWriter<PrintableWriter<StdoutLock<'static>>> {
    BufWriter::new(PrintableWriter::to(io::stdout().lock(), EscapeMode::Styled))
}

pub(crate) fn stderr() -> PrintableWriter<StderrLock<'static>> {
    PrintableWriter::to(io::stderr().lock(), EscapeMode::Terminal)
}

pub(crate) fn complain(reason: &dyn Display) {
    // Errors are ignored: if standard error is closed, the exit status still reports the failure.
    let _ = writeln!(stderr(), "robotsd: {reason}");
}

/// Like [`styled_stdout`], but returns standard error.
pub(super) fn styled_stderr() -> PrintableWriter<StderrLock<'static>> {
    PrintableWriter::to(io::stderr().lock(), EscapeMode::Styled)
}

/// Writes a value as one line of JSON, with non-printing characters escaped.
pub(crate) fn write_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer(PrintableWriter { form: EscapeMode::Json, out: &mut *out }, value)?;
    out.write_all(b"\n")
}

/// Returns a value as JSON like [`write_json`], but without the line feed. Twice as fast as
/// `write_json` if nothing has to be escaped.
pub(crate) fn json_text(value: &(impl Serialize + ?Sized)) -> String {
    let json = serde_json::to_string(value).unwrap_or_default();
    if json.bytes().all(|byte| matches!(byte, b' '..=b'~')) { json } else { for_json(json.as_bytes()) }
}

/// Writes a value as JSON for people: indented, and on several lines. Escapes the same characters
/// as [`write_json`].
pub(crate) fn write_pretty_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(PrintableWriter { form: EscapeMode::Json, out: &mut *out }, value)?;
    out.write_all(b"\n")
}

/// A writer that escapes non-printing characters. A character that is split over two writes is
/// treated as invalid UTF-8.
#[derive(Debug)]
pub(crate) struct PrintableWriter<W> {
    form: EscapeMode,
    out: W,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EscapeMode {
    Raw,
    Terminal,
    /// A terminal. The style sequences in snippets are not escaped.
    Styled,
    Json,
}

impl<W: IsTerminal> PrintableWriter<W> {
    fn to(out: W, terminal: EscapeMode) -> Self {
        Self { form: if out.is_terminal() { terminal } else { EscapeMode::Raw }, out }
    }
}

impl<W: Write> Write for PrintableWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_printable = |byte: &u8| matches!(byte, b'\n' | b' '..=b'~');
        let text = match self.form {
            EscapeMode::Raw => return self.out.write(bytes),
            _ if bytes.iter().all(is_printable) => return self.out.write(bytes),
            EscapeMode::Terminal => for_terminal(bytes, |_| None),
            EscapeMode::Styled => for_terminal(bytes, style),
            EscapeMode::Json => for_json(bytes),
        };
        self.out.write_all(text.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Escapes bytes for a terminal, except line feeds, tabs and the sequences that `style` recognizes.
fn for_terminal(mut bytes: &[u8], style: fn(&[u8]) -> Option<usize>) -> String {
    let mut text = String::with_capacity(bytes.len());
    while !bytes.is_empty() {
        let kept = style(bytes).or_else(|| matches!(bytes[0], b'\n' | b'\t').then_some(1)).unwrap_or(0);
        text.push_str(&String::from_utf8_lossy(&bytes[..kept]));
        let rest = &bytes[kept..];
        let plain = memchr::memchr3(b'\n', b'\t', 0x1b, rest).unwrap_or(rest.len());
        // An ESC that does not begin a style sequence is escaped like any other non-printing
        // character.
        let plain = if kept == 0 { plain.max(1) } else { plain };
        text.push_str(&printable(&rest[..plain]));
        bytes = &rest[plain..];
    }
    text
}

/// Returns the length of the style sequence at the beginning of `bytes`.
fn style(bytes: &[u8]) -> Option<usize> {
    let rest = bytes.strip_prefix(STYLE.0)?;
    let end = rest.iter().take(MAX_STYLE_LENGTH).position(|byte| !byte.is_ascii_digit() && *byte != b';')?;
    (rest[end] == STYLE.1).then_some(STYLE.0.len() + end + 1)
}

/// Escapes non-printing characters of serialized JSON. Non-printing characters occur only in
/// strings, because JSON is ASCII outside strings. The serializer has already escaped what JSON
/// requires.
fn for_json(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for char in String::from_utf8_lossy(bytes).chars() {
        if is_printable(char) || char == '\n' {
            text.push(char);
        } else {
            let units = char.encode_utf16(&mut [0; 2]).iter().map(|unit| format!("\\u{unit:04x}")).collect::<String>();
            text.push_str(&units);
        }
    }
    text
}

pub(crate) fn shell_line(words: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    words.into_iter().map(|word| shell_word(word.as_ref())).collect::<Vec<_>>().join(" ")
}

/// Quotes a word for a POSIX shell. For words with non-printing characters, uses the syntax of bash
/// and zsh.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    if printable(word) == *word {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let bytes = word.bytes().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", bytes.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_control_a_terminal_are_escaped() {
        assert_eq!(printable(b"a\x1b[31m\0\r\n\x7f"), "a\\u{1b}[31m\\0\\r\\n\\u{7f}");
        assert_eq!(printable("\u{9b}31m \u{202e}"), "\\u{9b}31m \\u{202e}");
        assert_eq!(printable(b"\x9b\xff\"'\\"), "\\x9b\\xff\"'\\");
        assert_eq!(printable("a\u{3164}b\u{2800}"), "a\\u{3164}b\\u{2800}");
        assert_eq!(printable("Gr\u{f6}\u{df}e \u{1f916}\t."), "Gr\u{f6}\u{df}e \u{1f916}    .");
    }

    #[test]
    fn a_span_still_covers_its_bytes_after_escaping() {
        let spanned = |bytes: &[u8], span: Range<usize>| {
            let (text, span) = printable_with_span(bytes, span);
            text[span].to_owned()
        };
        assert_eq!(spanned(b"a\tbc", 2..3), "b");
        assert_eq!(spanned(b"\x1bbc", 0..2), "\\u{1b}b");
        assert_eq!(spanned("x\u{f6}y".as_bytes(), 2..3), "\u{f6}");
        assert_eq!(spanned(b"abc", 1..1), "");
        assert_eq!(printable_with_span(b"abc", 3..3).1, 3..3);
        assert_eq!(printable_with_span(b"\0b", 1..1).1, 2..2);
        assert_eq!(printable_with_span(b"", 0..0).1, 0..0);
    }

    fn written(form: EscapeMode, bytes: &[u8]) -> String {
        let mut out = Vec::new();
        PrintableWriter { form, out: &mut out }.write_all(bytes).expect("a vector takes all");
        String::from_utf8_lossy(&out).into_owned()
    }

    #[test]
    fn all_terminal_sequences_except_styles_are_escaped() {
        // Style sequences can hide text, so they are kept only in snippets.
        assert_eq!(written(EscapeMode::Terminal, b"\x1b[8mhidden"), "\\u{1b}[8mhidden");
        for (bytes, want) in [
            ("a\n\tb \u{e9}\n", "a\n\tb \u{e9}\n"),
            ("\x1b[1;91mred\x1b[0m", "\x1b[1;91mred\x1b[0m"),
            ("\x1b[2J\x1b]0;x\x07\x1b", "\\u{1b}[2J\\u{1b}]0;x\\u{7}\\u{1b}"),
            ("\x1b[1;2H\x1b[", "\\u{1b}[1;2H\\u{1b}["),
            ("\u{202e}\u{9b}1m\u{3164}\u{2800}\r\n", "\\u{202e}\\u{9b}1m\\u{3164}\\u{2800}\\r\n"),
        ] {
            assert_eq!(written(EscapeMode::Styled, bytes.as_bytes()), want);
            assert_eq!(written(EscapeMode::Raw, bytes.as_bytes()), bytes);
        }
        assert_eq!(written(EscapeMode::Terminal, b"a\xff\n"), "a\\xff\n");
    }

    #[test]
    fn json_contains_only_printable_characters_and_keeps_its_meaning() {
        for text in ["a\u{1b}\"\\\n", "\u{7f}\u{9b}\u{202e}\u{3164}\u{2800}\u{e0041}", "Gr\u{f6}\u{df}e \u{1f916}"] {
            let mut out = Vec::new();
            write_json(&mut out, &text).expect("a vector takes all");
            let json = String::from_utf8(out).expect("text");
            let json = json.strip_suffix('\n').expect("a line");
            assert!(json.chars().all(is_printable), "{json}");
            assert_eq!(serde_json::from_str::<String>(json).expect("JSON"), text);
        }
    }

    #[test]
    fn shell_words_are_quoted_if_a_shell_would_change_them() {
        for (word, want) in [
            ("shop.example:8080", "shop.example:8080"),
            ("", "''"),
            ("a site", "'a site'"),
            ("$(reboot)", "'$(reboot)'"),
            ("it's", r"'it'\''s'"),
            ("m\u{fc}n", "'m\u{fc}n'"),
            ("a\x1b'\n", r"$'a\x1b\'\x0a'"),
        ] {
            assert_eq!(shell_word(word), want);
        }
    }
}
