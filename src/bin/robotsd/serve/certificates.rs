//! Keeps the certificates of all listeners as new as their files.

use std::time::{Duration, SystemTime};

use crate::edge::{LiveCertificates, News};
use crate::log::Log;

/// Looking is reading a few small files; certificates are replaced every few weeks, and nobody waits for it.
const EVERY: Duration = Duration::from_secs(5);

/// How long files that have changed must stay as they are.
const SETTLING: Duration = Duration::from_millis(400);

/// The certificates of all listeners. Cheap to clone.
#[derive(Clone, Debug)]
pub(super) struct Certificates {
    all: Vec<LiveCertificates>,
    log: Log,
}

impl Certificates {
    /// Says in the log what there is.
    pub(super) fn introduce(all: Vec<LiveCertificates>, log: &Log) -> Self {
        let certificates = Self { all, log: log.clone() };
        certificates.tell(|certificates, now| certificates.introduce(now));
        certificates
    }

    /// Reads them again because somebody asked for it, on a thread of its own.
    pub(super) fn reload(&self) {
        let certificates = self.clone();
        // What comes of it is logged.
        drop(tokio::task::spawn_blocking(move || certificates.tell(LiveCertificates::reload)));
    }

    /// Looks at the files again and again, for as long as the runtime lives.
    pub(super) async fn watch(self) {
        while !self.all.is_empty() {
            tokio::time::sleep(EVERY).await;
            let certificates = self.clone();
            let looked = tokio::task::spawn_blocking(move || {
                certificates.tell(|certificates, now| certificates.look(now, SETTLING))
            });
            if let Err(error) = looked.await {
                self.log.say("certificate-rejected", format!("the files could not be looked at: {error}"));
            }
        }
    }

    fn tell(&self, ask: impl Fn(&LiveCertificates, SystemTime) -> Vec<News>) {
        let now = SystemTime::now();
        for News { event, message } in self.all.iter().flat_map(|certificates| ask(certificates, now)) {
            self.log.say(event, message);
        }
    }
}
