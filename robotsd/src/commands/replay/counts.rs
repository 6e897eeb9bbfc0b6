//! Counting requests, in bounded memory, and those of search engines for `diff`.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::{io, slice, thread};

use foldhash::fast::RandomState;
use indicatif::ProgressBar;
use tower_robots::agent::Referrer;
use tower_robots::policy::{Decision, Pace, Would};
use tower_robots::rules::RequestPath;

use super::chunks;
use super::crawler_rows::{self, FailedClaims, RowPart, Rows};
use super::format::{ChunkReader, LogLine, LoggedRequest, has_object};
use super::headers::{HeaderCache, LONGEST_HEADER, RequestJudgement};
use super::history::{BoardNotes, VersionHistory};
use super::identity::{LogEvidence, NameQuestions, address_as_logged, is_whole};
use super::redaction::ReportPrivacy;
use super::rule_paths::{DecidingRule, Effect};
use super::selection::{LogSelection, RequestedHosts};
use super::source;
use super::tally::{Hours, LogPeriod, RequestTally};
use crate::board::{LogBoard, Second, is_page, service_of};
use crate::evaluator::{Evaluator, KnownSender};

/// Lines that could not be read, of which this many are kept, and octets of each.
const SAMPLES: usize = 3;
const SAMPLE: usize = 160;

/// The settings of a replay, the same for every worker.
#[derive(Debug)]
pub(super) struct ReplayPlan {
    /// The names of the files.
    pub(super) logs: Vec<String>,
    pub(super) robots: String,
    pub(super) against: Option<String>,
    /// The robots.txt, and the one to compare it with.
    pub(super) evaluators: Vec<Evaluator>,
    pub(super) selection: LogSelection,
    /// Requests before this are counted apart: the rules did not hold yet.
    pub(super) effective_from: Option<i64>,
    pub(super) privacy: ReportPrivacy,
    /// The evidence about senders.
    pub(super) evidence: LogEvidence,
    /// The versions by which crawlers are judged as on the board.
    pub(super) history: Option<VersionHistory>,
    /// Whether the logs are said to have every read of robots.txt.
    pub(super) sees_all: bool,
}

impl ReplayPlan {
    /// Whether two files are compared.
    pub(super) fn is_compared(&self) -> bool {
        self.against.is_some()
    }
}

/// Counts of one chunk, or of all until then.
#[derive(Debug, Default)]
pub(super) struct ReplayCounts {
    pub(super) requests: u64,
    pub(super) hosts: RequestedHosts,
    pub(super) unread: u64,
    /// Lines of robotsd's log of events.
    pub(super) events: u64,
    pub(super) samples: Vec<Vec<u8>>,
    pub(super) nameless: u64,
    /// Whether any of these is a JSON object, whose key for the User-Agent may be another one.
    pub(super) has_nameless_json: bool,
    pub(super) timeless: u64,
    pub(super) period: LogPeriod,
    pub(super) rows: Rows,
    pub(super) hours: Hours,
    /// Whether the policy limits any request by a `Crawl-delay`.
    pub(super) has_limit: bool,
    /// Crawlers whose failed claims say nothing, because the log may not hold their addresses.
    pub(super) suspects: Vec<(String, FailedClaims)>,
    /// Whether the log has the `Referer` of any request.
    pub(super) has_referers: bool,
    /// Visitors sent by services.
    pub(super) sent: HashMap<Arc<Referrer>, u64, RandomState>,
    /// The counts of a chunk for the board, and those of all chunks together.
    pub(super) board_notes: BoardNotes,
    pub(super) board: LogBoard,
}

