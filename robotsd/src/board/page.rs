//! The board as an HTML page. The page has no scripts and loads nothing from other hosts. The page
//! supports dark and light mode and small screens.
//!
//! The template is `page.html`. The template escapes all names, because names from clients and
//! files can contain any characters. The style sheet has its own path, and bars are SVG elements
//! with size attributes. The page needs no inline styles, and the Content-Security-Policy forbids
//! them.

use std::collections::BTreeMap;

use askama::Template;

use super::report::{BoardReport, CrawlerBoard, LineBoard, SiteBoard, TrendBar};
use super::view::{BoardQuery, BoardSpan};
use crate::date;
use crate::html::{
    CrawlerGroup, CrawlerLine, Markup, STYLE, TimeChart, bar, crawler_lines, filters, grouped, markup, minute, moment,
    percent, value_of,
};
use crate::render::{shell_line, short_hash};
use crate::report::{HistoryReport, NextStep, RequestsReport, SiteReport, StatusReport, is_of};

/// Maximum number of robots.txt lines per site. `/board.json` contains more.
const MAX_LINES: usize = 20;

/// Maximum number of reloads per site. The page shows the newest reloads.
const MAX_RELOADS: usize = 10;

/// Maximum number of sites whose details are shown. If there are more sites, the page contains only
/// the table of sites, with a link to the page of each site.
const DETAILED_SITES: usize = 3;

/// Data of the page: the reports that `robotsd status` and `robotsd board` print.
#[derive(Template)]
#[template(path = "board/page.html")]
pub(crate) struct BoardPage<'a> {
    pub(crate) status: &'a StatusReport,
    pub(crate) board: &'a BoardReport,
    pub(crate) histories: &'a [HistoryReport],
    pub(crate) query: &'a BoardQuery,
    /// Whether to link to the board of all replicas.
    pub(crate) links_to_all_replicas: bool,
    /// Seconds until the browser reloads the page; `None` if the browser does not reload it.
    pub(crate) reload: Option<&'static str>,
}

const fn in_words(span: BoardSpan) -> &'static str {
    match span {
        BoardSpan::Day => "24 hours",
        BoardSpan::Month => "30 days",
    }
}

/// Returns the style sheet, which is served at `/board.css`.
pub(crate) fn style() -> String {
    format!("{STYLE}{}", include_str!("page.css"))
}

/// Details that the page shows when the reader expands the entry of a crawler.
#[derive(Template)]
#[template(path = "board/crawler.html")]
struct CrawlerFacts<'a> {
    crawler: &'a CrawlerBoard,
    chart: TimeChart,
}

struct SiteRow<'a> {
    name: &'a str,
    target: String,
    badges: Vec<(&'static str, String)>,
    counts: [(&'static str, u64); 5],
}

#[derive(Clone, Copy, Default)]
struct Sums {
    requests: u64,
    disallowed: u64,
    refused: u64,
}

impl Sums {
    fn of<'c>(crawlers: impl Iterator<Item = &'c CrawlerBoard>, is_meant: impl Fn(CrawlerGroup) -> bool) -> Self {
        crawlers.filter(|crawler| is_meant(group(crawler))).fold(Self::default(), |sums, crawler| Self {
            requests: sums.requests + crawler.requests(),
            disallowed: sums.disallowed + crawler.disallowed,
            refused: sums.refused + crawler.done.refused,
        })
    }
}

/// A task for the operator: title, reasons, and the commands that complete the task.
type Task<'a> = (String, Vec<String>, &'a [NextStep]);

impl<'a> BoardPage<'a> {
    /// Returns the links to all views of the page. Each link consists of its target, whether its
    /// view is the current view, and its label.
    fn links(&self) -> Vec<(String, bool, &'static str)> {
        let (query, reload) = (self.query, self.reload);
        let spans = BoardSpan::ALL.map(|span| (BoardQuery { span, ..query.clone() }, in_words(span)));
        let spans = spans.map(|(of, words)| (target(&of, reload), of == *query, words));
        let other = match reload {
            None => (target(query, Some("5")), false, "Reload every 5 seconds"),
            Some(_) => (target(query, None), false, "Stop reloading"),
        };
        let every = BoardQuery { site: None, ..query.clone() };
        let every = query.site.as_ref().map(|_| (target(&every, reload), false, "Every site"));
        let toggled = BoardQuery { is_of_fleet: !query.is_of_fleet, ..query.clone() };
        let words = if query.is_of_fleet { "This replica alone" } else { "All replicas" };
        let replicas = self.links_to_all_replicas.then(|| (target(&toggled, reload), false, words));
        spans.into_iter().chain([other]).chain(every).chain(replicas).collect()
    }

