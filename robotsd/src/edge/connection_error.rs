//! Errors of connections, reported without flooding the log.
//!
//! Clients can cause these events at line rate, so each kind is reported at most once a second, with the count of those in
//! between. The callback writes the line.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use crate::metrics::EventCounter;
use crate::word_enum::word_enum;

/// An event on a listener or one of its connections.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionError {
    /// The kind of error.
    pub(crate) kind: ConnectionErrorKind,
    /// The client of the connection; none while accepting.
    pub(crate) peer: Option<SocketAddr>,
    /// The text of the error behind it; empty where the kind says it all.
    pub(crate) detail: String,
    /// How often this happened since this kind was last reported, this time included.
    pub(crate) count: u64,
}

word_enum! {
    /// The kinds of [`ConnectionError`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ConnectionErrorKind {
        /// A connection could not be accepted; often the process is out of file descriptors.
        Accept = "accept",
        /// All connections the process may have are open and busy, or all handshakes are under way: others wait.
        Full = "full",
        /// All connections the process may have are open: an idle one was closed for a new one.
        Recycled = "recycled",
        /// No request came in time: silence, or a head in small pieces.
        Slow = "slow",
        /// A client that is no trusted proxy connected where a PROXY header is required, which anyone could make up.
        Untrusted = "untrusted",
        /// A connection did not begin with the PROXY header that its listener requires.
        ProxyHeader = "proxy-header",
        /// A TLS handshake failed: no TLS, nothing in common, or a client that does not trust the certificate.
        Handshake = "handshake",
        /// The client sent something that is not HTTP, or broke its rules.
        Protocol = "protocol",
        /// The client sent frames that request nothing, far more than its requests and their responses explain.
        Flood = "flood",
        /// The connection broke, or a response could not be written in time.
        Broken = "broken",
        /// Requests were still in progress when the drain deadline passed.
        Aborted = "aborted",
    }
}

impl fmt::Display for ConnectionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.kind.as_str())?;
        if let Some(peer) = self.peer {
            write!(f, " {peer}")?;
        }
        if !self.detail.is_empty() {
            // The detail may quote what a client sent: one event stays one line.
            write!(f, ": {}", self.detail.escape_debug())?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

/// How a connection failed.
pub(crate) type ConnectionFailure = (ConnectionErrorKind, Box<dyn Error + Send + Sync>);

/// Counts connection errors and calls back for some of them.
pub(crate) struct ConnectionErrorReporter {
    on_error: Box<dyn Fn(&ConnectionError) + Send + Sync>,
    start: Instant,
    tallies: [EventCounter; ConnectionErrorKind::ALL.len()],
}

impl ConnectionErrorReporter {
    pub(crate) fn new(on_error: impl Fn(&ConnectionError) + Send + Sync + 'static) -> Self {
        Self { on_error: Box::new(on_error), start: Instant::now(), tallies: Default::default() }
    }

    /// Counts an event; the error is formatted only when it is reported.
    pub(crate) fn report(&self, kind: ConnectionErrorKind, peer: Option<SocketAddr>, detail: &dyn fmt::Display) {
        if let Some(count) = self.tallies[kind as usize].count(self.start) {
            (self.on_error)(&ConnectionError { kind, peer, detail: detail.to_string(), count });
        }
    }

    /// How many errors of each kind have occurred.
    pub(crate) fn totals(&self) -> [(ConnectionErrorKind, u64); ConnectionErrorKind::ALL.len()] {
        ConnectionErrorKind::ALL.map(|kind| (kind, self.tallies[kind as usize].total()))
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::exchange::test_peer::shared;

    #[test]
    fn a_burst_is_reported_once_and_counted() {
        let reported: &Mutex<Vec<ConnectionError>> = shared();
        let reporter = ConnectionErrorReporter::new(|error: &ConnectionError| reported.lock().push(error.clone()));
        let begun = Instant::now();
        for _ in 0..1000 {
            reporter.report(ConnectionErrorKind::Slow, None, &"");
        }
        reporter.report(ConnectionErrorKind::Full, None, &"");
        let reported = reported.lock();
        // A burst is reported once in every second of the clock that it has a part of.
        let seconds = begun.elapsed().as_secs() as usize + 2;
        assert!((2..=1 + seconds).contains(&reported.len()), "{reported:?}");
        assert_eq!(reported[0].count, 1);
        assert_eq!(reported.last().unwrap().kind, ConnectionErrorKind::Full);
    }

    #[test]
    fn an_event_stays_on_one_line() {
        let error = ConnectionError {
            kind: ConnectionErrorKind::Protocol,
            peer: Some(([127, 0, 0, 1], 9).into()),
            detail: "bad\nline".into(),
            count: 3,
        };
        assert_eq!(error.to_string(), "protocol 127.0.0.1:9: bad\\nline (3 times)");
    }
}
