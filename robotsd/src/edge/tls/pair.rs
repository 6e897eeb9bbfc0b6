//! A certificate with its issuers and its key, read from files.
//!
//! Error messages never quote the content of a key file, because the key is secret.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use std::{fmt, io};

use data_encoding::HEXLOWER;
use memchr::memmem;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use tokio_rustls::rustls::sign::CertifiedKey;
use tokio_rustls::rustls::{CertificateError, Error, InconsistentKeys};
use tower_robots::internals::{certificate_fault, first_few};
use webpki::{EndEntityCert, KeyUsage};

use crate::date;
use crate::files;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PairPaths {
    /// The file with the certificate, followed by the certificates of its issuers.
    pub(crate) chain: PathBuf,
    pub(crate) key: PathBuf,
}

pub(crate) struct CertificatePair {
    pub(super) key: Arc<CertifiedKey>,
    /// The DNS names of the certificate, in lower case; a wildcard begins with `*.`.
    pub(crate) names: Vec<String>,
    /// The validity of the certificate; `None` if it cannot be determined.
    pub(super) validity: Option<Validity>,
    pub(super) version: PairVersion,
    /// Whether the permissions of the key file are too wide: other users can access it, or the
    /// group can change it.
    exposed: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PairVersion([u8; 32]);

#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Unusable {
    pub(crate) culprit: PairFile,
    message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PairFile {
    Chain,
    Key,
}

/// Maximum size of a file, in bytes. Certificates with their issuers are always smaller, so a
/// larger file was configured by mistake.
const MAX_FILE: u64 = 1 << 20;

impl CertificatePair {
    pub(crate) fn read(paths: &PairPaths) -> Result<Self, Unusable> {
        let unusable = |culprit, what: &str| {
            let path = if culprit == PairFile::Chain { &paths.chain } else { &paths.key };
            Unusable { culprit, message: format!("{}: {what}", path.display()) }
        };
        let key = read(&paths.key).map_err(|error| unusable(PairFile::Key, &error.to_string()));
        let of_key = key.as_ref().err().map_or_else(String::new, |of_key| format!("; {of_key}"));
        let (chain, _) = read(&paths.chain).map_err(|error| unusable(PairFile::Chain, &format!("{error}{of_key}")))?;
        let (key, exposed) = key?;
        let version = PairVersion::of(&chain, &key);
        let chain = certificates(&chain).map_err(|what| unusable(PairFile::Chain, what))?;
        let key = private_key(&key).map_err(|what| unusable(PairFile::Key, what))?;
        let end_entity = EndEntityCert::try_from(&chain[0])
            .map_err(|error| unusable(PairFile::Chain, &format!("the first certificate is invalid: {error}")))?;
        let names = end_entity.valid_dns_names().map(|name| name.trim_end_matches('.').to_ascii_lowercase()).collect();
        let validity = Validity::of(&chain[0]);
        let key = CertifiedKey::from_der(chain, key, &provider()).map_err(|error| match error {
            Error::InconsistentKeys(InconsistentKeys::KeyMismatch) => unusable(
                PairFile::Key,
                "the key does not match the first certificate of the chain: the server's own certificate must come first",
            ),
            Error::InvalidCertificate(fault) => unusable(PairFile::Chain, &certificate_fault(&fault)),
            _ => unusable(
                PairFile::Key,
                "the key has an unsupported type or size: use ECDSA (P-256, P-384), Ed25519 or RSA of 2048 to 8192 \
                 bits",
            ),
        })?;
        Ok(Self { key: Arc::new(key), names, validity, version, exposed })
    }

    /// Returns the warnings about the certificate and its key; `None` if there are none.
    pub(super) fn warning(&self, now: SystemTime) -> Option<String> {
        let of_validity = self.validity.and_then(|validity| validity.warning(now));
        let of_key = "users other than the owner can read or change the key: set its mode to 0600 or 0640";
        let of_key = self.exposed.then(|| of_key.to_owned());
        let warnings: Vec<_> = of_validity.into_iter().chain(of_key).collect();
        (!warnings.is_empty()).then(|| warnings.join("; "))
    }

