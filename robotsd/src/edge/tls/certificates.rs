//! Chooses one of a listener's certificates for each client, and replaces certificates at run time.
//!
//! A certificate is chosen by the name that the client sends (SNI). An exact name takes precedence
//! over a wildcard. If several certificates have the same name, for example with an ECDSA key and
//! with an RSA key, the first certificate whose signature the client supports is chosen. If a
//! client sends an unknown name or no name, it gets the first certificate of the listener. A
//! certificate for another name is easier to diagnose than a failed handshake, and health checks
//! that connect by address keep working.
//!
//! A certificate and its key are two files, which are not replaced at the same moment. So a new
//! pair is used only if its certificate and key match, and two successive reads have found the same
//! content. If the new pair cannot be used, the previous pair stays in use. A new pair applies only
//! to later handshakes.
//!
//! The caller decides when to check the files, on a thread that may block. Each change is reported
//! once. The files are read every few seconds, which costs less than interpreting file system
//! events for symlinked directories.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::server::{ClientHello, NoServerSessionStorage, ProducesTickets, WebPkiClientVerifier};
use tokio_rustls::rustls::sign::SingleCertAndKey;
use tokio_rustls::rustls::{Error, ServerConfig};

use self::CertificateEventKind::InForce;
use super::pair::{CertificatePair, PairPaths, PairVersion, Validity, provider, version};
use crate::authorities::Authorities;

/// The certificates of a listener, indexed by name. A listener has at least one certificate.
#[derive(Debug)]
pub(super) struct CertificatesByName<P = Arc<CertificatePair>> {
    pub(super) certificates: Vec<P>,
    exact: HashMap<String, Vec<usize>>,
    /// Certificates with wildcard names, indexed by the part of the name after `*.`.
    wildcard: HashMap<String, Vec<usize>>,
}

impl<P> CertificatesByName<P> {
    /// Builds the index. The first certificate is the default for unknown names.
    pub(super) fn new(certificates: Vec<P>, names: impl Fn(&P) -> &[String]) -> Self {
        let mut exact: HashMap<String, Vec<usize>> = HashMap::new();
        let mut wildcard: HashMap<String, Vec<usize>> = HashMap::new();
        for (place, certificate) in certificates.iter().enumerate() {
            for name in names(certificate) {
                let places = match name.strip_prefix("*.") {
                    Some(parent) => wildcard.entry(parent.to_owned()).or_default(),
                    None => exact.entry(name.clone()).or_default(),
                };
                if !places.contains(&place) {
                    places.push(place);
                }
            }
        }
        Self { certificates, exact, wildcard }
    }

    /// Returns the certificate for a name, with its index. In order of preference, this is the
    /// first certificate with this name that `suits` accepts, the first certificate with this name,
    /// or the default.
    pub(super) fn choose(&self, name: Option<&str>, suits: impl Fn(&P) -> bool) -> Option<(usize, &P)> {
        let candidates = || name.into_iter().flat_map(|name| self.candidates(name));
        let suitable = candidates().find(|place| self.certificates.get(*place).is_some_and(&suits));
        let place = suitable.or_else(|| candidates().next()).unwrap_or(DEFAULT);
        Some((place, self.certificates.get(place)?))
    }

    pub(super) fn may_choose(&self, place: usize, name: &str) -> bool {
        let mut candidates = self.candidates(name).peekable();
        if candidates.peek().is_none() { place == DEFAULT } else { candidates.any(|candidate| candidate == place) }
    }

    /// Returns the indices of all certificates that could be chosen for a name, best first.
    fn candidates(&self, name: &str) -> impl Iterator<Item = usize> {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        let exact = self.exact.get(&name);
        // A wildcard matches exactly one label (RFC 9525, section 6.3).
        let wildcard = name.split_once('.').and_then(|(_, parent)| self.wildcard.get(parent));
        exact.into_iter().chain(wildcard).flatten().copied()
    }
}

const DEFAULT: usize = 0;

pub(super) const HTTP_2: &[u8] = b"h2";
const HTTP_1: &[u8] = b"http/1.1";

#[derive(Debug)]
pub(super) struct ServedCertificate {
    pub(super) pair: CertificatePair,
    pub(super) config: Arc<ServerConfig>,
}

#[derive(Debug)]
pub(super) struct HandshakeConfig {
    provider: Arc<CryptoProvider>,
    /// The keys for session tickets. The keys are replaced every six hours, but not when
    /// certificates are reloaded, because resuming a session does not involve a certificate.
    tickets: Arc<dyn ProducesTickets>,
    clients: Arc<dyn ClientCertVerifier>,
    protocols: &'static [&'static [u8]],
}

