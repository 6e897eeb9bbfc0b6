//! DNS queries to a resolver.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use hickory_resolver::TokioResolver;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig, ResolveHosts, ResolverConfig, ResolverOpts};
use hickory_resolver::net::runtime::TokioRuntimeProvider;
use hickory_resolver::net::{DnsError, NetError};
use hickory_resolver::proto::op::ResponseCode;
use hickory_resolver::proto::rr::{Name, RData, RecordType};

use super::question_gate::QuestionGate;
use crate::identity::{AddressRecord, DnsAnswer, MethodOutcome, RdnsCheck, RdnsQuestion, RdnsStep};

/// Addresses that are looked up at once.
pub(super) const IN_FLIGHT: usize = 32;

const TIMEOUT: Duration = Duration::from_secs(1);

/// How often a query is sent, where no answer comes.
const ATTEMPTS: u32 = 2;

/// A resolver for absolute names, without search domains and without a hosts file.
#[derive(Debug)]
pub(super) struct DnsResolver {
    resolver: TokioResolver,
    gate: QuestionGate,
}

/// An answer, and how long it holds.
#[derive(Debug)]
struct TimedAnswer {
    answer: DnsAnswer,
    holds: Duration,
}

impl DnsResolver {
    /// One that queries these servers, or without any those of the system.
    pub(super) fn new(servers: &[SocketAddr]) -> io::Result<Self> {
        let mut builder = if servers.is_empty() {
            TokioResolver::builder_tokio().map_err(io::Error::other)?
        } else {
            let config = ResolverConfig::from_name_servers(servers.iter().map(name_server).collect());
            TokioResolver::builder_with_config(config, TokioRuntimeProvider::default())
        };
        restrict(builder.options_mut());
        Ok(Self { resolver: builder.build().map_err(io::Error::other)?, gate: QuestionGate::default() })
    }

    /// Asks what a check needs: its outcome, and how long the records hold that it is from.
    pub(super) async fn check(&self, check: RdnsCheck) -> (MethodOutcome, Duration) {
        self.check_noting(check, |_, _| ()).await
    }

    /// The same, with a function that is called for every answer.
    pub(super) async fn check_noting(
        &self,
        mut check: RdnsCheck,
        mut note: impl FnMut(&RdnsQuestion<'_>, &DnsAnswer),
    ) -> (MethodOutcome, Duration) {
        let mut holds = Duration::MAX;
        loop {
            let answer = match check.step() {
                RdnsStep::Done(outcome) => return (outcome, holds),
                RdnsStep::Ask(question) => {
                    let answer = self.ask(&question).await;
                    note(&question, &answer.answer);
                    answer
                }
            };
            holds = holds.min(answer.holds);
            check.answer(answer.answer);
        }
    }

    /// Asks a question, again where no answer comes.
    async fn ask(&self, question: &RdnsQuestion<'_>) -> TimedAnswer {
        let mut answer = TimedAnswer { answer: DnsAnswer::Timeout, holds: Duration::ZERO };
        for _ in 0..ATTEMPTS {
            self.gate.pass().await;
            answer = self.ask_once(question).await;
            if answer.answer != DnsAnswer::Timeout {
                break;
            }
        }
        answer
    }

    async fn ask_once(&self, question: &RdnsQuestion<'_>) -> TimedAnswer {
        let failure = TimedAnswer { answer: DnsAnswer::Failure, holds: Duration::ZERO };
        let (name, record) = match question {
            RdnsQuestion::Names(address) => (Name::from(*address), RecordType::PTR),
            RdnsQuestion::Addresses { name, record } => {
                let Ok(mut name) = Name::from_ascii(name) else { return failure };
                name.set_fqdn(true);
                let record = match record {
                    AddressRecord::A => RecordType::A,
                    AddressRecord::Aaaa => RecordType::AAAA,
                };
                (name, record)
            }
        };
        // The resolver's own time is for one server of several, and for UDP and TCP each.
        let asked = tokio::time::timeout(4 * TIMEOUT, self.resolver.lookup(name, record)).await;
        let lookup = match asked {
            Ok(Ok(lookup)) => lookup,
            Ok(Err(error)) => return TimedAnswer { answer: answer_of(&error), holds: Duration::ZERO },
            Err(_) => return TimedAnswer { answer: DnsAnswer::Timeout, holds: Duration::ZERO },
        };
        let holds = lookup.valid_until().saturating_duration_since(Instant::now());
        let data = || lookup.answers().iter().map(|record| &record.data);
        let answer = match question {
            RdnsQuestion::Names(_) => DnsAnswer::Names(data().filter_map(name_of).collect()),
            RdnsQuestion::Addresses { .. } => DnsAnswer::Addresses(data().filter_map(address_of).collect()),
        };
        TimedAnswer { answer, holds }
    }
}

fn name_server(address: &SocketAddr) -> NameServerConfig {
    let mut server = NameServerConfig::udp_and_tcp(address.ip());
    server.connections.iter_mut().for_each(|connection: &mut ConnectionConfig| connection.port = address.port());
    server
}

fn restrict(options: &mut ResolverOpts) {
    options.ndots = 0;
    options.timeout = TIMEOUT;
    // Attempts are counted here, so that each passes the gate.
    options.attempts = 0;
    options.num_concurrent_reqs = 1;
    // Answers are kept by address, with what they mean.
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