    /// Reports whether clients that verify certificates accept this certificate for the host.
    pub(super) fn covers(&self, host: &str) -> bool {
        let Ok(name) = ServerName::try_from(host) else { return false };
        let certificate = self.key.cert.first().and_then(|certificate| EndEntityCert::try_from(certificate).ok());
        certificate.is_some_and(|certificate| certificate.verify_is_valid_for_subject_name(&name).is_ok())
    }
}

tower_robots::internals::debug_as!(|it| CertificatePair { names: it.names, validity: it.validity });

impl fmt::Display for CertificatePair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &*self.names {
            [] => f.write_str("no DNS name")?,
            names => f.write_str(&first_few(names.iter(), 5))?,
        }
        self.validity.map_or(Ok(()), |validity| write!(f, ", until {}", validity.last_day()))
    }
}

impl PairVersion {
    fn of(chain: &[u8], key: &[u8]) -> Self {
        let mut hash = hmac_sha256::Hash::new();
        for part in [&(chain.len() as u64).to_be_bytes(), chain, key] {
            hash.update(part);
        }
        Self(hash.finalize())
    }
}

/// Returns the first DNS name in a client's certificate. If the certificate has no name, returns
/// the beginning of its hash.
pub(super) fn name_of(certificate: &CertificateDer<'_>) -> String {
    let parsed = EndEntityCert::try_from(certificate).ok();
    let name = parsed.as_ref().and_then(|parsed| parsed.valid_dns_names().next().map(str::to_owned));
    name.unwrap_or_else(|| format!("sha256:{}", HEXLOWER.encode(&hmac_sha256::Hash::hash(certificate)[..8])))
}

/// Returns the cryptography provider based on ring. The provider is passed explicitly to rustls,
/// because libraries could change the process-wide default.
pub(super) fn provider() -> CryptoProvider {
    ring::default_provider()
}

/// Returns the current version of a pair's files. Returns `None` if one of the files cannot be
/// read.
pub(super) fn version(paths: &PairPaths) -> Option<PairVersion> {
    let (chain, _) = read(&paths.chain).ok()?;
    let (key, _) = read(&paths.key).ok()?;
    Some(PairVersion::of(&chain, &key))
}

/// Checks the first certificate in a file: returns whether it belongs to a certificate authority,
/// and a warning about its validity, if any.
pub(crate) fn objections(chain: &Path, now: SystemTime) -> (bool, Option<String>) {
    let chain = read(chain).ok().and_then(|(pem, _)| certificates(&pem).ok()).unwrap_or_default();
    let Some(first) = chain.first() else { return (false, None) };
    let Some(validity) = Validity::of(first) else { return (false, None) };
    let is_of_authority = matches!(refusal(first, unix_time(validity.begin)), Some(webpki::Error::CaUsedAsEndEntity));
    (is_of_authority, validity.warning(now))
}

/// Returns the bytes of a regular file, and whether the file's permissions are too wide for a key.
fn read(path: &Path) -> io::Result<(Vec<u8>, bool)> {
    let (bytes, metadata) = files::read_at_most(path, MAX_FILE)?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            "the file is larger than 1 MiB, so it is not a PEM file",
        ));
    }
    // For a key, the group may have only read permission, and other users must have no permission.
    Ok((bytes, metadata.mode() & 0o037 != 0))
}

fn certificates(pem: &[u8]) -> Result<Vec<CertificateDer<'static>>, &'static str> {
    let chain: Vec<CertificateDer<'static>> =
        CertificateDer::pem_slice_iter(pem).collect::<Result<_, _>>().map_err(|_| "invalid PEM")?;
    if chain.is_empty() {
        Err("the file contains no certificate: a certificate begins with \"-----BEGIN CERTIFICATE-----\"")
    } else {
        Ok(chain)
    }
}

