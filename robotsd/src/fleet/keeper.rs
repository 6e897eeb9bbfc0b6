//! Runs the threads that communicate with the store of a fleet. One thread only reads the document
//! ([`reader`](super::reader)). A second thread runs three tasks, each with its own connection: the
//! first task writes changes, the second sends a heartbeat every five seconds, and the third
//! determines which replica sends a notice.

use std::collections::VecDeque;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant};

use redis::cmd;
use tokio::runtime::Builder;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::watch;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking, spawn_local};
use tower_robots::internals::Attribution;
use tower_robots::live::{Pending, VersionHash};

use super::asks::{BeatRequest, FleetSites, TaskReceivers, WriteRequest};
use super::document::{Field, WriteAnswer, WriteCall};
use super::handle::{Fleet, random};
use super::link::StoreLink;
use super::reader::DocumentReader;
use super::replica_status::Heartbeat;
use super::turns::answer_turn_requests;
use crate::store::StoreScript;

const HEARTBEAT: Duration = Duration::from_secs(5);

/// Interval between two attempts to make accepted versions live.
const LOOK: Duration = Duration::from_secs(1);

static WRITE: LazyLock<StoreScript> = LazyLock::new(|| StoreScript::new(include_str!("write.lua")));
static HEARTBEAT_SCRIPT: LazyLock<StoreScript> = LazyLock::new(|| StoreScript::new(include_str!("heartbeat.lua")));

impl Fleet {
    /// Starts the threads that communicate with the store. One of these threads also makes the
    /// fleet's accepted versions live on `sites`.
    pub(crate) fn start(self: &Arc<Self>, sites: Arc<dyn FleetSites>) -> io::Result<()> {
        let Some(TaskReceivers { writes, reads, beats, turns, lost }) = self.asked.lock().take() else { return Ok(()) };
        self.missing_document_message().into_iter().for_each(|why| self.warn(why));
        let share = random().bytes().map(f64::from).sum::<f64>() % 100.0 / 100.0;
        let (fleet, of_reader) = (Arc::clone(self), Some(Arc::clone(&sites)));
        on_thread("fleet-reader", async move || DocumentReader::new(fleet, of_reader).run(share, reads).await)?;
        let fleet = Arc::clone(self);
        on_thread("fleet", async move || {
            spawn_local(answer_turn_requests(Arc::clone(&fleet), turns));
            spawn_local(
                Writer { link: StoreLink::new(&fleet.settings.store), fleet: Arc::clone(&fleet) }.run(writes, lost),
            );
            HeartbeatTask::new(fleet, sites).run(beats).await;
        })
    }
}

fn on_thread<F: AsyncFnOnce() + Send + 'static>(name: &str, run: F) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = move || {
        runtime.block_on(LocalSet::new().run_until(run()));
        runtime.shutdown_background();
    };
    thread::Builder::new().name(name.to_owned()).spawn(thread).map(drop)
}

/// The task that writes operators' decisions to the store, and restores entries that the store has
/// lost.
struct Writer {
    fleet: Arc<Fleet>,
    link: StoreLink,
}

impl Writer {
    async fn run(mut self, mut requests: UnboundedReceiver<WriteRequest>, mut lost: watch::Receiver<Vec<WriteCall>>) {
        // The task connects immediately, because the first decision should not have to wait for the
        // connection.
        let _ = self.link.connected().await;
        let mut rest = VecDeque::new();
        loop {
            // Lost entries are written back one at a time, so that an operator's decision waits for
            // at most one entry.
            let request = if rest.is_empty() {
                tokio::select! {
                    request = requests.recv() => request,
                    Ok(()) = lost.changed() => {
                        rest.extend(lost.borrow_and_update().iter().cloned());
                        continue;
                    }
                }
            } else {
                match requests.try_recv() {
                    Ok(request) => Some(request),
                    Err(TryRecvError::Disconnected) => None,
                    Err(TryRecvError::Empty) => {
                        self.write_back(&mut rest).await;
                        continue;
                    }
                }
            };
            let Some((calls, answer)) = request else { return };
            let mut answers = Vec::new();
            for call in calls {
                answers.push(self.write(&call).await);
                if answers.last().is_some_and(Result::is_err) {
                    break;
                }
            }
            // The error can be ignored: it means that no task waits for the result any more.
            let _ = answer.send(answers.into_iter().collect());
        }
    }

    /// Writes the next lost entry back. If writing fails, drops all remaining lost entries, because
    /// the next read of the document finds them again.
    async fn write_back(&mut self, rest: &mut VecDeque<WriteCall>) {
        let Some(call) = rest.pop_front() else { return };
        if self.write(&call).await.is_err() {
            rest.clear();
        } else if rest.is_empty() {
            self.fleet.asks.request_read();
        }
    }

    async fn write(&mut self, call: &WriteCall) -> Result<WriteAnswer, String> {
        let key = self.link.key("doc");
        let written: Result<(String, String), _> = self.link.run(&WRITE, &key, &call.arguments()).await;
        self.fleet.record_write(written.as_ref().err().cloned());
        if written.is_err() {
            self.fleet.asks.has_failed.store(true, Ordering::Release);
        }
        let (word, value) = written?;
        Ok(match &*word {
            "written" => WriteAnswer::Written(value.parse().unwrap_or_default()),
            "conflict" => WriteAnswer::Conflict(value.parse().unwrap_or_default()),
            "foreign" => WriteAnswer::Foreign(value),
            _ => WriteAnswer::NotNeeded,
        })
    }
}

