//! The board as a page: no scripts, nothing of another host, legible in the dark and in the light, on a telephone too.
//!
//! Names come from clients and files; all of them go through [`Escaped`]. The style sheet is a path of its own, and every
//! bar is an attribute of SVG, so that the page needs no inline style.

use maud::{Markup, PreEscaped, html};

use super::report::{BoardReport, CrawlerBoard, SiteBoard, TrendBar};
use super::row::DAY;
use super::view::{BoardQuery, BoardSpan};
use crate::html::{
    Column::{Number, Text},
    Escaped, STYLE, counted, grouped, percent, table,
};
use crate::render::{shell_word, short_hash};
use crate::report::{HistoryReport, NextStep, SiteReport, StatusReport};

/// Lines of a site that the page lists; `/board.json` has more.
const LINES: usize = 20;

/// Reloads of a site that the page lists, the newest first.
const RELOADS: usize = 10;

/// Whether the browser loads the page again by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageReload {
    Never,
    EveryMinute,
}

/// The page, from the same facts as `robotsd status` and `robotsd board` have.
pub(crate) struct BoardPage<'a> {
    pub(crate) status: &'a StatusReport,
    pub(crate) board: &'a BoardReport,
    /// Of the sites that are shown.
    pub(crate) histories: &'a [HistoryReport],
    pub(crate) query: &'a BoardQuery,
    pub(crate) reload: PageReload,
}

/// The style sheet of the page, at `/board.css`.
pub(crate) fn style() -> String {
    format!("{STYLE}{}", include_str!("page.css"))
}

