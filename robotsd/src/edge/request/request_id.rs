//! The id of a request: in logs, at the upstream and for the client.
//!
//! Made here, unless a trusted proxy has given the request one. A client's own id is not taken over: it would let anyone
//! write into our logs, or give two requests one name. Ids are unique, not secret.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use http::HeaderValue;

/// Unique to a request. 32 hex digits, or what a trusted proxy chose.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestId {
    text: [u8; LONGEST],
    length: u8,
}

/// The longest id that is taken over, in octets.
const LONGEST: usize = 64;
const OWN: usize = 32;

impl RequestId {
    /// The id of a connection's n-th request. Counting per connection keeps threads from sharing a counter.
    pub(crate) fn new(connection: u64, request: u64) -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        let process = *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        let mut digits = [0; LONGEST];
        // Both mixings are bijections, so two requests of a process differ in at least one half.
        write_hex(&mut digits[..16], mix(process ^ connection));
        write_hex(&mut digits[16..OWN], mix(process.rotate_left(32) ^ connection.rotate_left(40) ^ request));
        Self { text: digits, length: OWN as u8 }
    }

    /// An id that a proxy chose, if it can stand in a log, a page and a header as it is.
    pub(crate) fn given(id: &[u8]) -> Option<Self> {
        let is_plain = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.:+/=@~".contains(octet);
        if id.is_empty() || !id.iter().all(is_plain) {
            return None;
        }
        let mut text = [0; LONGEST];
        text.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { text, length: id.len() as u8 })
    }

    fn octets(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.octets()).unwrap_or_default()
    }

    pub(crate) fn to_value(self) -> HeaderValue {
        HeaderValue::from_bytes(self.octets()).unwrap_or_else(|_| HeaderValue::from_static("-"))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl fmt::Debug for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "RequestId({self})")
    }
}

/// The finaliser of SplitMix64.
fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn write_hex(digits: &mut [u8], value: u64) {
    for (at, digit) in digits.iter_mut().enumerate() {
        *digit = b"0123456789abcdef"[(value >> (60 - 4 * at) & 15) as usize];
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_are_unique_and_plain() {
        let ids: HashSet<_> = (0..100).flat_map(|c| (0..100).map(move |r| RequestId::new(c, r))).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.as_str().len() == 32 && id.as_str().bytes().all(|b| b.is_ascii_hexdigit())));
    }
}
