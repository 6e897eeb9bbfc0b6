//! A word of a command that a person copies into a shell.

use super::printable::printable;

/// A word as a POSIX shell takes it; what does not print is written as bash and zsh take it.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:=@%+,".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return word.to_owned();
    }
    if printable(word.as_bytes()) == *word {
        return format!("'{}'", word.replace('\'', r"'\''"));
    }
    let octets = word.bytes().map(|byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        b' '..=b'~' => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", octets.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_would_take_them_apart() {
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
