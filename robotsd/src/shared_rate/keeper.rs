//! Runs the thread that communicates with a store. The thread sends queries as they arrive, and
//! sends probes while the store is idle or not used.

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::runtime::Builder;
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::{MissedTickBehavior, interval};

use super::breaker::PROBE;
use super::bucket::{SCRIPT, SharedBucket, SharedKey, SharedVerdict};
use super::state::{StoreCount, StoreReport, StoreState, StoreUsage};
use crate::store::{AddressLookup, StoreAddresses, StoreConnection, StoreProblem, StoreScript};

/// Maximum number of concurrent queries. At the limit, the bucket of this process decides whether
/// further requests are allowed.
const MAX_CONCURRENT_QUERIES: usize = 4096;

#[derive(Debug)]
pub(super) struct PendingQuestion {
    pub(super) key: SharedKey,
    pub(super) bucket: SharedBucket,
    pub(super) answer: Option<oneshot::Sender<SharedVerdict>>,
}

/// Function that the thread calls when requests start or stop using the store.
pub(super) type ChangeObserver = Box<dyn Fn(StoreReport) + Send>;

struct StoreKeeper {
    shared: Arc<StoreState>,
    script: StoreScript,
    changed: ChangeObserver,
    under_way: Cell<usize>,
    /// Whether the store has replied to anything since the last tick of the timer.
    has_reply: Cell<bool>,
    /// The usage that the [`ChangeObserver`] received last.
    reported_usage: Cell<Option<StoreUsage>>,
}

/// Starts the thread, which ends when all senders of queries have been dropped.
pub(super) fn start(
    shared: Arc<StoreState>,
    questions: mpsc::Receiver<PendingQuestion>,
    lookup: AddressLookup,
    changed: ChangeObserver,
) -> io::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let thread = move || {
        let keeper = StoreKeeper {
            shared,
            script: StoreScript::new(SCRIPT),
            changed,
            under_way: Cell::new(0),
            has_reply: Cell::new(false),
            reported_usage: Cell::new(None),
        };
        runtime.block_on(LocalSet::new().run_until(Rc::new(keeper).serve(questions, StoreAddresses::new(lookup))));
        // `shutdown_background` does not wait for a name lookup in progress.
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
                    // The connection has been lost since the request queued its query, so the query
                    // is dropped.
                    (Some(_), None) => {}
                },
                _ = ticks.tick() => connection = self.probe_or_reconnect(connection.take(), &mut addresses).await,
            }
        }
    }

    /// Sends a probe if the store is not used, or has not replied since the last tick. The status
    /// and the log are therefore correct even without traffic. Reconnects if there is no reply.
    async fn probe_or_reconnect(
        self: &Rc<Self>,
        connection: Option<StoreConnection>,
        addresses: &mut StoreAddresses,
    ) -> Option<StoreConnection> {
        match connection {
            Some(connection) if self.shared.usage() == StoreUsage::Used => {
                if !self.has_reply.replace(false) {
                    let (keeper, connection) = (Rc::clone(self), connection.clone());
                    spawn_local(async move { keeper.probe(connection).await });
                }
                Some(connection)
            }
            // If the cluster replies to a probe, the connection to it is kept: reconnecting would
            // start from the node in the URL, which may no longer belong to the cluster.
            Some(cluster) if cluster.reconnects_itself() && self.probe(cluster.clone()).await => Some(cluster),
            _ => self.connect(addresses).await,
        }
    }

    async fn connect(self: &Rc<Self>, addresses: &mut StoreAddresses) -> Option<StoreConnection> {
        let keeper = Rc::clone(self);
        let probe = move |mut connection: StoreConnection| {
            let keeper = Rc::clone(&keeper);
            async move {
                let probed = keeper.run_probe(&mut connection).await;
                probed.map_err(|problem| problem.message(&keeper.shared.settings))
            }
        };
        match StoreConnection::connect(&self.shared.settings, addresses, probe).await {
            Ok(connection) => self.probe(connection.clone()).await.then_some(connection),
            Err(why) => {
                self.shared.failed(&why);
                self.report_usage();
                None
            }
        }
    }

    async fn probe(&self, mut connection: StoreConnection) -> bool {
        match self.run_probe(&mut connection).await {
            Ok(()) => {
                self.answered();
                true
            }
            Err(problem) => {
                self.failed(problem);
                false
            }
        }
    }

    /// Runs the script with a bucket that allows any number of requests.
    async fn run_probe(&self, connection: &mut StoreConnection) -> Result<(), StoreProblem> {
        let bucket = SharedBucket::new(Duration::from_micros(1), 1);
        self.run(connection, SharedKey::new(&[b"probe"]), bucket).await.map(drop)
    }

    async fn run(
        &self,
        connection: &mut StoreConnection,
        key: SharedKey,
        bucket: SharedBucket,
    ) -> Result<SharedVerdict, StoreProblem> {
        let settings = &self.shared.settings;
        match connection.run(&self.script, &key.name(&settings.prefix), &bucket.arguments()).await {
            Ok(micros) => bucket.verdict(micros).ok_or_else(StoreProblem::invalid_reply),
            Err(error) => Err(StoreProblem::of(&error, settings)),
        }
    }

    fn send(self: &Rc<Self>, connection: &StoreConnection, pending: PendingQuestion) {
        if pending.answer.as_ref().is_some_and(oneshot::Sender::is_closed) {
            // The request no longer waits and was decided without the store, so the store must not
            // count it.
            return;
        }
        if self.under_way.get() >= MAX_CONCURRENT_QUERIES || self.shared.usage() == StoreUsage::Out {
            return;
        }
        self.under_way.set(self.under_way.get() + 1);
        let (keeper, mut connection) = (Rc::clone(self), connection.clone());
        spawn_local(async move {
            let PendingQuestion { key, bucket, answer } = pending;
            if let Some(verdict) = keeper.ask(&mut connection, key, bucket).await
                && let Some(answer) = answer
            {
                let _ = answer.send(verdict);
            }
            keeper.under_way.set(keeper.under_way.get() - 1);
        });
    }

    async fn ask(
        &self,
        connection: &mut StoreConnection,
        key: SharedKey,
        bucket: SharedBucket,
    ) -> Option<SharedVerdict> {
        let shared = &*self.shared;
        shared.count(StoreCount::Calls);
        let asked = Instant::now();
        match self.run(connection, key, bucket).await {
            Ok(verdict) => {
                shared.count(StoreCount::Answered);
                if let SharedVerdict::Deny { wait } = verdict {
                    shared.denials.add(key, bucket, asked + wait);
                }
                self.answered();
                Some(verdict)
            }
            Err(problem) => {
                shared.count(if problem == StoreProblem::Late { StoreCount::Late } else { StoreCount::Failed });
                self.failed(problem);
                None
            }
        }
    }

    fn answered(&self) {
        self.has_reply.set(true);
        self.shared.breaker.lock().record_reply(Instant::now());
        self.report_usage();
    }

    fn failed(&self, problem: StoreProblem) {
        let now = Instant::now();
        match problem {
            StoreProblem::Late => self.shared.breaker.lock().record_timeout(now),
            StoreProblem::Broken(_) => self.shared.breaker.lock().record_failure(now),
        }
        self.shared.failed(&problem.message(&self.shared.settings));
        self.report_usage();
    }

    fn report_usage(&self) {
        let usage = self.shared.usage();
        if self.reported_usage.replace(Some(usage)) == Some(usage) {
            return;
        }
        if usage == StoreUsage::Out {
            self.shared.count(StoreCount::Outages);
        }
        (self.changed)(self.shared.report());
    }
}
