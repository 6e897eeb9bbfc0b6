//! Derives the name of a site's folder from the name of the site.

use std::fmt::Write as _;

use crate::live::VersionHash;

/// Number of bytes that remain when a folder name of more than 120 bytes is cut. `%` and the first
/// 16 hex digits of the hash of the site's name are then appended.
const CUT_LENGTH: usize = 60;

/// Returns the folder name of a site. Lower-case letters, digits, `-`, `_`, and dots after the
/// first byte are unchanged; all other bytes are escaped. Different sites have different folder
/// names, even on case-insensitive file systems, and no name refers to a path outside the parent
/// folder.
pub fn folder_name(site: &str) -> String {
    let mut name = String::with_capacity(site.len());
    for (at, byte) in site.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' => name.push(char::from(byte)),
            b'.' if at > 0 => name.push('.'),
            _ => write!(name, "%{byte:02x}").unwrap_or_default(),
        }
    }
    match name.len() {
        0 => "%".to_owned(),
        1..=120 => name,
        _ => format!("{}%{}", &name[..CUT_LENGTH], VersionHash::of(site.as_bytes()).short()),
    }
}

/// Returns the name of the site with this folder name. `None` if the folder name was cut, or no
/// site has this folder name.
pub(super) fn site_of_folder(name: &str) -> Option<String> {
    // A cut folder name must be recognised before decoding, because `%` and the first digits of the
    // hash could be decoded as an escaped byte.
    if name.len() == CUT_LENGTH + 17 && name.as_bytes()[CUT_LENGTH] == b'%' {
        return None;
    }
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let site = String::from_utf8(bytes).ok()?;
    // If `folder_name` returns another name for the decoded site, this module did not create the
    // folder.
    if folder_name(&site) == name { Some(site) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_name_is_encoded_as_a_unique_folder_name() {
        for (site, name) in [
            ("shop.example.com", "shop.example.com"),
            ("Shop", "%53hop"),
            ("..", "%2e."),
            (".", "%2e"),
            ("a/b\\c", "a%2fb%5cc"),
            ("", "%"),
            ("%", "%25"),
            ("m\u{fc}nchen", "m%c3%bcnchen"),
        ] {
            assert_eq!(folder_name(site), name);
            assert_eq!(site_of_folder(name).as_deref(), Some(site).filter(|site| !site.is_empty()), "{name}");
        }
        for name in ["Shop", "%53HOP", "%73hop", "%5", "%zz", "%ff", ".hidden"] {
            assert_eq!(site_of_folder(name), None, "{name}");
        }
        let long = "x".repeat(300);
        assert_eq!(site_of_folder(&folder_name(&long)), None);
        assert!(folder_name(&long).len() < 100);
        assert_ne!(folder_name(&long), folder_name(&"x".repeat(301)));
    }
}
