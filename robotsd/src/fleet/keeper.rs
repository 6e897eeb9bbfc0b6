//! The thread that talks to the store of a fleet: reads the document each second, says every five seconds what this replica has, and
//! writes what it is asked to.
//!
//! There is no subscription, so that nothing can be lost: what is polled is epoch and tag, and the document where they have changed.

use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, LazyLock};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use redis::{FromRedisValue, RedisError, cmd};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::{JoinHandle, LocalSet, spawn_blocking};
use tokio::time::timeout;
use tower_robots::live::{Attribution, Pending, Status, VersionHash};

use super::document::{Document, WriteAnswer, WriteCall};
use super::handle::{Fleet, FleetRequest, random};
use super::standing::Heartbeat;
use crate::store::{StoreAddresses, StoreConnection, StoreScript, StoreTrouble, of_system};

/// How often the store is read, 20 % more or less, so that replicas do not go in step.
const POLL: Duration = Duration::from_secs(1);

/// How often a replica says what it has.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// How long a disk may hold up the reading of the store.
const DISK: Duration = Duration::from_secs(1);

static WRITE: LazyLock<StoreScript> = LazyLock::new(|| StoreScript::new(include_str!("write.lua")));
static HEARTBEAT_SCRIPT: LazyLock<StoreScript> = LazyLock::new(|| StoreScript::new(include_str!("heartbeat.lua")));

/// The sites of the process.
pub(crate) trait FleetSites: Send + Sync {
    /// Each robots.txt by its name, and how it stands.
    fn statuses(&self) -> Vec<(String, Status)>;

    /// Brings the version live that waits. Blocks.
    fn accept(&self, site: &str, hash: &str, by: &Attribution);

    /// Goes back to the version before. Blocks.
    fn roll_back(&self, site: &str, by: &Attribution);

    /// Enforcement was turned, so what was counted has a gap.
    fn were_switched_off(&self);
}

impl Fleet {
    /// Starts the thread that reads the store, and accepts for these sites what the fleet accepts.
    pub(crate) fn start(self: &Arc<Self>, sites: Arc<dyn FleetSites>) -> io::Result<()> {
        let Some(received) = self.received.lock().take() else { return Ok(()) };
        self.unknown().into_iter().for_each(|why| self.warn(why));
        let fleet = Arc::clone(self);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = move || {
            let local = LocalSet::new();
            runtime.block_on(local.run_until(Keeper::new(fleet, Some(sites)).run(received)));
            runtime.shutdown_background();
        };
        thread::Builder::new().name("fleet".to_owned()).spawn(thread).map(drop)
    }
}

pub(super) struct Keeper {
    pub(super) fleet: Arc<Fleet>,
    /// None before they are open.
    sites: Option<Arc<dyn FleetSites>>,
    addresses: StoreAddresses,
    connection: Option<StoreConnection>,
    /// Epoch and tag that were read last.
    seen: Option<(Option<String>, Option<String>)>,
    beaten: Option<Instant>,
    /// What tells its heartbeats from those of another process with the same name.
    process: String,
    /// The accepting that is under way.
    accepting: Option<JoinHandle<()>>,
}

impl Keeper {
    pub(super) fn new(fleet: Arc<Fleet>, sites: Option<Arc<dyn FleetSites>>) -> Self {
        Self {
            fleet,
            sites,
            addresses: StoreAddresses::new(Arc::new(of_system)),
            connection: None,
            seen: None,
            beaten: None,
            process: random(),
            accepting: None,
        }
    }

    async fn run(mut self, mut requests: UnboundedReceiver<FleetRequest>) {
        self.turn(Vec::new(), false).await.ok();
        loop {
            match timeout(pause(), requests.recv()).await {
                Err(_) => drop(self.turn(Vec::new(), false).await),
                Ok(Some(FleetRequest::Write(calls, answer))) => {
                    let answers = self.turn(calls, true).await;
                    // Its client may have gone.
                    let _ = answer.send(answers);
                }
                Ok(Some(FleetRequest::Turn(id, of, answer))) => self.answer(&id, of, answer).await,
                Ok(Some(FleetRequest::Leave(left))) => {
                    let (key, replica) = (self.key("replicas"), self.fleet.settings.replica.clone());
                    let _ = self.query::<i64>(cmd("HDEL").arg(key).arg(replica)).await;
                    let _ = left.send(());
                    return;
                }
                Ok(None) => return,
            }
        }
    }

