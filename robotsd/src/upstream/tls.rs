//! TLS connections to upstreams, and the error messages about certificates.
//!
//! Certificates are always verified. If a server's certificate is self-signed or from a private
//! authority, the operator configures that certificate or authority as trusted.

use std::io;
use std::sync::{Arc, OnceLock};

use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{AlertDescription, CertificateError, ClientConfig, Error};
use tower_robots::internals::{certificate_fault, client_config, system_roots};

use super::endpoint::HttpVersions;
use crate::authorities::Authorities;

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct TlsSettings {
    /// The trusted authorities; `None` for the authorities that the system trusts.
    pub(crate) trust: Option<Authorities>,
    /// The name that certificates must contain, which is also sent in the handshake. If `None`, the
    /// host of each URL is used.
    pub(crate) server_name: Option<String>,
}

#[derive(Debug, Default)]
pub(super) struct SystemTrust(OnceLock<Result<Arc<ClientConfig>, String>>);

#[derive(Clone)]
pub(super) struct TlsClient {
    /// The connector for connections that must use HTTP/1.1.
    http1: TlsConnector,
    connector: TlsConnector,
    versions: HttpVersions,
    name: ServerName<'static>,
}

/// The reason why a connection could not be opened, worded for operators.
#[derive(Debug)]
pub(super) enum Unreachable {
    Connect(io::Error),
    Tls(io::Error),
    /// The handshake succeeded, but the server supports none of the offered HTTP versions.
    Versions(io::Error),
}

impl TlsSettings {
    pub(super) fn client(&self, system: &SystemTrust) -> Result<Arc<ClientConfig>, String> {
        let roots =
            || system_roots().map_err(|why| format!("{why}, or set \"ca\" to a file with certificate authorities"));
        match &self.trust {
            Some(authorities) => client_config(Arc::clone(&authorities.roots)),
            None => system.0.get_or_init(|| client_config(Arc::new(roots()?))).clone(),
        }
    }
}

pub(crate) fn check_server_name(name: &str) -> Result<(), String> {
    let wrong = |_| format!("{name:?} is not a valid server name: write a host name or an IP address");
    ServerName::try_from(name).map(drop).map_err(wrong)
}

/// Performs a TLS handshake with a server that is not an upstream. Errors are worded for operators.
pub(crate) async fn secured(
    trust: Option<&Authorities>,
    name: &str,
    socket: TcpStream,
) -> io::Result<TlsStream<TcpStream>> {
    let settings = TlsSettings { trust: trust.cloned(), server_name: None };
    let client = settings.client(&SystemTrust::default()).map_err(io::Error::other)?;
    let client = TlsClient::new(client, name, HttpVersions::Http1).map_err(io::Error::other)?;
    client
        .connect(socket, HttpVersions::Http1)
        .await
        .map_err(|(Unreachable::Connect(error) | Unreachable::Tls(error) | Unreachable::Versions(error))| error)
}

impl TlsClient {
    /// Creates a client that offers `versions`, except on connections that must use HTTP/1.1.
    pub(super) fn new(client: Arc<ClientConfig>, name: &str, versions: HttpVersions) -> Result<Self, String> {
        check_server_name(name)?;
        let name = ServerName::try_from(name.to_owned()).map_err(|error| format!("{name:?}: {error}"))?;
        let http1 = TlsConnector::from(Arc::clone(&client));
        let connector = if versions == HttpVersions::Http1 {
            http1.clone()
        } else {
            let mut client = ClientConfig::clone(&client);
            client.alpn_protocols = versions.offered();
            TlsConnector::from(Arc::new(client))
        };
        Ok(Self { http1, connector, versions, name })
    }

    pub(super) async fn connect(
        &self,
        socket: TcpStream,
        versions: HttpVersions,
    ) -> Result<TlsStream<TcpStream>, Unreachable> {
        let connector = if versions == HttpVersions::Http1 { &self.http1 } else { &self.connector };
        let stream =
            connector.connect(self.name.clone(), socket).await.map_err(|error| self.explain(error, versions))?;
        // If a server without ALPN support selects no protocol, HTTP/1.1 is used.
        if versions == HttpVersions::Http2 && stream.get_ref().1.alpn_protocol() != Some(b"h2") {
            return Err(self.no_agreement(versions));
        }
        Ok(stream)
    }

    fn explain(&self, error: io::Error, offered: HttpVersions) -> Unreachable {
        let Some(fault) = error.get_ref().and_then(|error| error.downcast_ref::<Error>()) else {
            return Unreachable::Tls(error);
        };
        let message = match fault {
            Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
                "the certificate of the server is from an untrusted authority: add the certificate of that authority \
                 with \"ca\""
                    .to_owned()
            }
            Error::InvalidCertificate(fault) => certificate_fault(fault),
            Error::AlertReceived(AlertDescription::NoApplicationProtocol) => return self.no_agreement(offered),
            Error::InvalidMessage(_) => format!("the server does not use TLS at this port ({fault})"),
            fault => format!("the TLS handshake failed ({fault})"),
        };
        Unreachable::Tls(io::Error::new(io::ErrorKind::InvalidData, message))
    }

    fn no_agreement(&self, offered: HttpVersions) -> Unreachable {
        let message = match (offered, self.versions) {
            (HttpVersions::Http2, _) => {
                "the server does not offer HTTP/2, which http2 = true requires: enable HTTP/2 there, or remove http2"
            }
            (HttpVersions::Http1, HttpVersions::Http1) => {
                "the server does not offer HTTP/1.1, and http2 = false allows no other version: enable HTTP/1.1 \
                 there, or remove http2"
            }
            (HttpVersions::Http1, _) => {
                "the server does not offer HTTP/1.1, which WebSockets need: to use WebSockets, enable HTTP/1.1 there"
            }
            (HttpVersions::Negotiated, _) => "the server offers neither HTTP/2 nor HTTP/1.1: enable one of them there",
        };
        Unreachable::Versions(io::Error::new(io::ErrorKind::InvalidData, message))
    }
}

tower_robots::internals::debug_as!(|it| TlsClient { name: it.name });