impl HandshakeConfig {
    /// Creates the settings. Fails if the system cannot provide randomness.
    pub(super) fn new() -> Result<Self, Error> {
        let (tickets, clients) = (ring::Ticketer::new()?, WebPkiClientVerifier::no_client_auth());
        Ok(Self { provider: Arc::new(provider()), tickets, clients, protocols: &[HTTP_2, HTTP_1] })
    }

    /// Creates the settings for an admin listener, which supports HTTP/1.1 only.
    fn for_operators(clients: Option<&Authorities>) -> Result<Self, Error> {
        let made = Self { protocols: &[HTTP_1], ..Self::new()? };
        let Some(Authorities { roots, .. }) = clients else { return Ok(made) };
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&made.provider)).build();
        Ok(Self { clients: verifier.map_err(|error| Error::General(error.to_string()))?, ..made })
    }

    pub(super) fn shown(&self, pair: CertificatePair) -> Result<Arc<ServedCertificate>, Error> {
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::clone(&self.clients))
            .with_cert_resolver(Arc::new(SingleCertAndKey::from(Arc::clone(&pair.key))));
        config.alpn_protocols = self.protocols.iter().map(|protocol| protocol.to_vec()).collect();
        config.ticketer = Arc::clone(&self.tickets);
        // Clients keep their sessions in tickets, so the server needs no memory for sessions.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        Ok(Arc::new(ServedCertificate { pair, config: Arc::new(config) }))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct LiveCertificates(Arc<CertificateState>);

#[derive(Debug)]
struct CertificateState {
    paths: Vec<PairPaths>,
    clients: Option<Authorities>,
    current: ArcSwap<CertificatesByName<Arc<ServedCertificate>>>,
    handshake_config: HandshakeConfig,
    reports: Mutex<Vec<PairReport>>,
    /// For each pair, in the order of `paths`: the reason why its current files cannot be used.
    /// These reasons are not part of `reports`, because `reports` is locked while files are read.
    rejections: ArcSwap<Vec<Option<String>>>,
}