    /// Writes, reads, and says what this replica has where that is due.
    async fn turn(&mut self, calls: Vec<WriteCall>, is_asked: bool) -> Result<Vec<WriteAnswer>, String> {
        let written = self.write(calls).await;
        let read = match &written {
            // Without a connection a second attempt would take as long.
            Err(_) if self.connection.is_none() => written.clone().map(|_| false),
            _ => self.read().await,
        };
        let mut trouble = written.as_ref().err().or(read.as_ref().err()).cloned();
        if let Ok(is_changed) = read {
            let is_met = self.accept();
            let is_due = self.beaten.is_none_or(|beaten| beaten.elapsed() >= HEARTBEAT);
            if (is_met || is_asked || is_changed || is_due) && !self.fleet.is_replaced.load(Ordering::Relaxed) {
                trouble = trouble.or(self.beat().await.err());
            } else {
                // What could not be written is tried with the next heartbeat: it is not over yet.
                trouble = trouble.or_else(|| self.fleet.store.lock().trouble.clone());
            }
        }
        self.fleet.note(trouble, read.is_ok());
        written
    }

    async fn write(&mut self, calls: Vec<WriteCall>) -> Result<Vec<WriteAnswer>, String> {
        let (mut answers, key) = (Vec::new(), self.key("doc"));
        for call in calls {
            let (word, value): (String, String) = self.call(&WRITE, &key, &call.arguments()).await?;
            answers.push(match &*word {
                "written" => WriteAnswer::Written(value.parse().unwrap_or_default()),
                "conflict" => WriteAnswer::Conflict(value.parse().unwrap_or_default()),
                "foreign" => WriteAnswer::Foreign(value),
                _ => WriteAnswer::Kept,
            });
        }
        Ok(answers)
    }

    /// Reads the document, if it has changed, and writes back what is lost. Whether it had changed.
    async fn read(&mut self) -> Result<bool, String> {
        let key = self.key("doc");
        let mut is_changed = false;
        // What is written back is read once more.
        for _ in 0..2 {
            let now: (Option<String>, Option<String>) =
                self.query(cmd("HMGET").arg(&key).arg("epoch").arg("tag")).await?;
            if self.seen.as_ref() == Some(&now) {
                break;
            }
            let fields: Vec<(String, String)> = self.query(cmd("HGETALL").arg(&key)).await?;
            let fleet = Arc::clone(&self.fleet);
            // Switches are turned first; a disk that hangs holds up no more than this.
            let saw = spawn_blocking(move || fleet.saw(Document::read(fields)));
            let Ok(Ok(lost)) = timeout(DISK, saw).await else { break };
            is_changed = true;
            self.sites.iter().for_each(|sites| sites.were_switched_off());
            let is_whole = lost.is_empty();
            self.write(lost).await?;
            self.seen = Some(now);
            if is_whole {
                break;
            }
        }
        Ok(is_changed)
    }

    /// Reads the document, and what the replicas last said.
    pub(super) async fn contact(mut self) -> Result<(), String> {
        self.read().await?;
        let replicas: Vec<(String, String)> = self.query(cmd("HGETALL").arg(self.key("replicas"))).await?;
        let (now, _): (u64, u64) = self.query(&cmd("TIME")).await?;
        self.fleet.hear(now, replicas);
        Ok(())
    }

    pub(super) async fn beat(&mut self) -> Result<(), String> {
        let key = self.key("replicas");
        let statuses = self.sites.iter().flat_map(|sites| sites.statuses());
        // As short as commands take it: every replica reads those of all, every few seconds.
        let sites = statuses.map(|(site, of)| (site, of.live.map(|live| live.short()).unwrap_or_default())).collect();
        let beat = {
            let (member, store) = (self.fleet.member.lock(), self.fleet.store.lock());
            Heartbeat { process: self.process.clone(), ..Heartbeat::of(&member, store.state(), sites) }
        };
        let own = [self.fleet.settings.replica.clone(), serde_json::to_string(&beat).unwrap_or_default()];
        let (now, replicas, before): (String, Vec<(String, String)>, Option<String>) =
            self.call(&HEARTBEAT_SCRIPT, &key, &own).await?;
        let before: Option<Heartbeat> = before.and_then(|beat| serde_json::from_str(&beat).ok());
        // The first finds that of the process whose place this one takes.
        let is_other = |before: &Heartbeat| before.process != self.process;
        if self.beaten.is_some() && before.as_ref().is_some_and(is_other) {
            self.fleet.meets_another();
        }
        self.beaten = Some(Instant::now());
        self.fleet.hear(now.parse().unwrap_or_default(), replicas);
        Ok(())
    }

