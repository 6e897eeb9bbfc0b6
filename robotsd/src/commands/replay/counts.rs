//! Counting requests, in bounded memory.

use std::collections::{BTreeMap, HashMap};
use std::hash::RandomState;

use tower_robots::agent::{Agent, Category, Class};

use super::format::{ChunkReader, LogLine, LoggedRequest, ReplayLogFormat};
use super::judgement::{JudgedAgents, Judgement};
use super::privacy::ReportPrivacy;
use super::top::Top;
use super::visitors::Visitors;
use crate::evaluator::Evaluator;

/// Headers whose agents are cached; beyond it the cache is emptied.
const HEADERS: usize = 8192;

/// Longest header that is cached.
const LONGEST_HEADER: usize = 512;

/// Names that get a row of their own.
const ROWS: usize = 1024;

/// Paths and lines that are counted for each of the first rows, and for each row after them: names can be made up.
const COUNTED: usize = 256;
const FULL_ROWS: usize = 256;
const COUNTED_LATER: usize = 16;

/// Hours with counts of their own: a little more than four years.
const HOURS: usize = 40_000;

/// Lines that could not be read, of which this many are kept, and octets of each.
const SAMPLES: usize = 3;
const SAMPLE: usize = 160;

/// The settings of a replay, the same for every worker.
#[derive(Debug)]
pub(super) struct ReplayPlan {
    /// The robots.txt, and the one to compare it with.
    pub(super) evaluators: Vec<Evaluator>,
    pub(super) format: ReplayLogFormat,
    /// Requests before this are counted apart: the rules did not hold yet.
    pub(super) effective_from: Option<i64>,
    pub(super) privacy: ReportPrivacy,
    pub(super) hasher: RandomState,
}

/// Counts of one worker, or of all.
#[derive(Debug)]
pub(super) struct ReplayCounts {
    pub(super) requests: u64,
    pub(super) unread: u64,
    pub(super) samples: Vec<Vec<u8>>,
    pub(super) nameless: u64,
    pub(super) first: Option<i64>,
    pub(super) last: Option<i64>,
    pub(super) rows: Vec<ReplayRow>,
    /// Requests of crawlers, allowed and disallowed, by the hour.
    pub(super) hours: BTreeMap<i64, [u64; 2]>,
    pub(super) visitors: Visitors,
    row_of: HashMap<String, usize>,
    headers: HashMap<Box<[u8]>, usize>,
    identified: Vec<IdentifiedHeader>,
}

/// Counts of one crawler, or of one class of agents that are none.
#[derive(Clone, Debug)]
pub(super) struct ReplayRow {
    pub(super) name: String,
    pub(super) class: Class,
    pub(super) category: Option<Category>,
    /// Whether it is one agent, not a class of them.
    pub(super) is_crawler: bool,
    /// Whether it is a search engine with an index that people use.
    pub(super) is_index_engine: bool,
    pub(super) requests: u64,
    /// Under each of the files.
    pub(super) disallowed: [u64; 2],
    /// Allowed under the first and disallowed under the second, and the other way about.
    pub(super) shut: u64,
    pub(super) opened: u64,
    /// Disallowed, but before the rules held.
    pub(super) early: u64,
    pub(super) robots_txt: u64,
    /// Targets that are disallowed; where two files are compared, those that change.
    pub(super) paths: Top<Vec<u8>>,
    /// Lines of the last file that disallow.
    pub(super) lines: Top<usize>,
}

/// A header, recognised.
#[derive(Debug)]
struct IdentifiedHeader {
    row: usize,
    agents: Vec<JudgedAgents>,
}

impl ReplayCounts {
    pub(super) fn new(hasher: RandomState) -> Self {
        Self {
            requests: 0,
            unread: 0,
            samples: Vec::new(),
            nameless: 0,
            first: None,
            last: None,
            rows: Vec::new(),
            hours: BTreeMap::new(),
            visitors: Visitors::new(hasher),
            row_of: HashMap::new(),
            headers: HashMap::new(),
            identified: Vec::new(),
        }
    }

    /// Counts the lines of a chunk.
    pub(super) fn chunk(&mut self, plan: &ReplayPlan, chunk: &[u8]) {
        let mut reader = ChunkReader::new(plan.format, chunk);
        let mut start = 0;
        let ends = memchr::memchr_iter(b'\n', chunk).chain(std::iter::once(chunk.len()));
        for end in ends {
            let line = chunk.get(start..end).unwrap_or_default();
            start = end + 1;
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.is_empty() {
                continue;
            }
            match reader.read(line) {
                LogLine::Request(entry) => self.entry(plan, &entry),
                LogLine::Directive => {}
                LogLine::Unread => {
                    self.unread += 1;
                    if self.samples.len() < SAMPLES {
                        self.samples.push(line[..line.len().min(SAMPLE)].to_vec());
                    }
                }
            }
        }
    }

