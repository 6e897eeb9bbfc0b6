//! Crawlers as lines with bars, grouped by purpose: what is disallowed is an alarm for a search engine, and meant for most
//! others. A line opens, without scripts, to what else there is about its crawler.

use std::fmt::Write as _;

use super::chart::{ChartPart, bar, legend, sum};
use super::{Escaped, counted, grouped, percent};
use crate::word_enum::word_enum;

/// Lines of a group that stand open on the page.
const SHOWN: usize = 20;

word_enum! {
    /// The purposes of crawlers, in the order of a page.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
    pub(crate) enum CrawlerGroup {
        SearchEngines = "Search engines",
        AiTraining = "AI training",
        AiAnswers = "AI search, and fetches for people",
        Others = "Others: SEO, archives, previews, monitoring",
        Unknown = "Unknown crawlers",
        /// Whatever they claim to be.
        Impostors = "Impostors",
    }
}

/// A crawler, or others that are shown as one.
#[derive(Debug)]
pub(crate) struct CrawlerLine {
    pub(crate) group: CrawlerGroup,
    pub(crate) name: String,
    /// A word beside the name: its class, and its text.
    pub(crate) badge: Option<(&'static str, &'static str)>,
    /// Of its bar. What is disallowed comes first.
    pub(crate) parts: Vec<ChartPart>,
    /// The numbers of the bar.
    pub(crate) value: String,
    /// Markup of what opens.
    pub(crate) details: String,
}

impl CrawlerGroup {
    /// The group of a category of the registry; empty for a crawler that none knows.
    pub(crate) fn of_category(category: &str) -> Self {
        match category {
            "search" => Self::SearchEngines,
            "ai-training" => Self::AiTraining,
            "ai-search" | "user-fetch" => Self::AiAnswers,
            "" => Self::Unknown,
            _ => Self::Others,
        }
    }

    /// The class of what is disallowed, or shut out, for crawlers of this group.
    pub(crate) const fn disallowed(self) -> &'static str {
        if matches!(self, Self::SearchEngines) { "engine" } else { "disallowed" }
    }
}

/// Every crawler in its group, in the order in which they come, below the meaning of the colours. `harm` says what became of the first
/// part of their bars, and `meanings` what other classes than those of a group are.
pub(crate) fn crawler_lines(lines: &[CrawlerLine], harm: &str, meanings: &[(&str, &str)]) -> String {
    let most = lines.iter().map(|line| sum(&line.parts)).max().unwrap_or(0);
    let engine = format!("{harm} for a search engine: such pages may leave its index");
    let all = [("engine", &*engine), ("disallowed", harm)].into_iter().chain(meanings.iter().copied());
    let is_shown = |(class, _): &(&str, &str)| {
        lines.iter().flat_map(|line| &line.parts).any(|(of, count)| of == class && *count > 0)
    };
    let mut out = legend(all.chain([("allowed", "allowed")]).filter(is_shown));
    let list = |lines: &[&CrawlerLine]| {
        let lines: String = lines.iter().map(|line| line.markup(most)).collect();
        format!("<ul class=\"bars\">\n{lines}</ul>\n")
    };
    for group in CrawlerGroup::ALL {
        let of_group: Vec<_> = lines.iter().filter(|line| line.group == group).collect();
        let (shown, rest) = of_group.split_at(of_group.len().min(SHOWN));
        if shown.is_empty() {
            continue;
        }
        let requests = |lines: &[&CrawlerLine]| lines.iter().map(|line| sum(&line.parts)).sum();
        let (title, all) = (group.as_str(), requests(&of_group));
        let of_harm = of_group.iter().flat_map(|line| &line.parts).filter(|(class, _)| *class == group.disallowed());
        let share = percent(of_harm.map(|(_, count)| count).sum(), all);
        let all = counted(all, "request");
        let _ = write!(out, "<h3>{title} <small>{all}, {share} {harm}</small></h3>\n{}", list(shown));
        if !rest.is_empty() {
            let (crawlers, requests) = (counted(rest.len() as u64, "more crawler"), counted(requests(rest), "request"));
            let rest = list(rest);
            let _ = writeln!(out, "<details><summary>and {crawlers} with {requests}</summary>\n{rest}</details>");
        }
    }
    out
}

/// The numbers of a bar, in as few words as fit on a telephone: how many of the requests, and what became of them.
pub(crate) fn value_of((count, harm): (u64, &str), requests: u64) -> String {
    match count {
        0 => counted(requests, "request"),
        count => format!("{} of {} {harm}", percent(count, requests), grouped(requests)),
    }
}

impl CrawlerLine {
    fn markup(&self, most: u64) -> String {
        let (name, bar, value) = (Escaped(&self.name), bar(&self.parts, most), Escaped(&self.value));
        let badge = self.badge.map(|(class, text)| format!(" <em class=\"badge {class}\">{text}</em>"));
        let (badge, details) = (badge.unwrap_or_default(), &self.details);
        format!(
            "<li><details><summary><span class=\"name\"><b>{name}</b>{badge}</span>{bar}<span class=\"value\">{value}</span></summary>\n\
             {details}</details></li>\n"
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(group: CrawlerGroup, name: &str, disallowed: u64) -> CrawlerLine {
        let parts = vec![(group.disallowed(), disallowed), ("allowed", 5)];
        CrawlerLine { group, name: name.into(), badge: None, parts, value: String::new(), details: String::new() }
    }

    #[test]
    fn search_engines_stand_apart_and_in_their_own_colour() {
        let lines =
            [line(CrawlerGroup::of_category("ai-training"), "B", 1), line(CrawlerGroup::of_category("search"), "A", 5)];
        let text = crawler_lines(&lines, "disallowed", &[]);
        let [first, second] = ["Search engines <small>10 requests, 50 %", "AI training <small>6 requests, 17 %"]
            .map(|part| text.find(part).unwrap_or_else(|| panic!("{part}: {text}")));
        assert!(text.starts_with("<p class=\"key\"><span><i class=\"engine\"></i>disallowed for a search engine"));
        assert!(first < second && text[first..second].contains("class=\"engine\""));
        assert!(text[second..].contains("class=\"disallowed\"") && !text[second..].contains("class=\"engine\""));
    }

    #[test]
    fn a_group_of_many_is_short_and_loses_none() {
        let lines: Vec<_> = (0..25).map(|at| line(CrawlerGroup::Unknown, &format!("<{at}>"), 0)).collect();
        let text = crawler_lines(&lines, "disallowed", &[]);
        assert_eq!(
            (text.matches("<li>").count(), text.matches("<ul").count(), text.matches("</ul>").count()),
            (25, 2, 2)
        );
        assert!(
            text.contains("and 5 more crawlers with 25 requests")
                && text.contains("&lt;24&gt;")
                && !text.contains("<24>")
        );
    }
}
