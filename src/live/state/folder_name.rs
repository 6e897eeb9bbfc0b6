//! The names of the folders of sites.

use std::fmt::Write as _;

use crate::live::VersionHash;

/// The length that a name which is too long is cut to; `%` and 16 digits of its hash follow.
const CUT: usize = 60;

/// Returns a site's name as the name of a folder: letters in lower case, digits, `-`, `_` and inner dots stand for themselves.
/// Different names stay different, on file systems without case too, and none leaves its folder.
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
        _ => format!("{}%{}", &name[..CUT], VersionHash::of(site.as_bytes()).short()),
    }
}

/// Returns the site whose folder has this name; `None` for a name that was cut, or that no site has.
pub(super) fn site_of_folder(name: &str) -> Option<String> {
    // The digits of a hash may look like an escaped byte.
    if name.len() == CUT + 17 && name.as_bytes()[CUT] == b'%' {
        return None;
    }
    let mut parts = name.split('%');
    let mut bytes = parts.next()?.as_bytes().to_vec();
    for part in parts {
        bytes.push(u8::from_str_radix(part.get(..2)?, 16).ok()?);
        bytes.extend_from_slice(&part.as_bytes()[2..]);
    }
    let site = String::from_utf8(bytes).ok()?;
    // Another spelling of the name is not a folder of ours.
    if folder_name(&site) == name { Some(site) } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_is_a_folder_of_its_own() {
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
