//! Runs the worker threads, which serve requests. Each worker has its own single-threaded runtime,
//! sockets and upstream connections.
//!
//! A connection and its requests stay on the thread that accepted the connection, and use upstream
//! connections of that thread. Tasks do not move between threads, and no thread waits for a lock of
//! another thread. The threads share the snapshot of the robots.txt and its policy, which requests
//! only read. Each worker has its own layer, settings, map of hosts and connection pools
//! ([`Router::new`]), because cloning a shared object would write to a shared reference counter.
//!
//! Workers write to few shared values: the connection slots and the counter that numbers
//! connections (once per connection), the cache of recognised agents (for each new header), the
//! queue of the log (for each line), and the state of upstream servers.
//!
//! The control thread calls all functions of this module. The functions spawn tasks on the runtimes
//! of the workers to open and close listeners, and store one pointer to replace the sites of a
//! worker.

use std::collections::HashMap;
use std::io;
use std::net::TcpListener;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::FutureExt as _;
use futures_util::future::join_all;
use tokio::runtime::{Builder, Handle};
use tokio::task::{JoinError, JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};
use tower_robots::internals::AgentLookups;

use super::router::{Router, WorkerOutcomes};
use crate::decision::{DecisionSite, DecisionSites, SiteTable};
use crate::edge::{Edge, ListenerSettings, ResponseCounts};
use crate::http_common::EdgeService;
use crate::sites::{ServedSite, Sites};

/// Maximum number of threads that read files, for all workers together.
const FILE_THREADS: usize = 256;

/// All workers of the process. Dropping this value ends the workers, even if they are serving
/// requests.
#[derive(Debug)]
pub(super) struct Workers {
    workers: Vec<Worker>,
    /// One task per listener and worker. A task ends once its listener is closed and the listener's
    /// last connection has ended.
    serving: JoinSet<()>,
}

#[derive(Debug)]
pub(super) struct Worker {
    runtime: Handle,
    pub(super) router: Router,
    pub(super) decision_sites: SiteTable,
    outcomes: WorkerOutcomes,
    agent_lookups: Arc<AgentLookups>,
    // Dropping this guard ends the thread.
    _alive: DropGuard,
}

impl Workers {
    pub(super) fn start(count: NonZeroUsize, sites: &Sites) -> io::Result<Self> {
        let start = |number| Worker::start(number, count, sites);
        let workers = (0..count.get()).map(start).collect::<io::Result<_>>()?;
        Ok(Self { workers, serving: JoinSet::new() })
    }

    pub(super) fn count(&self) -> NonZeroUsize {
        NonZeroUsize::new(self.workers.len()).unwrap_or(NonZeroUsize::MIN)
    }

    /// Opens a listener on every worker. `sockets` must contain one socket per worker. `label`
    /// identifies the listener in metrics. Dropping the returned guard closes the listener on every
    /// worker; requests in progress may finish within the drain time of the edge.
    pub(super) fn open<S: EdgeService>(
        &mut self,
        sockets: Vec<TcpListener>,
        edge: &Edge,
        label: &str,
        listener_settings: &ListenerSettings,
        service: impl Fn(&Worker, Arc<ResponseCounts>) -> S,
    ) -> io::Result<DropGuard> {
        let mut ready = Vec::new();
        for (worker, socket) in self.workers.iter().zip(sockets) {
            // A socket must be registered with the event loop of its own worker.
            let _in_runtime = worker.runtime.enter();
            socket.set_nonblocking(true)?;
            ready.push(tokio::net::TcpListener::from_std(socket)?);
        }
        let closing = CancellationToken::new();
        for (worker, listener) in self.workers.iter().zip(ready) {
            let counts = edge.counts(label);
            let service = service(worker, Arc::clone(&counts));
            let listener_settings = ListenerSettings { counts: Some(counts), ..listener_settings.clone() };
            let (edge, closed) = (edge.clone(), closing.clone());
            let serving = async move { edge.serve(listener, listener_settings, service, closed.cancelled()).await };
            self.serving.spawn_on(serving, &worker.runtime);
        }
        Ok(closing.drop_guard())
    }

    /// Makes every worker serve these sites, from the next request on, even on open connections.
    pub(super) fn replace(&mut self, sites: &Sites) {
        let count = self.count();
        for worker in &mut self.workers {
            worker.outcomes = outcomes(sites, &worker.outcomes, &worker.agent_lookups);
            worker.router.replace(sites, count, &worker.outcomes);
            worker.decision_sites.store(Arc::new(decision_sites(sites, &worker.outcomes)));
        }
    }

    pub(super) fn event_loops(&self) -> impl Iterator<Item = (String, Handle)> {
        self.workers.iter().enumerate().map(|(number, worker)| (thread_name(number), worker.runtime.clone()))
    }

    pub(super) fn agent_lookups(&self) -> Vec<Arc<AgentLookups>> {
        self.workers.iter().map(|worker| Arc::clone(&worker.agent_lookups)).collect()
    }

    /// Completes when every worker has run a task, which shows that no worker hangs.
    pub(super) fn answer(&self) -> impl Future<Output = ()> + Send + 'static {
        join_all(self.workers.iter().map(|worker| worker.runtime.spawn(async {}))).map(drop)
    }

    /// Waits until one worker has finished serving a closed listener; `None` if no worker serves a
    /// listener.
    pub(super) async fn ended(&mut self) -> Option<Result<(), JoinError>> {
        self.serving.join_next().await
    }
}

