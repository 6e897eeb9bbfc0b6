//! The name a request is known by in logs, at the upstream and to the client.
//!
//! Made here for every request. A client's own id is not taken over: it would let anyone write into our logs, or give
//! two requests one name. Ids are unique, not secret.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use http::HeaderValue;

/// 32 hex digits, unique to a request; a request extension.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct RequestId([u8; 32]);

impl RequestId {
    /// The id of a connection's n-th request. Counting per connection keeps threads from sharing a counter.
    pub(crate) fn new(connection: u64, request: u64) -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        let process = *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        let mut digits = [0; 32];
        // Both mixings are bijections, so two requests of a process differ in at least one half.
        write_hex(&mut digits[..16], mix(process ^ connection));
        write_hex(&mut digits[16..], mix(process.rotate_left(32) ^ connection.rotate_left(40) ^ request));
        Self(digits)
    }

    /// The id as text.
    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    pub(super) fn to_value(self) -> HeaderValue {
        HeaderValue::from_bytes(&self.0).unwrap_or_else(|_| HeaderValue::from_static("-"))
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
