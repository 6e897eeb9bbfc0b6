//! Sends DNS queries to a resolver at a limited rate. Also contains a resolver of reverse DNS names
//! for programs that can wait, such as programs that check a log.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};
use tokio::sync::{Mutex, Semaphore};
use tokio::time::{self, Interval, MissedTickBehavior};

use crate::identity::{DnsAnswer, MethodOutcome, NamePattern, PublicAddress, RdnsCheck, RdnsQuestion};
use crate::source::follow::FollowError;

/// Maximum number of addresses that are looked up at the same time.
pub(super) const IN_FLIGHT: usize = 32;

/// Time limit for the response of a DNS server.
pub(super) const TIMEOUT: Duration = Duration::from_secs(1);

/// Minimum time between two queries, which limits the rate to 50 queries per second even if many
/// requests claim to be from crawlers.
pub(super) const PACE: Duration = Duration::from_millis(20);

/// Maximum number of times that a query is sent if no response arrives.
const ATTEMPTS: u32 = 2;

/// A resolver for absolute names. It uses neither search domains nor a hosts file.
#[derive(Debug)]
pub(super) struct DnsResolver {
    resolver: TokioResolver,
    gate: Mutex<Interval>,
    timeout: Duration,
}

impl DnsResolver {
    /// Creates a resolver that queries these servers. If `servers` is empty, it queries the servers
    /// of the system.
    pub(super) fn new(servers: &[SocketAddr], pace: Duration, timeout: Duration) -> io::Result<Self> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().map_err(io::Error::other)?
        } else {
            let config = ResolverConfig::from_name_servers(servers.iter().map(name_server).collect());
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        restrict(builder.options_mut(), timeout);
        let resolver = builder.build().map_err(io::Error::other)?;
        Ok(Self { resolver, gate: question_gate(pace), timeout })
    }

    /// Sends the queries that a check needs. Returns the result, and how long the DNS records for
    /// this result are valid. Passes every response to `note`.
    pub(super) async fn check(
        &self,
        mut check: RdnsCheck,
        mut note: impl FnMut(&RdnsQuestion<'_>, &DnsAnswer),
    ) -> (MethodOutcome, Duration) {
        let mut holds = Duration::MAX;
        loop {
            let question = match check.step() {
                ControlFlow::Break(outcome) => return (outcome, holds),
                ControlFlow::Continue(question) => question,
            };
            let (answer, answer_holds) = self.ask(&question).await;
            note(&question, &answer);
            holds = holds.min(answer_holds);
            check.answer(answer);
        }
    }

    async fn ask(&self, question: &RdnsQuestion<'_>) -> (DnsAnswer, Duration) {
        let mut answer = (DnsAnswer::Timeout, Duration::ZERO);
        for _ in 0..ATTEMPTS {
            self.gate.lock().await.tick().await;
            answer = self.ask_once(question).await;
            if answer.0 != DnsAnswer::Timeout {
                break;
            }
        }
        answer
    }

    async fn ask_once(&self, question: &RdnsQuestion<'_>) -> (DnsAnswer, Duration) {
        let failure = (DnsAnswer::Failure, Duration::ZERO);
        let (name, record) = match question {
            RdnsQuestion::Ptr(address) => (Ok(Name::from(*address)), RecordType::PTR),
            RdnsQuestion::A(name) => (Name::from_ascii(name), RecordType::A),
            RdnsQuestion::Aaaa(name) => (Name::from_ascii(name), RecordType::AAAA),
        };
        let Ok(mut name) = name else { return failure };
        name.set_fqdn(true);
        // Limits the total time of a query. The resolver's own timeout applies separately to each
        // server, and to UDP and TCP.
        let asked = time::timeout(4 * self.timeout, self.resolver.lookup(name, record)).await;
        let lookup = match asked {
            Ok(Ok(lookup)) => lookup,
            Ok(Err(error)) => return (answer_of(&error), Duration::ZERO),
            Err(_) => return (DnsAnswer::Timeout, Duration::ZERO),
        };
        let holds = lookup.valid_until().saturating_duration_since(Instant::now());
        let data = || lookup.answers().iter().map(|record| &record.data);
        let answer = match question {
            RdnsQuestion::Ptr(_) => DnsAnswer::Names(data().filter_map(name_of).collect()),
            RdnsQuestion::A(_) | RdnsQuestion::Aaaa(_) => DnsAnswer::Addresses(data().filter_map(address_of).collect()),
        };
        (answer, holds)
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection: &mut ConnectionConfig| connection.port = address.port());
    server
}