fn private_key(pem: &[u8]) -> Result<PrivateKeyDer<'static>, &'static str> {
    match PrivateKeyDer::from_pem_slice(pem) {
        Ok(key) => Ok(key),
        Err(_) if memmem::find(pem, b"ENCRYPTED").is_some() => {
            Err("the key is encrypted: store it without a passphrase, because robotsd cannot ask for one")
        }
        Err(_) if memmem::find(pem, b"PRIVATE KEY-----").is_some() => Err("invalid PEM"),
        Err(_) => Err("the file contains no private key: a key begins with \"-----BEGIN PRIVATE KEY-----\""),
    }
}

fn unix_time(time: SystemTime) -> UnixTime {
    UnixTime::since_unix_epoch(date::nearest_supported(time).duration_since(UNIX_EPOCH).unwrap_or_default())
}

/// Returns the reason why rustls' verifier rejects a DER certificate at this time, or `None` if the
/// certificate cannot be parsed. The verifier trusts no authority, so it rejects every certificate.
/// But the verifier checks dates and basic constraints first.
fn refusal(certificate: &CertificateDer<'_>, time: UnixTime) -> Option<webpki::Error> {
    let certificate = EndEntityCert::try_from(certificate).ok()?;
    certificate.verify_for_usage(&[], &[], &[], time, KeyUsage::server_auth(), None, None).err()
}

/// Maximum time from the first warning until a certificate expires. If a quarter of the
/// certificate's validity is shorter than this time, warnings begin only in the last quarter.
/// Usually, a certificate for 90 days is renewed 30 days before it expires, and a certificate for
/// six days is renewed after three days. So a warning means that automatic renewal has probably
/// failed.
const SOON: Duration = Duration::from_secs(14 * 24 * 3600);

/// The first and last date of a certificate's validity (RFC 5280, section 4.1.2.5).
///
/// rustls has no method that returns these dates, and an X.509 parser would add 14 crates. So the
/// verifier of rustls is called with a time before the first date, and with a time after the last
/// date. The errors of the verifier contain the dates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Validity {
    begin: SystemTime,
    pub(crate) end: SystemTime,
}

impl Validity {
    /// Returns the dates of a DER certificate, or `None` if the verifier cannot parse it.
    pub(crate) fn of(certificate: &[u8]) -> Option<Self> {
        let certificate = CertificateDer::from(certificate);
        let at = |time: UnixTime| UNIX_EPOCH + Duration::from_secs(time.as_secs());
        let begin = match refusal(&certificate, UnixTime::since_unix_epoch(Duration::ZERO))? {
            webpki::Error::CertNotValidYet { not_before, .. } => at(not_before),
            _ => UNIX_EPOCH,
        };
        match refusal(&certificate, UnixTime::since_unix_epoch(Duration::MAX))? {
            webpki::Error::CertExpired { not_after, .. } => Some(Self { begin, end: at(not_after) }),
            _ => None,
        }
    }

    pub(crate) fn last_day(&self) -> String {
        let mut day = date::rfc3339(self.end);
        day.truncate(10);
        day
    }