/// The last rejection of a pair and the last warning about a pair. A message that is equal to the
/// last one is not reported again.
#[derive(Clone, Debug, Default)]
struct PairReport {
    rejection: Option<String>,
    warning: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateEvent {
    pub(crate) kind: CertificateEventKind,
    pub(crate) message: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateEventKind {
    InForce,
    /// The pair's current files cannot be used. The previous certificate stays in force.
    Rejected,
    Warning,
}

/// Two values are equal if they have the same paths in the same order, and the same authorities for
/// client certificates. The content of the files at the paths is not compared.
impl PartialEq for LiveCertificates {
    fn eq(&self, other: &Self) -> bool {
        self.0.paths == other.0.paths && self.0.clients == other.0.clients
    }
}

type ReadPairs = Vec<(PairPaths, CertificatePair)>;

impl LiveCertificates {
    /// Creates the certificates of a listener. The first pair is the default. Fails if the system
    /// cannot provide randomness.
    pub(crate) fn new(pairs: ReadPairs) -> Result<Self, Error> {
        Self::with_config(HandshakeConfig::new()?, None, pairs)
    }

    /// Creates the certificates of an admin listener. If `clients` is given, each client must have
    /// a certificate from one of these authorities.
    pub(crate) fn for_operators(pairs: ReadPairs, clients: Option<Authorities>) -> Result<Self, Error> {
        Self::with_config(HandshakeConfig::for_operators(clients.as_ref())?, clients, pairs)
    }

    fn with_config(
        handshake_config: HandshakeConfig,
        clients: Option<Authorities>,
        pairs: ReadPairs,
    ) -> Result<Self, Error> {
        let (paths, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let shown = pairs.into_iter().map(|pair| handshake_config.shown(pair)).collect::<Result<_, _>>()?;
        let reports = Mutex::new(vec![PairReport::default(); paths.len()]);
        let rejections = ArcSwap::from_pointee(vec![None; paths.len()]);
        let current = ArcSwap::from_pointee(by_name(shown));
        Ok(Self(Arc::new(CertificateState { paths, clients, current, handshake_config, reports, rejections })))
    }

    /// Reports whether `self` and `other` are clones of one value. Two separate values for the same
    /// files are equal (`==`), but this function returns `false` for them.
    pub(crate) fn is_clone_of(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    pub(crate) fn require_client_certificates(&self) -> bool {
        self.0.clients.is_some()
    }

    /// Returns the path of each chain file, with the validity of the certificate that is in use.
    pub(crate) fn dates(&self) -> Vec<(PathBuf, Validity)> {
        let current = self.current();
        let pairs = self.0.paths.iter().zip(&current.certificates);
        pairs.filter_map(|(paths, shown)| Some((paths.chain.clone(), shown.pair.validity?))).collect()
    }

    /// Returns the path of each pair's certificate file. If the pair's current files cannot be
    /// used, also returns the reason; the previous certificate then stays in force. Does not read
    /// files.
    pub(crate) fn rejections(&self) -> Vec<(PathBuf, Option<String>)> {
        let chains = self.0.paths.iter().map(|paths| paths.chain.clone());
        chains.zip(self.0.rejections.load().iter().cloned()).collect()
    }

    /// Reports whether any certificate is for this host. A pattern such as `*.example.com` is also
    /// accepted.
    pub(crate) fn cover(&self, pattern: &str) -> bool {
        let current = self.current();
        let mut names = current.certificates.iter().flat_map(|shown| &shown.pair.names);
        // For a pattern, the certificate must be for at least one host that the pattern matches.
        let is_any_below = |below: &str| names.any(|name| name.ends_with(below));
        pattern.strip_prefix('*').map_or_else(|| current.candidates(pattern).next().is_some(), is_any_below)
    }

    pub(crate) fn report_all(&self, now: SystemTime) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock();
        let mut events = Vec::new();
        for ((paths, shown), report) in
            self.0.paths.iter().zip(self.current().certificates.iter()).zip(reports.iter_mut())
        {
            events.push(CertificateEvent::new(InForce, paths, &format!("used for {}", shown.pair)));
            report.report_warning(paths, &shown.pair, now, &mut events);
        }
        events
    }

    /// Loads files that have changed. If any file has changed, first waits for `settling`, because
    /// the two files of a pair are rarely replaced at the same moment. Then loads only pairs that
    /// have not changed during this wait. Blocks.
    pub(crate) fn reload_changed(&self, now: SystemTime, settling: Duration) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock();
        let seen = self.versions();
        let is_current =
            self.current().certificates.iter().map(|shown| Some(shown.pair.version)).eq(seen.iter().copied());
        if !is_current {
            std::thread::sleep(settling);
        }
        self.take(&mut reports, &seen, now)
    }

    /// Loads all files now, because an operator has requested it. Blocks.
    pub(crate) fn reload(&self, now: SystemTime) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock();
        // The operator gets all messages again, even if they were reported before.
        reports.fill(PairReport::default());
        self.take(&mut reports, &self.versions(), now)
    }

    /// Returns the certificate for a client, with its index.
    pub(super) fn chosen(&self, hello: &ClientHello<'_>) -> Option<(usize, Arc<ServedCertificate>)> {
        let (current, schemes) = (self.current(), hello.signature_schemes());
        let chosen = current.choose(hello.server_name(), |shown| shown.pair.key.key.choose_scheme(schemes).is_some());
        chosen.map(|(place, shown)| (place, Arc::clone(shown)))
    }

    pub(super) fn current(&self) -> Arc<CertificatesByName<Arc<ServedCertificate>>> {
        self.0.current.load_full()
    }

    /// Returns the version of each pair's files, or `None` for a pair that cannot be read.
    fn versions(&self) -> Vec<Option<PairVersion>> {
        self.0.paths.iter().map(version).collect()
    }

    fn take(&self, reports: &mut [PairReport], seen: &[Option<PairVersion>], now: SystemTime) -> Vec<CertificateEvent> {
        let mut events = Vec::new();
        let current = self.current();
        let mut next = Vec::with_capacity(self.0.paths.len());
        let mut rejections = Vec::with_capacity(self.0.paths.len());
        let pairs = self.0.paths.iter().zip(&current.certificates).zip(reports).zip(seen);
        for (((paths, before), report), &seen) in pairs {
            let is_back = seen == Some(before.pair.version);
            let after = if is_back { None } else { self.read(paths, seen, report, &mut events) };
            if let Some(after) = &after {
                events.push(CertificateEvent::new(
                    InForce,
                    paths,
                    &format!("the certificate was replaced; the new one is used for {names}", names = after.pair),
                ));
            }
            if is_back && report.rejection.is_some() {
                let message =
                    format!("the files again contain the certificate that is used for {names}", names = before.pair);
                events.push(CertificateEvent::new(InForce, paths, &message));
            }
            if is_back || after.is_some() {
                report.rejection = None;
            }
            let shown = after.unwrap_or_else(|| Arc::clone(before));
            report.report_warning(paths, &shown.pair, now, &mut events);
            rejections.push(report.rejection.clone());
            next.push(shown);
        }
        if !next.iter().zip(&current.certificates).all(|(next, before)| Arc::ptr_eq(next, before)) {
            self.0.current.store(Arc::new(by_name(next)));
        }
        self.0.rejections.store(Arc::new(rejections));
        events
    }

    /// Reads a pair from its files. Returns `None` if the pair cannot be used.
    fn read(
        &self,
        paths: &PairPaths,
        seen: Option<PairVersion>,
        report: &mut PairReport,
        events: &mut Vec<CertificateEvent>,
    ) -> Option<Arc<ServedCertificate>> {
        let rejection = match CertificatePair::read(paths) {
            // The files are still changing. The next check will read the files again.
            Ok(pair) if seen != Some(pair.version) => return None,
            Err(_) if seen != version(paths) => return None,
            Ok(pair) => match self.0.handshake_config.shown(pair) {
                Ok(shown) => return Some(shown),
                Err(error) => error.to_string(),
            },
            Err(unusable) => unusable.to_string(),
        };
        let rejection = format!("{rejection}; the previous certificate stays in use, but a restart would fail");
        if report.rejection.as_ref() != Some(&rejection) {
            events.push(CertificateEvent { kind: CertificateEventKind::Rejected, message: rejection.clone() });
            report.rejection = Some(rejection);
        }
        None
    }
}

impl PairReport {
    fn report_warning(
        &mut self,
        paths: &PairPaths,
        pair: &CertificatePair,
        now: SystemTime,
        events: &mut Vec<CertificateEvent>,
    ) {
        let warning = pair.warning(now);
        if let Some(warning) = warning.as_ref().filter(|warning| self.warning.as_ref() != Some(warning)) {
            events.push(CertificateEvent::new(CertificateEventKind::Warning, paths, warning));
        }
        self.warning = warning;
    }
}

impl CertificateEvent {
    fn new(kind: CertificateEventKind, paths: &PairPaths, what: &str) -> Self {
        Self { kind, message: format!("{}: {what}", paths.chain.display()) }
    }
}

fn by_name(shown: Vec<Arc<ServedCertificate>>) -> CertificatesByName<Arc<ServedCertificate>> {
    CertificatesByName::new(shown, |shown| &shown.pair.names)
}

#[cfg(test)]
mod tests {
    use super::*;