    /// Brings live what the fleet has accepted, where it is here. Whether an attempt has ended.
    fn accept(&mut self) -> bool {
        let is_over = self.accepting.take_if(|accepting| accepting.is_finished()).is_some();
        let Some(sites) = self.sites.clone().filter(|_| self.accepting.is_none()) else { return is_over };
        if self.fleet.member.lock().lacking().next().is_none() {
            return is_over;
        }
        let fleet = Arc::clone(&self.fleet);
        self.accepting = Some(spawn_blocking(move || {
            // What the first round brings live is noted in the second, so that the next heartbeat says it.
            for _ in 0..2 {
                let lacking: Vec<_> = {
                    let member = fleet.member.lock();
                    member.lacking().map(|(site, accept)| (site.to_owned(), accept.clone())).collect()
                };
                let statuses = sites.statuses();
                for (site, accept) in lacking {
                    let Some((_, of)) = statuses.iter().find(|(name, _)| *name == site) else { continue };
                    let by = Attribution { who: Some(accept.stamp.by.clone()), reason: accept.stamp.why.clone() };
                    let is = |hash: Option<VersionHash>| hash.is_some_and(|hash| accept.is_of(&hash.to_string()));
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

    pub(super) fn key(&self, of: &str) -> String {
        format!("{}{of}", self.fleet.settings.store.prefix)
    }

    async fn query<T: FromRedisValue>(&mut self, command: &redis::Cmd) -> Result<T, String> {
        self.query_of(&self.key("doc"), "read", command).await
    }

    pub(super) async fn query_of<T: FromRedisValue>(
        &mut self,
        key: &str,
        what: &str,
        command: &redis::Cmd,
    ) -> Result<T, String> {
        let answer = self.connect().await?.query(command).await;
        answer.map_err(|error| self.failed(&error, what, key))
    }

    async fn call<T: FromRedisValue>(&mut self, script: &StoreScript, key: &str, own: &[String]) -> Result<T, String> {
        let answer = self.connect().await?.run(script, key, own).await;
        answer.map_err(|error| self.failed(&error, "write", key))
    }

    async fn connect(&mut self) -> Result<&mut StoreConnection, String> {
        if self.connection.is_none() {
            let store = &self.fleet.settings.store;
            let key = self.key("doc");
            let probe = move |mut connection: StoreConnection| {
                let mut command = cmd("HMGET");
                command.arg(&key).arg("epoch").arg("tag");
                async move {
                    // What it says is said again by what is asked then; one that hangs is passed over.
                    match connection.query::<redis::Value>(&command).await {
                        Err(error) if error.is_timeout() => Err("no answer in time".to_owned()),
                        _ => Ok(()),
                    }
                }
            };
            let connection = StoreConnection::connect(store, &mut self.addresses, probe).await;
            self.connection = Some(connection.map_err(|why| format!("{}: {why}", store.place()))?);
        }
        self.connection.as_mut().ok_or_else(|| "no connection".to_owned())
    }

    /// Why something was not done. It is done again: after a connection is lost, or rights are missing, from the start.
    fn failed(&mut self, error: &RedisError, what: &str, key: &str) -> String {
        self.seen = None;
        let store = &self.fleet.settings.store;
        let why = StoreTrouble::of(error, store).message(store);
        let text = error.to_string();
        if ["NOPERM", "NoPerm", "ACL failure"].iter().any(|mark| text.contains(mark)) {
            return format!(
                "{}: its user may not {what} {key}: allow EVAL, EVALSHA, TIME, HGET, HMGET, HGETALL, HEXISTS, HSET, HSETNX, HDEL, SET, GET \
                 and DEL for keys that begin with {} ({text})",
                store.place(),
                store.prefix
            );
        }
        self.connection = None;
        format!("{}: {why}", store.place())
    }
}

fn pause() -> Duration {
    let nanos = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
    POLL.mul_f64(0.8 + f64::from(nanos % 1_000_000) / 2_500_000.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_read_more_often_than_every_two_seconds() {
        assert!((0..100).all(|_| pause() <= Duration::from_millis(1_200)));
    }
}
