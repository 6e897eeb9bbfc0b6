//! Decides which replica of a fleet sends a notice to a webhook: the replica that first writes its
//! name to the key of the notice in the store.
//!
//! ```text
//! said:ID      "sends REPLICA" until the notice is sent, then "sent REPLICA"; kept for a day
//! ```

use std::sync::Arc;

use futures_util::future::join_all;
use redis::{RedisResult, cmd};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use super::asks::TurnRequest;
use super::handle::Fleet;
use super::link::StoreLink;
use crate::store::StoreConnection;
use crate::webhooks::{Turn, TurnReport, Turns};

/// Lifetime of a notice's key in the store, in seconds.
const KEY_LIFETIME: u64 = 86_400;

/// Maximum number of concurrent requests to the store, one per notice. A process never sends more
/// notices than this at the same time.
const MAX_CONCURRENT_TURNS: usize = 32;

impl Turns for Fleet {
    fn ask(&self, id: String, of: TurnReport) -> oneshot::Receiver<Turn> {
        let (answer, answered) = oneshot::channel();
        let _ = self.asks.turns.send((id, of, answer));
        answered
    }
}

impl Fleet {
    pub(crate) fn missing(&self) -> Vec<(String, u64)> {
        self.store.lock().missing.iter().map(|(name, at)| (name.clone(), *at)).collect()
    }

    pub(crate) fn last_lifted_id(&self) -> String {
        self.member.lock().last_lifted_id().unwrap_or_default().to_owned()
    }

    fn is_alive(&self, replica: &str) -> bool {
        let store = self.store.lock();
        store.replicas.get(replica).is_some_and(|beat| !beat.is_missing(store.now))
    }
}

/// Answers the requests of webhooks, several at a time. Skips webhooks that no longer wait for the
/// answer, because these have already sent the notice. If the store cannot be reached, the current
/// requests get no reply.
pub(super) async fn answer_turn_requests(fleet: Arc<Fleet>, mut requests: UnboundedReceiver<TurnRequest>) {
    let mut link = StoreLink::new(&fleet.settings.store);
    loop {
        let mut asked = Vec::new();
        if requests.recv_many(&mut asked, MAX_CONCURRENT_TURNS).await == 0 {
            return;
        }
        asked.retain(|(_, of, answer)| *of != TurnReport::Wish || !answer.is_closed());
        if asked.is_empty() {
            continue;
        }
        // If the connection is lost, `ask` repeats all requests. Repeating is safe: if the first
        // request succeeded, the store contains the name of this replica, so the repeated request
        // has the same result.
        let turns = link.ask(async |connection| {
            let turns = asked.iter().map(|(id, of, _)| decide_turn(&fleet, connection.clone(), id, *of));
            let mut answered = Vec::new();
            for turn in join_all(turns).await {
                match turn {
                    Err(error) if error.is_connection_dropped() => return Err(error),
                    turn => answered.push(turn),
                }
            }
            Ok(answered)
        });
        let why = match turns.await {
            Ok(Ok(turns)) => {
                let mut why = None;
                for ((id, _, answer), turn) in asked.into_iter().zip(turns) {
                    match turn {
                        Ok(turn) => drop(answer.send(turn)),
                        Err(error) => why = Some(link.failed(&error, "write", &turn_key(&fleet, &id)).text()),
                    }
                }
                why
            }
            Ok(Err(error)) => Some(link.failed(&error, "write", &turn_key(&fleet, "*")).text()),
            Err(why) => Some(why),
        };
        if let Some(why) = why.filter(|_| fleet.store.lock().problem().is_none()) {
            fleet.warn(format!("{why}; until the store works again, every replica sends its own notices"));
        }
    }
}

fn turn_key(fleet: &Fleet, id: &str) -> String {
    format!("{}said:{id}", fleet.settings.store.prefix)
}

async fn decide_turn(fleet: &Fleet, mut store: StoreConnection, id: &str, of: TurnReport) -> RedisResult<Turn> {
    let key = turn_key(fleet, id);
    let say = |word: &str| {
        let mut command = cmd("SET");
        command.arg(&key).arg(format!("{word} {}", fleet.settings.replica)).arg("EX").arg(KEY_LIFETIME);
        command
    };
    let (wish, sent) = (say("sends"), say("sent"));
    match of {
        TurnReport::Over => return store.query::<u64>(cmd("DEL").arg(&key)).await.map(|_| Turn::Own),
        TurnReport::Sent => return store.query::<()>(&sent).await.map(|()| Turn::Sent),
        TurnReport::Wish => {}
    }
    if store.query::<Option<Vec<u8>>>(wish.clone().arg("NX")).await?.is_some() {
        return Ok(Turn::Own);
    }
    let held: Option<Vec<u8>> = store.query(cmd("GET").arg(&key)).await?;
    let held = String::from_utf8(held.unwrap_or_default()).unwrap_or_default();
    let Some((word, holder)) = held.split_once(' ') else { return Ok(Turn::Own) };
    if *holder == fleet.settings.replica {
        return Ok(Turn::Own);
    }
    if word == "sent" {
        return Ok(Turn::Sent);
    }
    if !fleet.is_alive(holder) {
        // If the replica that claims the notice has just started, its heartbeat may be unknown
        // here. So the heartbeats of all replicas are read again.
        fleet.asks.beat().await;
    }
    if fleet.is_alive(holder) {
        return Ok(Turn::Other);
    }
    store.query::<()>(&wish).await.map(|()| Turn::Own)
}
