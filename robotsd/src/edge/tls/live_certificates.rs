//! The certificates of a listener, replaced while it runs.
//!
//! A pair of files is taken when chain and key fit together; until they do, and whatever else is wrong with them, the
//! pair before stays. Only later handshakes use the new one. The caller decides when to look, on a thread that may block;
//! each change is reported once.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use tokio_rustls::rustls::Error;

use super::certificates::CertificatesByName;
use super::pair::{CertificatePair, PairPaths, PairVersion, version};
use super::server_config::{HandshakeConfig, ServedCertificate};

/// The certificates of a listener, as they are now. Cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct LiveCertificates(Arc<CertificateState>);

#[derive(Debug)]
struct CertificateState {
    paths: Vec<PairPaths>,
    current: ArcSwap<CertificatesByName<Arc<ServedCertificate>>>,
    making: HandshakeConfig,
    reports: Mutex<Vec<PairReport>>,
}

/// The last report about a pair, which is not repeated.
#[derive(Clone, Debug, Default)]
struct PairReport {
    rejection: Option<String>,
    warning: Option<String>,
}

/// An event about a pair, for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CertificateEvent {
    pub(crate) kind: CertificateEventKind,
    pub(crate) message: String,
}

/// The kinds of [`CertificateEvent`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CertificateEventKind {
    /// A pair is served from now on.
    InForce,
    /// A pair cannot be used; the one before stays.
    Rejected,
    /// A pair ends soon, or has ended.
    Warning,
}

impl LiveCertificates {
    /// The first pair is the default; fails where the system has no randomness to give.
    pub(crate) fn new(pairs: Vec<(PairPaths, CertificatePair)>) -> Result<Self, Error> {
        let making = HandshakeConfig::new()?;
        let (paths, pairs): (Vec<_>, Vec<_>) = pairs.into_iter().unzip();
        let shown = pairs.into_iter().map(|pair| making.shown(pair)).collect::<Result<_, _>>()?;
        let reports = Mutex::new(vec![PairReport::default(); paths.len()]);
        let current = ArcSwap::from_pointee(by_name(shown));
        Ok(Self(Arc::new(CertificateState { paths, current, making, reports })))
    }

    /// Whether they are the same, not only alike.
    pub(crate) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Where they are kept, in their order.
    pub(crate) fn paths(&self) -> &[PairPaths] {
        &self.0.paths
    }

    /// When the certificates in force end, by the files of their chains.
    pub(crate) fn ends(&self) -> Vec<(PathBuf, SystemTime)> {
        let current = self.current();
        let pairs = self.0.paths.iter().zip(current.iter());
        pairs.filter_map(|(paths, shown)| Some((paths.chain.clone(), shown.pair.end_time()?))).collect()
    }

    /// The certificates in force, and warnings about them.
    pub(crate) fn report_all(&self, now: SystemTime) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let mut events = Vec::new();
        for ((paths, shown), report) in self.0.paths.iter().zip(self.current().iter()).zip(reports.iter_mut()) {
            events.push(CertificateEvent::new(
                CertificateEventKind::InForce,
                paths,
                &format!("in force for {}", shown.pair),
            ));
            report.report_warning(paths, &shown.pair, now, &mut events);
        }
        events
    }

    /// Takes over files that have changed and then stay the same for the time `settling`: two files are rarely replaced at
    /// once. Blocks, that long where something has changed.
    pub(crate) fn look(&self, now: SystemTime, settling: Duration) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock().unwrap_or_else(PoisonError::into_inner);
        let seen: Vec<_> = self.0.paths.iter().map(version).collect();
        let is_current = self.current().iter().map(|shown| Some(shown.pair.version())).eq(seen.iter().copied());
        if !is_current {
            std::thread::sleep(settling);
        }
        self.take(&mut reports, |place| seen.get(place).copied().flatten(), now)
    }

    /// Takes over the files as they are now, on an operator's request. Blocks.
    pub(crate) fn reload(&self, now: SystemTime) -> Vec<CertificateEvent> {
        let mut reports = self.0.reports.lock().unwrap_or_else(PoisonError::into_inner);
        // The operator gets all reports, those that were made before included.
        reports.fill(PairReport::default());
        self.take(&mut reports, |place| self.0.paths.get(place).and_then(version), now)
    }

    /// As they are now.
    pub(super) fn current(&self) -> Arc<CertificatesByName<Arc<ServedCertificate>>> {
        self.0.current.load_full()
    }

    fn take(
        &self,
        reports: &mut [PairReport],
        seen: impl Fn(usize) -> Option<PairVersion>,
        now: SystemTime,
    ) -> Vec<CertificateEvent> {
        let mut events = Vec::new();
        let current = self.current();
        let mut next = Vec::with_capacity(self.0.paths.len());
        for (place, ((paths, before), report)) in self.0.paths.iter().zip(current.iter()).zip(reports).enumerate() {
            let seen = seen(place);
            let is_back = seen == Some(before.pair.version());
            let after = if is_back { None } else { self.read(paths, seen, report, &mut events) };
            if let Some(after) = &after {
                events.push(CertificateEvent::new(
                    CertificateEventKind::InForce,
                    paths,
                    &format!("replaced, in force for {}", after.pair),
                ));
            }
            if is_back && report.rejection.is_some() {
                events.push(CertificateEvent::new(CertificateEventKind::InForce, paths, "is again what is in force"));
            }
            if is_back || after.is_some() {
                report.rejection = None;
            }
            let shown = after.unwrap_or_else(|| Arc::clone(before));
            report.report_warning(paths, &shown.pair, now, &mut events);
            next.push(shown);
        }
        if !next.iter().zip(current.iter()).all(|(next, before)| Arc::ptr_eq(next, before)) {
            self.0.current.store(Arc::new(by_name(next)));
        }
        events
    }

    /// The pair in the files, unless it cannot be used.
    fn read(
        &self,
        paths: &PairPaths,
        seen: Option<PairVersion>,
        report: &mut PairReport,
        events: &mut Vec<CertificateEvent>,
    ) -> Option<Arc<ServedCertificate>> {
        let rejection = match CertificatePair::read(paths) {
            // Still changing: the next look reads it.
            Ok(pair) if seen != Some(pair.version()) => return None,
            Err(_) if seen != version(paths) => return None,
            Ok(pair) => match self.0.making.shown(pair) {
                Ok(shown) => return Some(shown),
                Err(error) => error.to_string(),
            },
            Err(unusable) => unusable.to_string(),
        };
        if report.rejection.as_ref() != Some(&rejection) {
            let message = format!("{rejection}; the certificate before stays in force");
            events.push(CertificateEvent { kind: CertificateEventKind::Rejected, message });
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
    CertificatesByName::new(shown, |shown| shown.pair.names())
}
