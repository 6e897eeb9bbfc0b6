//! The rustls configuration of a listener: protocol versions, ALPN, session tickets.

use std::sync::Arc;

use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::{NoServerSessionStorage, ProducesTickets};
use tokio_rustls::rustls::sign::SingleCertAndKey;
use tokio_rustls::rustls::{Error, ServerConfig};

use super::pair::{CertificatePair, provider};

pub(super) const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

/// A pair, and the rustls configuration for handshakes with it.
#[derive(Debug)]
pub(super) struct ServedCertificate {
    pub(super) pair: CertificatePair,
    pub(super) config: Arc<ServerConfig>,
}

/// What all handshakes of a listener share.
#[derive(Debug)]
pub(super) struct HandshakeConfig {
    provider: Arc<CryptoProvider>,
    /// Tickets outlive a reload: resuming needs no certificate. Their keys are replaced every six hours.
    tickets: Arc<dyn ProducesTickets>,
}

impl HandshakeConfig {
    /// Fails where the system has no randomness to give.
    pub(super) fn new() -> Result<Self, Error> {
        Ok(Self { provider: Arc::new(provider()), tickets: ring::Ticketer::new()? })
    }

    pub(super) fn shown(&self, pair: CertificatePair) -> Result<Arc<ServedCertificate>, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&pair.key))));
        config.alpn_protocols = [HTTP_2, HTTP_1].map(<[u8]>::to_vec).into();
        config.ticketer = Arc::clone(&self.tickets);
        // Tickets keep sessions where they cost us nothing: at the client.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(ServedCertificate { pair, config: Arc::new(config) }))
    }
}
