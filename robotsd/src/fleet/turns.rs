//! Which replica sends a notice of the fleet: the one whose name the store has for the notice.
//!
//! ```text
//! said:ID      "sends REPLICA" until that is done, and "sent REPLICA" then; a day
//! ```

use std::sync::Arc;

use redis::cmd;
use tokio::sync::oneshot;

use super::handle::{Fleet, FleetRequest};
use super::keeper::Keeper;
use crate::publish_hook::{Turn, TurnOf, Turns};

/// For how long it is known who sent a notice, in seconds.
const KEPT: u64 = 86_400;

impl Turns for Fleet {
    fn ask(&self, id: String, of: TurnOf) -> oneshot::Receiver<Turn> {
        let (answer, answered) = oneshot::channel();
        let _ = self.requests.send(FleetRequest::Turn(id, of, answer));
        answered
    }
}

impl Fleet {
    /// The replicas that are missing, with the seconds since 1970 when each was heard last.
    pub(crate) fn missing(&self) -> Vec<(String, u64)> {
        self.store.lock().missing.iter().map(|(name, at)| (name.clone(), *at)).collect()
    }

    /// The id of the mark that was lifted last.
    pub(crate) fn lifted_last(&self) -> String {
        self.member.lock().lifted_last().unwrap_or_default().to_owned()
    }

    fn is_alive(&self, replica: &str) -> bool {
        let store = self.store.lock();
        store.replicas.get(replica).is_some_and(|beat| !beat.is_missing(store.now))
    }
}

impl Keeper {
    /// Answers unless the asker has gone; without an answer it sends.
    pub(super) async fn answer(&mut self, id: &str, of: TurnOf, answer: oneshot::Sender<Turn>) {
        if of == TurnOf::Wish && answer.is_closed() {
            return;
        }
        let fleet = Arc::clone(&self.fleet);
        match self.turn_of(id, of).await {
            Ok(turn) => drop(answer.send(turn)),
            Err(_) if fleet.store.lock().trouble.is_some() => {}
            Err(why) => fleet.warn(format!("{why}; so every replica sends its notices by itself")),
        }
    }

    async fn turn_of(&mut self, id: &str, of: TurnOf) -> Result<Turn, String> {
        let key = self.key(&format!("said:{id}"));
        let say = |word: &str| {
            let mut command = cmd("SET");
            command.arg(&key).arg(format!("{word} {}", self.fleet.settings.replica)).arg("EX").arg(KEPT);
            command
        };
        let (wish, sent) = (say("sends"), say("sent"));
        match of {
            TurnOf::Over => return self.query_of::<u64>(&key, "write", cmd("DEL").arg(&key)).await.map(|_| Turn::Own),
            TurnOf::Sent => return self.query_of::<()>(&key, "write", &sent).await.map(|()| Turn::Sent),
            TurnOf::Wish => {}
        }
        if self.query_of::<Option<String>>(&key, "write", wish.clone().arg("NX")).await?.is_some() {
            return Ok(Turn::Own);
        }
        let held: Option<String> = self.query_of(&key, "read", cmd("GET").arg(&key)).await?;
        let Some((word, holder)) = held.as_ref().and_then(|held| held.split_once(' ')) else { return Ok(Turn::Own) };
        if *holder == self.fleet.settings.replica {
            return Ok(Turn::Own);
        }
        if word == "sent" {
            return Ok(Turn::Sent);
        }
        if !self.fleet.is_alive(holder) {
            // One that has just started is known by now.
            self.beat().await?;
        }
        if self.fleet.is_alive(holder) {
            return Ok(Turn::Other);
        }
        self.query_of::<()>(&key, "write", &wish).await.map(|()| Turn::Own)
    }
}
