//! Formats values from a file for messages: in quotes, on one line, safe for a terminal, and with a
//! limited length.

use std::fmt;

use crate::rules::keyword::first_few;

/// Maximum length of a quoted value in a message, in characters.
const SHOWN: usize = 60;

/// Displays a value in double quotes. Non-printing characters are escaped. Long values are cut, and
/// then end with `…`.
pub(super) struct Quoted<'a>(pub(super) &'a [u8]);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // A character has at most four bytes, so `head` contains all characters that are shown.
        let head = &self.0[..self.0.len().min(4 * (SHOWN + 1))];
        f.write_str("\"")?;
        for (shown, piece) in pieces(head).enumerate() {
            match piece {
                _ if shown == SHOWN => return f.write_str("…\""),
                Ok(quote @ ('"' | '\\')) => write!(f, "\\{quote}")?,
                piece => write_piece(f, piece)?,
            }
        }
        f.write_str("\"")
    }
}

/// Returns a value without the quotes that spreadsheets and word processors sometimes add. `None`
/// if there are no quotes.
pub(super) fn unquoted(value: &[u8]) -> Option<&[u8]> {
    const QUOTES: [(&str, &str); 4] = [("\"", "\""), ("'", "'"), ("\u{201c}", "\u{201d}"), ("\u{2018}", "\u{2019}")];
    let inner = |(open, close): &(&str, &str)| value.strip_prefix(open.as_bytes())?.strip_suffix(close.as_bytes());
    QUOTES.iter().find_map(inner).filter(|inner| !inner.is_empty())
}

pub(super) fn quoted_list<'a>(values: impl ExactSizeIterator<Item = &'a [u8]>) -> String {
    first_few(values.map(Quoted), 3)
}

/// Splits text into its characters. Bytes that are not valid UTF-8 are returned as single bytes.
pub(super) fn pieces(text: &[u8]) -> impl Iterator<Item = Result<char, u8>> {
    text.utf8_chunks().flat_map(|chunk| chunk.valid().chars().map(Ok).chain(chunk.invalid().iter().copied().map(Err)))
}

pub(super) fn write_piece(f: &mut fmt::Formatter<'_>, piece: Result<char, u8>) -> fmt::Result {
    match piece {
        Ok(char @ ('"' | '\'' | '\\')) => write!(f, "{char}"),
        // Unicode classifies these characters as printable, but they are invisible.
        Ok(char @ ('\u{115f}' | '\u{1160}' | '\u{2800}' | '\u{3164}' | '\u{ffa0}')) => {
            write!(f, "{}", char.escape_unicode())
        }
        Ok(char) => write!(f, "{}", char.escape_debug()),
        Err(byte) => write!(f, "\\x{byte:02x}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_and_unprintable_characters_are_escaped() {
        for (value, want) in [
            (&b"GPT Bot"[..], "\"GPT Bot\""),
            (b"", "\"\""),
            (b"a\"b\\", "\"a\\\"b\\\\\""),
            (b"it's", "\"it's\""),
            (b"\x1b[31m\0", "\"\\u{1b}[31m\\0\""),
            (b"\xff/\xc3", "\"\\xff/\\xc3\""),
            ("caf\u{e9}\u{202e}\u{3164}".as_bytes(), "\"caf\u{e9}\\u{202e}\\u{3164}\""),
        ] {
            assert_eq!(Quoted(value).to_string(), want);
        }
    }

    #[test]
    fn a_long_value_is_cut_to_60_characters() {
        assert_eq!(Quoted(&[b'a'; 60]).to_string(), format!("\"{}\"", "a".repeat(60)));
        assert_eq!(Quoted(&[b'a'; 61]).to_string(), format!("\"{}…\"", "a".repeat(60)));
        assert_eq!(Quoted(&[0xff; 16_000]).to_string(), format!("\"{}…\"", "\\xff".repeat(60)));
        let wide = "\u{1f916}".repeat(70);
        assert_eq!(Quoted(wide.as_bytes()).to_string(), format!("\"{}…\"", "\u{1f916}".repeat(60)));
    }
}
