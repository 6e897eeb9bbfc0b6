//! One server behind a site: an address, how many connections to it are open, and whether requests go to it, judged by what
//! has become of those that went there.
//!
//! Passive: nothing is probed. Only failures of the transport count against a server: it could not be connected to, or
//! a new connection broke before a single octet of an answer. A status such as 503 may be about one page, and how long
//! an answer takes may depend on the client that requested it: a client that can provoke them must not be able to take
//! a server from all others.
//!
//! A server that fails too often in a row is out for a while, which doubles each time it is not back afterwards. Then
//! one request tries it: where that is answered the server is back.
//!
//! The state is shared by all workers. A request on a server that is well only reads it.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant, SystemTime};

use http::uri::Scheme;
use parking_lot::Mutex;
use tokio::net::TcpStream;

use super::endpoint::{HttpVersions, ServerAddress};
use super::failure_kind::FailureKind;
use super::tls::{TlsClient, Unreachable};
use crate::socket::Socket;
use crate::word_enum::word_enum;

/// A server, as all workers know it.
#[derive(Debug, derive_more::Display)]
#[display("{address}")]
pub(super) struct Server {
    pub(super) address: ServerAddress,
    tls: Option<TlsClient>,
    pub(super) versions: HttpVersions,
    pub(super) health: Health,
    /// Connections to it that are open; [`Permit`](super::connection_limit::Permit) counts them.
    pub(super) open: AtomicUsize,
}

impl Server {
    /// Spoken to in `versions`; without TLS nothing is negotiated.
    pub(super) fn new(address: ServerAddress, tls: Option<TlsClient>, versions: HttpVersions, health: Health) -> Self {
        let versions = match versions {
            HttpVersions::Negotiated if tls.is_none() => HttpVersions::Http1,
            versions => versions,
        };
        Self { address, tls, versions, health, open: AtomicUsize::new(0) }
    }

    pub(super) fn scheme(&self) -> Scheme {
        if self.tls.is_some() { Scheme::HTTPS } else { Scheme::HTTP }
    }

    /// Connects, and shakes hands where that is due, in which `versions` are offered.
    pub(super) async fn connect(&self, versions: HttpVersions) -> Result<Socket, Unreachable> {
        let socket = match &self.address {
            ServerAddress::Tcp(address) => TcpStream::connect(address).await,
            ServerAddress::Loopback(port) => match TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await {
                Ok(socket) => Ok(socket),
                // Of the two errors the first is the one an operator expects.
                Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, *port)).await.map_err(|_| error),
            },
            ServerAddress::Unix(path) => {
                return tokio::net::UnixStream::connect(path).await.map(Socket::Unix).map_err(Unreachable::Connect);
            }
        };
        let socket = socket.map_err(Unreachable::Connect)?;
        // Without it, a request with a small body may wait for an acknowledgement.
        socket.set_nodelay(true).map_err(Unreachable::Connect)?;
        match &self.tls {
            None => Ok(Socket::Tcp(socket)),
            Some(tls) => Ok(Socket::Tls(Box::new(tls.connect(socket, versions).await?.into()))),
        }
    }
}

/// When a server is out, and for how long.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthPolicy {
    /// Failures in a row that put a server out; zero for never.
    pub(crate) max_fails: u32,
    /// How long ago the first of them may be.
    pub(crate) fail_window: Duration,
    /// How long it is out the first time, give or take a fifth.
    pub(crate) eject: Duration,
    /// How long it is out at most.
    pub(crate) eject_max: Duration,
}

impl Default for HealthPolicy {
    fn default() -> Self {
        Self {
            max_fails: 3,
            fail_window: Duration::from_secs(10),
            eject: Duration::from_secs(1),
            eject_max: Duration::from_secs(60),
        }
    }
}

/// The health of a server.
#[derive(Debug)]
pub(super) struct Health {
    policy: HealthPolicy,
    start: Instant,
    /// Until when it is out, in milliseconds since `start`; zero while it is in service.
    until: AtomicU64,
    /// How often it has been put out.
    ejections: AtomicU32,
    /// Whether anything stands in the record that a success has to remove.
    is_marked: AtomicBool,
    record: Mutex<FailureRecord>,
}

#[derive(Debug, Default)]
struct FailureRecord {
    fails: u32,
    first: Option<Instant>,
    /// How long it was, or is, out; zero for never or long ago.
    span: Duration,
    returned: Option<Instant>,
    /// Since when it is out, and what failed last; none while it is in service.
    outage: Option<(SystemTime, FailureKind, String)>,
}

/// The right to send one request to a server, to be brought back with its outcome.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    ejections: u32,
    kind: TicketKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TicketKind {
    InService,
    /// The one request that tries a server which was out.
    Trial,
    /// Sent because there was nowhere better.
    Anyway,
}