    type Made = (Vec<String>, bool);

    fn certificates(of: &[(&[&str], bool)]) -> CertificatesByName<Made> {
        let made = |(names, suits): &(&[&str], bool)| (names.iter().map(ToString::to_string).collect(), *suits);
        CertificatesByName::new(of.iter().map(made).collect(), |made: &Made| &made.0)
    }

    fn chosen(certificates: &CertificatesByName<Made>, name: Option<&str>) -> usize {
        certificates.choose(name, |made| made.1).unwrap().0
    }

    #[test]
    fn an_exact_name_precedes_a_wildcard_and_the_first_certificate_is_the_default() {
        let certificates = certificates(&[
            (&["default.test"], true),
            (&["*.shop.test", "shop.test"], true),
            (&["img.shop.test"], true),
        ]);
        assert_eq!(chosen(&certificates, None), 0);
        let of_default = ["default.test", "a.b.shop.test", "other.test", "", "."];
        for (place, names) in [&of_default[..], &["shop.test", "WWW.shop.TEST.", ".shop.test"], &["img.shop.test"]]
            .into_iter()
            .enumerate()
        {
            for name in names {
                assert_eq!(chosen(&certificates, Some(name)), place, "{name:?}");
            }
        }
    }

    #[test]
    fn the_first_certificate_for_a_name_that_the_client_supports_is_chosen() {
        let certificates = certificates(&[
            (&["a.test"], true),
            (&["b.test"], false),
            (&["b.test"], true),
            (&["*.c.test"], true),
            (&["x.c.test"], false),
            (&["d.test"], false),
        ]);
        assert_eq!(chosen(&certificates, Some("b.test")), 2);
        assert_eq!(chosen(&certificates, Some("x.c.test")), 3);
        // The client supports no signature of these certificates. In this case, the first
        // certificate is chosen.
        assert_eq!(chosen(&certificates, Some("d.test")), 5);
    }

    #[test]
    fn a_host_is_served_only_with_certificates_that_could_be_chosen_for_it() {
        let certificates = certificates(&[(&["a.test"], true), (&["b.test"], true), (&["b.test"], true)]);
        for (place, host, may) in [
            (0, "a.test", true),
            (0, "nowhere.test", true),
            (0, "b.test", false),
            (1, "B.test", true),
            (2, "b.test", true),
            (1, "a.test", false),
            (1, "nowhere.test", false),
        ] {
            assert_eq!(certificates.may_choose(place, host), may, "{place} {host}");
        }
    }
}
