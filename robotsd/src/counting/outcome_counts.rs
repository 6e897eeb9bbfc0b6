//! Counts a site's requests on one worker: the decisions, the responses by status, the durations,
//! and the pages that crawlers and referred visitors received.

use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::time::Instant;

use foldhash::fast::RandomState;
use http::StatusCode;
use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};
use tower_robots::agent::{Agent, Identity, Referrer};
use tower_robots::internals::AgentLookups;
use tower_robots::layer::Record;
use tower_robots::parts::{Answer, Outcome};
use tower_robots::rules::RequestPath;

use super::crawler_counts::{CrawlerCombinations, CrawlerCounts, RequestOutcome};
use crate::metrics::{DECISION_BUCKETS, HTTP_BUCKETS, Histogram, MethodLabel, ResponseKey};
use crate::report::RequestsReport;

/// Only every 64th request is timed, because reading the clock takes ten times as long as counting.
const TIMED: u64 = 64;

/// Maximum number of combinations of crawler and identity whose received pages are counted, per
/// worker and site.
const MAX_READERS: usize = 1024;

/// Counters of one site on one worker. The counters do not share cache lines with other data. Other
/// threads lock them only to read the counts.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OutcomeCounts {
    /// The totals are allocated at the first request, because with thousands of sites, a worker
    /// gets no requests for most of them.
    totals: Mutex<Option<Box<SiteTotals>>>,
    combinations: Arc<CrawlerCombinations>,
    /// Counters of agent lookups, shared by all sites of the worker.
    agent_lookups: Arc<AgentLookups>,
}

#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct CountedRequest {
    method: MethodLabel,
    listener: u16,
    is_robots_txt: bool,
    is_of_crawler: bool,
    /// The service that referred the visitor; `None` if no service did.
    sent_by: Option<Arc<Referrer>>,
    /// The registered crawler that requests the page; `None` if the client is not a registered
    /// crawler.
    read_by: Option<PageReader>,
    /// When the request began; `None` if its duration is not measured.
    began: Option<Instant>,
}

pub(crate) type VisitorTotals = BTreeMap<Arc<Referrer>, u64>;

pub(crate) type PageTotals = HashMap<PageReader, u64, RandomState>;

#[derive(Clone, Debug)]
pub(crate) struct PageReader {
    pub(crate) agent: Agent,
    pub(crate) identity: Option<Identity>,
}

/// Reports whether a response with this status counts as a page. A redirect does not count, because
/// the client then requests the target of the redirect.
pub(crate) const fn is_page(status: u16) -> bool {
    matches!(status, 200..=299 | 304)
}

#[derive(Clone, Debug)]
pub(crate) struct SiteTotals {
    requests: u64,
    robots_txt: u64,
    /// Disallowed requests that were forwarded because of an exemption or an override.
    passed: u64,
    /// Requests by [`RequestOutcome`], except requests for `/robots.txt`.
    pub(crate) decisions: [u64; RequestOutcome::ALL.len()],
    /// Decision requests of proxies about client requests without a `User-Agent`.
    pub(crate) without_agent: u64,
    pub(crate) crawlers: CrawlerCounts,
    pub(crate) responses: BTreeMap<ResponseKey, u64>,
    pub(crate) visitors: VisitorTotals,
    pub(crate) pages: PageTotals,
    pub(crate) decision_durations: Histogram,
    pub(crate) response_durations: Histogram,
}

impl OutcomeCounts {
    /// Creates one worker's counters for a site. All workers of the site share `combinations`.
    pub(crate) fn of_site(combinations: Arc<CrawlerCombinations>, agent_lookups: &Arc<AgentLookups>) -> Self {
        Self { combinations, agent_lookups: Arc::clone(agent_lookups), ..Self::default() }
    }

    /// Returns the counters of agent lookups, which the layer of the site updates.
    pub(crate) const fn agent_lookups(&self) -> &Arc<AgentLookups> {
        &self.agent_lookups
    }

    /// Counts a request when it arrives. `target` may include the query.
    pub(crate) fn request(&self, target: &[u8], method: MethodLabel, listener: u16) -> CountedRequest {
        let is_robots_txt = RequestPath::is_robots_txt_target(target);
        let mut totals = self.totals();
        let began = totals.requests.is_multiple_of(TIMED).then(Instant::now);
        totals.requests += 1;
        totals.robots_txt += u64::from(is_robots_txt);
        CountedRequest { method, listener, is_robots_txt, is_of_crawler: false, sent_by: None, read_by: None, began }
    }

    /// Counts the decision about a request. Must be called before waiting for the response, because
    /// the response may take a long time, or never arrive.
    pub(crate) fn count_decision(&self, request: &mut CountedRequest, answer: &Answer) {
        let mut totals = self.totals();
        let mut outcome = RequestOutcome::Untouched;
        if let Some(record) = answer.record.as_deref() {
            outcome = RequestOutcome::of(record.action, record.reason);
            request.is_of_crawler = true;
            match &answer.outcome {
                Outcome::Respond(response) if request.is_robots_txt => {
                    totals.crawlers.robots_txt(&self.combinations, Some(&record.agent), response.status());
                }
                _ => totals.crawlers.request(&self.combinations, record, outcome),
            }
            if record.reason.is_reported() && outcome == RequestOutcome::Exempt {
                totals.passed += 1;
            }
        }
        if !request.is_robots_txt {
            totals.decisions[outcome as usize] += 1;
        }
        if let Some(began) = request.began {
            totals.decision_durations.observe(began.elapsed());
        }
    }

    pub(crate) fn without_agent(&self) {
        self.totals().without_agent += 1;
    }