    fn entry(&mut self, plan: &ReplayPlan, entry: &LoggedRequest<'_>) {
        self.requests += 1;
        self.nameless += u64::from(entry.agent.is_empty());
        if let Some(time) = entry.time {
            self.first = Some(self.first.map_or(time, |first| first.min(time)));
            self.last = Some(self.last.map_or(time, |last| last.max(time)));
        }
        let header = self.identify(plan, &entry.agent);
        let header = &self.identified[header];
        let row = &mut self.rows[header.row];
        row.requests += 1;
        if !row.is_crawler && header.agents.iter().all(|agent| !agent.is_judged) {
            return;
        }
        let path = plan.evaluators[0].path(&entry.target);
        row.robots_txt += u64::from(path.is_robots_txt());
        let method = std::str::from_utf8(&entry.method).unwrap_or_default();
        let mut judgements = [Judgement::Allowed; 2];
        for (judgement, (evaluator, agent)) in judgements.iter_mut().zip(plan.evaluators.iter().zip(&header.agents)) {
            *judgement = agent.judge(evaluator, method, &path);
        }
        let compared = plan.evaluators.len() > 1;
        let now = judgements[plan.evaluators.len() - 1];
        let early = plan.effective_from.is_some_and(|from| entry.time.is_some_and(|time| time < from));
        if let Some(time) = entry.time.filter(|_| row.is_crawler) {
            let hour = time.div_euclid(3600);
            if self.hours.len() < HOURS || self.hours.contains_key(&hour) {
                self.hours.entry(hour).or_default()[usize::from(now.is_disallowed() && !early)] += 1;
            }
        }
        if early {
            row.early += u64::from(now.is_disallowed());
            return;
        }
        for (count, judgement) in row.disallowed.iter_mut().zip(judgements) {
            *count += u64::from(judgement.is_disallowed());
        }
        let changed = judgements[0].is_disallowed() != now.is_disallowed();
        if compared && changed {
            *(if now.is_disallowed() { &mut row.shut } else { &mut row.opened }) += 1;
        }
        if let Judgement::Disallowed(line) = now {
            row.lines.add(&line, 1);
        }
        if if compared { changed } else { now.is_disallowed() } {
            row.paths.add(plan.privacy.target(&entry.target).as_slice(), 1);
        }
        self.visitors.note(entry, &row.name, now.is_disallowed());
    }

    /// Where the agent of a header is kept.
    fn identify(&mut self, plan: &ReplayPlan, header: &[u8]) -> usize {
        if let Some(at) = self.headers.get(header) {
            return *at;
        }
        if self.identified.len() >= HEADERS {
            self.headers.clear();
            self.identified.clear();
        }
        let agents: Vec<JudgedAgents> =
            plan.evaluators.iter().map(|evaluator| JudgedAgents::identify(evaluator, header)).collect();
        let row = self.row(agents.last().map(|judged| judged.agents.first()));
        self.identified.push(IdentifiedHeader { row, agents });
        if header.len() <= LONGEST_HEADER {
            self.headers.insert(header.into(), self.identified.len() - 1);
        }
        self.identified.len() - 1
    }

    fn row(&mut self, agent: Option<&Agent>) -> usize {
        let class = agent.map_or(Class::Empty, Agent::class);
        let own = agent.filter(|agent| !agent.tokens().is_empty() || agent.is_registered()).and_then(Agent::crawler);
        let name = own.unwrap_or(class.as_str());
        if let Some(row) = self.row_of.get(name) {
            return *row;
        }
        let (name, category, is_crawler) = match own {
            Some(_) if self.rows.len() >= ROWS => ("other crawlers", None, true),
            Some(name) => (name, agent.and_then(Agent::category), true),
            None => (name, None, false),
        };
        // The row of what has no row of its own stands for many.
        let is_index_engine = own == Some(name) && agent.is_some_and(Agent::is_index_engine);
        let row = ReplayRow::new(name, class, category, is_crawler, self.counted());
        self.insert(ReplayRow { is_index_engine, ..row })
    }

    fn insert(&mut self, row: ReplayRow) -> usize {
        if let Some(known) = self.row_of.get(&row.name) {
            return *known;
        }
        self.row_of.insert(row.name.clone(), self.rows.len());
        self.rows.push(row);
        self.rows.len() - 1
    }

    /// How many paths the next row may count.
    fn counted(&self) -> usize {
        if self.rows.len() < FULL_ROWS { COUNTED } else { COUNTED_LATER }
    }

    /// Adds the counts of another worker.
    pub(super) fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        self.unread += other.unread;
        self.nameless += other.nameless;
        self.samples.extend(other.samples);
        self.samples.truncate(SAMPLES);
        self.first = self.first.into_iter().chain(other.first).min();
        self.last = self.last.into_iter().chain(other.last).max();
        for (hour, [allowed, disallowed]) in other.hours {
            let counts = self.hours.entry(hour).or_default();
            counts[0] += allowed;
            counts[1] += disallowed;
        }
        self.visitors.merge(other.visitors);
        for row in other.rows {
            let new = ReplayRow::new(&row.name, row.class, row.category, row.is_crawler, self.counted());
            let at = self.insert(ReplayRow { is_index_engine: row.is_index_engine, ..new });
            self.rows[at].merge(row);
        }
    }
}

impl ReplayRow {
    fn new(name: &str, class: Class, category: Option<Category>, is_crawler: bool, counted: usize) -> Self {
        Self {
            name: name.to_owned(),
            class,
            category,
            is_crawler,
            is_index_engine: false,
            requests: 0,
            disallowed: [0; 2],
            shut: 0,
            opened: 0,
            early: 0,
            robots_txt: 0,
            paths: Top::new(counted),
            lines: Top::new(counted),
        }
    }

    fn merge(&mut self, other: Self) {
        self.requests += other.requests;
        for (count, more) in self.disallowed.iter_mut().zip(other.disallowed) {
            *count += more;
        }
        self.shut += other.shut;
        self.opened += other.opened;
        self.early += other.early;
        self.robots_txt += other.robots_txt;
        self.paths.merge(other.paths);
        self.lines.merge(other.lines);
    }
}
