//! Reads the document every half second, on a thread and a connection of its own: nothing that the process does otherwise holds up a mark.
//!
//! There is no subscription, so that nothing can be lost: what is polled is epoch and tag, and the document where they have changed.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use redis::cmd;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::asks::{FleetSites, Round};
use super::document::{Document, Field};
use super::handle::Fleet;
use super::link::{LinkError, StoreLink};

/// How often the store is read at least. A mark is in force everywhere within two seconds: it is written, which may take a quarter of a
/// second, found with the next reading, and that takes two answers of the store.
const PERIOD: Duration = Duration::from_millis(500);

/// How long a disk may hold up the reading of the store.
const DISK: Duration = Duration::from_secs(1);

/// The next time to read: fixed when a reading begins, and put off by nothing.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimer {
    period: Duration,
    next: Instant,
}

impl ReadTimer {
    /// `share`, from 0 to 1, tells replicas apart: with different periods they do not go in step.
    pub(super) fn new(now: Instant, share: f64) -> Self {
        Self { period: PERIOD.mul_f64(1.0 - 0.2 * share.clamp(0.0, 1.0)), next: now }
    }

    /// How long until the document is read again.
    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    /// A reading begins.
    pub(super) fn begins(&mut self, now: Instant) {
        self.next = now + self.period;
    }
}

/// Epoch and tag: what has changed with each write.
type Edition = (Option<Vec<u8>>, Option<Vec<u8>>);

pub(super) struct DocumentReader {
    fleet: Arc<Fleet>,
    /// `None` before they are open.
    sites: Option<Arc<dyn FleetSites>>,
    link: StoreLink,
    /// The one that was read last.
    seen: Option<Edition>,
    /// The document lacked nothing that this replica knows.
    is_whole: bool,
}

impl DocumentReader {
    pub(super) fn new(fleet: Arc<Fleet>, sites: Option<Arc<dyn FleetSites>>) -> Self {
        let link = StoreLink::new(&fleet.settings.store);
        Self { fleet, sites, link, seen: None, is_whole: false }
    }

    /// Reads for as long as there is somebody who may ask for it. All who ask before a reading begins share it.
    pub(super) async fn run(mut self, share: f64, mut rounds: UnboundedReceiver<Round>) {
        let mut timer = ReadTimer::new(Instant::now(), share);
        loop {
            let mut asked = Vec::new();
            if let Ok(0) = timeout(timer.wait(Instant::now()), rounds.recv_many(&mut asked, usize::MAX)).await {
                return;
            }
            timer.begins(Instant::now());
            let read = self.read().await;
            self.fleet.was_read(read.err());
            drop(asked);
        }
    }

    /// Reads the document if it has changed, and has its marks in force. Entries that the store has lost are given to the writer.
    pub(super) async fn read(&mut self) -> Result<(), String> {
        let read = self.read_changed().await;
        if read.is_err() {
            self.seen = None;
        }
        read
    }

    async fn read_changed(&mut self) -> Result<(), String> {
        if self.fleet.asks.has_failed.swap(false, Ordering::AcqRel) {
            self.is_whole = false;
        }
        let key = self.link.key("doc");
        let now = self.link.read(&key, cmd("HMGET").arg(&key).arg("epoch").arg("tag")).await;
        let now = match now {
            Ok(now) if self.is_whole && self.seen.as_ref() == Some(&now) => return Ok(()),
            Ok(now) => now,
            Err(LinkError::WrongType(why)) => return self.take(Ok(Some(Document::unreadable(&key, &why))), None).await,
            Err(LinkError::Failed(why)) => return Err(why),
        };
        let fields: Vec<Field> = self.link.read(&key, cmd("HGETALL").arg(&key)).await.map_err(LinkError::text)?;
        self.take(Document::read(fields), Some(now)).await
    }

    async fn take(&mut self, read: Result<Option<Document>, String>, now: Option<Edition>) -> Result<(), String> {
        let is_changed = self.seen != now;
        let (fleet, sites) = (Arc::clone(&self.fleet), self.sites.clone());
        let saw = spawn_blocking(move || {
            // Switches are turned first; a disk that hangs holds up no more than this.
            let lost = fleet.saw(read);
            let is_whole = lost.is_empty();
            if is_changed {
                sites.iter().for_each(|sites| sites.were_switched_off());
                fleet.asks.ask_beat();
            }
            fleet.asks.lost.send_replace(lost);
            is_whole
        });
        // If the disk takes longer, the document is read again.
        if let Ok(Ok(is_whole)) = timeout(DISK, saw).await {
            (self.seen, self.is_whole) = (now, is_whole);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_read_more_often_than_every_second_and_nothing_puts_it_off() {
        let now = Instant::now();
        for share in [0.0, 0.3, 1.0] {
            let mut timer = ReadTimer::new(now, share);
            assert_eq!(timer.wait(now), Duration::ZERO);
            timer.begins(now);
            for late in [0, 100, 200, 300, 399, 500] {
                let late = Duration::from_millis(late);
                assert!(timer.wait(now + late) <= PERIOD.saturating_sub(late), "{share}");
            }
        }
    }
}