    fn tasks(&self) -> Vec<Task<'_>> {
        let status = self.status;
        let is_all_off = status.switch == "off";
        let mut tasks: Vec<Task<'_>> = Vec::new();
        tasks.extend(status.config.rejected.as_ref().map(|rejected| {
            let why = format!("Since {}: {}", minute(&rejected.since), rejected.why);
            ("The config is rejected".to_owned(), vec![why], &*rejected.next)
        }));
        let whole = if is_all_off { "Enforcement is off for every site" } else { "robotsd" };
        let reasons: Vec<_> = status.switch_problem.iter().chain(&status.problems).cloned().collect();
        if is_all_off || !reasons.is_empty() || !status.next.is_empty() {
            tasks.push((whole.to_owned(), reasons, &*status.next));
        }
        for site in &status.sites {
            let is_off = !is_all_off && site.enforcement == "off";
            if is_off || !site.next.is_empty() || !site.problems.is_empty() {
                let what = match (is_off, &site.pending) {
                    (true, _) => "enforcement is off",
                    (false, Some(_)) => "a pending version needs your decision",
                    (false, None) => "needs attention",
                };
                tasks.push((format!("{}: {what}", site.name), self.reasons(site), &*site.next));
            }
        }
        tasks
    }

    fn command_line(&self, step: &NextStep) -> String {
        let config = step.is_for_running().then_some(["--config", &*self.status.config.path]);
        shell_line(step.command.iter().map(String::as_str).chain(config.into_iter().flatten()))
    }

    /// Returns why a site needs attention, and what a pending version would change.
    fn reasons(&self, site: &SiteReport) -> Vec<String> {
        let mut reasons: Vec<_> = site.switch_problem.iter().cloned().collect();
        if let Some(pending) = &site.pending {
            let hash = short_hash(&pending.hash);
            let why = pending.objections.join("; ");
            reasons
                .push(format!("Version {hash} has been pending since {since}: {why}.", since = minute(&pending.since)));
            let entries = self.histories.iter().filter(|history| is_of(&history.site, &site.name));
            let mut entries = entries.flat_map(|history| history.entries.iter().rev());
            let entry = entries.find(|entry| entry.hash.as_deref().is_some_and(|of| short_hash(of) == hash));
            reasons.extend(entry.and_then(|entry| entry.effect.as_ref()).map(|effect| format!("It changes: {effect}")));
        }
        reasons.extend(site.last_reload.iter().filter(|last| last.outcome == "kept").map(|last| last.message.clone()));
        reasons.extend(site.findings_summary.iter().filter(|_| site.findings.errors > 0).cloned());
        reasons.extend(site.problems.iter().cloned());
        reasons
    }

    /// Returns the label, number and note of each total over all shown sites.
    fn figures(&self) -> [(&'static str, u64, String); 6] {
        use CrawlerGroup::{AiAnswers, AiTraining, Impostors, SearchEngines};
        let crawlers = || self.board.sites.iter().flat_map(|site| &site.crawlers);
        let Sums { requests, disallowed, refused } = Sums::of(crawlers(), |group| group != Impostors);
        let [engines, ai, impostors] = [&[SearchEngines][..], &[AiTraining, AiAnswers], &[Impostors]]
            .map(|groups| Sums::of(crawlers(), |group| groups.contains(&group)));
        let note = |sums: Sums| format!("{} disallowed", percent(sums.disallowed, sums.requests));
        [
            ("All crawlers", requests, "without impostors".to_owned()),
            ("Disallowed", disallowed, format!("{} of those", percent(disallowed, requests))),
            ("Refused", refused, format!("{} of those disallowed", percent(refused, disallowed))),
            ("By search engines", engines.requests, note(engines)),
            ("By AI crawlers", ai.requests, note(ai)),
            ("By impostors", impostors.requests, format!("{} refused", grouped(impostors.refused))),
        ]
    }

    /// Returns the rows of the table of sites, the site with the most requests first. The table is
    /// empty if only one site is shown.
    fn site_rows(&self) -> Vec<SiteRow<'a>> {
        use CrawlerGroup::{AiAnswers, AiTraining, Impostors};
        if self.board.sites.len() < 2 {
            return Vec::new();
        }
        let row = |site: &'a SiteBoard| {
            let all = Sums::of(site.crawlers.iter(), |group| group != Impostors);
            let ai = Sums::of(site.crawlers.iter(), |group| matches!(group, AiTraining | AiAnswers));
            let impostors = Sums::of(site.crawlers.iter(), |group| group == Impostors);
            let counts = [
                ("Crawlers", all.requests),
                ("Disallowed", all.disallowed),
                ("Refused", all.refused),
                ("AI crawlers", ai.requests),
                ("Impostors", impostors.requests),
            ];
            let badges = badges(&self.reports_of(site));
            SiteRow { name: &site.site, target: self.target_of(site), badges, counts }
        };
        let mut rows: Vec<_> = self.board.sites.iter().map(row).collect();
        rows.sort_by_key(|row| std::cmp::Reverse(row.counts[0].1));
        rows
    }

    /// Returns the status reports of a site. If each host has its own robots.txt, there is one
    /// report per host.
    fn reports_of(&self, site: &SiteBoard) -> Vec<&SiteReport> {
        self.status.sites.iter().filter(|report| is_of(&site.site, &report.name)).collect()
    }

    fn requests_of(&self, site: &SiteBoard) -> Option<&RequestsReport> {
        let mut sites = self.status.traffic.iter().flat_map(|traffic| &traffic.sites);
        sites.find(|traffic| is_of(&site.site, &traffic.name)).map(|traffic| &traffic.requests)
    }

    /// Returns the history of a site's reloads; `None` if there were no reloads.
    fn history_of(&self, site: &SiteBoard) -> Option<&HistoryReport> {
        self.histories.iter().find(|history| history.site == site.site && !history.entries.is_empty())
    }

    fn target_of(&self, site: &SiteBoard) -> String {
        target(&BoardQuery { site: Some(site.site.clone()), ..self.query.clone() }, self.reload)
    }

    fn crawlers(&self, site: &SiteBoard) -> Markup {
        let lines: Vec<_> = site.crawlers.iter().map(|crawler| self.line(crawler)).collect();
        crawler_lines(&lines, "disallowed", &[])
    }

    fn chart(&self, crawlers: &[CrawlerBoard]) -> TimeChart {
        let step = i64::try_from(self.board.step_seconds).unwrap_or(i64::MAX);
        let first = humantime::parse_rfc3339_weak(&self.board.from).map_or(0, date::seconds);
        let columns = crawlers.iter().map(|crawler| crawler.trend.len()).max().unwrap_or(0);
        let column = |at: usize| {
            let [mut engines, mut others] = [TrendBar::default(); 2];
            for crawler in crawlers {
                let sum = if group(crawler) == CrawlerGroup::SearchEngines { &mut engines } else { &mut others };
                let bar = crawler.trend.get(at).copied().unwrap_or_default();
                sum.allowed += bar.allowed;
                sum.disallowed += bar.disallowed;
            }
            let (allowed, disallowed) = (engines.allowed + others.allowed, engines.disallowed + others.disallowed);
            let when = moment(first + step * at as i64);
            let title = format!("{when} UTC: {} allowed, {} disallowed", grouped(allowed), grouped(disallowed));
            let parts = [("engine", engines.disallowed), ("disallowed", others.disallowed), ("allowed", allowed)];
            (parts.to_vec(), title)
        };
        TimeChart { first, step, columns: (0..columns).map(column).collect() }
    }

    fn line(&self, crawler: &CrawlerBoard) -> CrawlerLine {
        let group = group(crawler);
        let value = value_of((crawler.disallowed, "disallowed"), crawler.requests());
        let badge = match (crawler.word.as_deref(), &*crawler.identity) {
            (Some("ignores"), _) => Some(("bad", "ignores")),
            (Some("obeys"), _) => Some(("good", "obeys")),
            (Some("has not read the newest version"), _) => Some(("soft", "older version")),
            (Some(_), _) => Some(("soft", "no read seen")),
            (None, "claimed") => Some(("soft", "unverified")),
            (None, _) => None,
        };
        let parts = vec![(group.disallowed(), crawler.disallowed), ("allowed", crawler.allowed)];
        let chart = self.chart(std::slice::from_ref(crawler));
        let (name, details) = (crawler.crawler.clone(), markup(&CrawlerFacts { crawler, chart }));
        CrawlerLine { group, name, badge, parts, value, details }
    }
}

