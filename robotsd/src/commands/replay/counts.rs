//! Counts the requests of a replay in bounded memory. Also counts the requests of search engines
//! for `robotsd diff`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::{io, slice, thread};

use foldhash::fast::RandomState;
use indicatif::ProgressBar;
use tower_robots::agent::Referrer;
use tower_robots::policy::{Decision, UnderRefuse};
use tower_robots::rules::RequestPath;

use super::chunks;
use super::crawler_rows::{self, FailedClaims, RowPart, Rows};
use super::format::{ChunkReader, LogLine, LoggedRequest, has_object};
use super::headers::{HeaderCache, IdentifiedHeader, MAX_HEADER_LENGTH, RequestJudgement};
use super::history::{BoardNotes, VersionHistory};
use super::identity::{LogEvidence, NameQuestions, address_as_logged, is_complete_address};
use super::redaction::ReportPrivacy;
use super::rule_paths::{DecidingRule, Effect};
use super::selection::{LogSelection, RequestedHosts};
use super::source;
use super::tally::{Hours, LogPeriod, RefusalTally, RequestTally};
use crate::board::{LogBoard, Second, service_of};
use crate::evaluator::{Evaluator, KnownSender};

/// Maximum number of unreadable lines that are kept as samples. `MAX_SAMPLE_BYTES` is the maximum
/// size of a sample, in bytes.
const MAX_SAMPLES: usize = 3;
const MAX_SAMPLE_BYTES: usize = 160;

#[derive(Debug)]
pub(super) struct ReplayPlan {
    pub(super) logs: Vec<String>,
    pub(super) robots: String,
    pub(super) against: Option<String>,
    /// The compiled robots.txt. In a comparison, the last evaluator is that of the second file.
    pub(super) evaluators: Vec<Evaluator>,
    pub(super) selection: LogSelection,
    /// Time when the rules began to apply; earlier requests are counted separately.
    pub(super) effective_from: Option<i64>,
    pub(super) privacy: ReportPrivacy,
    pub(super) evidence: LogEvidence,
    /// Past versions of robots.txt (`--history`), for judging crawlers.
    pub(super) history: Option<VersionHistory>,
    /// Whether, according to the config, the logs contain every fetch of robots.txt.
    pub(super) sees_all: bool,
}

impl ReplayPlan {
    pub(super) fn is_compared(&self) -> bool {
        self.against.is_some()
    }
}

#[derive(Debug, Default)]
pub(super) struct ReplayCounts {
    pub(super) requests: u64,
    pub(super) hosts: RequestedHosts,
    pub(super) unread: u64,
    pub(super) events: u64,
    pub(super) samples: Vec<Vec<u8>>,
    pub(super) nameless: u64,
    /// Whether any line without a User-Agent is a JSON object, which may contain the User-Agent
    /// under an unknown key.
    pub(super) has_nameless_json: bool,
    pub(super) timeless: u64,
    pub(super) period: LogPeriod,
    pub(super) rows: Rows,
    pub(super) hours: Hours,
    pub(super) has_limit: bool,
    /// Crawlers whose failed claims are suspect ([`crawler_rows::crawlers_with_suspect_path`]),
    /// each with these claims.
    pub(super) suspects: Vec<(String, FailedClaims)>,
    pub(super) has_referers: bool,
    pub(super) referred_visitors: HashMap<Arc<Referrer>, u64, RandomState>,
    /// Observations in one chunk for the board; `board` combines the observations in all chunks.
    pub(super) board_notes: BoardNotes,
    pub(super) board: LogBoard,
}

impl ReplayCounts {
    pub(super) fn count_chunk(plan: &ReplayPlan, headers: &mut HeaderCache, chunk: &[u8]) -> Self {
        let mut counts = Self::default();
        let mut hosts = RequestedHosts::default();
        read_lines(&plan.selection, &mut hosts, chunk, |line, read| match read {
            LogLine::Request(entry) => {
                counts.has_nameless_json |= entry.agent.is_empty() && has_object(line);
                counts.entry(plan, headers, &entry);
            }
            LogLine::Directive => {}
            LogLine::Event => counts.events += 1,
            LogLine::Unread => {
                counts.unread += 1;
                if counts.samples.len() < MAX_SAMPLES {
                    counts.samples.push(line[..line.len().min(MAX_SAMPLE_BYTES)].to_vec());
                }
            }
        });
        Self { hosts, ..counts }
    }

