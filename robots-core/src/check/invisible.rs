//! Finds characters that are not displayed, but change names, values or paths.

/// Removes invisible characters, and non-ASCII white space at both ends. Returns `None` if `text`
/// contains no such characters, or is not UTF-8.
pub(super) fn without_invisible(text: &[u8]) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let kept = text.trim();
    let mut seen = String::with_capacity(kept.len());
    let mut before = None;
    let mut chars = kept.chars().peekable();
    let is_letter = |char: Option<char>| char.is_some_and(|char| !char.is_ascii());
    while let Some(char) = chars.next() {
        let is_seen = match char {
            // U+200C and U+200D are necessary between letters in Persian, Hindi and other
            // languages, and U+200D joins emoji.
            '\u{200c}' | '\u{200d}' => is_letter(before) && is_letter(chars.peek().copied()),
            _ => !is_invisible(char),
        };
        if is_seen {
            seen.push(char);
            before = Some(char);
        }
    }
    let seen = seen.trim();
    (seen.len() < text.len()).then(|| seen.to_owned())
}

/// Reports whether a character has no width, or only controls how other characters are displayed.
const fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invisible_characters_are_removed_where_they_have_no_function() {
        for (text, want) in [
            ("/a\u{200b}", Some("/a")),
            ("\u{feff}/a\u{2060}b", Some("/ab")),
            ("\u{a0}/a\u{3000}", Some("/a")),
            ("/a\u{200d}", Some("/a")),
            ("/a\u{a0}b", None),
            ("/caf\u{e9}", None),
            // A Persian verb form, which is written with a zero-width non-joiner.
            ("/\u{645}\u{6cc}\u{200c}\u{634}", None),
            ("/a", None),
        ] {
            assert_eq!(without_invisible(text.as_bytes()).as_deref(), want, "{text:?}");
        }
        assert_eq!(without_invisible(b"/\xe2\x80\x8b\xff"), None);
    }
}