/// The task that sends the heartbeat of this replica, reads the heartbeats of all replicas, and
/// makes accepted versions live.
struct HeartbeatTask {
    fleet: Arc<Fleet>,
    sites: Arc<dyn FleetSites>,
    link: StoreLink,
    last_beat: Option<Instant>,
    /// A random string that distinguishes this process from other processes with the same replica
    /// name.
    process: String,
    accepting: Option<JoinHandle<()>>,
}

impl HeartbeatTask {
    fn new(fleet: Arc<Fleet>, sites: Arc<dyn FleetSites>) -> Self {
        let link = StoreLink::new(&fleet.settings.store);
        Self { fleet, sites, link, last_beat: None, process: random(), accepting: None }
    }

    async fn run(mut self, mut requests: UnboundedReceiver<BeatRequest>) {
        let mut look = tokio::time::interval(LOOK);
        loop {
            let mut asked = Vec::new();
            tokio::select! {
                received = requests.recv_many(&mut asked, usize::MAX) => if received == 0 { return },
                _ = look.tick() => {}
            }
            if asked.iter().any(|request| matches!(request, BeatRequest::Leave(_))) {
                let (key, replica) = (self.link.key("replicas"), self.fleet.settings.replica.clone());
                let _ = self.link.write::<i64>(&key, cmd("HDEL").arg(&key).arg(replica)).await;
                return;
            }
            let is_attempt_over = self.accept();
            let is_due = self.last_beat.is_none_or(|last_beat| last_beat.elapsed() >= HEARTBEAT);
            if (is_attempt_over || is_due || !asked.is_empty()) && !self.fleet.is_replaced.load(Ordering::Relaxed) {
                let beat = self.beat().await;
                self.fleet.record_write(beat.err());
            }
        }
    }

    async fn beat(&mut self) -> Result<(), String> {
        let (fleet, sites, process) = (Arc::clone(&self.fleet), Arc::clone(&self.sites), self.process.clone());
        let own = spawn_blocking(move || {
            // The hashes are shortened to the minimum number of digits that commands accept,
            // because every replica reads all hashes every few seconds.
            let statuses = sites.statuses().into_iter();
            let sites =
                statuses.map(|(site, of)| (site, of.live.map(|live| live.short()).unwrap_or_default())).collect();
            let (member, store) = (fleet.member.lock(), fleet.store.lock());
            let beat = Heartbeat { process, ..Heartbeat::of(&member, store.state(), sites) };
            drop((member, store));
            serde_json::to_vec(&beat).unwrap_or_default()
        });
        let own = own.await.map_err(|error| error.to_string())?;
        let (key, replica) = (self.link.key("replicas"), self.fleet.settings.replica.clone().into_bytes());
        let (now, replicas, before): (u64, Vec<Field>, Option<Vec<u8>>) =
            self.link.run(&HEARTBEAT_SCRIPT, &key, &[replica, own]).await?;
        let before: Option<Heartbeat> = before.and_then(|beat| serde_json::from_slice(&beat).ok());
        // The first heartbeat is not compared with the heartbeat in the store, because during an
        // upgrade, the store still contains the heartbeat of the previous process.
        let is_other = |before: &Heartbeat| before.process != self.process;
        if self.last_beat.is_some() && before.as_ref().is_some_and(is_other) {
            self.fleet.note_other_process();
        }
        self.last_beat = Some(Instant::now());
        let fleet = Arc::clone(&self.fleet);
        spawn_blocking(move || fleet.store_heartbeats(now, replicas)).await.map_err(|error| error.to_string())
    }

    /// Starts an attempt to make accepted versions live. A version can be made live if it is the
    /// pending or the previous version on this replica. Returns whether an earlier attempt has
    /// ended.
    fn accept(&mut self) -> bool {
        let is_over = self.accepting.take_if(|accepting| accepting.is_finished()).is_some();
        if self.accepting.is_some() || self.fleet.member.lock().unfulfilled_accepts().next().is_none() {
            return is_over;
        }
        let (fleet, sites) = (Arc::clone(&self.fleet), Arc::clone(&self.sites));
        self.accepting = Some(spawn_blocking(move || {
            // The second pass records the versions that the first pass made live, because the next
            // heartbeat must contain them.
            for _ in 0..2 {
                let unfulfilled_accepts: Vec<_> = {
                    let member = fleet.member.lock();
                    member.unfulfilled_accepts().map(|(site, accept)| (site.to_owned(), accept.clone())).collect()
                };
                let statuses = sites.statuses();
                for (site, accept) in unfulfilled_accepts {
                    let Some((_, of)) = statuses.iter().find(|(name, _)| *name == site) else { continue };
                    let by = Attribution { who: Some(accept.stamp.by.clone()), reason: accept.stamp.why.clone() };
                    let is = |hash: Option<VersionHash>| hash.is_some_and(|hash| accept.is_for_hash(&hash.to_string()));
                    if is(of.live) {
                        fleet.change(|member| of.live.iter().for_each(|live| member.serves(&site, &live.to_string())));
                    } else if is(of.pending.as_ref().map(Pending::hash)) {
                        sites.accept(&site, &accept.hash, &by);
                    } else if is(of.before) {
                        sites.roll_back(&site, &by);
                    }
                }
            }
        }));
        is_over
    }
}
