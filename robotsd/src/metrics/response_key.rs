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

/// Listener, method and status of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ResponseKey {
    /// The listener's number.
    pub(crate) listener: u16,
    method: u8,
    code: u16,
}

impl ResponseKey {
    pub(crate) fn new(listener: u16, method: MethodLabel, status: StatusCode) -> Self {
        Self { listener, method: method.0, code: status.as_u16() }
    }

    /// For a response that no counter has room for.
    const fn other(listener: u16) -> Self {
        Self { listener, method: METHODS.len() as u8, code: 0 }
    }

    /// Counts one. Only the thread that writes the counters may call this.
    pub(crate) fn count(self, counters: &KeyedCounters<Self>) {
        if !counters.count(self.hash(), |key| *key == self, || Some(self)) {
            let other = Self::other(self.listener);
            // Tables with no room near its place have counted hundreds of others.
            let _ = counters.count(other.hash(), |key| *key == other, || Some(other));
        }
    }

    /// Spreads keys over a table.
    const fn hash(self) -> u64 {
        let packed = (self.listener as u64) << 24 | (self.method as u64) << 16 | self.code as u64;
        packed.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32
    }

    /// The method's label.
    pub(crate) fn method(&self) -> &'static str {
        const NAMES: [&str; METHODS.len()] =
            ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "CONNECT", "TRACE"];
        NAMES.get(usize::from(self.method)).copied().unwrap_or("_OTHER")
    }

    /// The status code's label.
    pub(crate) fn code(&self) -> String {
        if self.code == 0 { "other".to_owned() } else { self.code.to_string() }
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
        assert_eq!((ResponseKey::other(0).code(), ResponseKey::other(0).method()), ("other".to_owned(), "_OTHER"));
    }
}