fn restrict(options: &mut ResolverOpts, timeout: Duration) {
    options.ndots = 0;
    options.timeout = timeout;
    // `DnsResolver::ask`, and not the library, repeats queries, so that the rate limit also applies
    // to repeated queries.
    options.attempts = 0;
    options.num_concurrent_reqs = 1;
    // Responses are not cached here, because the results of checks are cached.
    options.cache_size = 0;
    options.use_hosts_file = ResolveHosts::Never;
}

fn name_of(data: &RData) -> Option<String> {
    match data {
        RData::PTR(name) => Some(name.0.to_ascii()),
        _ => None,
    }
}

fn address_of(data: &RData) -> Option<IpAddr> {
    match data {
        RData::A(address) => Some(IpAddr::V4(address.0)),
        RData::AAAA(address) => Some(IpAddr::V6(address.0)),
        _ => None,
    }
}

fn answer_of(error: &NetError) -> DnsAnswer {
    match error {
        NetError::Timeout => DnsAnswer::Timeout,
        NetError::Truncated => DnsAnswer::Truncated,
        NetError::Dns(DnsError::NoRecordsFound(no)) => match no.response_code {
            ResponseCode::NXDomain => DnsAnswer::NoSuchName,
            ResponseCode::NoError => DnsAnswer::NoRecords,
            _ => DnsAnswer::Failure,
        },
        _ => DnsAnswer::Failure,
    }
}

/// Checks the sender of a request by the reverse DNS names of its address.
///
/// At most 50 queries are sent per second, as in a [`Verifier`](super::Verifier), and at most 32
/// addresses are looked up at the same time. Further calls wait. Results are not cached. The
/// queries reveal the addresses to the DNS resolver.
#[derive(Debug)]
pub struct NameResolver {
    pub(super) resolver: DnsResolver,
    pub(super) in_flight: Semaphore,
}

impl NameResolver {
    /// Creates a resolver that queries these servers. If the list is empty, it queries the servers
    /// of the system. The new resolver can be used only on the current Tokio runtime.
    ///
    /// # Errors
    ///
    /// Returns an error if the system's resolvers cannot be determined.
    pub fn new(servers: &[SocketAddr]) -> Result<Self, FollowError> {
        let resolver = DnsResolver::new(servers, PACE, TIMEOUT);
        let resolver = resolver.map_err(|error| FollowError::new(format!("cannot create a DNS resolver: {error}")))?;
        Ok(Self { resolver, in_flight: Semaphore::new(IN_FLIGHT) })
    }

    /// Checks whether an address belongs to the claimed crawler. `patterns` are the patterns for
    /// the reverse DNS names of the crawler's addresses.
    ///
    /// A failed check refutes the claim only if the resolver is known to answer queries about names
    /// of the crawler's operator ([`RdnsCheck::through`]). Every response is passed to `note`.
    pub async fn check(
        &self,
        address: PublicAddress,
        patterns: Arc<[NamePattern]>,
        note: impl FnMut(&RdnsQuestion<'_>, &DnsAnswer),
    ) -> MethodOutcome {
        // This cannot fail, because the semaphore is never closed.
        let _permit = self.in_flight.acquire().await;
        self.resolver.check(RdnsCheck::new(address, patterns), note).await.0
    }
}

/// Creates a rate limiter that lets one query pass per interval `pace`, in the order of arrival.
fn question_gate(pace: Duration) -> Mutex<Interval> {
    let mut gate = time::interval(pace);
    // After a pause, queries must not be sent in a burst.
    gate.set_missed_tick_behavior(MissedTickBehavior::Delay);
    Mutex::new(gate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn dns_queries_are_limited_to_fifty_per_second_even_after_a_pause() {
        let (gate, start) = (question_gate(PACE), time::Instant::now());
        for _ in 0..=100 {
            gate.lock().await.tick().await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(2));
        time::advance(Duration::from_secs(60)).await;
        let start = time::Instant::now();
        for _ in 0..=50 {
            gate.lock().await.tick().await;
        }
        assert_eq!(start.elapsed(), Duration::from_secs(1));
    }
}
