//! The decisions about the requests of a site on one worker, for the status and for metrics.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use http::StatusCode;
use tower_robots::agent::{Agent, Identity, Referrer};
use tower_robots::layer::{Answer, Outcome, Record};
use tower_robots::live::AgentLookups;
use tower_robots::rules::RequestPath;

use super::crawler_counts::{CrawlerCombinations, CrawlerCounts, CrawlerTotals, RequestOutcome, hash};
use crate::metrics::{
    Counter, DECISION_BUCKETS, HTTP_BUCKETS, Histogram, HistogramTotals, KeyPlace, KeyedCounters, MethodLabel,
    ResponseKey,
};
use crate::report::RequestsReport;

/// One request in so many is timed: reading the clock costs ten times what counting does.
const TIMED: u64 = 64;

/// Counts the requests of a site on one worker, which alone writes it; apart from other data in the cache.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct OutcomeCounts {
    requests: Counter,
    robots_txt: Counter,
    /// Disallowed ones that went on because of an exemption or an override.
    passed: Counter,
    combinations: Arc<CrawlerCombinations>,
    /// Those of the worker, for all of its sites.
    agent_lookups: Arc<AgentLookups>,
    /// Made with the first request: most sites of thousands have none on most workers.
    details: OnceLock<Box<RequestDetails>>,
}

/// The metrics of the requests of a site on one worker.
#[derive(Debug)]
struct RequestDetails {
    /// By [`RequestOutcome`], requests for `/robots.txt` aside.
    outcomes: [Counter; RequestOutcome::ALL.len()],
    /// Questions about requests without a `User-Agent`.
    without_agent: Counter,
    crawlers: CrawlerCounts,
    responses: KeyedCounters<ResponseKey>,
    visitors: KeyedCounters<Arc<Referrer>>,
    pages: KeyedCounters<PageReader>,
    decision_durations: Histogram,
    response_durations: Histogram,
}

/// A request that has begun to be counted.
#[derive(Clone, Debug)]
#[must_use]
pub(crate) struct CountedRequest {
    method: MethodLabel,
    /// The number of the listener.
    listener: u16,
    is_robots_txt: bool,
    is_of_crawler: bool,
    /// The service that sent a visitor with it.
    sent_by: Option<Arc<Referrer>>,
    /// The crawler that reads a page with it.
    read_by: Option<KeyPlace>,
    /// When it began, where it is timed.
    began: Option<Instant>,
}

/// The visitors sent by each service.
pub(crate) type VisitorTotals = BTreeMap<Arc<Referrer>, u64>;

/// The pages that crawlers of the registry got, by their names and what became of their claims.
pub(crate) type PageTotals = HashMap<(String, Option<Identity>), (Agent, u64)>;

/// A crawler of the registry.
#[derive(Clone, Debug)]
struct PageReader {
    agent: Agent,
    identity: Option<Identity>,
}

/// Whether an answer brings a page. One that only leads to another page does not: the reader comes again.
pub(crate) const fn is_page(status: u16) -> bool {
    matches!(status, 200..=299 | 304)
}

/// The sums of several [`OutcomeCounts`], as metrics have them.
#[derive(Clone, Debug, Default)]
pub(crate) struct SiteTotals {
    pub(crate) outcomes: RequestsReport,
    /// By [`RequestOutcome`].
    pub(crate) decisions: [u64; RequestOutcome::ALL.len()],
    /// Questions about requests without a `User-Agent`.
    pub(crate) without_agent: u64,
    pub(crate) crawlers: CrawlerTotals,
    pub(crate) responses: BTreeMap<ResponseKey, u64>,
    /// Visitors sent by services to a page.
    pub(crate) visitors: VisitorTotals,
    pub(crate) pages: PageTotals,
    pub(crate) decision_durations: HistogramTotals,
    pub(crate) response_durations: HistogramTotals,
}

