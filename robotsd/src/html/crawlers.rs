//! Lists crawlers as lines with bars, grouped by purpose. Disallowed requests of search engines
//! have an alarming colour, because most sites want search engines to visit them.

use askama::Template;

use super::chart::{ChartPart, bar, sum};
use super::{Markup, counted, filters, grouped, markup, percent};
use crate::word_enum::word_enum;

/// Maximum number of visible lines per group. A click shows the hidden lines.
const MAX_SHOWN: usize = 20;

word_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum CrawlerGroup {
        SearchEngines = "Search engines",
        AiTraining = "AI training",
        AiAnswers = "AI search, and fetches for people",
        Others = "Others: SEO, archives, previews, monitoring",
        Unknown = "Unknown crawlers",
        /// Clients that falsely use the name of a crawler.
        Impostors = "Impostors",
    }
}

/// A line of the list, about one crawler or several crawlers that are counted together.
pub(crate) struct CrawlerLine {
    pub(crate) group: CrawlerGroup,
    pub(crate) name: String,
    /// CSS class and text of the badge next to the name.
    pub(crate) badge: Option<(&'static str, &'static str)>,
    /// The segments of the bar. The first segment represents disallowed requests.
    pub(crate) parts: Vec<ChartPart>,
    pub(crate) value: String,
    pub(crate) details: Markup,
}

impl CrawlerGroup {
    /// Returns the group for a category of the registry. `category` is empty for unknown crawlers.
    pub(crate) fn of_category(category: &str) -> Self {
        match category {
            "search" => Self::SearchEngines,
            "ai-training" => Self::AiTraining,
            "ai-search" | "user-fetch" => Self::AiAnswers,
            "" => Self::Unknown,
            _ => Self::Others,
        }
    }

    /// Returns the CSS class for disallowed or newly blocked requests of this group's crawlers. The
    /// class determines the colour.
    pub(crate) const fn disallowed(self) -> &'static str {
        if matches!(self, Self::SearchEngines) { "engine" } else { "disallowed" }
    }
}

#[derive(Template)]
#[template(path = "html/crawlers.html")]
struct CrawlerLines<'a> {
    lines: &'a [CrawlerLine],
    harm: &'a str,
    meanings: &'a [(&'a str, &'a str)],
    /// Number of requests in the longest bar.
    most: u64,
}

/// Renders the list of crawlers. For the legend, `harm` describes the first segment of each bar,
/// and `meanings` describes the other segments by their CSS class.
pub(crate) fn crawler_lines(lines: &[CrawlerLine], harm: &str, meanings: &[(&str, &str)]) -> Markup {
    let most = lines.iter().map(|line| sum(&line.parts)).max().unwrap_or(0);
    markup(&CrawlerLines { lines, harm, meanings, most })
}

impl CrawlerLines<'_> {
    fn legend(&self) -> Vec<(&str, String)> {
        let engine = format!("{harm} for a search engine: such pages may leave its index", harm = self.harm);
        let others = [("disallowed", self.harm)].into_iter().chain(self.meanings.iter().copied());
        let others = others.chain([("allowed", "allowed")]).map(|(class, meaning)| (class, meaning.to_owned()));
        let parts = self.lines.iter().flat_map(|line| &line.parts);
        let is_shown = |(of, _): &(&str, String)| parts.clone().any(|(class, count)| class == of && *count > 0);
        [("engine", engine)].into_iter().chain(others).filter(is_shown).collect()
    }

    fn of_group(&self, group: &CrawlerGroup) -> Vec<&CrawlerLine> {
        self.lines.iter().filter(|line| line.group == *group).collect()
    }

    fn share_of_harm(&self, group: &CrawlerGroup, lines: &[&CrawlerLine]) -> String {
        let harm = lines.iter().flat_map(|line| &line.parts).filter(|(class, _)| *class == group.disallowed());
        percent(harm.map(|(_, count)| count).sum(), requests(lines))
    }

    fn bar(&self, line: &CrawlerLine) -> Markup {
        bar(&line.parts, self.most)
    }
}

fn requests(lines: &[&CrawlerLine]) -> u64 {
    lines.iter().map(|line| sum(&line.parts)).sum()
}

/// Returns the text next to a bar: the number of requests and, if `count` is not 0, the share that
/// `harm` describes. The text is short enough for a phone.
pub(crate) fn value_of((count, harm): (u64, &str), requests: u64) -> String {
    match count {
        0 => counted(requests, "request"),
        count => format!("{} of {} {harm}", percent(count, requests), grouped(requests)),
    }
}

#[cfg(test)]
mod tests {
    use askama::filters::Safe;

    use super::*;

    fn line(group: CrawlerGroup, name: &str, disallowed: u64) -> CrawlerLine {
        let parts = vec![(group.disallowed(), disallowed), ("allowed", 5)];
        CrawlerLine { group, name: name.into(), badge: None, parts, value: String::new(), details: Safe(String::new()) }
    }

    #[test]
    fn search_engines_are_a_separate_group_with_their_own_colour() {
        let lines =
            [line(CrawlerGroup::of_category("ai-training"), "B", 1), line(CrawlerGroup::of_category("search"), "A", 5)];
        let text = crawler_lines(&lines, "disallowed", &[]).to_string();
        let [first, second] = ["Search engines <small>10 requests, 50 %", "AI training <small>6 requests, 17 %"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
        assert!(text.starts_with("<p class=\"key\"><span><i class=\"engine\"></i>disallowed for a search engine"));
        assert!(first < second && text[first..second].contains("class=\"engine\""));
        assert!(text[second..].contains("class=\"disallowed\"") && !text[second..].contains("class=\"engine\""));
    }

    #[test]
    fn a_long_group_is_collapsed_but_lists_every_crawler() {
        let lines: Vec<_> = (0..25).map(|at| line(CrawlerGroup::Unknown, &format!("<{at}>"), 0)).collect();
        let text = crawler_lines(&lines, "disallowed", &[]).to_string();
        let want = (25, 2, 2);
        assert_eq!((text.matches("<li>").count(), text.matches("<ul").count(), text.matches("</ul>").count()), want);
        assert!(text.contains("and 5 more crawlers with 25 requests"));
        assert!(text.contains("&lt;24&gt;"));
        assert!(!text.contains("<24>"));
    }
}