    fn entry(&mut self, plan: &ReplayPlan, headers: &mut HeaderCache, entry: &LoggedRequest<'_>) {
        self.requests += 1;
        self.nameless += u64::from(entry.agent.is_empty());
        self.timeless += u64::from(entry.time.is_none());
        self.has_referers |= !entry.referer.is_empty();
        self.period.note(entry.time);
        let HeaderCache { known, version_headers } = headers;
        let header = known.identify(&plan.evaluators, &plan.evidence, &entry.agent);
        if header.has_no_crawler && entry.got_page() && !entry.referer.is_empty() {
            self.count_visitor(plan, entry);
        }
        let logged = address_as_logged(&entry.address);
        let address = if header.methods.is_some() { logged.filter(is_complete_address) } else { None };
        let sender = KnownSender { identity: header.sender(&plan.evidence, address, entry.time), address: logged };
        if let (Some(history), Some(at)) = (&plan.history, entry.time.and_then(|time| Second::try_from(time).ok())) {
            self.board_notes.note(history, version_headers, entry, sender, at);
        }
        self.judge(plan, header, entry, sender, address);
    }

    fn judge(
        &mut self,
        plan: &ReplayPlan,
        header: &IdentifiedHeader,
        entry: &LoggedRequest<'_>,
        sender: KnownSender,
        address: Option<IpAddr>,
    ) {
        let kind = &header.kind;
        let RowPart { tally, rules, failed } = self.rows.of(kind).row_part_for(sender.identity, entry.time);
        if !kind.is_crawler && header.agents.iter().all(|agent| !agent.is_judged) {
            tally.requests += 1;
            tally.allowed += 1;
            return;
        }
        let judged = JudgedEntry::of(plan, header, entry, sender);
        self.has_limit |= judged.has_rate_limit;
        *tally += judged.tally;
        let hours = match failed {
            Some((hours, addresses)) => {
                // A claim can fail only if the log line contains an address, so every failed claim
                // is noted.
                if let Some(address) = address {
                    addresses.note(address, judged.tally.disallowed > 0);
                }
                hours
            }
            None => &mut self.hours,
        };
        if kind.is_crawler
            && let Some(hour) = entry.time.and_then(|time| hours.of(time))
        {
            *hour += judged.tally;
        }
        if let Some(rule) = judged.rule {
            rules.add(rule, &plan.privacy.target(&entry.target));
        }
    }

    fn count_visitor(&mut self, plan: &ReplayPlan, entry: &LoggedRequest<'_>) {
        let Some(evaluator) = plan.evaluators.last() else { return };
        let registry = &evaluator.settings.registry;
        if let Some(service) = service_of(registry, &entry.referer, entry.host.as_deref(), &entry.target) {
            *self.referred_visitors.entry(Arc::clone(service)).or_default() += 1;
        }
    }

    /// Changes claims from "refuted" to "claimed" for crawlers whose claims probably failed only
    /// because the log does not contain the addresses of clients. Must be called after all chunks
    /// are counted.
    pub(super) fn clear_suspect_claims(&mut self, plan: &ReplayPlan) {
        let names = crawler_rows::crawlers_with_suspect_path(self.rows.iter());
        if let Some(history) = &plan.history {
            self.board.conclude(&history.dates(), &names);
        }
        self.suspects = self.rows.clear_failed_claims(&names);
        self.suspects.iter().for_each(|(_, failed)| self.hours.merge(failed.hours.clone()));
    }

    pub(super) fn merge(&mut self, next: Self) {
        self.requests += next.requests;
        self.hosts += next.hosts;
        self.unread += next.unread;
        self.events += next.events;
        self.nameless += next.nameless;
        self.has_nameless_json |= next.has_nameless_json;
        self.timeless += next.timeless;
        self.samples.extend(next.samples);
        self.samples.truncate(MAX_SAMPLES);
        self.period.merge(next.period);
        self.hours.merge(next.hours);
        self.has_limit |= next.has_limit;
        self.has_referers |= next.has_referers;
        next.referred_visitors
            .into_iter()
            .for_each(|(service, count)| *self.referred_visitors.entry(service).or_default() += count);
        next.board_notes.add_to(&mut self.board);
        self.rows.merge(next.rows);
    }
}

