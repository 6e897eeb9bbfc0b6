//! Reads the document every half second. The reader has its own thread and connection, so that
//! other work of the process cannot delay an off switch.
//!
//! The reader polls the epoch and the tag, and reads the whole document if one of them has changed.
//! The reader does not subscribe to changes, because messages to subscribers may be lost.

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

/// Maximum interval between two reads. Every replica must apply an off switch within two seconds of
/// the command. The two seconds include up to 250 ms for the write, the time until the next read,
/// and the two requests of this read.
const PERIOD: Duration = Duration::from_millis(500);

/// Maximum time that the reader waits for a slow disk before the next read.
const DISK: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug)]
pub(super) struct ReadTimer {
    period: Duration,
    next: Instant,
}

impl ReadTimer {
    /// Creates a timer. `share`, from 0 to 1, shortens the period by up to 20 %. Replicas use
    /// different values of `share`, so that they do not all read at the same moment.
    pub(super) fn new(now: Instant, share: f64) -> Self {
        Self { period: PERIOD.mul_f64(1.0 - 0.2 * share.clamp(0.0, 1.0)), next: now }
    }

    pub(super) fn wait(&self, now: Instant) -> Duration {
        self.next.saturating_duration_since(now)
    }

    pub(super) fn restart(&mut self, now: Instant) {
        self.next = now + self.period;
    }
}

/// Epoch and tag of the document. Each write changes the tag.
type Edition = (Option<Vec<u8>>, Option<Vec<u8>>);

pub(super) struct DocumentReader {
    fleet: Arc<Fleet>,
    /// The sites; `None` for the read that takes place before the sites are opened.
    sites: Option<Arc<dyn FleetSites>>,
    link: StoreLink,
    seen: Option<Edition>,
    /// Whether the last document contained every off switch and tombstone that this replica knows.
    is_complete: bool,
}

impl DocumentReader {
    pub(super) fn new(fleet: Arc<Fleet>, sites: Option<Arc<dyn FleetSites>>) -> Self {
        let link = StoreLink::new(&fleet.settings.store);
        Self { fleet, sites, link, seen: None, is_complete: false }
    }

    /// Reads the document whenever the timer expires or a request arrives, until all senders of
    /// requests are dropped. One read answers all requests that are in the queue when it begins.
    pub(super) async fn run(mut self, share: f64, mut rounds: UnboundedReceiver<Round>) {
        let mut timer = ReadTimer::new(Instant::now(), share);
        loop {
            let mut asked = Vec::new();
            if let Ok(0) = timeout(timer.wait(Instant::now()), rounds.recv_many(&mut asked, usize::MAX)).await {
                return;
            }
            timer.restart(Instant::now());
            let read = self.read().await;
            self.fleet.record_read(read.err());
            drop(asked);
        }
    }

    pub(super) async fn read(&mut self) -> Result<(), String> {
        let read = self.read_changed().await;
        if read.is_err() {
            self.seen = None;
        }
        read
    }

    async fn read_changed(&mut self) -> Result<(), String> {
        if self.fleet.asks.has_failed.swap(false, Ordering::AcqRel) {
            self.is_complete = false;
        }
        let key = self.link.key("doc");
        let now = self.link.read(&key, cmd("HMGET").arg(&key).arg("epoch").arg("tag")).await;
        let now = match now {
            Ok(now) if self.is_complete && self.seen.as_ref() == Some(&now) => return Ok(()),
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
        let applying = spawn_blocking(move || {
            // The kill switches are set before the file is written, so a slow disk cannot delay
            // them.
            let lost = fleet.apply_read(read);
            let is_complete = lost.is_empty();
            if is_changed {
                sites.iter().for_each(|sites| sites.record_switch_off());
                fleet.asks.request_heartbeat();
            }
            fleet.asks.lost.send_replace(lost);
            is_complete
        });
        // If `applying` takes longer than [`DISK`], for example because the disk hangs, the epoch
        // and tag are not recorded, so the next read applies the document again.
        if let Ok(Ok(is_complete)) = timeout(DISK, applying).await {
            (self.seen, self.is_complete) = (now, is_complete);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_read_at_least_once_per_period_and_delays_do_not_postpone_it() {
        let now = Instant::now();
        for share in [0.0, 0.3, 1.0] {
            let mut timer = ReadTimer::new(now, share);
            assert_eq!(timer.wait(now), Duration::ZERO);
            timer.restart(now);
            for late in [0, 100, 200, 300, 399, 500] {
                let late = Duration::from_millis(late);
                assert!(timer.wait(now + late) <= PERIOD.saturating_sub(late), "{share}");
            }
        }
    }
}
