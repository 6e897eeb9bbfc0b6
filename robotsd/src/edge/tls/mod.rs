//! TLS before HTTP: which certificate a client is shown, the handshake, and what is known of a connection afterwards.
//!
//! TLS 1.2 and 1.3 with the suites of rustls, on ring; HTTP/2 where the client asks for it by ALPN. Certificates are
//! replaced while running: a connection keeps what it was opened with.

mod pair;
mod validity;

mod certificates;
mod live;

mod client_hello;
mod handshake;
mod secured;

#[cfg(test)]
mod tests;

pub(crate) use self::live::{CertificateEvent, LiveCertificates};
pub(crate) use self::pair::{CertificatePair, PairFile, PairPaths};
pub(super) use self::secured::{AlpnProtocol, Secured};

use std::sync::Arc;
use std::time::Duration;

use self::handshake::UnderWay;

use tokio::sync::Semaphore;

/// What a listener needs to speak TLS. Cheap to clone, and shared by every thread that accepts for the listener.
#[derive(Clone, Debug)]
pub(crate) struct TlsAcceptor {
    certificates: LiveCertificates,
    /// Handshakes under way.
    places: Arc<Semaphore>,
    under_way: Arc<UnderWay>,
    deadline: Duration,
}

impl TlsAcceptor {
    /// At most so many `handshakes` are under way at once, from a whole ClientHello on; each has the `deadline`, the
    /// client's silence and its wait for a place included.
    pub(crate) fn new(certificates: LiveCertificates, handshakes: usize, deadline: Duration) -> Self {
        let places = Arc::new(Semaphore::new(handshakes.min(Semaphore::MAX_PERMITS)));
        Self { certificates, places, under_way: Arc::default(), deadline }
    }
}