struct JudgedEntry {
    tally: RequestTally,
    rule: Option<DecidingRule>,
    has_rate_limit: bool,
}

impl JudgedEntry {
    fn of(plan: &ReplayPlan, header: &IdentifiedHeader, entry: &LoggedRequest<'_>, sender: KnownSender) -> Self {
        let path = plan.evaluators[0].path(&entry.target);
        let decide = |at: usize| header.agents[at].decide(&plan.evaluators[at], sender, entry.method(), &path);
        let decision = decide(plan.evaluators.len() - 1);
        let now = RequestJudgement::of(decision.as_ref());
        let before = if plan.is_compared() { RequestJudgement::of(decide(0).as_ref()) } else { now };
        let mut judged = Self {
            tally: RequestTally {
                requests: 1,
                allowed: u64::from(!now.is_disallowed()),
                robots_txt: u64::from(path.is_robots_txt()),
                pages: u64::from(entry.got_page() && !path.is_robots_txt()),
                ..RequestTally::default()
            },
            rule: None,
            has_rate_limit: decision.is_some_and(|decision| decision.rate_limit.is_some()),
        };
        let is_early = match (plan.effective_from, entry.time) {
            (Some(from), Some(time)) => time < from,
            _ => false,
        };
        if is_early {
            judged.tally.not_blamed = u64::from(now.is_disallowed());
            return judged;
        }
        judged.rule = deciding_rule(plan.is_compared(), before, now);
        let tally = &mut judged.tally;
        tally.disallowed = u64::from(now.is_disallowed());
        tally.disallowed_before = u64::from(before.is_disallowed());
        match judged.rule.map(|rule| rule.effect) {
            Some(Effect::ShutOut) => tally.shut = 1,
            Some(Effect::LetIn) => tally.opened = 1,
            Some(Effect::Disallowed) | None => {}
        }
        match decision.as_ref().map(Decision::would) {
            Some(UnderRefuse::Refuse) => {
                tally.would_refuse = tally.disallowed;
                let at = decision.as_ref().map_or(0, |decision| decision.agent);
                if let (Some(evaluator), Some(agents)) = (plan.evaluators.last(), header.agents.last())
                    && let Some(agent) = agents.agents.get(at)
                {
                    let answer = evaluator.refusal(agent, sender, entry.method(), &path);
                    tally.refusals = RefusalTally::of(answer.status, tally.would_refuse);
                }
            }
            Some(UnderRefuse::Tag) => tally.would_tag = tally.disallowed,
            _ => {}
        }
        if header.kind.is_index_engine {
            tally.disallowed_search_engines = tally.disallowed;
            tally.shut_search_engines = tally.shut;
        }
        judged
    }
}

pub(super) fn name_questions(plan: &ReplayPlan, headers: &mut HeaderCache, chunk: &[u8]) -> NameQuestions {
    let questions = RefCell::default();
    read_lines(&plan.selection, &mut RequestedHosts::default(), chunk, |_, read| {
        let LogLine::Request(entry) = read else { return };
        let header = headers.known.identify(&plan.evaluators, &plan.evidence, &entry.agent);
        if let (Some(judged), Some(methods)) = (header.agents.last(), &header.methods) {
            let address = address_as_logged(&entry.address).filter(is_complete_address);
            plan.evidence.identify(&judged.agents, methods, address, entry.time, Some(&questions));
        }
    });
    questions.into_inner()
}

