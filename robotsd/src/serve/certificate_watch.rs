//! Keeps the certificates of all listeners as new as their files.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use crate::edge::{CertificateEvent, LiveCertificates};
use crate::log::Log;

/// Looking is reading a few small files; certificates are replaced every few weeks, and nobody waits for it.
const EVERY: Duration = Duration::from_secs(5);

/// How long files that have changed must stay as they are.
const SETTLING: Duration = Duration::from_millis(400);

/// The certificates of all listeners. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct CertificateWatch {
    all: Arc<Mutex<Vec<LiveCertificates>>>,
    log: Log,
}

impl CertificateWatch {
    /// Says in the log what there is.
    pub(super) fn introduce(all: Vec<LiveCertificates>, log: &Log) -> Self {
        let certificates = Self { all: Arc::default(), log: log.clone() };
        certificates.follow(all);
        certificates
    }

    /// Follows these from now on, and says of those that are new what they are.
    pub(super) fn follow(&self, all: Vec<LiveCertificates>) {
        let before = std::mem::replace(&mut *self.all(), all.clone());
        let is_new = |one: &&LiveCertificates| !before.iter().any(|other| one.is(other));
        let now = SystemTime::now();
        let news = all.iter().filter(is_new).flat_map(|certificates| certificates.introduce(now));
        news.for_each(|CertificateEvent { event, message }| self.log.say(event, message));
    }

    /// Reads them again because somebody asked for it, on a thread of its own.
    pub(super) fn reload(&self) {
        let certificates = self.clone();
        // What comes of it is logged.
        drop(tokio::task::spawn_blocking(move || certificates.tell(LiveCertificates::reload)));
    }

    /// Looks at the files again and again, for as long as the runtime lives.
    pub(super) async fn watch(self) {
        loop {
            tokio::time::sleep(EVERY).await;
            if self.all().is_empty() {
                continue;
            }
            let certificates = self.clone();
            let looked = tokio::task::spawn_blocking(move || {
                certificates.tell(|certificates, now| certificates.look(now, SETTLING))
            });
            if let Err(error) = looked.await {
                self.log.say("certificate-rejected", format!("the files could not be looked at: {error}"));
            }
        }
    }

    fn all(&self) -> MutexGuard<'_, Vec<LiveCertificates>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tell(&self, ask: impl Fn(&LiveCertificates, SystemTime) -> Vec<CertificateEvent>) {
        let now = SystemTime::now();
        for CertificateEvent { event, message } in
            self.all().clone().iter().flat_map(|certificates| ask(certificates, now))
        {
            self.log.say(event, message);
        }
    }
}
