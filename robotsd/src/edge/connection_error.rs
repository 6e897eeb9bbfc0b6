//! Counts connection errors, and logs them at a limited rate.
//!
//! Clients can cause connection errors at line rate. So an error of any kind is reported at most
//! once a second, with the number of errors of this kind since the last report.

use std::error::Error;
use std::fmt;
use std::net::SocketAddr;
use std::time::Instant;

use crate::metrics::EventCounter;
use crate::word_enum::word_enum;

#[derive(Clone, Debug)]
pub(crate) struct ConnectionError {
    pub(crate) kind: ConnectionErrorKind,
    /// Address of the client; `None` for errors while accepting.
    pub(crate) peer: Option<SocketAddr>,
    /// Text of the underlying error. Empty if `kind` describes the error completely.
    pub(crate) detail: String,
    /// Number of errors of this kind since the last report, including this error.
    pub(crate) count: u64,
}

word_enum! {
    /// The kinds of [`ConnectionError`].
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ConnectionErrorKind {
        /// A connection could not be accepted, usually because the process is out of file
        /// descriptors.
        Accept = "accept",
        /// All connection slots are in use and no connection is idle, or the limit of TLS
        /// handshakes is reached. New connections wait.
        Full = "full",
        /// The limit of connections was reached, so an idle connection was closed for a new one.
        Recycled = "recycled",
        /// No request arrived in time, because the client was silent or sent its request head too
        /// slowly.
        Slow = "slow",
        /// A client that is not a trusted proxy connected to a listener that requires a PROXY
        /// header. The header is not read, because the client could forge it.
        Untrusted = "untrusted",
        /// A connection did not begin with the PROXY header that its listener requires.
        ProxyHeader = "proxy-header",
        /// A TLS handshake failed: the client does not speak TLS, shares no version or cipher with
        /// the listener, or distrusts the certificate.
        Handshake = "handshake",
        /// The client sent something that is not HTTP, or violated the rules of HTTP.
        Protocol = "protocol",
        /// The client sent many more frames than its requests and their responses need.
        Flood = "flood",
        /// The connection broke, or a response could not be written in time.
        Broken = "broken",
        /// Requests were still in progress when the drain deadline passed.
        Aborted = "aborted",
    }
}

pub(crate) type ConnectionFailure = (ConnectionErrorKind, Box<dyn Error + Send + Sync>);

pub(crate) struct ConnectionErrorReporter {
    on_error: Box<dyn Fn(&ConnectionError) + Send + Sync>,
    start: Instant,
    tallies: [EventCounter; ConnectionErrorKind::ALL.len()],
}

impl ConnectionErrorReporter {
    pub(crate) fn new(on_error: impl Fn(&ConnectionError) + Send + Sync + 'static) -> Self {
        Self { on_error: Box::new(on_error), start: Instant::now(), tallies: Default::default() }
    }

    /// Counts an error, and reports it unless an error of this kind was already reported in the
    /// same second. The detail is formatted only if the error is reported.
    pub(crate) fn report(&self, kind: ConnectionErrorKind, peer: Option<SocketAddr>, detail: &dyn fmt::Display) {
        if let Some(count) = self.tallies[kind as usize].count(self.start) {
            (self.on_error)(&ConnectionError { kind, peer, detail: detail.to_string(), count });
        }
    }

    pub(crate) fn totals(&self) -> [(ConnectionErrorKind, u64); ConnectionErrorKind::ALL.len()] {
        ConnectionErrorKind::ALL.map(|kind| (kind, self.tallies[kind as usize].total()))
    }
}

#[cfg(test)]
mod tests {
    use parking_lot::Mutex;

    use super::*;
    use crate::http_common::test_peer::shared;

    #[test]
    fn a_burst_of_connection_errors_is_reported_at_most_once_per_second() {
        let reported: &Mutex<Vec<ConnectionError>> = shared();
        let reporter = ConnectionErrorReporter::new(|error: &ConnectionError| reported.lock().push(error.clone()));
        let begun = Instant::now();
        for _ in 0..1000 {
            reporter.report(ConnectionErrorKind::Slow, None, &"");
        }
        reporter.report(ConnectionErrorKind::Full, None, &"");
        let reported = reported.lock();
        // There is one report per second, so a short burst causes one or two reports.
        let seconds = begun.elapsed().as_secs() as usize + 2;
        assert!((2..=1 + seconds).contains(&reported.len()), "{reported:?}");
        assert_eq!(reported[0].count, 1);
        assert_eq!(reported.last().unwrap().kind, ConnectionErrorKind::Full);
    }
}
