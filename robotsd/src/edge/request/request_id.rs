//! The ids of requests: the request id, which is logged and sent to the upstream and the client,
//! and the trace id (W3C Trace Context).
//!
//! The request id is generated here, unless a trusted proxy has set one. Ids from other clients are
//! not accepted, because a client could use them to write arbitrary text into the log, or use one
//! id twice. Ids are unique, but not secret.
//!
//! `traceparent` and `tracestate` come from the client and are passed on unchanged. robotsd reads
//! only the trace id in `traceparent`, for logs. An invalid field is ignored, so that clients
//! cannot write arbitrary text into logs.

use std::hash::{BuildHasher, RandomState};
use std::sync::OnceLock;

use http::{HeaderMap, HeaderName, HeaderValue};

/// Unique id of a request: 32 hexadecimal digits, or an id from a trusted proxy.
#[derive(Clone, Copy, PartialEq, Eq, Hash, derive_more::Debug, derive_more::Display)]
#[debug("RequestId({})", self.as_str())]
#[display("{}", self.as_str())]
pub(crate) struct RequestId {
    text: [u8; MAX_BYTES],
    length: u8,
}

const MAX_BYTES: usize = 64;
const GENERATED_LENGTH: usize = 32;

impl RequestId {
    /// Creates the id of a request from the number of the connection, and the number of the request
    /// within the connection. So no counter is shared between threads.
    pub(crate) fn new(connection: u64, request: u64) -> Self {
        static PROCESS: OnceLock<u64> = OnceLock::new();
        let process = *PROCESS.get_or_init(|| RandomState::new().hash_one(std::process::id()));
        let mut digits = [0; MAX_BYTES];
        // `mix` is a bijection, so the ids of any two requests of the process differ in the first
        // or in the second half.
        write_hex(&mut digits[..16], mix(process ^ connection));
        write_hex(
            &mut digits[16..GENERATED_LENGTH],
            mix(process.rotate_left(32) ^ connection.rotate_left(40) ^ request),
        );
        Self { text: digits, length: GENERATED_LENGTH as u8 }
    }

    /// Accepts an id from a proxy. Returns `None` if the id is not safe to write into a log, a page
    /// or a header.
    pub(crate) fn from_proxy(id: &[u8]) -> Option<Self> {
        let is_plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.:+/=@~".contains(byte);
        if id.is_empty() || !id.iter().all(is_plain) {
            return None;
        }
        let mut text = [0; MAX_BYTES];
        text.get_mut(..id.len())?.copy_from_slice(id);
        Some(Self { text, length: id.len() as u8 })
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        self.text.get(..usize::from(self.length)).unwrap_or_default()
    }

    pub(crate) fn as_str(&self) -> &str {
        std::str::from_utf8(self.bytes()).unwrap_or_default()
    }

    pub(crate) fn to_value(self) -> HeaderValue {
        let mut value = HeaderValue::from_bytes(self.bytes()).unwrap_or_else(|_| HeaderValue::from_static("-"));
        // A sensitive value is not stored in HPACK's table. An id is never repeated, so storing it
        // would only evict an entry that can be used again. Ids would also slow down `h2`, which
        // compares a value with all entries that have the same name.
        value.set_sensitive(true);
        value
    }
}

fn mix(mut value: u64) -> u64 {
    value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

fn write_hex(digits: &mut [u8], value: u64) {
    let (pairs, _) = digits.as_chunks_mut();
    for (pair, byte) in pairs.iter_mut().zip(value.to_be_bytes()) {
        *pair = HEX[usize::from(byte)];
    }
}

static HEX: [[u8; 2]; 256] = {
    let (digits, mut hex, mut byte) = (b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < hex.len() {
        hex[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    hex
};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Length of a `traceparent` of version 00 (`version-trace_id-parent_id-flags`), in bytes.
const LENGTH: usize = 55;

/// Returns the trace id: 32 hexadecimal digits in lower case, not all zero. Returns `None` unless
/// the request has exactly one `traceparent` field with a valid value.
pub(crate) fn trace_id(fields: &HeaderMap) -> Option<&str> {
    let mut lines = fields.get_all(TRACEPARENT).into_iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.to_str().ok()?;
    let (head, further) = line.split_at_checked(LENGTH)?;
    let [version, trace, parent, flags] = parts(head)?;
    // A version later than 00 may add parts after a hyphen; version 255 is forbidden (W3C Trace
    // Context, section 3.2.2).
    let is_whole = further.is_empty() || version != "00" && further.starts_with('-');
    let is_valid = is_id(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_id(flags, 2);
    let is_set = |id: &str| id.bytes().any(|digit| digit != b'0');
    (is_whole && is_valid && is_set(trace) && is_set(parent)).then_some(trace)
}

fn parts(head: &str) -> Option<[&str; 4]> {
    let mut parts = head.split('-');
    let found = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(found)
}

fn is_id(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn request_ids_are_unique_and_consist_of_32_hex_digits() {
        let ids: HashSet<_> = (0..100).flat_map(|c| (0..100).map(move |r| RequestId::new(c, r))).collect();
        assert_eq!(ids.len(), 10_000);
        assert!(ids.iter().all(|id| id.as_str().len() == 32 && id.as_str().bytes().all(|b| b.is_ascii_hexdigit())));
    }

    fn of(lines: &[&[u8]]) -> Option<String> {
        let lines = lines.iter().map(|line| (TRACEPARENT, HeaderValue::from_bytes(line).expect("a field value")));
        trace_id(&lines.collect()).map(str::to_owned)
    }

    #[test]
    fn the_trace_id_comes_from_a_single_valid_traceparent_field() {
        const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        let valid = format!("00-{ID}-00f067aa0ba902b7-01");
        let later = format!("cc-{ID}-00f067aa0ba902b7-01-what-comes");
        assert_eq!(of(&[valid.as_bytes()]).as_deref(), Some(ID));
        assert_eq!(of(&[later.as_bytes()]).as_deref(), Some(ID));
        for wrong in [
            "",
            ID,
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-012",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47--00f067aa0ba902b7-011",
        ] {
            assert_eq!(of(&[wrong.as_bytes()]), None, "{wrong}");
        }
        assert_eq!(of(&[valid.as_bytes(), valid.as_bytes()]), None);
        assert_eq!(of(&[&[0xff; LENGTH]]), None);
        assert_eq!(of(&[]), None);
    }
}
