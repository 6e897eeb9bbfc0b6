//! One certificate with its issuers and its key, read from files and known to fit together.
//!
//! No message contains anything from a key file.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;
use std::{fmt, io};

use sha2::{Digest, Sha256};
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{Error, InconsistentKeys};
use webpki::EndEntityCert;

use super::validity::Validity;
use crate::files;

/// The files of a certificate and its key, both as PEM.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PairPaths {
    /// The certificate, followed by those of its issuers.
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

/// A certificate and its key, fit for handshakes.
pub(crate) struct CertificatePair {
    pub(super) key: Arc<CertifiedKey>,
    /// The DNS names the certificate is for, in lower case; a wildcard begins with `*.`.
    pub(crate) names: Vec<String>,
    /// None where it cannot be read.
    pub(super) validity: Option<Validity>,
    pub(super) version: PairVersion,
    /// Whether others than owner and group may read the key, or the group may change it.
    exposed: bool,
}

/// A hash of both files, by which a change is noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairVersion([u8; 32]);

/// Why a pair cannot be used.
#[derive(Debug)]
pub(crate) struct Unusable {
    pub(crate) culprit: PairFile,
    message: String,
}

/// Which of the two files is wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairFile {
    Chain,
    Key,
}

/// No certificate with its issuers is larger; a larger file was named by mistake.
const MAX_FILE: u64 = 1 << 20;

impl CertificatePair {
    /// Reads the files and checks that they fit together.
    pub(crate) fn read(paths: &PairPaths) -> Result<Self, Unusable> {
        let unusable = |culprit, what: &str| {
            let path = if culprit == PairFile::Chain { &paths.chain } else { &paths.key };
            Unusable { culprit, message: format!("{}: {what}", path.display()) }
        };
        let (chain, _) = read(&paths.chain).map_err(|error| unusable(PairFile::Chain, &error.to_string()))?;
        let (key, exposed) = read(&paths.key).map_err(|error| unusable(PairFile::Key, &error.to_string()))?;
        let version = PairVersion::of(&chain, &key);
        let chain = certificates(&chain).map_err(|what| unusable(PairFile::Chain, what))?;
        let key = private_key(&key).map_err(|what| unusable(PairFile::Key, what))?;
        let end_entity = EndEntityCert::try_from(&chain[0])
            .map_err(|error| unusable(PairFile::Chain, &format!("the first certificate cannot be read: {error}")))?;
        let names = end_entity.valid_dns_names().map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect();
        let validity = Validity::of(&chain[0]);
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => unusable(
                PairFile::Key,
                "the key is not that of the first certificate of the chain, where a server's own has to stand",
            ),
            Error::InvalidCertificate(error) => unusable(PairFile::Chain, &format!("no certificate to use: {error:?}")),
            _ => unusable(
                PairFile::Key,
                "no key that can be used: take ECDSA (P-256, P-384), Ed25519 or RSA of 2048 to 8192 bits",
            ),
        })?;
        Ok(Self { key: Arc::new(key), names, validity, version, exposed })
    }

    /// A warning about the certificate or its key, if there is one.
    pub(super) fn warning(&self, now: SystemTime) -> Option<String> {
        if let Some(warning) = self.validity.and_then(|validity| validity.warning(now)) {
            return Some(warning);
        }
        self.exposed.then(|| "the key can be read or changed by more than its owner: chmod 0600, or 0640".to_owned())
    }

    /// Whether a client that checks certificates accepts this one for a host.
    pub(super) fn covers(&self, host: &str) -> bool {
        let Ok(name) = ServerName::try_from(host) else { return false };
        let certificate = self.key.cert.first().and_then(|certificate| EndEntityCert::try_from(certificate).ok());
        certificate.is_some_and(|certificate| certificate.verify_is_valid_for_subject_name(&name).is_ok())
    }
}

impl fmt::Debug for CertificatePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CertificatePair")
            .field("names", &self.names)
            .field("validity", &self.validity)
            .finish_non_exhaustive()
    }
}

/// The names of the certificate and its end, in a few words.
impl fmt::Display for CertificatePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        match &*self.names {
            [] => f.write_str("no DNS name")?,
            names => f.write_str(&names[..names.len().min(SHOWN)].join(", "))?,
        }
        if let Some(more) = self.names.len().checked_sub(SHOWN).filter(|more| *more > 0) {
            write!(f, " and {more} more")?;
        }
        self.validity.map_or(Ok(()), |validity| write!(f, ", until {}", validity.last_day()))
    }
}

impl PairVersion {
    fn of(chain: &[u8], key: &[u8]) -> Self {
        let length = (chain.len() as u64).to_be_bytes();
        Self(Sha256::new().chain_update(length).chain_update(chain).chain_update(key).finalize().into())
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The one of ring, passed explicitly: the process has no default that a library could change.
pub(super) fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// The version of the files of a pair now; none while one of them cannot be read.
pub(super) fn version(paths: &PairPaths) -> Option<PairVersion> {
    let (chain, _) = read(&paths.chain).ok()?;
    let (key, _) = read(&paths.key).ok()?;
    Some(PairVersion::of(&chain, &key))
}

/// The octets of a regular file, and whether its permissions are too wide for a key.
fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let (octets, metadata) = files::read_at_most(path, MAX_FILE)?;
    if octets.len() as u64 > MAX_FILE {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB, so it is something else"));
    }
    Ok((octets, is_exposed(&metadata)))
}

#[cfg(unix)]
fn is_exposed(metadata: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    // Any permission of others, and any of the group but reading.
    metadata.mode() & 0o037 != 0
}

#[cfg(not(unix))]
fn is_exposed(_: &std::fs::Metadata) -> bool {
    false
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| "this is broken PEM")?;
    if chain.is_empty() {
        Err("no certificate here: it begins with \"-----BEGIN CERTIFICATE-----\"")
    } else {
        Ok(chain)
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, &'static str> {
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => Ok(key),
        Err(_) if contains(pem, b"ENCRYPTED") => {
            Err("the key is encrypted, and there is no prompt for its passphrase: store it without one")
        }
        Err(_) if contains(pem, b"PRIVATE KEY-----") => Err("this is broken PEM"),
        Err(_) => Err("no private key here: it begins with \"-----BEGIN PRIVATE KEY-----\""),
    }
}

fn contains(text: &[u8], word: &[u8]) -> bool {
    memchr::memmem::find(text, word).is_some()
}