impl BoardPage<'_> {
    pub(crate) fn into_string(self) -> String {
        let board = self.board;
        let page = html! {
            (PreEscaped("<!doctype html>\n"))
            html lang="en" {
                head {
                    meta charset="utf-8";
                    meta name="viewport" content="width=device-width, initial-scale=1";
                    meta name="color-scheme" content="light dark";
                    title { "Board: robotsd" }
                    link rel="icon" href="data:,";
                    link rel="stylesheet" href="/board.css";
                }
                "\n"
                body {
                    main {
                        h1 { "What crawlers do here" }
                        p.sub { (Escaped(&minute(&board.from))) " to " (Escaped(&minute(&board.to))) " UTC" }
                        (self.links())
                        (self.to_do())
                        @for note in &board.notes { p.note { (Escaped(note)) } }
                        @if !board.sees_all {
                            p.note {
                                "No crawler is said to ignore robots.txt, because not every read of it may be seen here: "
                                code { "sees_all = true" } " in " code { "[board]" } " says that it is."
                            }
                        }
                        (self.sites())
                        @for site in &board.sites { (self.site(site)) }
                    }
                }
            }
            "\n"
        };
        page.into_string()
    }

    /// The same page over another time, or loaded again by itself.
    fn links(&self) -> Markup {
        let BoardQuery { site, span: shown } = self.query;
        let site = site.as_deref();
        let (other, what) = match self.reload {
            PageReload::Never => (PageReload::EveryMinute, "Reload every minute"),
            PageReload::EveryMinute => (PageReload::Never, "Stop reloading"),
        };
        html! {
            nav aria-label="This page" {
                ul.links {
                    @for (span, what) in [(BoardSpan::Day, "24 hours"), (BoardSpan::Month, "30 days")] {
                        @let current = (span == *shown).then_some("page");
                        li { a href=(target(site, span, self.reload)) aria-current=[current] { (what) } }
                    }
                    li { a href=(target(site, *shown, other)) { (what) } }
                    @if site.is_some() { li { a href=(target(None, *shown, self.reload)) { "Every site" } } }
                }
            }
        }
    }

    /// What an operator has to do, with the command for it.
    fn to_do(&self) -> Markup {
        let status = self.status;
        let rejected = status.config.as_ref().and_then(|config| config.rejected.as_ref());
        let of_config = rejected.iter().flat_map(|rejected| &rejected.next);
        let of_all = of_config.chain(&status.next).map(|step| (None, step));
        let of_sites = status.sites.iter().flat_map(|site| site.next.iter().map(|step| (Some(&*site.name), step)));
        let steps: Vec<(Option<&str>, &NextStep)> = of_all.chain(of_sites).collect();
        let is_off = status.enforcement == "off";
        let off: Vec<&SiteReport> = status.sites.iter().filter(|site| site.enforcement == "off").collect();
        if steps.is_empty() && rejected.is_none() && !is_off && off.is_empty() && status.troubles.is_empty() {
            return html! { p role="status" { "Nothing needs your attention." } };
        }
        html! {
            section.warn role="status" aria-labelledby="waits" {
                h2 id="waits" { "To do" }
                @if is_off {
                    p { strong { "Enforcement is off for every site." } }
                } @else {
                    @for site in off { p { strong { "Enforcement is off for site " (Escaped(&site.name)) "." } } }
                }
                @if let Some(rejected) = rejected {
                    p {
                        strong { "The config is rejected" }
                        " since " (Escaped(&rejected.since)) ": " (Escaped(&rejected.why))
                    }
                }
                @for trouble in &status.troubles { p { (Escaped(trouble)) } }
                @for (site, step) in steps {
                    p {
                        @if let Some(site) = site { "Site " (Escaped(site)) ": " }
                        (Escaped(&step.what))
                        @if !step.command.is_empty() {
                            @let words: Vec<String> = step.command.iter().map(|word| shell_word(word)).collect();
                            ": " code { (Escaped(&words.join(" "))) }
                        }
                    }
                }
            }
        }
    }

    fn sites(&self) -> Markup {
        let columns = [
            Text("Site"),
            Text("State"),
            Text("Mode"),
            Text("Version"),
            Text("Findings"),
            Number("Requests"),
            Number("Refused"),
            Number("Now"),
            Number("p99 of a decision"),
        ];
        let is_shown = |site: &&SiteReport| self.query.site.as_ref().is_none_or(|wanted| is_of(wanted, &site.name));
        let rows = self.status.sites.iter().filter(is_shown).map(|site| self.site_row(site));
        html! {
            section {
                h2 { "Sites" }
                (table(Some("Sites, with requests since the start of the process"), &columns, rows))
            }
        }
    }

    fn site_row(&self, site: &SiteReport) -> Vec<Markup> {
        let traffic = self.status.traffic.iter().flat_map(|traffic| &traffic.sites);
        let requests = traffic.map(|traffic| (traffic, &traffic.requests)).find(|(of, _)| is_of(&of.name, &site.name));
        let (total, refused) = requests.map_or((0, 0), |(_, requests)| (requests.total, requests.refused));
        let (errors, warnings) = (site.findings.errors as u64, site.findings.warnings as u64);
        let now = self.board.sites.iter().find(|board| is_of(&board.site, &site.name)).and_then(|board| board.traffic);
        let rate = now.map_or_else(|| "not known yet".to_owned(), |now| now.rate());
        let p99 = now.and_then(|now| now.decision_p99());
        let link = target(site.name.split('/').next(), self.query.span, self.reload);
        let mode = if site.enforcement == "off" { "off by the switch" } else { &*site.mode };
        let cells = [
            html! { (Escaped(&site.state)) },
            html! { (Escaped(mode)) },
            html! { code { (Escaped(short_hash(site.hash.as_deref().unwrap_or("none")))) } },
            html! { (counted(errors, "error")) ", " (counted(warnings, "warning")) },
            html! { (grouped(total)) },
            html! { (grouped(refused)) " (" (percent(refused, total)) ")" },
            html! { (rate) },
            html! { (p99.as_deref().unwrap_or("none timed yet")) },
        ];
        row(html! { a href=(link) { (Escaped(&site.name)) } }, cells)
    }

    fn site(&self, site: &SiteBoard) -> Markup {
        let name = Escaped(&site.site);
        let never = site.never_hit.as_ref().filter(|never| never.of > 0);
        let history = self.histories.iter().filter(|history| history.site == site.site);
        html! {
            section {
                h2 { (name) ": crawlers" }
                @if site.crawlers.is_empty() {
                    p { "No crawler came in this time." }
                } @else {
                    (self.crawlers(site))
                }
            }
            @if !site.lines.is_empty() {
                section {
                    h2 { (name) ": lines that disallowed" }
                    (lines(site))
                }
            }
            @if let Some(never) = never {
                section {
                    h2 { (name) ": lines never hit" }
                    p { (Escaped(&never.sentence())) }
                    @if !never.lines.is_empty() {
                        ul.lines {
                            @for line in never.lines.iter().take(LINES) {
                                li { code { (line.line) ": Disallow: " (Escaped(&line.pattern)) } }
                            }
                        }
                        @let more = never.count.saturating_sub(LINES);
                        @if more > 0 { p { "And " (grouped(more as u64)) " more." } }
                    }
                }
            }
            @for entries in history.map(|history| &history.entries).filter(|entries| !entries.is_empty()).take(1) {
                section {
                    h2 { (name) ": what went live" }
                    ul.reloads {
                        @for entry in entries.iter().rev().take(RELOADS) {
                            li {
                                (Escaped(&minute(&entry.when))) " " strong { (Escaped(&entry.outcome)) }
                                " (" (Escaped(&entry.cause)) ") "
                                code { (Escaped(entry.hash.as_deref().map(short_hash).unwrap_or_default())) }
                                br; (Escaped(entry.effect.as_deref().unwrap_or(&entry.message)))
                            }
                        }
                    }
                }
            }
        }
    }

    fn crawlers(&self, site: &SiteBoard) -> Markup {
        let caption = format!("Crawlers on {}, those with the most disallowed requests first", site.site);
        let columns = [
            Text("Crawler"),
            Text("Identity"),
            Text("Word"),
            Text("Last read"),
            Number("Allowed"),
            Number("Disallowed"),
            Text("Worst line"),
            Text("Trend"),
        ];
        table(Some(&caption), &columns, site.crawlers.iter().map(|crawler| self.crawler_row(crawler)))
    }

    fn crawler_row(&self, crawler: &CrawlerBoard) -> Vec<Markup> {
        let whose = [&*crawler.operator, &*crawler.category].into_iter().filter(|part| !part.is_empty());
        let name = html! {
            (Escaped(&crawler.crawler)) br; small { (Escaped(&whose.collect::<Vec<_>>().join(", "))) }
        };
        let word = match (&crawler.word, &crawler.no_word) {
            (Some(word), _) => html! { strong { (Escaped(word)) } },
            (None, why) => html! { small { (Escaped(why.as_deref().unwrap_or("none"))) } },
        };
        let last_read = crawler.last_read.as_ref().map_or_else(
            || html! { "none seen here" },
            |read| {
                let which = match read.is_newest {
                    Some(true) => "the live version",
                    Some(false) => "another version",
                    None => "",
                };
                let version = read.version.as_deref().map(short_hash).unwrap_or("of another server");
                html! { (Escaped(&minute(&read.when))) " " small { (which) } " " code { (Escaped(version)) } }
            },
        );
        let limited = crawler.done.limited;
        let allowed = html! {
            (grouped(crawler.allowed))
            @if limited > 0 { " " small { (grouped(limited)) " limited" } }
        };
        let worst_line = crawler.worst_line.as_ref().map_or_else(
            || html! { "none" },
            |line| html! { code { (line.line) ": Disallow: " (Escaped(&line.pattern)) } " " (counted(line.hits, "hit")) },
        );
        let trend = trend(&crawler.trend, self.board.step_seconds);
        let identity = html! { (Escaped(&crawler.identity)) };
        row(name, [identity, word, last_read, allowed, disallowed(crawler), worst_line, trend])
    }
}

