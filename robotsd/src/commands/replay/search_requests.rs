//! What search engines requested, by the logs: for `diff`, which says how much of it a change would refuse.

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::thread;

use foldhash::fast::RandomState;

use super::chunks;
use super::counts::read_lines;
use super::format::{LogLine, ReplayLogFormat};
use super::source::{self, Meter};
use crate::evaluator::Evaluator;

/// Targets that are kept of one crawler; requests for others are counted.
const MOST_TARGETS: usize = 100_000;

/// Octets of a target that is kept.
const LONGEST: usize = 2048;

/// Headers whose crawlers a worker remembers; beyond it all are forgotten.
const MOST_HEADERS: usize = 4096;

/// Octets of a header that is remembered.
const LONGEST_HEADER: usize = 512;

/// The requests of search engines that have an index people use, by the name of each. Who claims to be one counts: a log alone
/// does not say who sent a request.
#[derive(Debug, Default)]
pub(in crate::commands) struct SearchRequests {
    pub(in crate::commands) crawlers: BTreeMap<String, RequestedTargets>,
    /// Lines that are requests, of anyone.
    pub(in crate::commands) requests: u64,
    pub(in crate::commands) unread_lines: u64,
}

/// What one crawler requested, and how often.
#[derive(Debug, Default)]
pub(in crate::commands) struct RequestedTargets {
    pub(in crate::commands) targets: HashMap<Box<[u8]>, u64, RandomState>,
    /// All of its requests, those for targets that are not kept included.
    pub(in crate::commands) requests: u64,
}

/// The search engine that each header claims to be.
type HeaderClaims = HashMap<Box<[u8]>, Option<Box<str>>, RandomState>;

impl SearchRequests {
    /// Reads logs with every core. Those that could be read count, whatever became of the others.
    pub(in crate::commands) fn read(logs: &[PathBuf], evaluator: &Evaluator) -> (Self, Vec<io::Error>) {
        let meter = Meter::default();
        let inputs = logs.iter().map(|path| source::open(path, &meter));
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut all = Self::default();
        let work = |claims: &mut HeaderClaims, chunk: &[u8]| Self::of_chunk(claims, evaluator, chunk);
        let errors = chunks::for_each(inputs, workers, HeaderClaims::default, work, |one, _| all.merge(one));
        (all, errors)
    }

    fn of_chunk(claims: &mut HeaderClaims, evaluator: &Evaluator, chunk: &[u8]) -> Self {
        let mut all = Self::default();
        read_lines(ReplayLogFormat::Auto, chunk, |_, line| match line {
            LogLine::Request(request) => {
                all.requests += 1;
                if let Some(name) = claim(claims, evaluator, &request.agent) {
                    all.of(name).add(&request.target, 1);
                }
            }
            LogLine::Directive => {}
            LogLine::Unread => all.unread_lines += 1,
        });
        all
    }

    fn of(&mut self, crawler: &str) -> &mut RequestedTargets {
        self.crawlers.entry(crawler.to_owned()).or_default()
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.unread_lines += other.unread_lines;
        for (crawler, requested) in other.crawlers {
            let all = self.of(&crawler);
            let kept: u64 = requested.targets.values().sum();
            all.requests += requested.requests - kept;
            requested.targets.iter().for_each(|(target, count)| all.add(target, *count));
        }
    }
}

impl RequestedTargets {
    fn add(&mut self, target: &[u8], count: u64) {
        self.requests += count;
        if let Some(known) = self.targets.get_mut(target) {
            *known += count;
        } else if self.targets.len() < MOST_TARGETS && target.len() <= LONGEST {
            self.targets.insert(target.into(), count);
        }
    }
}

/// The search engine that a header claims to be.
fn claim<'c>(claims: &'c mut HeaderClaims, evaluator: &Evaluator, header: &[u8]) -> Option<&'c str> {
    let key = &header[..header.len().min(LONGEST_HEADER)];
    // What is longer is no header of a search engine.
    if key.len() < header.len() {
        return None;
    }
    if claims.len() >= MOST_HEADERS && !claims.contains_key(key) {
        claims.clear();
    }
    if !claims.contains_key(key) {
        let agents = evaluator.agents(key);
        let agent = Some(agents.first()).filter(|agent| agent.is_index_engine());
        claims.insert(key.into(), agent.and_then(|agent| agent.crawler()).map(Into::into));
    }
    claims.get(key).and_then(Option::as_deref)
}
