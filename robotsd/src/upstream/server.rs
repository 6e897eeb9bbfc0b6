//! One server behind a site, and its health: whether it is in service.
//!
//! robotsd determines the health from the outcomes of requests, and sends no probes. Two kinds of
//! failures count against a server: a connection that could not be opened, and a new connection
//! that broke before any byte of a response arrived. Status codes such as 503, and slow responses,
//! do not count: otherwise, a client that can provoke such responses could take the server out of
//! service for all clients.
//!
//! A server that fails too often in a row is out of service for a while. After that time, one
//! request is sent to the server as a trial. If the request is answered, the server is in service
//! again. Otherwise, the server is out of service for twice as long as before.
//!
//! All workers share this state, and requests to a healthy server only read it.

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

#[derive(Debug, derive_more::Display)]
#[display("{address}")]
pub(super) struct Server {
    pub(super) address: ServerAddress,
    tls: Option<TlsClient>,
    pub(super) versions: HttpVersions,
    pub(super) health: Health,
    /// Number of open connections to the server, which [`Permit`](super::connection_limit::Permit)
    /// counts.
    pub(super) open: AtomicUsize,
}

impl Server {
    /// Creates a server that is used with `versions`. Without TLS, no version can be negotiated, so
    /// `Negotiated` is replaced by HTTP/1.1.
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