impl Worker {
    fn start(number: usize, count: NonZeroUsize, sites: &Sites) -> io::Result<Self> {
        let runtime = Builder::new_current_thread()
            .enable_all()
            .max_blocking_threads(FILE_THREADS.div_ceil(count.get()))
            .thread_name("robotsd-files")
            .build()?;
        let handle = runtime.handle().clone();
        let alive = CancellationToken::new();
        let ended = alive.clone();
        let run = move || {
            runtime.block_on(ended.cancelled());
            // A file that is still being read does not delay the end of the process.
            runtime.shutdown_background();
        };
        std::thread::Builder::new().name(thread_name(number)).spawn(run)?;
        let agent_lookups = Arc::default();
        let outcomes = outcomes(sites, &HashMap::new(), &agent_lookups);
        let decision_sites = Arc::new(ArcSwap::from_pointee(decision_sites(sites, &outcomes)));
        let router = Router::new(sites, count, &outcomes);
        Ok(Self { runtime: handle, router, decision_sites, outcomes, agent_lookups, _alive: alive.drop_guard() })
    }
}

fn thread_name(number: usize) -> String {
    format!("robotsd-{number}")
}

/// Returns one worker's outcome counters for these sites. Sites that the worker already serves keep
/// their counters.
fn outcomes(sites: &Sites, before: &WorkerOutcomes, agent_lookups: &Arc<AgentLookups>) -> WorkerOutcomes {
    let of = |site: &ServedSite| before.get(&site.name).cloned().unwrap_or_else(|| site.outcome_counts(agent_lookups));
    sites.iter().map(|site| (site.name.clone(), of(site))).collect()
}

fn decision_sites(sites: &Sites, outcomes: &WorkerOutcomes) -> DecisionSites {
    let mut table = DecisionSites::default();
    for site in sites.iter() {
        let counts = outcomes.get(&site.name).cloned().unwrap_or_default();
        let decides = DecisionSite {
            judge: site.judge(&counts, sites.rate_store.as_ref(), Duration::ZERO),
            quiet: site.quiet_layer().refusals_only().with_crawler_records(),
        };
        table.add(decides, site.host_patterns());
    }
    table
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use tokio::net::TcpStream;

    use super::*;
    use crate::config::Config;
    use crate::http_common::test_peer::{Raw, soon};
    use crate::log::Log;
    use crate::serve::listeners;

    fn sites(robots: &str) -> Sites {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("robotsd.toml");
        let text = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\nrobots.text = \"{robots}\"\n"
        );
        std::fs::write(&path, text).unwrap();
        let config = Config::load(&path).unwrap();
        let log = Log::start(config.log.format);
        Sites::open(&config, false, &log).unwrap()
    }

    fn open(workers: &mut Workers) -> (SocketAddr, DropGuard) {
        let sockets = listeners::bind(([127, 0, 0, 1], 0).into(), workers.count()).unwrap();
        let address = sockets[0].local_addr().unwrap();
        let edge = Edge::new(crate::edge::EdgeLimits::default(), |_| {}, None);
        (
            address,
            workers
                .open(sockets, &edge, "a", &ListenerSettings::default(), |worker, counts| {
                    worker.router.with_listener_counts(counts)
                })
                .unwrap(),
        )
    }

    async fn robots_txt(client: &mut Raw) -> String {
        client.ask("GET /robots.txt HTTP/1.1\r\nHost: h\r\n\r\n").await.body
    }

    #[tokio::test]
    async fn open_connections_get_the_new_sites_after_a_replacement() {
        let mut workers = Workers::start(NonZeroUsize::new(3).unwrap(), &sites("# one")).unwrap();
        let (address, _open) = open(&mut workers);
        let mut clients = Vec::new();
        // With 32 connections, every worker gets some.
        for _ in 0..32 {
            let mut client = Raw::connect(address).await;
            assert_eq!(robots_txt(&mut client).await, "# one");
            clients.push(client);
        }
        workers.replace(&sites("# two"));
        for client in &mut clients {
            assert_eq!(robots_txt(client).await, "# two");
        }
    }

    #[tokio::test]
    async fn a_listener_closes_on_every_worker_and_other_listeners_stay_open() {
        let count = NonZeroUsize::new(2).unwrap();
        let mut workers = Workers::start(count, &sites("# one")).unwrap();
        let (closing, open_there) = open(&mut workers);
        let (staying, open_here) = open(&mut workers);
        let mut idle = Raw::connect(closing).await;
        let mut other = Raw::connect(staying).await;
        drop(open_there);
        assert_eq!(idle.rest().await, "");
        for _ in 0..count.get() {
            soon(workers.ended()).await.unwrap().unwrap();
        }
        soon(async { while TcpStream::connect(closing).await.is_ok() {} }).await;
        assert_eq!(robots_txt(&mut other).await, "# one");
        drop(open_here);
        assert_eq!(other.rest().await, "");
        while let Some(ended) = soon(workers.ended()).await {
            ended.unwrap();
        }
    }
}