/// Calls `take` for every line of a chunk. Skips empty lines and requests that are not selected,
/// such as requests for other hosts.
fn read_lines(
    selection: &LogSelection,
    hosts: &mut RequestedHosts,
    chunk: &[u8],
    mut take: impl FnMut(&[u8], LogLine<'_>),
) {
    let mut reader = ChunkReader::new(selection.format, &selection.json_keys, chunk);
    let mut start = 0;
    let ends = memchr::memchr_iter(b'\n', chunk).chain(std::iter::once(chunk.len()));
    for end in ends {
        let line = chunk.get(start..end).unwrap_or_default();
        start = end + 1;
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.is_empty() {
            continue;
        }
        let read = reader.read(line);
        if !matches!(&read, LogLine::Request(request) if !selection.has(request, hosts)) {
            take(line, read);
        }
    }
}

/// Returns the rule that disallows a request or, in a comparison, the rule that makes the verdicts
/// differ. `None` if the request is allowed or, in a comparison, if the verdicts are equal.
fn deciding_rule(compared: bool, first: RequestJudgement, last: RequestJudgement) -> Option<DecidingRule> {
    let (effect, line) = match (first, last) {
        (_, RequestJudgement::Disallowed(line)) if !compared => (Effect::Disallowed, line),
        (RequestJudgement::Allowed, RequestJudgement::Disallowed(line)) => (Effect::ShutOut, line),
        (RequestJudgement::Disallowed(line), RequestJudgement::Allowed) => (Effect::LetIn, line),
        _ => return None,
    };
    Some(DecidingRule { effect, line })
}

/// The requests of search engines that people use, except requests for robots.txt. A log alone does
/// not show who sent a request, so a client that claims to be a search engine is counted as that
/// search engine.
#[derive(Debug, Default)]
pub(in crate::commands) struct SearchRequests {
    pub(in crate::commands) crawlers: BTreeMap<String, RequestedTargets>,
    pub(in crate::commands) requests: u64,
    pub(in crate::commands) unread: u64,
    pub(in crate::commands) hosts: RequestedHosts,
}

#[derive(Debug, Default)]
pub(in crate::commands) struct RequestedTargets {
    pub(in crate::commands) targets: HashMap<Box<[u8]>, u64, RandomState>,
    /// Number of requests for targets that are not stored.
    pub(in crate::commands) left_out: u64,
}

impl SearchRequests {
    /// Counts the requests in logs, using all cores. If a log cannot be read, the other logs are
    /// still counted.
    pub(in crate::commands) fn read(
        logs: &[PathBuf],
        selection: &LogSelection,
        evaluator: &Evaluator,
    ) -> (Self, Vec<io::Error>) {
        let progress = ProgressBar::hidden();
        let inputs = logs.iter().map(|path| source::open(path, &progress));
        let workers = thread::available_parallelism().map_or(1, NonZeroUsize::get);
        let mut all = Self::default();
        let evidence = LogEvidence::default();
        let work = |headers: &mut HeaderCache, chunk: &[u8]| {
            let (mut one, mut hosts) = (Self::default(), RequestedHosts::default());
            read_lines(selection, &mut hosts, chunk, |_, line| {
                one.unread += u64::from(line == LogLine::Unread);
                let LogLine::Request(request) = line else { return };
                one.requests += 1;
                // Requests with headers above [`MAX_HEADER_LENGTH`] are skipped, because no search
                // engine sends such long headers.
                if request.agent.len() <= MAX_HEADER_LENGTH && !RequestPath::is_robots_txt_target(&request.target) {
                    let kind = &headers.known.identify(slice::from_ref(evaluator), &evidence, &request.agent).kind;
                    if kind.is_index_engine {
                        one.of(&kind.name).add(&request.target, 1);
                    }
                }
            });
            Self { hosts, ..one }
        };
        let errors = chunks::for_each(inputs, workers, HeaderCache::default, work, |one| all.merge(one));
        (all, errors)
    }

    fn of(&mut self, crawler: &str) -> &mut RequestedTargets {
        self.crawlers.entry(crawler.to_owned()).or_default()
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.unread += other.unread;
        self.hosts += other.hosts;
        for (crawler, requested) in other.crawlers {
            let all = self.of(&crawler);
            all.left_out += requested.left_out;
            requested.targets.iter().for_each(|(target, count)| all.add(target, *count));
        }
    }
}

impl RequestedTargets {
    /// Maximum number of targets that are stored per crawler. Requests for other targets are only
    /// counted.
    pub(in crate::commands) const MAX: usize = 100_000;

    /// Maximum length of a target that is stored, in bytes.
    pub(in crate::commands) const MAX_LENGTH: usize = 2048;

    fn add(&mut self, target: &[u8], count: u64) {
        if let Some(known) = self.targets.get_mut(target) {
            *known += count;
        } else if self.targets.len() < Self::MAX && target.len() <= Self::MAX_LENGTH {
            self.targets.insert(target.into(), count);
        } else {
            self.left_out += count;
        }
    }
}