impl OutcomeCounts {
    /// Counters of one worker for a site that counts these combinations.
    pub(crate) fn of_site(combinations: Arc<CrawlerCombinations>, agent_lookups: &Arc<AgentLookups>) -> Self {
        Self { combinations, agent_lookups: Arc::clone(agent_lookups), ..Self::default() }
    }

    /// The counts of the site's layer on this worker.
    pub(crate) const fn agent_lookups(&self) -> &Arc<AgentLookups> {
        &self.agent_lookups
    }

    /// Counts a request for this target, with or without its query, which is decided next.
    pub(crate) fn request(&self, target: &[u8], method: MethodLabel, listener: u16) -> CountedRequest {
        let began = self.requests.total().is_multiple_of(TIMED).then(Instant::now);
        self.requests.add_one();
        let is_robots_txt = RequestPath::is_robots_txt_target(target);
        if is_robots_txt {
            self.robots_txt.add_one();
        }
        CountedRequest { method, listener, is_robots_txt, is_of_crawler: false, sent_by: None, read_by: None, began }
    }

    /// Counts what was decided about a request: as soon as it is, because its response may take long, and may not be waited for.
    pub(crate) fn decided(&self, request: &mut CountedRequest, answer: &Answer) {
        let details = self.details();
        let mut outcome = RequestOutcome::Untouched;
        if let Some(record) = answer.record.as_deref() {
            outcome = RequestOutcome::of(record.action, record.reason);
            request.is_of_crawler = true;
            match &answer.outcome {
                Outcome::Respond(response) if request.is_robots_txt => {
                    details.crawlers.robots_txt(Some(&record.agent), response.status());
                }
                _ => details.crawlers.request(record, outcome),
            }
            if record.reason.is_reported() && outcome == RequestOutcome::Exempt {
                self.passed.add_one();
            }
        }
        if !request.is_robots_txt {
            details.outcomes[outcome as usize].add_one();
        }
        if let Some(began) = request.began {
            details.decision_durations.observe(began.elapsed());
        }
    }

    /// Counts a question about a request without a `User-Agent`.
    pub(crate) fn without_agent(&self) {
        self.details().without_agent.add_one();
    }

    /// The head of its response is known.
    pub(crate) fn answered(&self, request: &CountedRequest, status: StatusCode) {
        let details = self.details();
        ResponseKey::new(request.listener, request.method, status).count(&details.responses);
        if request.is_robots_txt && !request.is_of_crawler {
            details.crawlers.robots_txt(None, status);
        }
        if let Some(service) = request.sent_by.as_ref().filter(|_| is_page(status.as_u16())) {
            details.visitors.count(hash(&service.host, 0), |key| key == service, || Some(Arc::clone(service)));
        }
        if let Some(reader) = request.read_by.filter(|_| is_page(status.as_u16())) {
            details.pages.count_at(reader);
        }
        if let Some(began) = request.began {
            details.response_durations.observe(began.elapsed());
        }
    }

    /// Notes the crawler of a request for a page; it counts once that is answered with one. One that no registry knows has no
    /// operator that could send visitors, and its name comes from a client.
    pub(crate) fn read_by(&self, request: &mut CountedRequest, record: &Record) {
        let Some(crawler) = record.agent.registered().filter(|_| !request.is_robots_txt) else { return };
        let (name, identity) = (&crawler.name, record.identity);
        let is = |key: &PageReader| key.identity == identity && key.name() == &**name;
        let make = || Some(PageReader { agent: record.agent.clone(), identity });
        request.read_by = self.details().pages.place(hash(name, 0), is, make);
    }

    /// Adds the pages that crawlers got.
    pub(crate) fn add_pages(&self, totals: &mut PageTotals) {
        let pages = self.details.get().into_iter().flat_map(|details| details.pages.totals());
        for (reader, count) in pages {
            let key = (reader.name().to_owned(), reader.identity);
            totals.entry(key).or_insert_with(|| (reader.agent.clone(), 0)).1 += count;
        }
    }