impl CrawlerFacts<'_> {
    const fn done(&self) -> [(&'static str, u64); 4] {
        let done = &self.crawler.done;
        [("Refused", done.refused), ("Tagged", done.tagged), ("Observed", done.observed), ("Exempt", done.passed)]
    }
}

/// Returns the group of a crawler. All impostors are in one group, whichever crawlers they claim to
/// be.
fn group(crawler: &CrawlerBoard) -> CrawlerGroup {
    if crawler.identity == "impostor" { CrawlerGroup::Impostors } else { CrawlerGroup::of_category(&crawler.category) }
}

/// Returns the CSS class and text of each badge.
fn badges(reports: &[&SiteReport]) -> Vec<(&'static str, String)> {
    let mut states = BTreeMap::<_, usize>::new();
    for report in reports {
        let state = if report.enforcement == "off" { "off" } else { &*report.state };
        *states.entry(state).or_default() += 1;
    }
    let badge = |(state, count): (&str, usize)| {
        let (class, text) = match state {
            "live" => ("good", "live"),
            "gated" => ("gated", "version pending"),
            "last-good" => ("gated", "last good version"),
            "none" => ("bad", "no robots.txt"),
            "off" => ("bad", "enforcement off"),
            other => ("soft", other),
        };
        (class, if reports.len() > 1 { format!("{count} {text}") } else { text.to_owned() })
    };
    let mode = reports.first().map(|report| ("soft", report.mode.clone()));
    states.into_iter().map(badge).chain(mode).collect()
}

