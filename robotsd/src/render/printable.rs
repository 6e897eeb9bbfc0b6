//! Any octets as text that is safe to print.

use std::ops::Range;

/// Octets as printable text on one line.
pub(crate) fn printable(octets: &[u8]) -> String {
    printable_with_span(octets, 0..0).0
}

/// Octets as printable text on one line, and where a span of the octets stands in the text.
///
/// A tab becomes four blanks, any other character that does not print its escape, and so does an octet that is no
/// UTF-8. A span that begins or ends inside a character takes in the whole character.
pub(super) fn printable_with_span(octets: &[u8], span: Range<usize>) -> (String, Range<usize>) {
    let mut text = String::with_capacity(octets.len());
    let (mut start, mut end) = (None, 0);
    let mut at = 0;
    let mut push = |piece: &str, octets: usize| {
        if at + octets > span.start && start.is_none() {
            start = Some(text.len());
        }
        text.push_str(piece);
        if at < span.end {
            end = text.len();
        }
        at += octets;
    };
    for chunk in octets.utf8_chunks() {
        for char in chunk.valid().chars() {
            let length = char.len_utf8();
            match char {
                '\t' => push("    ", length),
                '"' | '\'' | '\\' => push(char.encode_utf8(&mut [0; 4]), length),
                _ => push(&char.escape_debug().to_string(), length),
            }
        }
        for octet in chunk.invalid() {
            push(&format!("\\x{octet:02x}"), 1);
        }
    }
    let start = start.unwrap_or(text.len());
    (text, start..end.max(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_commands_a_terminal_passes() {
        assert_eq!(printable(b"a\x1b[31m\0\r\n\x7f"), "a\\u{1b}[31m\\0\\r\\n\\u{7f}");
        assert_eq!(printable("\u{9b}31m \u{202e}".as_bytes()), "\\u{9b}31m \\u{202e}");
        assert_eq!(printable(b"\x9b\xff\"'\\"), "\\x9b\\xff\"'\\");
        assert_eq!(printable("Gr\u{f6}\u{df}e \u{1f916}\t.".as_bytes()), "Gr\u{f6}\u{df}e \u{1f916}    .");
    }

    #[test]
    fn a_span_follows_its_octets() {
        let spanned = |octets: &[u8], span: Range<usize>| {
            let (text, span) = printable_with_span(octets, span);
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
}
