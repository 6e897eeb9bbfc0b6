//! Who may fetch the front page: the first question of an owner about search engines and AI crawlers.

use serde::Serialize;
use tower_robots::agent::{Category, Crawler, Obeys};
use tower_robots::rules::Access;

use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::retrieval::CrawlerAccess;

/// The crawlers of each kind, and what they may do; none where that cannot be said.
#[derive(Debug, Default)]
pub(super) struct FrontPage {
    pub(super) rows: Vec<FrontPageRow>,
    /// Whether rules decide, and not an answer without any.
    pub(super) has_rules: bool,
}

/// One crawler.
#[derive(Debug, Serialize)]
pub(super) struct FrontPageRow {
    pub(super) crawler: String,
    pub(super) kind: CrawlerKind,
    pub(super) access: Access,
    /// The line of the rule that decides, if one does.
    pub(super) line: Option<usize>,
    /// It does not go by robots.txt.
    pub(super) ignores_robots: bool,
}

/// The crawlers that an owner thinks of first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum CrawlerKind {
    SearchEngine,
    AiSearch,
    AiTraining,
}

impl CrawlerKind {
    pub(super) const ALL: [Self; 3] = [Self::SearchEngine, Self::AiSearch, Self::AiTraining];

    fn of(crawler: &Crawler) -> Option<Self> {
        match crawler.category() {
            _ if crawler.is_index_engine() => Some(Self::SearchEngine),
            Category::AiSearch => Some(Self::AiSearch),
            Category::AiTraining => Some(Self::AiTraining),
            _ => None,
        }
    }

    pub(super) const fn title(self) -> &'static str {
        match self {
            Self::SearchEngine => "search engines",
            Self::AiSearch => "AI search",
            Self::AiTraining => "AI training",
        }
    }
}

impl FrontPage {
    /// By the rules of a file.
    pub(super) fn by_rules(evaluator: &Evaluator, settings: &EvaluatorSettings) -> Self {
        let path = evaluator.path(b"/");
        let row = |crawler: &Crawler, kind| {
            let named = evaluator.resolve(crawler.name());
            let verdict = evaluator.rules().select(named.agent().tokens(), named.fallback()).verdict(&path);
            let line = verdict.rule().filter(|rule| !rule.pattern().is_empty()).map(|rule| rule.line());
            FrontPageRow::new(crawler, kind, verdict.access(), line)
        };
        Self { rows: rows(settings, row), has_rules: true }
    }

    /// By an answer that brings no rules.
    pub(super) fn without_rules(settings: &EvaluatorSettings, access: CrawlerAccess) -> Self {
        let access = if access == CrawlerAccess::Nothing { Access::Disallow } else { Access::Allow };
        Self { rows: rows(settings, |crawler, kind| FrontPageRow::new(crawler, kind, access, None)), has_rules: false }
    }

    /// Those of a kind, in the order of the registry.
    pub(super) fn of_kind(&self, kind: CrawlerKind) -> impl Iterator<Item = &FrontPageRow> {
        self.rows.iter().filter(move |row| row.kind == kind)
    }
}

impl FrontPageRow {
    fn new(crawler: &Crawler, kind: CrawlerKind, access: Access, line: Option<usize>) -> Self {
        let ignores_robots = crawler.obeys_robots() == Obeys::No;
        Self { crawler: crawler.name().to_owned(), kind, access, line, ignores_robots }
    }
}

fn rows(settings: &EvaluatorSettings, row: impl Fn(&Crawler, CrawlerKind) -> FrontPageRow) -> Vec<FrontPageRow> {
    let crawlers = settings.registry.crawlers();
    crawlers.filter_map(|crawler| Some(row(crawler, CrawlerKind::of(crawler)?))).collect()
}
