//! The version of a JAFAR list, which stands in its media type or, before that draft, in the list.

use super::range_list_error::{RangeListError, RangeListErrorKind};

/// The greatest major version that is read.
const MAJOR: u64 = 1;

/// Checks the `Content-Type` of a list: `application/jafar+json; version=2.0` is a format that is not read here. Operators
/// send lists under any type, so a type alone is no mistake.
///
/// # Errors
///
/// Where the major version is greater than 1, or is no number: such a list must not be parsed, and the list before stays.
pub fn check_media_type(content_type: &str) -> Result<(), RangeListError> {
    let mut parts = content_type.split(';');
    let is_jafar = parts.next().is_some_and(|name| name.trim().eq_ignore_ascii_case("application/jafar+json"));
    let version = parts.find_map(|part| {
        let (name, value) = part.split_once('=')?;
        name.trim().eq_ignore_ascii_case("version").then(|| value.trim().trim_matches('"'))
    });
    match version {
        Some(version) if is_jafar => check_version(version),
        _ => Ok(()),
    }
}

/// Checks a version of the form `major.minor`.
pub(super) fn check_version(version: &str) -> Result<(), RangeListError> {
    let major = version.split('.').next().unwrap_or_default();
    if major.parse::<u64>().is_ok_and(|major| major <= MAJOR) {
        return Ok(());
    }
    let shown: String = version.chars().take(32).collect();
    let message = format!("the list has the format version {shown:?}: versions up to {MAJOR} are read");
    Err(RangeListError::new(RangeListErrorKind::NewerFormat, message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greater_major_version_is_not_read() {
        for (content_type, is_read) in [
            ("", true),
            ("application/json", true),
            ("text/html; version=9", true),
            ("application/jafar+json", true),
            ("application/jafar+json; version=1.10", true),
            ("Application/JAFAR+json;charset=utf-8; Version=\"1.0\"", true),
            ("application/jafar+json; version=2.0", false),
            ("application/jafar+json;version=\"10\"", false),
            ("application/jafar+json; version=", false),
            ("application/jafar+json; version=x", false),
            ("application/jafar+json; version=99999999999999999999999", false),
        ] {
            let checked = check_media_type(content_type);
            assert_eq!(checked.is_ok(), is_read, "{content_type}");
            assert!(checked.is_ok() || checked.is_err_and(|error| error.kind() == RangeListErrorKind::NewerFormat));
        }
    }
}