impl Health {
    pub(super) fn new(policy: HealthPolicy, start: Instant) -> Self {
        let (until, ejections, is_marked, record) = Default::default();
        Self { policy, start, until, ejections, is_marked, record }
    }

    pub(super) fn is_in_service(&self) -> bool {
        self.until.load(Ordering::Relaxed) == 0
    }

    /// How often the server has been put out. Connections from before a change of this number are not to be trusted.
    pub(super) fn ejections(&self) -> u32 {
        self.ejections.load(Ordering::Relaxed)
    }

    /// A ticket, if the server is in service.
    pub(super) fn admit(&self) -> Option<Ticket> {
        self.is_in_service().then(|| self.ticket(TicketKind::InService))
    }

    /// The ticket of a trial, if one is due and no other request has it.
    pub(super) fn admit_trial(&self, now: Instant) -> Option<Ticket> {
        let until = self.until.load(Ordering::Relaxed);
        if until == 0 || self.millis(now) < until {
            return None;
        }
        // If this trial never reports back, the next one is due then.
        let next = self.millis(now + self.policy.eject);
        self.until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(self.ticket(TicketKind::Trial))
    }

    /// A ticket in any case.
    pub(super) fn admit_anyway(&self) -> Ticket {
        self.ticket(TicketKind::Anyway)
    }

    /// The server has answered. Returns whether it is back in service by that.
    pub(super) fn succeeded(&self, ticket: Ticket, now: impl FnOnce() -> Instant) -> bool {
        // For nearly every request this is all; not even the clock is read.
        self.is_marked.load(Ordering::Relaxed) && self.clear(ticket, now())
    }

    /// The server could not be reached, or broke off before it answered. Returns for how long it is out, where it was in service.
    pub(super) fn failed(&self, ticket: Ticket, now: Instant) -> Option<Duration> {
        if self.policy.max_fails == 0 {
            return None;
        }
        let mut record = self.record.lock();
        // A request that was sent before it was put out says nothing new: a hundred connections break at once.
        if ticket.ejections != self.ejections() {
            return None;
        }
        match ticket.kind {
            TicketKind::Anyway => None,
            TicketKind::Trial => {
                self.eject(&mut record, now);
                None
            }
            TicketKind::InService => {
                self.is_marked.store(true, Ordering::Relaxed);
                let first = *record.first.get_or_insert(now);
                if now.saturating_duration_since(first) > self.policy.fail_window {
                    (record.first, record.fails) = (Some(now), 0);
                }
                record.fails += 1;
                if record.fails < self.policy.max_fails {
                    return None;
                }
                // A server that was in service for as long as it was out begins anew.
                if record.returned.is_none_or(|returned| now.saturating_duration_since(returned) >= record.span) {
                    record.span = Duration::ZERO;
                }
                self.eject(&mut record, now);
                Some(record.span)
            }
        }
    }

    /// Notes what has failed, if the server is out.
    pub(super) fn note(&self, check: FailureKind, why: &dyn fmt::Display) {
        let mut record = self.record.lock();
        // Read under the lock, under which a server comes back.
        if self.is_in_service() {
            return;
        }
        let since = record.outage.as_ref().map_or_else(SystemTime::now, |(since, ..)| *since);
        record.outage = Some((since, check, why.to_string()));
    }

    /// Why the server is out; none while it is in service.
    pub(super) fn outage(&self, now: Instant) -> Option<Outage> {
        let record = self.record.lock();
        let (since, check, why) = record.outage.clone()?;
        let again = self.until.load(Ordering::Relaxed).saturating_sub(self.millis(now));
        Some(Outage { since, check, why, again: Duration::from_millis(again) })
    }

    fn ticket(&self, kind: TicketKind) -> Ticket {
        Ticket { ejections: self.ejections(), kind }
    }

    fn eject(&self, record: &mut FailureRecord, now: Instant) {
        let longest = self.policy.eject_max.max(self.policy.eject);
        record.span = if record.span.is_zero() { self.policy.eject } else { (record.span * 2).min(longest) };
        // Or every proxy in front of a server would try it in the same moment.
        let share = 0.8 + 0.4 * (RandomState::new().hash_one(self.start) as f64 / u64::MAX as f64);
        self.until.store(self.millis(now + record.span.mul_f64(share)), Ordering::Relaxed);
        self.ejections.fetch_add(1, Ordering::Relaxed);
    }

    #[cold]
    fn clear(&self, ticket: Ticket, now: Instant) -> bool {
        let mut record = self.record.lock();
        if ticket.ejections != self.ejections() {
            return false;
        }
        (record.fails, record.first) = (0, None);
        self.is_marked.store(false, Ordering::Relaxed);
        if self.until.swap(0, Ordering::Relaxed) == 0 {
            return false;
        }
        record.returned = Some(now);
        record.outage = None;
        true
    }

