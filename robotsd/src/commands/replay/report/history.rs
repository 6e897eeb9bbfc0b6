//! Judges crawlers by the versions of robots.txt that they had fetched. Also contains the numbers
//! of visitors that services of the crawlers' operators referred.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::board::{CrawlerBoard, Evidence, OperatorBalance, TakenPages, seconds_in_words};
use crate::commands::replay::counts::{ReplayCounts, ReplayPlan};
use crate::commands::replay::history::PastVersion;
use crate::html::{counted, grouped};

/// Maximum number of crawlers, and of operators, that are shown.
pub(super) const MAX_SHOWN: usize = 25;

/// Maximum number of crawlers that are listed per judgement.
const MAX_NAMED: usize = 10;

/// Judgements from worst to best: the name, the phrase for one crawler, and the phrase for several
/// crawlers.
const JUDGEMENTS: [(&str, &str, &str); 4] = [
    ("ignores", "ignores robots.txt", "ignore robots.txt"),
    ("has not read the newest version", "has not read the newest version", "have not read the newest version"),
    ("no read seen here", "was not seen fetching robots.txt", "were not seen fetching robots.txt"),
    ("obeys", "obeys", "obey"),
];

#[derive(Debug, Serialize)]
pub(crate) struct PastJudgements {
    versions: Vec<VersionRow>,
    /// Whether, according to the config, the logs contain every fetch of robots.txt.
    sees_all: bool,
    /// Periods without a line in the logs.
    lacking: Vec<[String; 2]>,
    lacking_hours: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    left_out: Vec<String>,
    /// Crawlers, in the same format as in `/board.json`.
    crawlers: Vec<CrawlerBoard>,
}

#[derive(Debug, Serialize)]
struct VersionRow {
    version: String,
    since: String,
    /// The commit or the file that contains the version.
    source: String,
}

impl PastJudgements {
    pub(super) fn new(plan: &ReplayPlan, counts: &ReplayCounts) -> Option<Self> {
        let history = plan.history.as_ref()?;
        let evidence = if plan.sees_all { Evidence::Complete } else { Evidence::Partial };
        let lacking = counts.board.lacking();
        let version = |version: &PastVersion| VersionRow {
            version: version.name.clone(),
            since: seconds_in_words(version.since),
            source: version.source.clone(),
        };
        Some(Self {
            versions: history.versions.iter().map(version).collect(),
            sees_all: plan.sees_all,
            left_out: history.left_out.clone(),
            lacking_hours: lacking.iter().map(|(from, to)| (to - from) / 3600).sum(),
            lacking: lacking.into_iter().map(|(from, to)| [from, to].map(seconds_in_words)).collect(),
            crawlers: counts.board.board(evidence).crawlers,
        })
    }

    /// Returns a line for each judgement, the worst first, such as `2 ignore robots.txt: GPTBot,
    /// Bytespider`. The last lines contain the crawlers that are not judged, with the reason.
    pub(super) fn verdicts(&self) -> Vec<String> {
        let listed = |names: &[&str]| {
            let more = names.len().saturating_sub(MAX_NAMED) as u64;
            let more = if more > 0 { format!(" and {} more", grouped(more)) } else { String::new() };
            names.iter().take(MAX_NAMED).copied().collect::<Vec<_>>().join(", ") + &more
        };
        let verdict = |(word, one, several): (&str, &str, &str)| {
            let of_word = self.crawlers.iter().filter(|crawler| crawler.word.as_deref() == Some(word));
            let names: Vec<&str> = of_word.map(|crawler| &*crawler.crawler).collect();
            let what = if names.len() == 1 { one } else { several };
            (!names.is_empty()).then(|| format!("{} {what}: {}", grouped(names.len() as u64), listed(&names)))
        };
        let mut verdicts: Vec<String> = JUDGEMENTS.into_iter().filter_map(verdict).collect();
        if verdicts.is_empty() {
            let none = "no crawler is judged, because a judgement requires a verified crawler, and logs with all of \
             its requests, including fetches of robots.txt";
            verdicts.push(none.to_owned());
        }
        let mut unjudged: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for (crawler, why) in self.crawlers.iter().filter_map(|crawler| Some((crawler, crawler.no_word.as_deref()?))) {
            unjudged.entry(why).or_default().push(&crawler.crawler);
        }
        let unjudged = unjudged.into_iter().map(|(why, names)| {
            let count = counted(names.len() as u64, "name");
            let are = if names.len() == 1 { "is" } else { "are" };
            format!("{count} {are} not judged ({why}): {}", listed(&names))
        });
        verdicts.extend(unjudged);
        verdicts
    }

    /// Returns notes about the history. Each note is a sentence without a full stop.
    pub(super) fn notes(&self) -> impl Iterator<Item = String> {
        let newest = self.versions.last();
        let versions = newest.map(|newest| {
            format!(
                "versions used to judge the requests: {versions} (the newest: {newest} from {since}, {source}); the \
                 counts below use a single robots.txt for all requests",
                versions = grouped(self.versions.len() as u64),
                newest = newest.version,
                since = newest.since,
                source = newest.source
            )
        });
        let lacking = (!self.lacking.is_empty()).then(|| {
            let (hours, times) = (counted(self.lacking_hours, "hour"), counted(self.lacking.len() as u64, "period"));
            format!(
                "the logs contain no line for {hours} ({times}): fetches of robots.txt may be missing there, so no \
                 crawler is accused of ignoring robots.txt in this time"
            )
        });
        let unseen = (!self.sees_all).then(|| {
            "no crawler is reported to ignore robots.txt, because the logs may lack fetches of robots.txt: if the \
             logs contain all fetches, write sees_all = true in [board]"
                .to_owned()
        });
        versions.into_iter().chain(self.left_out.iter().cloned()).chain(lacking).chain(unseen)
    }

    pub(super) fn shown(&self) -> Vec<(&CrawlerBoard, String, String)> {
        let shown = self.crawlers.iter().filter(|crawler| crawler.word.is_some() || crawler.disallowed > 0);
        shown.map(with_judgement_texts).collect()
    }
}

pub(super) fn balances(plan: &ReplayPlan, counts: &ReplayCounts) -> Vec<OperatorBalance> {
    let rows = counts.rows.iter().filter(|row| row.agent.is_crawler);
    let pages_of_operators = rows.map(|row| {
        let purpose = row.agent.category.map_or(row.agent.class.as_str(), |category| category.as_str());
        let pages = TakenPages {
            crawler: row.agent.name.clone(),
            purpose: purpose.to_owned(),
            pages: row.without_impostors().pages,
        };
        (row.agent.operator.as_deref().unwrap_or_default(), pages)
    });
    let referred_visitors = counts.referred_visitors.iter().map(|(service, visitors)| ((&**service).into(), *visitors));
    match plan.evaluators.last() {
        Some(evaluator) if counts.has_referers => {
            OperatorBalance::all(pages_of_operators, referred_visitors, &evaluator.settings.registry)
        }
        _ => Vec::new(),
    }
}

fn with_judgement_texts(crawler: &CrawlerBoard) -> (&CrawlerBoard, String, String) {
    let word = crawler.word.clone().or_else(|| crawler.no_word.clone()).unwrap_or_default();
    let all = counted(crawler.allowed + crawler.disallowed, "other request");
    let reads = format!("{} of robots.txt", counted(crawler.reads, "read"));
    let judged = crawler.judged.in_words().map(|judged| format!(": {judged}")).unwrap_or_default();
    (crawler, word, format!("{reads}, {} of {all} disallowed{judged}", grouped(crawler.disallowed)))
}