impl ReplayCounts {
    /// Counts the lines of a chunk.
    pub(super) fn of_chunk(plan: &ReplayPlan, headers: &mut HeaderCache, chunk: &[u8]) -> Self {
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
                if counts.samples.len() < SAMPLES {
                    counts.samples.push(line[..line.len().min(SAMPLE)].to_vec());
                }
            }
        });
        Self { hosts, ..counts }
    }

    fn entry(&mut self, plan: &ReplayPlan, headers: &mut HeaderCache, entry: &LoggedRequest<'_>) {
        self.requests += 1;
        self.nameless += u64::from(entry.agent.is_empty());
        self.timeless += u64::from(entry.time.is_none());
        self.period.note(entry.time);
        let HeaderCache { known, of_version } = headers;
        let header = known.identify(&plan.evaluators, &plan.evidence, &entry.agent);
        let kind = &header.kind;
        let has_page = entry.method == &b"GET"[..] && !Pace::is_for_asset(&entry.target);
        let is_found = entry.status.is_none_or(is_page);
        self.has_referers |= !entry.referer.is_empty();
        if header.is_of_visitor && has_page && is_found && !entry.referer.is_empty() {
            self.visitor(plan, entry);
        }
        let logged = address_as_logged(&entry.address);
        let address = logged.filter(|_| header.methods.is_some()).filter(is_whole);
        let identity = header.sender(&plan.evidence, address, entry.time);
        let sender = KnownSender { identity, address: logged };
        let at = entry.time.and_then(|time| Second::try_from(time).ok());
        if let (Some(history), Some(at)) = (&plan.history, at) {
            self.board_notes.note(history, of_version, entry, sender, at);
        }
        let RowPart { tally, rules, failed } = self.rows.of(kind).note(identity, entry.time);
        if !kind.is_crawler && header.agents.iter().all(|agent| !agent.is_judged) {
            tally.requests += 1;
            return;
        }
        let path = plan.evaluators[0].path(&entry.target);
        let method = std::str::from_utf8(&entry.method).unwrap_or_default();
        let mut judgements = [RequestJudgement::Allowed; 2];
        let mut last_decision = None;
        for (judgement, (evaluator, judged)) in judgements.iter_mut().zip(plan.evaluators.iter().zip(&header.agents)) {
            let decision = judged.decide(evaluator, sender, method, &path);
            *judgement = RequestJudgement::of(decision.as_ref());
            last_decision = decision;
        }
        let (first, now) = (judgements[0], judgements[plan.evaluators.len() - 1]);
        let early = plan.effective_from.is_some_and(|from| entry.time.is_some_and(|time| time < from));
        let rule = deciding_rule(plan.is_compared(), first, now).filter(|_| !early);
        let has_effect = |effect| u64::from(rule.is_some_and(|rule| rule.effect == effect));
        let (shut, opened) = (has_effect(Effect::ShutOut), has_effect(Effect::LetIn));
        let disallowed = u64::from(!early && now.is_disallowed());
        let would = last_decision.as_ref().map(Decision::would);
        self.has_limit |= last_decision.is_some_and(|decision| decision.pace.is_some());
        let one = RequestTally {
            requests: 1,
            disallowed,
            would_refuse: if would == Some(Would::Refuse) { disallowed } else { 0 },
            would_tag: if would == Some(Would::Tag) { disallowed } else { 0 },
            disallowed_search_engines: if kind.is_index_engine { disallowed } else { 0 },
            shut,
            opened,
            not_blamed: u64::from(early && now.is_disallowed()),
            disallowed_before: u64::from(!early && first.is_disallowed()),
            shut_search_engines: if kind.is_index_engine { shut } else { 0 },
            robots_txt: u64::from(path.is_robots_txt()),
            pages: u64::from(has_page && is_found && !path.is_robots_txt()),
        };
        *tally += one;
        let hours = match failed {
            Some((hours, addresses)) => {
                // Without an address nothing fails.
                if let Some(address) = address {
                    addresses.note(address, one.disallowed > 0);
                }
                hours
            }
            None => &mut self.hours,
        };
        if let Some(hour) = entry.time.filter(|_| kind.is_crawler).and_then(|time| hours.of(time)) {
            *hour += one;
        }
        if let Some(rule) = rule {
            rules.add(rule, &plan.privacy.target(&entry.target));
        }
    }

    fn visitor(&mut self, plan: &ReplayPlan, entry: &LoggedRequest<'_>) {
        let registry = plan.evaluators.last().map(|evaluator| &evaluator.settings.registry);
        let service = |registry| service_of(registry, &entry.referer, entry.host.as_deref(), &entry.target);
        if let Some(service) = registry.and_then(|registry| service(registry)) {
            *self.sent.entry(Arc::clone(service)).or_default() += 1;
        }
    }

    /// Once all is counted: says of which crawlers the claims that failed say nothing, and counts them as claimed.
    pub(super) fn conclude(&mut self, plan: &ReplayPlan) {
        let names = crawler_rows::with_suspect_path(self.rows.iter());
        if let Some(history) = &plan.history {
            self.board.conclude(&history.dates(), &names);
        }
        self.suspects = self.rows.forgive(&names);
        self.suspects.iter().for_each(|(_, failed)| self.hours.merge(failed.hours.clone()));
    }

    /// Adds the counts of the next chunk.
    pub(super) fn merge(&mut self, next: Self) {
        self.requests += next.requests;
        self.hosts += next.hosts;
        self.unread += next.unread;
        self.events += next.events;
        self.nameless += next.nameless;
        self.has_nameless_json |= next.has_nameless_json;
        self.timeless += next.timeless;
        self.samples.extend(next.samples);
        self.samples.truncate(SAMPLES);
        self.period.merge(next.period);
        self.hours.merge(next.hours);
        self.has_limit |= next.has_limit;
        self.has_referers |= next.has_referers;
        next.sent.into_iter().for_each(|(service, count)| *self.sent.entry(service).or_default() += count);
        next.board_notes.join_to(&mut self.board);
        self.rows.merge(next.rows);
    }
}