    /// Returns a warning if the certificate is not valid now or expires soon.
    pub(crate) fn warning(&self, now: SystemTime) -> Option<String> {
        let [time, not_before, not_after] = [now, self.begin, self.end].map(unix_time);
        if now < self.begin {
            return Some(certificate_fault(&CertificateError::NotValidYetContext { time, not_before }));
        }
        let soon = SOON.min(self.end.duration_since(self.begin).unwrap_or_default() / 4);
        match self.end.duration_since(now) {
            Err(_) => Some(certificate_fault(&CertificateError::ExpiredContext { time, not_after })),
            Ok(left) if left <= soon => {
                let hours = left.as_secs() / 3600;
                let left = match hours {
                    0 => "less than an hour".to_owned(),
                    1 => "1 hour".to_owned(),
                    2..48 => format!("{hours} hours"),
                    _ => format!("{} days", hours / 24),
                };
                Some(format!("the certificate expires on {last_day}, in {left}: renew it", last_day = self.last_day()))
            }
            Ok(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, KeyPair, date_time_ymd};

    use super::*;

    fn made(begin: (i32, u8, u8), end: (i32, u8, u8)) -> Vec<u8> {
        let mut params = CertificateParams::new(vec!["a.test".to_owned()]).unwrap();
        params.not_before = date_time_ymd(begin.0, begin.1, begin.2);
        params.not_after = date_time_ymd(end.0, end.1, end.2);
        params.self_signed(&KeyPair::generate().unwrap()).unwrap().der().to_vec()
    }

    fn at(text: &str) -> SystemTime {
        humantime::parse_rfc3339(text).unwrap()
    }

    #[test]
    fn rfc_5280_4_1_2_5_both_time_formats_are_parsed() {
        for (begin, end, text) in [
            ((1999, 12, 31), (2049, 12, 31), "2049-12-31"),
            ((2026, 2, 28), (2050, 1, 1), "2050-01-01"),
            ((2051, 1, 1), (4096, 1, 1), "4096-01-01"),
        ] {
            let validity = Validity::of(&made(begin, end)).unwrap();
            assert_eq!(validity.last_day(), text);
            let (year, month, day) = begin;
            assert_eq!(validity.begin, at(&format!("{year}-{month:02}-{day:02}T00:00:00Z")));
        }
    }

    #[test]
    fn a_certificate_causes_a_warning_in_the_two_weeks_before_it_expires() {
        let validity = Validity::of(&made((2026, 1, 1), (2026, 4, 1))).unwrap();
        for (now, word) in [
            ("2025-12-31T23:59:59Z", Some("is not valid before Thu, 01 Jan 2026 00:00:00 GMT")),
            ("2026-01-01T00:00:00Z", None),
            ("2026-03-17T23:59:59Z", None),
            ("2026-03-18T00:00:00Z", Some("expires on 2026-04-01, in 14 days")),
            ("2026-03-30T12:00:00Z", Some("in 36 hours")),
            ("2026-03-31T22:30:00Z", Some("in 1 hour:")),
            ("2026-03-31T23:30:00Z", Some("in less than an hour:")),
            ("2026-04-01T00:00:01Z", Some("expired on Wed, 01 Apr 2026 00:00:00 GMT: renew it")),
        ] {
            let warning = validity.warning(at(now));
            match word {
                Some(word) => assert!(warning.unwrap().contains(word), "{now}"),
                None => assert_eq!(warning, None, "{now}"),
            }
        }
    }

    #[test]
    fn a_short_lived_certificate_causes_a_warning_in_its_last_quarter() {
        let validity = Validity::of(&made((2026, 1, 1), (2026, 1, 9))).unwrap();
        assert_eq!(validity.warning(at("2026-01-06T23:59:59Z")), None);
        assert!(validity.warning(at("2026-01-07T00:00:00Z")).unwrap().contains("expires on 2026-01-09, in 2 days"));
    }

    #[test]
    fn truncated_certificates_have_no_validity_and_damaged_ones_do_not_panic() {
        let whole = made((2026, 1, 1), (2026, 4, 1));
        for length in 0..whole.len() {
            // The bytes are shorter than the length that the certificate declares.
            assert_eq!(Validity::of(&whole[..length]), None);
        }
        for at in 0..200 {
            for byte in [0, 0x7f, 0x80, 0x84, 0xff] {
                let mut broken = whole.clone();
                broken[at] = byte;
                // Any result is correct, as long as nothing panics.
                let _ = Validity::of(&broken);
            }
        }
    }
}