/// Returns two numbers of forwarded disallowed requests: first those of crawlers other than search
/// engines, then those of search engines.
fn forwarded_counts(crawlers: &[CrawlerBoard]) -> (u64, u64) {
    let through = |is_engine: bool| {
        let of_kind = crawlers.iter().filter(move |of| (group(of) == CrawlerGroup::SearchEngines) == is_engine);
        of_kind.map(|crawler| crawler.done.observed + crawler.done.tagged).sum::<u64>()
    };
    (through(false), through(true))
}

fn p99(site: &SiteBoard) -> String {
    site.traffic.and_then(|now| now.decision_p99()).unwrap_or_else(|| "not measured yet".to_owned())
}

fn is_live(line: &LineBoard, reports: &[&SiteReport]) -> bool {
    let live = reports.first().and_then(|report| report.hash.as_deref());
    live.is_some_and(|live| short_hash(live) == short_hash(&line.version))
}

/// Draws a bar for the hits of a robots.txt line. The line with the most hits has the longest bar.
fn bar_of(line: &LineBoard, site: &SiteBoard) -> Markup {
    bar(&[("disallowed", line.hits)], site.lines.iter().take(MAX_LINES).map(|line| line.hits).max().unwrap_or(0))
}

fn hits_by_crawler(line: &LineBoard) -> String {
    let by = line.crawlers.iter().take(5).map(|by| match &*by.identity {
        "impostor" => format!("impostors of {} {}", by.crawler, grouped(by.hits)),
        _ => format!("{} {}", by.crawler, grouped(by.hits)),
    });
    by.collect::<Vec<_>>().join(", ")
}