    /// Opens a connection. If TLS is configured, the handshake offers `versions`.
    pub(super) async fn connect(&self, versions: HttpVersions) -> Result<Socket, Unreachable> {
        let socket = match &self.address {
            ServerAddress::Tcp(address) => TcpStream::connect(address).await,
            ServerAddress::Loopback(port) => match TcpStream::connect((Ipv4Addr::LOCALHOST, *port)).await {
                Ok(socket) => Ok(socket),
                // Operators expect `localhost` to be the IPv4 address, so the error for that
                // address is reported.
                Err(error) => TcpStream::connect((Ipv6Addr::LOCALHOST, *port)).await.map_err(|_| error),
            },
            ServerAddress::Unix(path) => {
                return tokio::net::UnixStream::connect(path).await.map(Socket::Unix).map_err(Unreachable::Connect);
            }
        };
        let socket = socket.map_err(Unreachable::Connect)?;
        // Nagle's algorithm could delay a request with a small body until an acknowledgement
        // arrives.
        socket.set_nodelay(true).map_err(Unreachable::Connect)?;
        match &self.tls {
            None => Ok(Socket::Tcp(socket)),
            Some(tls) => Ok(Socket::Tls(Box::new(tls.connect(socket, versions).await?.into()))),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HealthPolicy {
    /// Number of consecutive failures that take a server out of service. Zero means never.
    pub(crate) max_fails: u32,
    /// Maximum time from the first to the last of the failures that take a server out of service.
    pub(crate) fail_window: Duration,
    /// Length of the first outage, plus or minus up to 20 %.
    pub(crate) eject: Duration,
    /// Maximum length of an outage.
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

#[derive(Debug)]
pub(super) struct Health {
    policy: HealthPolicy,
    start: Instant,
    /// Time of the next trial, in milliseconds since `start`. Zero while the server is in service.
    until: AtomicU64,
    ejections: AtomicU32,
    /// Whether `record` contains anything that a successful request must clear.
    is_marked: AtomicBool,
    record: Mutex<FailureRecord>,
}

#[derive(Debug, Default)]
struct FailureRecord {
    fails: u32,
    first: Option<Instant>,
    /// Length of the current outage or, if the server is in service, of its last outage. Zero if
    /// there was no recent outage.
    span: Duration,
    returned: Option<Instant>,
    /// Start of the current outage, and the last failure. `None` if the server is in service.
    outage: Option<(SystemTime, FailureKind, String)>,
}

/// Permission to send one request to the server. The caller reports the outcome of the request with
/// this ticket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ticket {
    ejections: u32,
    kind: TicketKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TicketKind {
    InService,
    /// Permission to try whether the server is in service again. Only one request at a time gets
    /// this ticket.
    Trial,
    /// Permission to use a server that is out of service, because all servers are out of service.
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

    /// Returns the number of times that the server has been taken out of service. A connection that
    /// was opened before the last change of this number is not used any more.
    pub(super) fn ejections(&self) -> u32 {
        self.ejections.load(Ordering::Relaxed)
    }

    pub(super) fn admit(&self) -> Option<Ticket> {
        self.is_in_service().then(|| self.ticket(TicketKind::InService))
    }

    /// Returns a ticket if a trial is due and no other request has the ticket for this trial.
    pub(super) fn admit_trial(&self, now: Instant) -> Option<Ticket> {
        let until = self.until.load(Ordering::Relaxed);
        if until == 0 || self.millis(now) < until {
            return None;
        }
        // Time of another trial if the outcome of this trial is never reported.
        let next = self.millis(now + self.policy.eject);
        self.until.compare_exchange(until, next, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        Some(self.ticket(TicketKind::Trial))
    }

    pub(super) fn admit_anyway(&self) -> Ticket {
        self.ticket(TicketKind::Anyway)
    }

    /// Records that the server has answered. Returns true if the server was out of service, and is
    /// in service again now.
    pub(super) fn succeeded(&self, ticket: Ticket, now: impl FnOnce() -> Instant) -> bool {
        // Nearly every request reads only this flag, and not the clock.
        self.is_marked.load(Ordering::Relaxed) && self.clear(ticket, now())
    }

    /// Records that the server could not be reached, or that the connection broke before a response
    /// arrived. If this failure takes the server out of service, returns the length of the outage.
    pub(super) fn failed(&self, ticket: Ticket, now: Instant) -> Option<Duration> {
        if self.policy.max_fails == 0 {
            return None;
        }
        let mut record = self.record.lock();
        // When a server goes out of service, many connections to it may break at the same time. So
        // a failure does not count if its request was sent before the server went out of service.
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
                // Each outage lasts twice as long as the previous outage, unless the server was in
                // service for at least as long as its last outage lasted.
                if record.returned.is_none_or(|returned| now.saturating_duration_since(returned) >= record.span) {
                    record.span = Duration::ZERO;
                }
                self.eject(&mut record, now);
                Some(record.span)
            }
        }
    }

    /// Records the latest failure for the status, if the server is out of service.
    pub(super) fn note(&self, check: FailureKind, why: &dyn fmt::Display) {
        let mut record = self.record.lock();
        // This check needs the lock, which is also held when a server returns to service.
        if self.is_in_service() {
            return;
        }
        let since = record.outage.as_ref().map_or_else(SystemTime::now, |(since, ..)| *since);
        record.outage = Some((since, check, why.to_string()));
    }

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
        // The length is random. If all outages had the same length, all proxies in front of a
        // server would try it again at the same moment.
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

    /// Returns the milliseconds since `start`, plus one, because zero means that the server is in
    /// service.
    fn millis(&self, at: Instant) -> u64 {
        at.saturating_duration_since(self.start).as_millis() as u64 + 1
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) since: SystemTime,
    /// Kind of the last failure. For a server: connecting or the TLS handshake failed, or a
    /// connection broke before a response. For a name: the name has no address.
    pub(crate) check: FailureKind,
    pub(crate) why: String,
    /// Time until a request tries the server again. Zero if the next request tries the server.
    pub(crate) again: Duration,
}

/// The status of a site's server, or of a host name that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerStatus {
    pub(crate) server: String,
    /// Number of open connections to the server, by use; empty for a name.
    pub(crate) connections: Vec<(ConnectionUse, usize)>,
    pub(crate) outage: Option<Outage>,
}

word_enum! {
    /// The use of a connection.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum ConnectionUse {
        Idle = "idle",
        /// The connection is being opened, or serves a request.
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
    fn three_failures_in_a_row_eject_a_server() {
        let (health, now) = health();
        assert_eq!(fail(&health, now, 2), [SECOND; 0]);
        health.succeeded(health.admit().unwrap(), || now);
        assert_eq!(fail(&health, now, 2), [SECOND; 0]);
        assert_eq!(fail(&health, now, 1), [SECOND]);
        assert!(!health.is_in_service() && health.admit().is_none());
    }

    #[test]
    fn failures_that_are_far_apart_do_not_add_up() {
        let (health, now) = health();
        for minute in 0..10 {
            assert_eq!(fail(&health, now + minute * 60 * SECOND, 1), [SECOND; 0]);
        }
    }

    #[test]
    fn only_one_request_tries_an_ejected_server() {
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
    fn an_ejected_server_is_tried_again_if_a_trial_reports_no_result() {
        let (health, now) = health();
        fail(&health, now, 3);
        assert!(health.admit_trial(now + 2 * SECOND).is_some());
        assert!(health.admit_trial(now + 4 * SECOND).is_some());
    }

    #[test]
    fn the_ejection_time_doubles_up_to_a_limit_and_is_reported_once() {
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
    fn a_server_that_fails_again_soon_after_its_return_is_ejected_for_longer() {
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
    fn results_of_requests_sent_before_an_ejection_do_not_count_after_it() {
        let (health, now) = health();
        let before = health.admit().unwrap();
        fail(&health, now, 3);
        assert!(!health.succeeded(before, || now));
        assert_eq!(health.failed(before, now), None);
        assert!(!health.is_in_service());
        // If a request was sent although the server is out of service, only its success counts.
        let anyway = health.admit_anyway();
        assert_eq!(health.failed(anyway, now), None);
        assert!(health.succeeded(anyway, || now));
    }

    #[test]
    fn a_server_is_never_ejected_if_max_fails_is_zero() {
        let now = Instant::now();
        let health = Health::new(HealthPolicy { max_fails: 0, ..HealthPolicy::default() }, now);
        assert_eq!(fail(&health, now, 100), [SECOND; 0]);
        assert!(health.is_in_service());
    }
}