/// The names that have to be looked up to judge the claims of a chunk.
pub(super) fn name_questions(plan: &ReplayPlan, headers: &mut HeaderCache, chunk: &[u8]) -> NameQuestions {
    let questions = RefCell::default();
    read_lines(&plan.selection, &mut RequestedHosts::default(), chunk, |_, read| {
        let LogLine::Request(entry) = read else { return };
        let header = headers.known.identify(&plan.evaluators, &plan.evidence, &entry.agent);
        if let (Some(judged), Some(methods)) = (header.agents.last(), &header.methods) {
            let address = address_as_logged(&entry.address).filter(is_whole);
            plan.evidence.identify(&judged.agents, methods, address, entry.time, Some(&questions));
        }
    });
    questions.into_inner()
}

/// Reads every line of a chunk that is not empty, and no request for other hosts than the selected ones.
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

/// The rule to which a request is counted, if it is disallowed, or a change changes its outcome.
fn deciding_rule(compared: bool, first: RequestJudgement, last: RequestJudgement) -> Option<DecidingRule> {
    let (effect, line) = match (first, last) {
        (_, RequestJudgement::Disallowed(line)) if !compared => (Effect::Disallowed, line),
        (RequestJudgement::Allowed, RequestJudgement::Disallowed(line)) => (Effect::ShutOut, line),
        (RequestJudgement::Disallowed(line), RequestJudgement::Allowed) => (Effect::LetIn, line),
        _ => return None,
    };
    Some(DecidingRule { effect, line })
}

/// Targets that are kept of one crawler; requests for others are counted.
const MOST_TARGETS: usize = 100_000;

/// Octets of a target that is kept.
const LONGEST: usize = 2048;

/// The requests of search engines that have an index people use, but for robots.txt, by the name of each. Every client that claims to be one
/// counts: a log alone does not say who sent a request.
#[derive(Debug, Default)]
pub(in crate::commands) struct SearchRequests {
    pub(in crate::commands) crawlers: BTreeMap<String, RequestedTargets>,
    /// Lines that are requests for the site, of anyone.
    pub(in crate::commands) requests: u64,
    /// Lines that could not be read.
    pub(in crate::commands) unread: u64,
    pub(in crate::commands) hosts: RequestedHosts,
}

/// The targets that one crawler requested, and how often.
#[derive(Debug, Default)]
pub(in crate::commands) struct RequestedTargets {
    pub(in crate::commands) targets: HashMap<Box<[u8]>, u64, RandomState>,
    /// All of its requests, those for targets that are not kept included.
    pub(in crate::commands) requests: u64,
}

impl SearchRequests {
    /// Reads logs with every core. Those that could be read count, whatever happened to the others.
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
                // A longer header is not a search engine's.
                if request.agent.len() <= LONGEST_HEADER && !RequestPath::is_robots_txt_target(&request.target) {
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
