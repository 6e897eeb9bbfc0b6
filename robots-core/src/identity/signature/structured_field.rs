//! Structured fields (RFC 9651), read with the crate `sfv`, and the octets that a member of one was read from.
//!
//! A signature is over its parameters exactly as received, and the crate does not say which octets a value was read from.

use sfv::{BareItem, FieldType, Parser, StringRef};

/// More commas, semicolons and blanks than any signer sends: a field of 64 KiB could have tens of thousands of members.
const MOST: usize = 256;

/// Reads the value of a field whose lines are joined; none where it is no such field.
pub(crate) fn read<T: FieldType>(field: &str) -> Option<T> {
    // Those in strings count too.
    let is_few = |separator| memchr::memchr_iter(separator, field.as_bytes()).count() <= MOST;
    let is_short = [b',', b';', b' '].into_iter().all(is_few);
    is_short.then(|| Parser::new(field).parse().ok()).flatten()
}

/// The value of a member as received, of a dictionary that was read; of a repeated key the last. None where the key stands
/// alone.
pub(super) fn as_received<'f>(field: &'f str, key: &str) -> Option<&'f str> {
    let (mut is_quoted, mut has_escapes, mut before) = (false, false, '\0');
    let members = field.split(|char: char| {
        match char {
            // A display string has no escapes.
            '"' if !is_quoted => (is_quoted, has_escapes) = (true, before != '%'),
            '"' if !has_escapes || before != '\\' => is_quoted = false,
            _ => {}
        }
        // A backslash that is escaped escapes nothing.
        before = if is_quoted && has_escapes && before == '\\' { '\0' } else { char };
        char == ',' && !is_quoted
    });
    let values = members.filter_map(|member| {
        let rest = member.trim_matches([' ', '\t']).strip_prefix(key)?;
        (rest.is_empty() || rest.starts_with(['=', ';'])).then(|| rest.strip_prefix('='))
    });
    values.last().flatten()
}

/// The text of a value that is a string.
pub(super) fn text(value: &BareItem) -> Option<&str> {
    value.as_string().map(StringRef::as_str)
}