/// Disallowed requests of a crawler, by what was done, and when.
fn disallowed(crawler: &CrawlerBoard) -> Markup {
    let done = [
        (crawler.done.refused, "refused"),
        (crawler.done.tagged, "tagged"),
        (crawler.done.observed, "observed"),
        (crawler.done.passed, "passed"),
    ];
    let done = done.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(*count)));
    let when = crawler.first_disallowed.as_deref().zip(crawler.last_disallowed.as_deref());
    let when = when.map(|(first, last)| format!("{} to {}", minute(first), minute(last))).unwrap_or_default();
    html! {
        (grouped(crawler.disallowed)) " (" (percent(crawler.disallowed, crawler.allowed + crawler.disallowed)) ") "
        small { (done.collect::<Vec<_>>().join(", ")) } " " small { (Escaped(&when)) }
    }
}

fn lines(site: &SiteBoard) -> Markup {
    let caption = format!("Lines of the robots.txt of {} by requests", site.site);
    let columns = [Text("Line"), Text("Version"), Number("Hits"), Text("By")];
    let rows = site.lines.iter().take(LINES).map(|line| {
        let name = match line.line {
            0 => html! { "other lines" },
            number => html! { code { (number) ": Disallow: " (Escaped(&line.pattern)) } },
        };
        let by =
            line.crawlers.iter().take(5).map(|by| format!("{} ({}) {}", by.crawler, by.identity, grouped(by.hits)));
        let by = by.collect::<Vec<_>>().join(", ");
        let version = html! { code { (Escaped(short_hash(&line.version))) } };
        row(name, [version, html! { (grouped(line.hits)) }, html! { (Escaped(&by)) }])
    });
    table(Some(&caption), &columns, rows)
}

