//! The thread that talks to a store: sends questions as they come, reports what is overdue, and probes a store that is lost.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use super::breaker::{self, PROBE};
use super::bucket::{SCRIPT, SharedBucket, SharedKey, StoreAnswer, StoreQuestion};
use super::state::{StoreCount, StoreReport, StoreState, StoreUsage};
use crate::store::{AddressLookup, StoreAddresses, StoreConnection, StoreScript, StoreTrouble};

/// Questions that are under way at most. With more, the process's own bucket decides.
const UNDER_WAY: usize = 4096;

/// Overdue reports of one tick at most: they come at once, and the store answers them before the deadline of a question.
const MOST_OVERDUE: usize = 256;

#[derive(Debug)]
pub(super) struct PendingQuestion {
    pub(super) key: SharedKey,
    pub(super) question: StoreQuestion,
    /// None where no caller waits.
    pub(super) answer: Option<oneshot::Sender<StoreAnswer>>,
}

/// Called by the thread when more or less of the store is used than before.
pub(super) type ChangeObserver = Box<dyn Fn(StoreReport) + Send>;

struct StoreKeeper {
    shared: Arc<StoreState>,
    script: StoreScript,
    changed: ChangeObserver,
    under_way: Cell<usize>,
    /// Whether a part has answered since the last tick.
    heard: Vec<Cell<bool>>,
    /// How much of the store is used, as it was last said.
    said: Cell<Option<StoreUsage>>,
}

/// Starts the thread. It ends when no question can come any more.
pub(super) fn start(
    shared: Arc<StoreState>,
    questions: mpsc::Receiver<PendingQuestion>,
    lookup: AddressLookup,
    changed: ChangeObserver,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = move || {
        let keeper = StoreKeeper {
            heard: shared.probes.iter().map(|_| Cell::default()).collect(),
            shared,
            script: StoreScript::new(SCRIPT),
            changed,
            under_way: Cell::new(0),
            said: Cell::new(None),
        };
        runtime.block_on(LocalSet::new().run_until(Rc::new(keeper).serve(questions, StoreAddresses::new(lookup))));
        // A name that is being looked up is not waited for.
        runtime.shutdown_background();
    };
    std::thread::Builder::new().name("rate-store".to_owned()).spawn(thread).map(drop)
}

