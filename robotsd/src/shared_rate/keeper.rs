//! The thread that talks to a store: sends questions as they come, reports what is overdue, and probes a store that is lost.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use redis::Script;
use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use super::breaker::PROBE;
use super::bucket::{BucketOwner, SharedBucket, SharedKey};
use super::connection::{StoreConnection, StoreTrouble};
use super::counts::count;
use super::script::{SCRIPT, StoreAnswer, StoreQuestion};
use super::state::StoreState;

/// Questions that are under way at most. With more, the process's own bucket decides.
const UNDER_WAY: usize = 4096;

/// That the store is used, or no longer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StoreChange {
    /// It answers.
    Used,
    /// It does not, and why.
    Lost(String),
}

#[derive(Debug)]
pub(super) struct PendingQuestion {
    pub(super) key: SharedKey,
    pub(super) question: StoreQuestion,
    /// None where nobody waits.
    pub(super) answer: Option<oneshot::Sender<StoreAnswer>>,
}

/// Called by the thread.
pub(super) type ChangeObserver = Box<dyn Fn(StoreChange) + Send>;

struct StoreKeeper {
    shared: Arc<StoreState>,
    script: Script,
    changed: ChangeObserver,
    under_way: Cell<usize>,
    /// Whether the store is used, as it was last said.
    said: Cell<Option<bool>>,
}

/// Starts the thread. It ends when no question can come any more.
pub(super) fn start(
    shared: Arc<StoreState>,
    questions: mpsc::Receiver<PendingQuestion>,
    changed: ChangeObserver,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = move || {
        let keeper = StoreKeeper {
            shared,
            script: Script::new(SCRIPT),
            changed,
            under_way: Cell::new(0),
            said: Cell::new(None),
        };
        runtime.block_on(LocalSet::new().run_until(Rc::new(keeper).run(questions)));
    };
    std::thread::Builder::new().name("rate-store".to_owned()).spawn(thread).map(drop)
}

impl StoreKeeper {
    async fn run(self: Rc<Self>, mut questions: mpsc::Receiver<PendingQuestion>) {
        let mut connection = None;
        let mut ticks = interval(PROBE);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                question = questions.recv() => match (question, &connection) {
                    (None, _) => return,
                    (Some(question), Some(connection)) => self.send(connection, question),
                    // It was lost a moment ago.
                    (Some(_), None) => {}
                },
                _ = ticks.tick() => {
                    if !self.shared.breaker().is_closed() {
                        connection = self.probe().await;
                    }
                    if let Some(connection) = &connection {
                        let overdue = self.shared.ledgers.overdue(self.shared.now(), self.shared.settings.batch);
                        for (key, question) in overdue {
                            self.send(connection, PendingQuestion { key, question, answer: None });
                        }
                    }
                }
            }
        }
    }

    /// Asks, without waiting for the answer.
    fn send(self: &Rc<Self>, connection: &StoreConnection, pending: PendingQuestion) {
        if pending.answer.as_ref().is_some_and(oneshot::Sender::is_closed) {
            // The request went on without the store: it takes nothing there.
            return;
        }
        if self.under_way.get() >= UNDER_WAY || !self.shared.breaker().is_closed() {
            return;
        }
        self.under_way.set(self.under_way.get() + 1);
        let (keeper, mut connection) = (Rc::clone(self), connection.clone());
        spawn_local(async move {
            let PendingQuestion { key, question, answer } = pending;
            if let Some(said) = keeper.ask(&mut connection, key, question).await
                && let Some(answer) = answer
            {
                // The request may have given up.
                let _ = answer.send(said);
            }
            keeper.under_way.set(keeper.under_way.get() - 1);
        });
    }

    async fn ask(
        &self,
        connection: &mut StoreConnection,
        key: SharedKey,
        question: StoreQuestion,
    ) -> Option<StoreAnswer> {
        let (shared, counts) = (&*self.shared, &self.shared.counts);
        count(&counts.calls);
        let asked = shared.now();
        let answered = connection.ask(&self.script, &shared.settings, key, question).await;
        let now = Instant::now();
        let (is_lost, why) = match answered {
            Ok(answer) => {
                count(&counts.answered);
                shared.breaker().answered();
                shared.ledgers.answered(key, asked, answer);
                return Some(answer);
            }
            Err(StoreTrouble::Late) => {
                count(&counts.late);
                let late = format!("no answer within {} ms", shared.settings.deadline.as_millis());
                (shared.breaker().unanswered(now), late)
            }
            Err(StoreTrouble::Broken(why)) => {
                count(&counts.failed);
                (shared.breaker().broken(now), why)
            }
        };
        shared.failed(&why);
        if is_lost {
            self.lost(why);
        }
        None
    }

    /// Connects, and runs the script once. The connection, where the store is used from now on.
    async fn probe(&self) -> Option<StoreConnection> {
        let bucket = SharedBucket::new(Duration::from_millis(1), 1);
        let question = StoreQuestion::one(bucket, bucket.limit(), 0);
        let probed = async {
            let mut connection = StoreConnection::open(&self.shared.settings).await?;
            match connection
                .ask(&self.script, &self.shared.settings, SharedKey::new(BucketOwner::Crawler, &[b"probe"]), question)
                .await
            {
                Ok(_) => Ok(connection),
                Err(StoreTrouble::Late) => {
                    Err(format!("no answer within {} ms", self.shared.settings.deadline.as_millis()))
                }
                Err(StoreTrouble::Broken(why)) => Err(why),
            }
        };
        match probed.await {
            Ok(connection) => {
                let is_used = self.shared.breaker().probed(Instant::now());
                if is_used && self.said.replace(Some(true)) != Some(true) {
                    (self.changed)(StoreChange::Used);
                }
                is_used.then_some(connection)
            }
            Err(why) => {
                self.shared.failed(&why);
                if self.said.get().is_none() {
                    self.lost(why);
                }
                None
            }
        }
    }

    fn lost(&self, why: String) {
        count(&self.shared.counts.outages);
        self.said.set(Some(false));
        (self.changed)(StoreChange::Lost(why));
    }
}
