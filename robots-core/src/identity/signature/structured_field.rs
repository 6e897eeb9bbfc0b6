//! Parses structured fields (RFC 9651) with the crate `sfv`. Also finds the bytes of a dictionary
//! member as they were received.
//!
//! A signature covers its parameters exactly as received, but `sfv` does not return the original
//! bytes of a value.

use sfv::{BareItem, FieldType, Parser, StringRef};

/// Maximum number of commas in a field. The same limit applies to semicolons and to spaces. Real
/// signers send far fewer, but a field of 64 KiB could have tens of thousands of members.
const MAX_MEMBERS: usize = 256;

pub(crate) fn read<T: FieldType>(field: &str) -> Option<T> {
    // The count includes separators within strings.
    let is_few = |separator| memchr::memchr_iter(separator, field.as_bytes()).count() <= MAX_MEMBERS;
    let is_short = [b',', b';', b' '].into_iter().all(is_few);
    is_short.then(|| Parser::new(field).parse().ok()).flatten()
}

/// Returns the value of a dictionary member as received; `None` if the member has no value. If
/// several members have the same key, returns the value of the last one. The caller must have
/// parsed the field successfully before.
pub(super) fn as_received<'f>(field: &'f str, key: &str) -> Option<&'f str> {
    let (mut is_quoted, mut has_escapes, mut before) = (false, false, '\0');
    let members = field.split(|char: char| {
        match char {
            // Display strings begin with `%"` and have no backslash escapes.
            '"' if !is_quoted => (is_quoted, has_escapes) = (true, before != '%'),
            '"' if !has_escapes || before != '\\' => is_quoted = false,
            _ => {}
        }
        // An escaped backslash does not escape the next character.
        before = if is_quoted && has_escapes && before == '\\' { '\0' } else { char };
        char == ',' && !is_quoted
    });
    let values = members.filter_map(|member| {
        let rest = member.trim_matches([' ', '\t']).strip_prefix(key)?;
        (rest.is_empty() || rest.starts_with(['=', ';'])).then(|| rest.strip_prefix('='))
    });
    values.last().flatten()
}

pub(super) fn text(value: &BareItem) -> Option<&str> {
    value.as_string().map(StringRef::as_str)
}