    /// Adds the visitors sent by services.
    pub(crate) fn add_visitors(&self, totals: &mut VisitorTotals) {
        let visitors = self.details.get().into_iter().flat_map(|details| details.visitors.totals());
        visitors.for_each(|(service, count)| *totals.entry(Arc::clone(service)).or_default() += count);
    }

    /// Adds the requests, by what was done.
    pub(crate) fn add_outcomes(&self, sums: &mut RequestsReport) {
        sums.total += self.requests.total();
        sums.robots_txt += self.robots_txt.total();
        sums.passed += self.passed.total();
        if let Some(details) = self.details.get() {
            let of = |outcome: RequestOutcome| details.outcomes[outcome as usize].total();
            sums.refused += of(RequestOutcome::Refused);
            sums.tagged += of(RequestOutcome::Tagged);
            sums.observed += of(RequestOutcome::Observed);
            sums.limited += of(RequestOutcome::Limited);
        }
        // A request may be counted while these are read.
        let others = [sums.robots_txt, sums.refused, sums.tagged, sums.observed, sums.passed, sums.limited];
        sums.allowed = sums.total.saturating_sub(others.iter().sum());
    }

    /// Adds how long the decisions took that were timed.
    pub(crate) fn add_decision_durations(&self, totals: &mut HistogramTotals) {
        if let Some(details) = self.details.get() {
            totals.add(&details.decision_durations);
        }
    }

    fn details(&self) -> &RequestDetails {
        self.details.get_or_init(|| {
            Box::new(RequestDetails {
                outcomes: Default::default(),
                without_agent: Counter::default(),
                crawlers: CrawlerCounts::of_site(Arc::clone(&self.combinations)),
                responses: KeyedCounters::default(),
                visitors: KeyedCounters::default(),
                pages: KeyedCounters::default(),
                decision_durations: Histogram::new(&DECISION_BUCKETS),
                response_durations: Histogram::new(&HTTP_BUCKETS),
            })
        })
    }
}

impl PageReader {
    fn name(&self) -> &str {
        self.agent.registered().map(|crawler| &*crawler.name).unwrap_or_default()
    }
}

impl CountedRequest {
    /// Notes the service that sent a visitor with it; it counts once the visitor got a page.
    pub(crate) fn sent_by(&mut self, service: Option<Arc<Referrer>>) {
        self.sent_by = service;
    }
}

impl SiteTotals {
    pub(crate) fn add(&mut self, counts: &OutcomeCounts) {
        counts.add_outcomes(&mut self.outcomes);
        let Some(details) = counts.details.get() else { return };
        for (sum, count) in self.decisions.iter_mut().zip(&details.outcomes) {
            *sum += count.total();
        }
        self.without_agent += details.without_agent.total();
        self.crawlers.add(&details.crawlers);
        details.responses.totals().for_each(|(key, count)| *self.responses.entry(*key).or_default() += count);
        counts.add_visitors(&mut self.visitors);
        counts.add_pages(&mut self.pages);
        self.decision_durations.add(&details.decision_durations);
        self.response_durations.add(&details.response_durations);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_without_requests_takes_a_line_of_the_cache_and_no_more() {
        assert_eq!(size_of::<OutcomeCounts>(), 128);
    }

    #[test]
    fn what_is_allowed_is_the_rest() {
        let (one, two) = (OutcomeCounts::default(), OutcomeCounts::default());
        for counts in [&one, &two] {
            for path in ["/robots.txt", "/a", "/b"] {
                let _ = counts.request(path.as_bytes(), (&http::Method::GET).into(), 0);
            }
            counts.details().outcomes[RequestOutcome::Refused as usize].add_one();
        }
        let mut totals = RequestsReport::default();
        one.add_outcomes(&mut totals);
        two.add_outcomes(&mut totals);
        assert_eq!((totals.total, totals.robots_txt, totals.refused, totals.allowed), (6, 2, 2, 2));
    }
}