impl StoreKeeper {
    async fn serve(self: Rc<Self>, mut questions: mpsc::Receiver<PendingQuestion>, mut addresses: StoreAddresses) {
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
                    connection = self.renewed(connection.take(), &mut addresses).await;
                    if let Some(connection) = &connection {
                        let (now, batch) = (self.shared.now(), self.shared.settings.batch);
                        for (key, question) in self.shared.ledgers.overdue(now, batch, MOST_OVERDUE) {
                            self.send(connection, PendingQuestion { key, question, answer: None });
                        }
                    }
                }
            }
        }
    }

    /// Probes what has not answered since the last tick, because it is out or because nobody asked: status and log say the truth of a
    /// store without traffic too. Connects anew where nothing answers.
    async fn renewed(
        self: &Rc<Self>,
        connection: Option<StoreConnection>,
        addresses: &mut StoreAddresses,
    ) -> Option<StoreConnection> {
        match connection {
            Some(connection) if self.shared.usage() != StoreUsage::Out => {
                for part in self.probed_parts() {
                    let is_heard = self.heard[part].replace(false);
                    if !is_heard || !self.shared.breaker(part).is_closed() {
                        let (keeper, connection) = (Rc::clone(self), connection.clone());
                        spawn_local(async move {
                            Rc::clone(&keeper).probe(connection, part).await;
                            keeper.say();
                        });
                    }
                }
                Some(connection)
            }
            // Its nodes may be others by now than the one that the URL names.
            Some(connection) if connection.mends_itself() && self.probe_all(&connection).await => Some(connection),
            _ => self.connect(addresses).await,
        }
    }

    /// Connects, and probes. The connection, where the store is used from now on.
    async fn connect(self: &Rc<Self>, addresses: &mut StoreAddresses) -> Option<StoreConnection> {
        let keeper = Rc::clone(self);
        let probe = move |mut connection: StoreConnection| {
            let keeper = Rc::clone(&keeper);
            async move {
                let probed = keeper.ask_probe(&mut connection, 0).await;
                probed.map_err(|trouble| trouble.message(&keeper.shared.settings))
            }
        };
        match StoreConnection::connect(&self.shared.settings, addresses, probe).await {
            Ok(connection) => self.probe_all(&connection).await.then_some(connection),
            Err(why) => {
                self.shared.failed(&why);
                self.say();
                None
            }
        }
    }

    /// Probes all parts. Whether one is used.
    async fn probe_all(self: &Rc<Self>, connection: &StoreConnection) -> bool {
        let probes = self.probed_parts().map(|part| spawn_local(Rc::clone(self).probe(connection.clone(), part)));
        for probe in probes.collect::<Vec<_>>() {
            // One that panics has said nothing.
            let _ = probe.await;
        }
        self.say();
        self.shared.usage() != StoreUsage::Out
    }

    /// Probes a part.
    async fn probe(self: Rc<Self>, mut connection: StoreConnection, part: usize) {
        if let Err(trouble) = self.ask_probe(&mut connection, part).await {
            return self.failed(part, trouble);
        }
        self.heard[part].set(true);
        let mut breaker = self.shared.breaker(part);
        breaker.answered();
        breaker.probed(Instant::now());
    }

    /// Runs the script once, in a part.
    async fn ask_probe(&self, connection: &mut StoreConnection, part: usize) -> Result<(), StoreTrouble> {
        let Some(key) = self.shared.probes[part] else { return Ok(()) };
        let bucket = SharedBucket::new(Duration::from_micros(1), 1);
        let question = StoreQuestion::one(bucket, bucket.limit(), 0);
        self.run(connection, key, question).await.map(drop)
    }

    async fn run(
        &self,
        connection: &mut StoreConnection,
        key: SharedKey,
        question: StoreQuestion,
    ) -> Result<StoreAnswer, StoreTrouble> {
        let settings = &self.shared.settings;
        match connection.run(&self.script, &key.name(&settings.prefix), &question.arguments()).await {
            Ok(answer) => question.answer(answer).ok_or_else(StoreTrouble::garbage),
            Err(error) => Err(StoreTrouble::of(&error, settings)),
        }
    }

    fn probed_parts(&self) -> impl Iterator<Item = usize> {
        (0..self.heard.len()).filter(|&part| self.shared.probes[part].is_some())
    }

    /// Asks, without waiting for the answer.
    fn send(self: &Rc<Self>, connection: &StoreConnection, pending: PendingQuestion) {
        if pending.answer.as_ref().is_some_and(oneshot::Sender::is_closed) {
            // The request went on without the store: it takes nothing there.
            return;
        }
        let part = breaker::part_of(pending.key, &self.shared.settings);
        if self.under_way.get() >= UNDER_WAY || !self.shared.breaker(part).is_closed() {
            return;
        }
        self.under_way.set(self.under_way.get() + 1);
        let (keeper, mut connection) = (Rc::clone(self), connection.clone());
        spawn_local(async move {
            let PendingQuestion { key, question, answer } = pending;
            if let Some(said) = keeper.ask(&mut connection, part, key, question).await
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
        part: usize,
        key: SharedKey,
        question: StoreQuestion,
    ) -> Option<StoreAnswer> {
        let shared = &*self.shared;
        shared.count(StoreCount::Calls);
        let asked = shared.now();
        match self.run(connection, key, question).await {
            Ok(answer) => {
                shared.count(StoreCount::Answered);
                self.heard[part].set(true);
                shared.breaker(part).answered();
                shared.ledgers.answered(key, asked, answer);
                Some(answer)
            }
            Err(trouble) => {
                shared.count(if trouble == StoreTrouble::Late { StoreCount::Late } else { StoreCount::Failed });
                self.failed(part, trouble);
                self.say();
                None
            }
        }
    }

    /// A part did not answer.
    fn failed(&self, part: usize, trouble: StoreTrouble) {
        let now = Instant::now();
        match trouble {
            StoreTrouble::Late => self.shared.breaker(part).unanswered(now),
            StoreTrouble::Broken(_) => self.shared.breaker(part).broken(now),
        };
        self.shared.failed(&trouble.message(&self.shared.settings));
    }

    /// Says how much of the store is used, where that has changed.
    fn say(&self) {
        let usage = self.shared.usage();
        let before = self.said.replace(Some(usage));
        if before == Some(usage) {
            return;
        }
        if usage != StoreUsage::Used && matches!(before, None | Some(StoreUsage::Used)) {
            self.shared.count(StoreCount::Outages);
        }
        (self.changed)(self.shared.report());
    }
}
