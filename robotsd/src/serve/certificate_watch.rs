//! Keeps the certificates of all listeners as new as their files.
//!
//! Those of each listener are read on a blocking thread of their own, one at a time: a file system that hangs holds up no
//! other listener, and keeps one thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use tokio::task::spawn_blocking;

use crate::edge::{CertificateEvent, CertificateEventKind, LiveCertificates};
use crate::log::{Log, LogEvent};

/// A look reads a few small files; certificates are replaced every few weeks.
const EVERY: Duration = Duration::from_secs(5);

/// How long files that have changed must stay as they are.
const SETTLING: Duration = Duration::from_millis(400);

/// The certificates of all listeners. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CertificateWatch {
    followed: Arc<Mutex<Vec<FollowedCertificates>>>,
    log: Log,
}

/// The certificates of one listener.
#[derive(Clone, Debug)]
struct FollowedCertificates {
    live: LiveCertificates,
    /// Held while their files are read.
    order: Arc<tokio::sync::Mutex<()>>,
}

impl CertificateWatch {
    /// Logs what the certificates are.
    pub(super) fn introduce(all: Vec<LiveCertificates>, log: &Log) -> Self {
        let certificates = Self { followed: Arc::default(), log: log.clone() };
        certificates.follow(all);
        certificates
    }

    /// Follows these from now on, and logs those that are new. It reads no file, and those that are new are read by no other
    /// thread yet.
    pub(super) fn follow(&self, all: Vec<LiveCertificates>) {
        let before = self.followed().clone();
        let now = SystemTime::now();
        let mut followed = Vec::with_capacity(all.len());
        for live in all {
            followed.push(match before.iter().find(|other| live.is(&other.live)) {
                Some(same) => same.clone(),
                None => {
                    log_news(&self.log, live.report_all(now));
                    FollowedCertificates { live, order: Arc::default() }
                }
            });
        }
        *self.followed() = followed;
    }

    /// Reads them again on request.
    pub(super) fn reload(&self) {
        for FollowedCertificates { live, order } in self.followed().clone() {
            let log = self.log.clone();
            tokio::spawn(async move {
                let order = order.lock_owned().await;
                spawn_blocking(move || {
                    let _order = order;
                    log_news(&log, live.reload(SystemTime::now()));
                })
                .await
            });
        }
    }

    /// Looks at the files again and again, for as long as the runtime lives.
    pub(super) async fn watch(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            for FollowedCertificates { live, order } in self.followed().clone() {
                // The look before this one may not have ended.
                let Ok(order) = order.try_lock_owned() else { continue };
                let log = self.log.clone();
                // The panic hook reports a panic.
                drop(spawn_blocking(move || {
                    let _order = order;
                    log_news(&log, live.look(SystemTime::now(), SETTLING));
                }));
            }
        }
    }

    fn followed(&self) -> MutexGuard<'_, Vec<FollowedCertificates>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn log_news(log: &Log, news: Vec<CertificateEvent>) {
    for CertificateEvent { kind, message } in news {
        let event = match kind {
            CertificateEventKind::InForce => LogEvent::Certificate,
            CertificateEventKind::Rejected => LogEvent::CertificateRejected,
            CertificateEventKind::Warning => LogEvent::CertificateWarning,
        };
        log.say(event, message);
    }
}
