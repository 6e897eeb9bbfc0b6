//! The name of a version: the hash of its bytes.

use std::fmt;

use sha2::{Digest, Sha256};

/// The SHA-256 of a robots.txt; equal bytes have equal hashes on every replica.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hash([u8; 32]);

impl Hash {
    /// Hashes bytes.
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The first eight octets in hex, enough to tell versions apart in a log.
    #[must_use]
    pub fn short(&self) -> String {
        self.0[..8].iter().map(|octet| format!("{octet:02x}")).collect()
    }
}

/// `sha256:` and 64 hex digits.
impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sha256:")?;
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Hash({self})")
    }
}
