//! The judgements of crawlers by the versions that they had read, and the visitors that crawling brings: a part of each form of the report.

use std::io::{self, Write};

use serde::Serialize;

use crate::board::{CrawlerBoard, Evidence, OperatorBalance, TakenPages, given_back, seconds_in_words};
use crate::commands::replay::counts::{ReplayCounts, ReplayPlan};
use crate::commands::replay::history::PastVersion;
use crate::html::{Escaped, counted, grouped, stacked};
use crate::render::printable;

/// Crawlers that are shown, and operators.
const SHOWN: usize = 25;

/// The words of the board, by the versions of a history.
#[derive(Debug, Serialize)]
pub(crate) struct PastJudgements {
    /// The oldest first.
    versions: Vec<VersionRow>,
    /// Whether the logs are said to have every read of robots.txt.
    sees_all: bool,
    /// The times for which the logs have no line.
    lacking: Vec<[String; 2]>,
    lacking_hours: u64,
    /// As `/board.json` has them.
    crawlers: Vec<CrawlerBoard>,
}

#[derive(Debug, Serialize)]
struct VersionRow {
    version: String,
    since: String,
    /// The commit, or the file.
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
            lacking_hours: lacking.iter().map(|(from, to)| (to - from) / 3600).sum(),
            lacking: lacking.into_iter().map(|(from, to)| [from, to].map(seconds_in_words)).collect(),
            crawlers: counts.board.board(evidence).crawlers,
        })
    }

    /// As sentences without a stop.
    fn notes(&self) -> impl Iterator<Item = String> {
        let newest = self.versions.last();
        let versions = newest.map(|newest| {
            let versions = counted(self.versions.len() as u64, "version");
            format!("judged by {versions}, the newest {} of {} ({})", newest.version, newest.since, newest.source)
        });
        let lacking = (!self.lacking.is_empty()).then(|| {
            let (hours, times) = (counted(self.lacking_hours, "hour"), counted(self.lacking.len() as u64, "time"));
            format!(
                "the logs have no line for {hours}, {times}: a read there may have been missed, which accuses nobody"
            )
        });
        let unseen = (!self.sees_all).then(|| {
            "no crawler is said to ignore robots.txt, because the config does not say that every read of it is in the logs: \
             sees_all = true in [board] says so"
                .to_owned()
        });
        versions.into_iter().chain(lacking).chain(unseen)
    }

    /// Crawlers with a judgement, or that requested what is disallowed.
    fn shown(&self) -> impl Iterator<Item = &CrawlerBoard> {
        self.crawlers.iter().filter(|crawler| crawler.word.is_some() || crawler.disallowed > 0)
    }
}

/// The pages that crawlers took, and the visitors that services sent.
pub(super) fn balances(plan: &ReplayPlan, counts: &ReplayCounts) -> Vec<OperatorBalance> {
    let rows = counts.rows.iter().filter(|row| row.agent.is_crawler);
    let taken = rows.map(|row| {
        let purpose = row.agent.category.map_or(row.agent.class.as_str(), |category| category.as_str());
        let pages = TakenPages { crawler: row.agent.name.clone(), purpose: purpose.to_owned(), pages: row.own().pages };
        (row.agent.operator.as_deref().unwrap_or_default(), pages)
    });
    let sent = counts.sent.iter().map(|(service, visitors)| ((&**service).into(), *visitors));
    plan.evaluators
        .last()
        .filter(|_| counts.has_referers)
        .map_or_else(Vec::new, |evaluator| OperatorBalance::all(taken, sent, &evaluator.settings.registry))
}

/// The judgement of a crawler, and the reason.
fn said(crawler: &CrawlerBoard) -> (String, String) {
    let word = crawler.word.clone().or_else(|| crawler.no_word.clone()).unwrap_or_default();
    let all = counted(crawler.allowed + crawler.disallowed, "request");
    let reads = format!("{} of robots.txt", counted(crawler.reads, "read"));
    let judged = crawler.judged.in_words().map(|judged| format!(": {judged}")).unwrap_or_default();
    (word, format!("{reads}, {} of {all} disallowed{judged}", grouped(crawler.disallowed)))
}

pub(super) fn text(out: &mut impl Write, history: Option<&PastJudgements>) -> io::Result<()> {
    if let Some(history) = history {
        writeln!(out, "\nby what they had read")?;
        history.notes().try_for_each(|note| writeln!(out, "  {}", printable(&note)))?;
        for crawler in history.shown().take(SHOWN) {
            let (word, why) = said(crawler);
            writeln!(out, "  {} ({}): {word}", printable(&crawler.crawler), crawler.identity)?;
            writeln!(out, "    {why}")?;
        }
        let more = history.shown().count().saturating_sub(SHOWN);
        if more > 0 {
            writeln!(out, "  and {}", counted(more as u64, "more crawler"))?;
        }
    }
    Ok(())
}

pub(super) fn balances_text(out: &mut impl Write, balances: &[OperatorBalance]) -> io::Result<()> {
    if !balances.is_empty() {
        writeln!(out, "\nwhat crawling gives back, by operator")?;
    }
    for balance in balances.iter().take(SHOWN) {
        writeln!(out, "  {}: {}", printable(&balance.operator), printable(balance.sentence()))?;
    }
    Ok(())
}

pub(super) fn html(
    out: &mut impl Write,
    history: Option<&PastJudgements>,
    balances: &[OperatorBalance],
) -> io::Result<()> {
    if let Some(history) = history {
        history.notes().try_for_each(|note| writeln!(out, "<p class=\"sub\">{}.</p>", Escaped(&note)))?;
        let row = |crawler: &CrawlerBoard| {
            let (word, why) = said(crawler);
            [crawler.crawler.clone(), crawler.identity.clone(), word, why]
        };
        let table = stacked("By what they had read", &["Crawler", "Identity", "Word", "Why"], history.shown().map(row));
        out.write_all(table.as_bytes())?;
    }
    out.write_all(given_back("What crawling gives back", balances).as_bytes())
}