    /// Never zero, which stands for a server in service.
    fn millis(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64 + 1
    }
}

/// A server that is out of service, or a name that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) since: SystemTime,
    /// The last failure: connecting, shaking hands, or the connection before an answer; of a name, that it has no address. The servers
    /// that it stood for before have statuses of their own.
    pub(crate) check: FailureKind,
    /// The error behind it.
    pub(crate) why: String,
    /// In how long a request tries the server again; zero where the next one does.
    pub(crate) again: Duration,
}

/// One server of a site, or one name that has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerStatus {
    pub(crate) server: String,
    /// Connections to it that are open, by use; none of a name.
    pub(crate) connections: Vec<(ConnectionUse, usize)>,
    /// None where it is in service.
    pub(crate) outage: Option<Outage>,
}

word_enum! {
    /// The use of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ConnectionUse {
        Idle = "idle",
        /// It is being made, or has a request.
        Exchange = "active",
        Tunnel = "tunnel",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn health() -> (Health, Instant) {
        let now = Instant::now();
        (Health::new(HealthPolicy::default(), now), now)
    }

    fn fail(health: &Health, now: Instant, times: usize) -> Vec<Duration> {
        (0..times).filter_map(|_| health.failed(health.admit().unwrap(), now)).collect()
    }

    #[test]
    fn three_failures_in_a_row_put_a_server_out() {
        let (health, now) = health();
        assert_eq!(fail(&health, now, 2), [SECOND; 0]);
        health.succeeded(health.admit().unwrap(), || now);
        assert_eq!(fail(&health, now, 2), [SECOND; 0]);
        assert_eq!(fail(&health, now, 1), [SECOND]);
        assert!(!health.is_in_service() && health.admit().is_none());
    }

    #[test]
    fn failures_long_apart_do_not_add_up() {
        let (health, now) = health();
        for minute in 0..10 {
            assert_eq!(fail(&health, now + minute * 60 * SECOND, 1), [SECOND; 0]);
        }
    }

    #[test]
    fn one_request_tries_a_server_that_was_out() {
        let (health, now) = health();
        fail(&health, now, 3);
        assert!(health.admit_trial(now + SECOND / 2).is_none());
        let later = now + SECOND * 3 / 2;
        let trial = health.admit_trial(later).unwrap();
        assert!(health.admit_trial(later).is_none());
        assert!(health.succeeded(trial, || later));
        assert!(health.is_in_service());
    }

    #[test]
    fn a_trial_without_a_report_is_not_the_last() {
        let (health, now) = health();
        fail(&health, now, 3);
        assert!(health.admit_trial(now + 2 * SECOND).is_some());
        assert!(health.admit_trial(now + 4 * SECOND).is_some());
    }

    #[test]
    fn the_time_out_doubles_up_to_a_bound_and_is_reported_once() {
        let (health, mut now) = health();
        assert_eq!(fail(&health, now, 3).len(), 1);
        for span in [2, 4, 8, 16, 32, 60, 60] {
            now += 100 * SECOND;
            let trial = health.admit_trial(now).unwrap();
            assert_eq!(health.failed(trial, now), None);
            assert!(health.admit_trial(now + span * SECOND * 7 / 10).is_none(), "{span}");
            assert!(health.admit_trial(now + span * SECOND * 13 / 10).is_some(), "{span}");
        }
    }

    #[test]
    fn a_server_that_comes_and_goes_stays_out_for_longer() {
        let (health, now) = health();
        fail(&health, now, 3);
        let back = now + 2 * SECOND;
        let trial = health.admit_trial(back).unwrap();
        health.succeeded(trial, || back);
        assert_eq!(fail(&health, back, 3), [2 * SECOND]);
        let back = back + 5 * SECOND;
        let trial = health.admit_trial(back).unwrap();
        health.succeeded(trial, || back);
        assert_eq!(fail(&health, back + 10 * SECOND, 3), [SECOND]);
    }

    #[test]
    fn what_was_sent_before_says_nothing_after() {
        let (health, now) = health();
        let before = health.admit().unwrap();
        fail(&health, now, 3);
        assert!(!health.succeeded(before, || now));
        assert_eq!(health.failed(before, now), None);
        assert!(!health.is_in_service());
        // But what was sent in spite of it does.
        let anyway = health.admit_anyway();
        assert_eq!(health.failed(anyway, now), None);
        assert!(health.succeeded(anyway, || now));
    }

    #[test]
    fn zero_failures_are_never_reached() {
        let now = Instant::now();
        let health = Health::new(HealthPolicy { max_fails: 0, ..HealthPolicy::default() }, now);
        assert_eq!(fail(&health, now, 100), [SECOND; 0]);
        assert!(health.is_in_service());
    }
}
