//! Recognises text that needs no escaping.

/// Reports whether every byte is printable ASCII other than quote and backslash, so that `text`
/// needs no escaping in JSON or in a plain-text page. Checks eight bytes at a time without a branch
/// per byte, because log lines and pages contain many short strings.
pub fn is_plain_ascii(text: &[u8]) -> bool {
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let each = |byte| u64::from_ne_bytes([byte; 8]);
    // If all bytes of `word` are below 0x80, the high bit of each zero byte is set in the result.
    // If a byte of `word` is 0x80 or more, the result may be wrong, but the word is rejected
    // anyway, because this byte is not ASCII.
    let zero = |word: u64| word.wrapping_sub(each(1)) & !word;
    let is_plain = |word: u64| {
        let special = zero(word ^ each(b'"')) | zero(word ^ each(b'\\')) | zero(word ^ each(0x7F));
        let control = word.wrapping_sub(each(b' '));
        (word | control | special) & HIGH == 0
    };
    let (words, rest) = text.as_chunks();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).all(|word| is_plain(u64::from_ne_bytes(*word)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_bytes_are_printable_ascii_except_quotes_and_backslashes() {
        for byte in 0..=u8::MAX {
            let plain = matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\';
            for length in 1..=17 {
                for at in 0..length {
                    for filler in [b' ', b'~', b'!', b'#', b'[', b']'] {
                        let mut text = vec![filler; length];
                        text[at] = byte;
                        assert_eq!(is_plain_ascii(&text), plain, "{text:?}");
                    }
                }
            }
        }
        assert!(is_plain_ascii(b""));
    }
}