    /// Counts a response as soon as its head is known.
    pub(crate) fn count_response(&self, request: &CountedRequest, status: StatusCode) {
        let mut totals = self.totals();
        ResponseKey::new(request.listener, request.method, status).count(&mut totals.responses);
        if request.is_robots_txt && !request.is_of_crawler {
            totals.crawlers.robots_txt(&self.combinations, None, status);
        }
        if is_page(status.as_u16()) {
            if let Some(service) = &request.sent_by {
                *totals.visitors.entry(Arc::clone(service)).or_default() += 1;
            }
            if let Some(reader) = &request.read_by
                && (totals.pages.len() < MAX_READERS || totals.pages.contains_key(reader))
            {
                *totals.pages.entry(reader.clone()).or_default() += 1;
            }
        }
        if let Some(began) = request.began {
            totals.response_durations.observe(began.elapsed());
        }
    }

    pub(crate) fn add_visitors_and_pages(&self, visitors: &mut VisitorTotals, pages: &mut PageTotals) {
        if let Some(totals) = &*self.totals.lock() {
            totals
                .visitors
                .iter()
                .for_each(|(service, count)| *visitors.entry(Arc::clone(service)).or_default() += count);
            totals.pages.iter().for_each(|(reader, count)| *pages.entry(reader.clone()).or_default() += count);
        }
    }

    pub(crate) fn add_to(&self, sums: &mut SiteTotals) {
        self.add_visitors_and_pages(&mut sums.visitors, &mut sums.pages);
        let totals = self.totals.lock();
        let Some(totals) = &*totals else { return };
        sums.requests += totals.requests;
        sums.robots_txt += totals.robots_txt;
        sums.passed += totals.passed;
        for (sum, count) in sums.decisions.iter_mut().zip(&totals.decisions) {
            *sum += count;
        }
        sums.without_agent += totals.without_agent;
        sums.crawlers.add(&totals.crawlers);
        totals.responses.iter().for_each(|(key, count)| *sums.responses.entry(*key).or_default() += count);
        sums.decision_durations.add(&totals.decision_durations);
        sums.response_durations.add(&totals.response_durations);
    }

    fn totals(&self) -> MappedMutexGuard<'_, SiteTotals> {
        MutexGuard::map(self.totals.lock(), |totals| &mut **totals.get_or_insert_default())
    }
}

impl CountedRequest {
    /// Records the service that referred the visitor.
    /// [`count_response`](OutcomeCounts::count_response) counts the visitor if the response is a
    /// page.
    pub(crate) fn set_service(&mut self, service: Option<Arc<Referrer>>) {
        self.sent_by = service;
    }

    /// Records the crawler that requests a page. [`count_response`](OutcomeCounts::count_response)
    /// counts the page. Only registered crawlers are recorded, because the names of other crawlers
    /// are chosen by clients, and their operators are unknown.
    pub(crate) fn set_reader(&mut self, record: &Record) {
        if record.agent.is_registered() && !self.is_robots_txt {
            self.read_by = Some(PageReader { agent: record.agent.clone(), identity: record.identity });
        }
    }
}

impl PageReader {
    pub(crate) fn name(&self) -> &str {
        self.agent.crawler().unwrap_or_default()
    }
}

impl PartialEq for PageReader {
    fn eq(&self, other: &Self) -> bool {
        self.identity == other.identity && self.name() == other.name()
    }
}

impl Eq for PageReader {}

impl Hash for PageReader {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.name().hash(state);
        self.identity.hash(state);
    }
}

impl SiteTotals {
    pub(crate) fn report(&self) -> RequestsReport {
        let of = |outcome: RequestOutcome| self.decisions[outcome as usize];
        let report = RequestsReport {
            total: self.requests,
            robots_txt: self.robots_txt,
            allowed: 0,
            refused: of(RequestOutcome::Refused),
            tagged: of(RequestOutcome::Tagged),
            observed: of(RequestOutcome::Observed),
            passed: self.passed,
            limited: of(RequestOutcome::Limited),
        };
        let RequestsReport { robots_txt, refused, tagged, observed, passed, limited, .. } = report;
        let others = robots_txt + refused + tagged + observed + passed + limited;
        RequestsReport { allowed: report.total.saturating_sub(others), ..report }
    }
}

impl Default for SiteTotals {
    fn default() -> Self {
        Self {
            requests: 0,
            robots_txt: 0,
            passed: 0,
            decisions: Default::default(),
            without_agent: 0,
            crawlers: CrawlerCounts::default(),
            responses: BTreeMap::new(),
            visitors: VisitorTotals::new(),
            pages: PageTotals::default(),
            decision_durations: Histogram::new(&DECISION_BUCKETS),
            response_durations: Histogram::new(&HTTP_BUCKETS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_a_site_occupy_128_bytes() {
        assert_eq!(size_of::<OutcomeCounts>(), 128);
    }

    #[test]
    fn allowed_requests_are_those_without_another_outcome() {
        let (one, two) = (OutcomeCounts::default(), OutcomeCounts::default());
        for counts in [&one, &two] {
            for path in ["/robots.txt", "/a", "/b"] {
                let _ = counts.request(path.as_bytes(), (&http::Method::GET).into(), 0);
            }
            counts.totals().decisions[RequestOutcome::Refused as usize] += 1;
        }
        let mut totals = SiteTotals::default();
        one.add_to(&mut totals);
        two.add_to(&mut totals);
        let report = totals.report();
        assert_eq!((report.total, report.robots_txt, report.refused, report.allowed), (6, 2, 2, 2));
    }
}
