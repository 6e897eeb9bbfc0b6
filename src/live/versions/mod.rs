//! A version of a robots.txt, with the hash that identifies it. The list of accepted versions is in
//! the module `accepted`.

mod accepted;

use crate::rules::ValueError;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;
use std::time::SystemTime;

pub(super) use self::accepted::{AcceptedState, AcceptedVersion, AcceptedVersions};
use crate::rules::LinePlaces;

#[derive(Clone, Debug)]
pub(crate) struct Version {
    hash: VersionHash,
    bytes: Arc<[u8]>,
    pub(super) origin: Arc<str>,
    pub(crate) modified: Option<SystemTime>,
    /// The part that each line comes from: the source's file or an appended part. `None` if nothing
    /// is appended.
    pub(super) places: Option<Arc<LinePlaces>>,
}

impl Version {
    /// Creates a version from bytes. `modified` is the time when the bytes were last changed at the
    /// source, if known.
    pub(crate) fn new(bytes: impl Into<Arc<[u8]>>, origin: &Arc<str>, modified: Option<SystemTime>) -> Self {
        let bytes = bytes.into();
        Self { hash: VersionHash::of(&bytes), bytes, origin: origin.clone(), modified, places: None }
    }

    pub(crate) const fn hash(&self) -> VersionHash {
        self.hash
    }

    pub(super) const fn bytes(&self) -> &Arc<[u8]> {
        &self.bytes
    }
}

/// The SHA-256 hash of the bytes of a robots.txt.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VersionHash([u8; 32]);

/// The first hex digits of a [`VersionHash`]: at least [`VersionHashPrefix::MIN_DIGITS`]. The
/// prefixes in messages have 16 digits ([`VersionHash::short`]).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct VersionHashPrefix(String);

impl VersionHash {
    /// Returns the hash of these bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(hmac_sha256::Hash::hash(bytes))
    }

    /// Returns the first 16 hex digits. Messages show them, and every command that expects a
    /// version accepts them.
    pub fn short(&self) -> String {
        hex(&self.0[..8])
    }

    /// Returns all 64 hex digits, which are also the name of the version's file in a state
    /// directory.
    pub(crate) fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Converts bytes to hex digits. No formatter is used, because it would be slower and the function
/// is called for every log line about a refused request.
fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| b"0123456789abcdef"[usize::from(value & 15)];
    let mut text = Vec::with_capacity(2 * bytes.len());
    for byte in bytes {
        text.extend_from_slice(&[digit(byte >> 4), digit(*byte)]);
    }
    // Hex digits are always valid UTF-8.
    String::from_utf8(text).unwrap_or_default()
}

impl VersionHashPrefix {
    /// Minimum number of hex digits. It is highly improbable that two versions of one site have the
    /// same 12 digits, unless somebody deliberately constructs them.
    pub const MIN_DIGITS: usize = 12;

    /// Reports whether the hash starts with this prefix.
    pub fn matches(&self, hash: &VersionHash) -> bool {
        hash.hex().starts_with(&self.0)
    }
}

impl From<VersionHash> for VersionHashPrefix {
    fn from(hash: VersionHash) -> Self {
        Self(hash.hex())
    }
}

/// Parses 64 hex digits, with or without the prefix `sha256:`.
impl FromStr for VersionHash {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = || ValueError::new(text, "is not the hash of a version: write \"sha256:\" and all 64 hex digits");
        let digits = digits(text).filter(|digits| digits.len() == 64).ok_or_else(error)?;
        let mut bytes = [0; 32];
        for (byte, pair) in bytes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = std::str::from_utf8(pair).ok();
            *byte = pair.and_then(|pair| u8::from_str_radix(pair, 16).ok()).ok_or_else(error)?;
        }
        Ok(Self(bytes))
    }
}

/// Parses 12 to 64 hex digits, with or without the prefix `sha256:`.
impl FromStr for VersionHashPrefix {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let digits = digits(text).filter(|digits| (Self::MIN_DIGITS..=64).contains(&digits.len()));
        digits.map(Self).ok_or_else(|| {
            let least = Self::MIN_DIGITS;
            let right =
                format!("write the 16 hex digits from the message about the version, or at least {least} of them");
            ValueError::new(text, format_args!("is not the hash of a version: {right}"))
        })
    }
}

fn digits(text: &str) -> Option<String> {
    let digits = text.strip_prefix("sha256:").unwrap_or(text);
    digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| digits.to_ascii_lowercase())
}

impl fmt::Display for VersionHashPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

/// Prints `sha256:` and 64 hex digits.
impl fmt::Display for VersionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "sha256:{}", self.hex())
    }
}

impl fmt::Debug for VersionHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VersionHash({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_parsed_in_its_printed_form_and_as_a_prefix_of_at_least_12_digits() {
        let hash = VersionHash::of(b"User-agent: *\n");
        assert_eq!(hash.to_string().parse(), Ok(hash));
        assert_eq!(hash.hex().to_uppercase().parse(), Ok(hash));
        for digits in [12, 16, 64] {
            let prefix: VersionHashPrefix = hash.hex()[..digits].parse().expect("a prefix");
            assert!(prefix.matches(&hash) && !prefix.matches(&VersionHash::of(b"other")));
        }
        for text in ["", "sha256:", "0123456789a", "0123456789ag", &hash.hex()[1..], &format!("{}0", hash.hex())] {
            assert!(text.parse::<VersionHash>().is_err(), "{text}");
        }
        let error = "0123456789a".parse::<VersionHashPrefix>().expect_err("too short");
        assert_eq!(
            error.to_string(),
            "\"0123456789a\" is not the hash of a version: write the 16 hex digits from the message about the version, or at least 12 of them"
        );
        assert!(format!("{}0", hash.hex()).parse::<VersionHashPrefix>().is_err());
    }
}
