//! TLS connections, and messages about certificates that are rejected.

use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, TrustAnchor, UnixTime};
use tokio_rustls::rustls::{self, CertificateError, ClientConfig, RootCertStore};

use super::outcome::{FetchError, FetchErrorKind};
use super::wire::Stream;

/// The trusted root certificates: the system's certificates and added certificates. The system's
/// certificates are loaded when the first TLS connection is opened.
#[derive(Default)]
pub(super) struct Tls {
    added: Vec<TrustAnchor<'static>>,
    ignores_system: bool,
    connector: OnceCell<TlsConnector>,
}

impl Tls {
    pub(super) fn distrust_system(&mut self) {
        self.ignores_system = true;
    }

    pub(super) fn trust(&mut self, pem: &[u8]) -> Result<(), String> {
        let roots = roots_of(pem).map_err(|why| format!("the text {why}"))?;
        self.added.extend(roots.roots);
        Ok(())
    }

    pub(super) async fn wrap(
        &self,
        socket: TcpStream,
        host: &str,
        within: Duration,
    ) -> Result<Box<dyn Stream>, FetchError> {
        let failed = |error: io::Error| match fault(&error) {
            Some(fault) => FetchError::with_cause(FetchErrorKind::Tls, fault),
            None => FetchError::with_cause(FetchErrorKind::Tls, error),
        };
        let connector = self.connector.get_or_try_init(|| self.connector()).await?;
        let name = ServerName::try_from(host.trim_end_matches('.').to_owned());
        let name = name.map_err(|error| FetchError::with_cause(FetchErrorKind::Tls, error))?;
        match timeout(within, connector.connect(name, socket)).await {
            Ok(stream) => Ok(Box::new(stream.map_err(failed)?)),
            Err(_) => Err(FetchError::with_cause(
                FetchErrorKind::Timeout,
                format!("no TLS session could be established within {within:?}"),
            )),
        }
    }

    async fn connector(&self) -> Result<TlsConnector, FetchError> {
        let (mut roots, ignores_system) = (RootCertStore { roots: self.added.clone() }, self.ignores_system);
        // The system's roots are loaded on another thread, because reading their files blocks.
        let built = tokio::task::spawn_blocking(move || {
            if !ignores_system {
                match system_roots() {
                    Ok(system) => roots.roots.extend(system.roots),
                    Err(why) if roots.is_empty() => return Err(why),
                    Err(_) => {}
                }
            }
            client_config(Arc::new(roots))
        });
        let built = built.await.map_err(|error| FetchError::with_cause(FetchErrorKind::Stopped, error))?;
        built.map(TlsConnector::from).map_err(|why| FetchError::with_cause(FetchErrorKind::Tls, why))
    }
}

/// Parses a PEM file with certificates of trusted authorities. The error is a message without the
/// name of the file. The caller puts the name in front of the message.
pub fn roots_of(pem: &[u8]) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        let certificate = certificate.map_err(|error| format!("is not PEM: {error}"))?;
        roots.add(certificate).map_err(|error| format!("contains an invalid certificate: {error}"))?;
    }
    if roots.is_empty() {
        return Err("contains no certificate: a certificate begins with \"-----BEGIN CERTIFICATE-----\"".to_owned());
    }
    Ok(roots)
}

/// Loads the certificates of the authorities that the system trusts. The error is a message for
/// operators.
pub fn system_roots() -> Result<RootCertStore, String> {
    let found = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    // Invalid certificates are skipped, because a system may also contain outdated certificates.
    roots.add_parsable_certificates(found.certs);
    if !roots.is_empty() {
        return Ok(roots);
    }
    let why = found.errors.first().map(|error| format!(": {error}")).unwrap_or_default();
    Err(format!("the system trusts no certificate authority{why}: install the package ca-certificates"))
}

/// Returns the TLS settings of an HTTP/1.1 client that trusts these authorities. The error is a
/// message for operators.
pub fn client_config(roots: Arc<RootCertStore>) -> Result<Arc<ClientConfig>, String> {
    // The cryptography provider is passed explicitly, because a default provider would affect the
    // whole process.
    let mut config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| format!("TLS cannot be set up: {error}"))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(Arc::new(config))
}

/// Maximum number of certificate names in a message.
const NAMES: usize = 3;

/// Returns a message for operators about a common TLS error; `None` for other errors.
fn fault(error: &io::Error) -> Option<String> {
    match error.get_ref()?.downcast_ref()? {
        rustls::Error::InvalidCertificate(fault) => Some(certificate_fault(fault)),
        rustls::Error::InvalidMessage(_) => Some("the server does not use TLS at this port".to_owned()),
        _ => None,
    }
}

/// Describes a certificate error for operators and, if possible, how to fix it.
pub fn certificate_fault(fault: &CertificateError) -> String {
    let date = |time: &UnixTime| httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(time.as_secs()));
    match fault {
        CertificateError::ExpiredContext { not_after, .. } => {
            format!("the certificate expired on {last_day}: renew it", last_day = date(not_after))
        }
        CertificateError::NotValidYetContext { not_before, .. } => {
            let from = date(not_before);
            format!(
                "the certificate is not valid before {from}: either the certificate is new, or the clock of this \
                 machine is wrong"
            )
        }
        CertificateError::NotValidForNameContext { expected, presented } => {
            let name = |text: &String| format!("{:?}", text.split('"').nth(1).unwrap_or(text));
            let names: Vec<_> = presented.iter().take(NAMES).map(name).collect();
            let (names, expected) = (names.join(", "), expected.to_str());
            let of = if names.is_empty() { "no name".to_owned() } else { names };
            format!(
                "the certificate is for {of} and not for {expected:?}: have the server send a certificate for this name"
            )
        }
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the certificate is not signed by a trusted authority, or an intermediate certificate is missing: \
             have the server send its whole chain, or trust the authority"
                .to_owned()
        }
        fault => {
            // The variant's name is in camel case, and its words are used as the message.
            let text = match fault {
                CertificateError::Other(error) => error.to_string(),
                fault => format!("{fault:?}"),
            };
            let name = text.split(" {").next().unwrap_or(&text);
            let remedy = match name {
                "CaUsedAsEndEntity" => {
                    ": it is the certificate of an authority, not of a server; create a server certificate with \
                     basicConstraints=CA:FALSE"
                }
                "InvalidPurposeContext" => {
                    ": it is not allowed for servers; create a certificate with extendedKeyUsage=serverAuth"
                }
                _ => "",
            };
            let separated =
                name.chars().flat_map(|char| [char.is_uppercase().then_some(' '), char.to_lowercase().next()]);
            let words: String = separated.flatten().collect();
            format!("the certificate of the server cannot be used ({problem}){remedy}", problem = words.trim_start())
        }
    }
}

robots_core::debug_as!(|it| Tls { added: it.added.len() });

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn certificate_errors_are_reported_in_plain_words() {
        let other = |name: &'static str| CertificateError::Other(rustls::OtherError(Arc::new(io::Error::other(name))));
        for (fault, said) in [
            (
                other("CaUsedAsEndEntity"),
                "(ca used as end entity): it is the certificate of an authority, not of a server",
            ),
            (other("MalformedExtensions"), "(malformed extensions)"),
            (CertificateError::Revoked, "(revoked)"),
            (CertificateError::BadSignature, "not signed by a trusted authority"),
        ] {
            assert!(certificate_fault(&fault).contains(said), "{}", certificate_fault(&fault));
        }
    }
}
