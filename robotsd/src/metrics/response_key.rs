//! What responses are counted by, in words that no client chooses.

use http::{Method, StatusCode};

use super::keyed_counters::KeyedCounters;

/// The methods that are named; any other is `_OTHER`, as OpenTelemetry writes it.
const METHODS: [Method; 9] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::PATCH,
    Method::DELETE,
    Method::OPTIONS,
    Method::CONNECT,
    Method::TRACE,
];

/// Listener, method and status of a response, in one number: the listener's, the method's and the status.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseKey(u32);

/// Bits of a method, and of a status.
const METHOD_BITS: u32 = 4;
const CODE_BITS: u32 = 10;

const _: () = assert!(METHODS.len() < 1 << METHOD_BITS && u16::BITS + METHOD_BITS + CODE_BITS <= u32::BITS);

impl ResponseKey {
    #[inline]
    pub(crate) fn new(listener: u16, method: MethodLabel, status: StatusCode) -> Self {
        Self::of(listener, method.0, status.as_u16())
    }

    /// For a response that no counter has room for.
    const fn other(listener: u16) -> Self {
        Self::of(listener, METHODS.len() as u8, 0)
    }

    /// A status is below 1,000.
    const fn of(listener: u16, method: u8, code: u16) -> Self {
        Self((listener as u32) << (METHOD_BITS + CODE_BITS) | (method as u32) << CODE_BITS | code as u32)
    }

    /// Counts one. Only the thread that writes the counters may call this.
    #[inline]
    pub(crate) fn count(self, counters: &KeyedCounters<Self>) {
        if !counters.count(self.hash(), |key| *key == self, || Some(self)) {
            let other = Self::other(self.listener());
            // Tables with no room near its place have counted hundreds of others.
            let _ = counters.count(other.hash(), |key| *key == other, || Some(other));
        }
    }

    /// Spreads keys over a table.
    const fn hash(self) -> u64 {
        (self.0 as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// The listener's number.
    pub(crate) const fn listener(self) -> u16 {
        (self.0 >> (METHOD_BITS + CODE_BITS)) as u16
    }

    /// The method's label.
    pub(crate) fn method(&self) -> &'static str {
        const NAMES: [&str; METHODS.len()] =
            ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
        NAMES.get((self.0 >> CODE_BITS) as usize & ((1 << METHOD_BITS) - 1)).copied().unwrap_or("_OTHER")
    }

    /// The status code's label.
    pub(crate) fn code(&self) -> String {
        let code = self.0 & ((1 << CODE_BITS) - 1);
        if code == 0 { "other".to_owned() } else { code.to_string() }
    }
}

/// A method as it is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MethodLabel(u8);

impl From<&Method> for MethodLabel {
    fn from(method: &Method) -> Self {
        Self(METHODS.iter().position(|known| known == method).unwrap_or(METHODS.len()) as u8)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_method_is_one_of_a_few_words() {
        for (method, want) in [("GET", "GET"), ("TRACE", "TRACE"), ("PROPFIND", "_OTHER"), ("get", "_OTHER")] {
            let label = MethodLabel::from(&Method::from_bytes(method.as_bytes()).unwrap());
            assert_eq!(ResponseKey::new(0, label, StatusCode::OK).method(), want);
        }
        for method in METHODS {
            assert_eq!(ResponseKey::new(0, (&method).into(), StatusCode::OK).method(), method.as_str());
        }
        for listener in [0, 7, u16::MAX] {
            for code in [100, 200, 599, 999] {
                let key = ResponseKey::new(listener, (&Method::POST).into(), StatusCode::from_u16(code).unwrap());
                assert_eq!((key.listener(), key.method(), key.code()), (listener, "POST", code.to_string()));
            }
            assert_eq!(ResponseKey::other(listener).listener(), listener);
        }
        assert_eq!((ResponseKey::other(0).code(), ResponseKey::other(0).method()), ("other".to_owned(), "_OTHER"));
    }
}