fn target(query: &BoardQuery, reload: Option<&str>) -> String {
    let reload = reload.map(|seconds| format!("&reload={seconds}")).unwrap_or_default();
    query.at("/board") + &reload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::report::NeverHit;
    use crate::board::row::Done;
    use crate::report::OverrideReport;

    fn page(board: &BoardReport, sites: Vec<SiteReport>) -> String {
        let status: StatusReport = serde_json::from_value(serde_json::json!({
            "version": "0", "pid": 1, "state": "serving", "started": "", "uptime_seconds": 0,
        }))
        .unwrap();
        let status = StatusReport { sites, ..status };
        let query = BoardQuery::default();
        BoardPage { status: &status, board, histories: &[], query: &query, links_to_all_replicas: false, reload: None }
            .to_string()
    }

    #[test]
    fn hostile_names_are_escaped_in_the_page() {
        const HOSTILE: &str = "<script>alert('1')</script>\"\u{202e}";
        let line =
            LineBoard { version: HOSTILE.into(), line: 3, pattern: HOSTILE.into(), hits: 1, crawlers: Vec::new() };
        let crawler = CrawlerBoard {
            crawler: HOSTILE.into(),
            operator: HOSTILE.into(),
            identity: "claimed".into(),
            worst_line: Some(line.clone()),
            trend: vec![TrendBar { allowed: 3, disallowed: 1 }, TrendBar::default()],
            ..CrawlerBoard::default()
        };
        let site = SiteBoard {
            site: HOSTILE.into(),
            crawlers: vec![crawler],
            never_hit: Some(NeverHit { lines: vec![line.clone()], count: 1, ..NeverHit::default() }),
            lines: vec![line],
            ..SiteBoard::default()
        };
        let text =
            page(&BoardReport { notes: vec![HOSTILE.into()], sites: vec![site], ..BoardReport::default() }, Vec::new());
        assert!(!text.contains("<script") && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;\\u{202e}"));
        assert!(!text.contains(" style=") && !text.contains("http://") && !text.contains("https://"), "{text}");
    }

    /// Only disallowed requests of search engines are red, because AI crawlers are usually blocked
    /// on purpose.
    #[test]
    fn the_page_separates_search_engines_ai_crawlers_and_impostors() {
        let crawler = |category: &str, identity: &str| CrawlerBoard {
            crawler: format!("{identity} {category}"),
            category: category.into(),
            identity: identity.into(),
            disallowed: 4,
            done: Done { observed: 4, ..Done::default() },
            ..CrawlerBoard::default()
        };
        let crawlers =
            vec![crawler("ai-training", "verified"), crawler("search", "verified"), crawler("search", "impostor")];
        let site = SiteBoard { site: "shop".into(), crawlers, ..SiteBoard::default() };
        let board = BoardReport { sites: vec![site], ..BoardReport::default() };
        let report = || SiteReport { name: "shop".into(), mode: "observe".into(), ..SiteReport::default() };
        let (of, mode) = ("agent \"gptbot\"".into(), "refuse".into());
        let overrides = vec![OverrideReport { of, mode, until: None, ended: false }];
        let overridden = SiteReport { overrides, ..report() };
        let text = page(&board, vec![report()]);
        let said = text.split_whitespace().collect::<Vec<_>>().join(" ");
        let refused = "8 forwarded requests would have been refused. Search engines sent 4 more";
        let want = format!("so disallowed requests are forwarded. With <code>refuse</code>, {refused}");
        assert!(said.contains(&want), "{said}");
        // If the site has overrides, the page does not claim that all disallowed requests are
        // forwarded.
        let said = page(&board, vec![overridden]).split_whitespace().collect::<Vec<_>>().join(" ");
        let want =
            format!("are forwarded unless an override refuses them. With <code>refuse</code> for all, {refused}");
        assert!(said.contains(&want), "{said}");
        let groups: Vec<_> =
            text.split("<h3>").skip(1).map(|part| (&part[..6], part.contains("class=\"engine\""))).collect();
        assert_eq!(groups, [("Search", true), ("AI tra", false), ("Impost", false)]);
        assert_eq!(text.matches("<h1>").count(), 1);
    }

    #[test]
    fn several_sites_are_shown_in_a_table_sorted_by_traffic() {
        let site = |name: &str, requests| {
            let crawlers = vec![CrawlerBoard { allowed: requests, ..CrawlerBoard::default() }];
            SiteBoard { site: name.into(), crawlers, ..SiteBoard::default() }
        };
        let sites = || [site("a", 1), site("b", 20), site("c", 0), site("d", 3)].into_iter();
        let board = |count| BoardReport { sites: sites().take(count).collect(), ..BoardReport::default() };
        let names = |page: &str| -> Vec<String> {
            let rows = page.split("<tr><th scope=\"row\"><a href=").skip(1);
            rows.map(|row| row.split_once('>').unwrap().1.chars().take(1).collect()).collect()
        };
        let text = page(&board(4), Vec::new());
        assert_eq!(names(&text), ["b", "d", "a", "c"]);
        assert!(text.contains("site=d\">d</a>") && !text.contains("<details class=\"site\""), "{text}");
        let text = page(&board(2), Vec::new());
        assert_eq!((names(&text).len(), text.matches("<details class=\"site\"").count()), (2, 2));
        assert_eq!(names(&page(&board(1), Vec::new())), [""; 0]);
    }

    #[test]
    fn a_site_with_a_pending_version_has_another_badge_than_a_live_site() {
        let report = |state: &str, enforcement: &str| SiteReport {
            state: state.into(),
            enforcement: enforcement.into(),
            mode: "observe".into(),
            ..SiteReport::default()
        };
        let (live, gated, off) = (report("live", "on"), report("gated", "on"), report("live", "off"));
        assert_eq!(badges(&[&live])[0], ("good", "live".to_owned()));
        assert_eq!(badges(&[&gated])[0], ("gated", "version pending".to_owned()));
        let of_hosts = badges(&[&live, &gated, &off, &live]);
        let texts: Vec<&str> = of_hosts.iter().map(|(_, text)| &**text).collect();
        assert_eq!(texts, ["1 version pending", "2 live", "1 enforcement off", "observe"]);
    }
}