/// The cells of a row. What a cell holds is one piece beside its head in a narrow window.
fn row<const N: usize>(name: Markup, cells: [Markup; N]) -> Vec<Markup> {
    let cells = cells.map(|cell| html! { span { (cell) } });
    [name].into_iter().chain(cells).collect()
}

/// Bars of requests, disallowed below allowed, with the numbers beside them.
fn trend(bars: &[TrendBar], step: u64) -> Markup {
    const HEIGHT: u64 = 24;
    let most = bars.iter().map(|bar| bar.allowed + bar.disallowed).max().unwrap_or(0);
    let last = bars.last().map_or(0, |bar| bar.allowed + bar.disallowed);
    let every = if step == DAY { "a day" } else { "an hour" };
    let text = format!("at most {} in {every}, {} in the last", grouped(most), grouped(last));
    let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / most.max(1)).max(1) };
    let parts = |(at, bar): (usize, &TrendBar)| {
        let (disallowed, allowed) = (height(bar.disallowed), height(bar.allowed));
        let top = HEIGHT.saturating_sub(disallowed + allowed);
        [("disallowed", at, HEIGHT - disallowed, disallowed), ("allowed", at, top, allowed)]
    };
    let parts = bars.iter().enumerate().flat_map(parts).filter(|(.., height)| *height > 0);
    let (width, height) = (bars.len() * 4, HEIGHT);
    html! {
        svg.trend viewBox={ "0 0 " (width) " " (height) } preserveAspectRatio="none" role="img" aria-label=(text) {
            @for (class, at, top, height) in parts { rect class=(class) x=(at * 4) y=(top) width="3" height=(height) {} }
        }
        " " small { (text) }
    }
}

/// Whether a robots.txt is that of a site, or of one of its hosts.
fn is_of(site: &str, name: &str) -> bool {
    name.strip_prefix(site).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn target(site: Option<&str>, span: BoardSpan, reload: PageReload) -> String {
    let site =
        site.map(|site| percent_encoding::utf8_percent_encode(site, percent_encoding::NON_ALPHANUMERIC).to_string());
    let site = site.map(|site| format!("&site={site}")).unwrap_or_default();
    let reload = if reload == PageReload::EveryMinute { "&reload=60" } else { "" };
    format!("/board?period={}{site}{reload}", span.as_str())
}

/// A moment as `2026-11-22 12:16`.
fn minute(written: &str) -> String {
    written.get(..16).unwrap_or(written).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::report::{LineBoard, NeverHit};

    fn page(board: &BoardReport) -> String {
        let status: StatusReport = serde_json::from_value(serde_json::json!({
            "version": "0", "pid": 1, "state": "serving", "started": "", "uptime_seconds": 0,
        }))
        .unwrap();
        let query = BoardQuery::default();
        BoardPage { status: &status, board, histories: &[], query: &query, reload: PageReload::Never }.into_string()
    }

    #[test]
    fn no_name_leaves_its_place() {
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
        let text = page(&BoardReport { notes: vec![HOSTILE.into()], sites: vec![site], ..BoardReport::default() });
        assert!(!text.contains("<script") && !text.contains('\u{202e}'), "{text}");
        assert!(text.contains("&lt;script&gt;alert(&#39;1&#39;)&lt;/script&gt;&quot;\\u{202e}"));
        assert!(!text.contains(" style=") && !text.contains("http://") && !text.contains("https://"), "{text}");
    }

    #[test]
    fn every_table_has_a_caption_and_every_page_one_heading() {
        let site = SiteBoard { site: "shop".into(), ..SiteBoard::default() };
        let text = page(&BoardReport { sites: vec![site], ..BoardReport::default() });
        assert_eq!(text.matches("<h1>").count(), 1);
        assert_eq!(text.matches("<table").count(), text.matches("<caption>").count());
    }
}
