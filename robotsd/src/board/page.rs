//! The board as a page: no scripts, nothing of another host, legible in the dark and in the light, on a telephone too.
//!
//! Names come from clients and files; all of them go through [`Escaped`]. The style sheet is a path of its own, and every
//! bar is an attribute of SVG, so that the page needs no inline style.

use std::fmt::{self, Write as _};

use super::given_back;
use super::report::{BoardReport, CrawlerBoard, LineBoard, NeverHit, SiteBoard, TrendBar};
use super::row::DAY;
use super::view::{BoardQuery, BoardSpan};
use crate::html::{Escaped, STYLE, counted, grouped, percent};
use crate::render::{shell_word, short_hash};
use crate::report::{HistoryReport, NextStep, SiteReport, StatusReport, is_of};

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

impl fmt::Display for BoardPage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>Board: robotsd</title>\n\
             <link rel=\"icon\" href=\"data:,\">\n<link rel=\"stylesheet\" href=\"/board.css\">\n</head>\n<body>\n<main>\n\
             <h1>What crawlers do here</h1>\n",
        )?;
        let board = self.board;
        writeln!(f, "<p class=\"sub\">{} to {} UTC</p>", Escaped(&minute(&board.from)), Escaped(&minute(&board.to)))?;
        self.links(f)?;
        self.banner(f)?;
        for note in &board.notes {
            writeln!(f, "<p class=\"note\">{}</p>", Escaped(note))?;
        }
        if !board.sees_all {
            f.write_str(
                "<p class=\"note\">No crawler is said to ignore robots.txt, because not every read of it may be seen here: \
                 <code>sees_all = true</code> in <code>[board]</code> says that it is.</p>\n",
            )?;
        }
        self.sites(f)?;
        for site in &board.sites {
            self.site(f, site)?;
        }
        f.write_str("</main>\n</body>\n</html>\n")
    }
}

impl BoardPage<'_> {
    /// The same page over another time, or loaded again by itself.
    fn links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (BoardQuery { site, span }, reload) = (self.query, self.reload);
        let site = site.as_deref();
        let spans = BoardSpan::ALL.map(|of| {
            let what = match of {
                BoardSpan::Day => "24 hours",
                BoardSpan::Month => "30 days",
            };
            (target(site, of, reload), if of == *span { " aria-current=\"page\"" } else { "" }, what)
        });
        let other = match reload {
            PageReload::Never => (target(site, *span, PageReload::EveryMinute), "", "Reload every minute"),
            PageReload::EveryMinute => (target(site, *span, PageReload::Never), "", "Stop reloading"),
        };
        let every = site.map(|_| (target(None, *span, reload), "", "Every site"));
        f.write_str("<nav aria-label=\"This page\"><ul class=\"links\">\n")?;
        for (target, current, what) in spans.into_iter().chain([other]).chain(every) {
            writeln!(f, "<li><a href=\"{}\"{current}>{what}</a></li>", Escaped(&target))?;
        }
        f.write_str("</ul></nav>\n")
    }

    /// What an operator has to do, with the command for it.
    fn banner(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status;
        let rejected = status.config.as_ref().and_then(|config| config.rejected.as_ref());
        let mut paragraphs = Vec::new();
        if status.enforcement == "off" {
            paragraphs.push("<strong>Enforcement is off for every site.</strong>".to_owned());
        } else {
            let off = status.sites.iter().filter(|site| site.enforcement == "off");
            let of =
                |site: &SiteReport| format!("<strong>Enforcement is off for site {}.</strong>", Escaped(&site.name));
            paragraphs.extend(off.map(of));
        }
        paragraphs.extend(rejected.map(|rejected| {
            let (since, why) = (Escaped(&rejected.since), Escaped(&rejected.why));
            format!("<strong>The config is rejected</strong> since {since}: {why}")
        }));
        paragraphs.extend(status.troubles.iter().map(|trouble| escaped(trouble)));
        let of_all = rejected.iter().flat_map(|rejected| &rejected.next).chain(&status.next);
        paragraphs.extend(of_all.map(|step| to_do("", step)));
        for site in &status.sites {
            let of = format!("Site {}: ", site.name);
            paragraphs.extend(site.next.iter().map(|step| to_do(&of, step)));
        }
        if paragraphs.is_empty() {
            return f.write_str("<p role=\"status\">Nothing needs your attention.</p>\n");
        }
        f.write_str("<section class=\"warn\" role=\"status\" aria-labelledby=\"waits\"><h2 id=\"waits\">To do</h2>\n")?;
        paragraphs.iter().try_for_each(|paragraph| writeln!(f, "<p>{paragraph}</p>"))?;
        f.write_str("</section>\n")
    }

    fn sites(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("<section><h2>Sites</h2>\n")?;
        let is_shown = |site: &&SiteReport| self.query.site.as_ref().is_none_or(|wanted| is_of(wanted, &site.name));
        let shown = self.status.sites.iter().filter(is_shown);
        table(f, "Sites, with requests since the start of the process", shown, |site| self.cells_of_site(site))?;
        f.write_str("</section>\n")
    }

    fn cells_of_site(&self, site: &SiteReport) -> [Cell; 9] {
        let traffic = self.status.traffic.as_ref();
        let traffic = traffic.and_then(|traffic| traffic.sites.iter().find(|traffic| is_of(&traffic.name, &site.name)));
        let requests = traffic.map(|traffic| &traffic.requests);
        let (total, refused) = requests.map_or((0, 0), |requests| (requests.total, requests.refused));
        let mode = if site.enforcement == "off" { "off by the switch" } else { &*site.mode };
        let now = self.board.sites.iter().find(|board| is_of(&board.site, &site.name));
        let now = now.and_then(|board| board.traffic);
        let p99 = now.and_then(|now| now.decision_p99());
        let (errors, warnings) = (site.findings.errors as u64, site.findings.warnings as u64);
        let link = target(Some(site.name.split('/').next().unwrap_or_default()), self.query.span, self.reload);
        [
            text("Site", format!("<a href=\"{}\">{}</a>", Escaped(&link), Escaped(&site.name))),
            text("State", escaped(&site.state)),
            text("Mode", escaped(mode)),
            text("Version", code(short_hash(site.hash.as_deref().unwrap_or("none")))),
            text("Findings", format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"))),
            number("Requests", grouped(total)),
            number("Refused", format!("{} ({})", grouped(refused), Escaped(&percent(refused, total)))),
            number("Now", escaped(&now.map_or_else(|| "not known yet".to_owned(), |now| now.rate()))),
            number("p99 of a decision", escaped(p99.as_deref().unwrap_or("none timed yet"))),
        ]
    }

    fn site(&self, f: &mut fmt::Formatter<'_>, site: &SiteBoard) -> fmt::Result {
        writeln!(f, "<section><h2>{}: crawlers</h2>", Escaped(&site.site))?;
        if site.crawlers.is_empty() {
            f.write_str("<p>No crawler came in this time.</p>\n")?;
        } else {
            let caption = format!("Crawlers on {}, those with the most disallowed requests first", site.site);
            table(f, &caption, &site.crawlers, |crawler| self.cells_of_crawler(crawler))?;
            f.write_str("\n")?;
        }
        f.write_str("</section>\n")?;
        f.write_str(&given_back::section(&format!("{}: what crawling gives back", site.site), &site.given_back))?;
        if !site.lines.is_empty() {
            writeln!(f, "<section><h2>{}: lines that disallowed</h2>", Escaped(&site.site))?;
            let caption = format!("Lines of the robots.txt of {} by requests", site.site);
            table(f, &caption, site.lines.iter().take(LINES), cells_of_line)?;
            f.write_str("</section>\n")?;
        }
        if let Some(never) = site.never_hit.as_ref().filter(|never| never.of > 0) {
            never_hit(f, &site.site, never)?;
        }
        if let Some(history) =
            self.histories.iter().find(|history| history.site == site.site && !history.entries.is_empty())
        {
            writeln!(f, "<section><h2>{}: what went live</h2>\n<ul class=\"reloads\">", Escaped(&site.site))?;
            for entry in history.entries.iter().rev().take(RELOADS) {
                let hash = entry.hash.as_deref().map(short_hash).unwrap_or_default();
                let (when, outcome) = (minute(&entry.when), Escaped(&entry.outcome));
                let (when, cause, hash) = (Escaped(&when), Escaped(&entry.cause), code(hash));
                let effect = Escaped(entry.effect.as_deref().unwrap_or(&entry.message));
                write!(f, "<li>{when} <strong>{outcome}</strong> ({cause}) {hash}<br>{effect}")?;
                f.write_str("</li>\n")?;
            }
            f.write_str("</ul></section>\n")?;
        }
        Ok(())
    }

    fn cells_of_crawler(&self, crawler: &CrawlerBoard) -> [Cell; 8] {
        let whose = [&*crawler.operator, &*crawler.category].into_iter().filter(|part| !part.is_empty());
        let whose = whose.collect::<Vec<_>>().join(", ");
        let head = format!("{}<br><small>{}</small>", Escaped(&crawler.crawler), Escaped(&whose));
        let word = match (&crawler.word, &crawler.no_word) {
            (Some(word), _) => format!("<strong>{}</strong>", Escaped(word)),
            (None, why) => format!("<small>{}</small>", Escaped(why.as_deref().unwrap_or("none"))),
        };
        let last_read = crawler.last_read.as_ref().map_or_else(
            || "none seen here".to_owned(),
            |read| {
                let which = match read.is_newest {
                    Some(true) => "the live version",
                    Some(false) => "another version",
                    None => "",
                };
                let version = read.version.as_deref().map(short_hash).unwrap_or("of another server");
                format!("{} <small>{which}</small> {}", Escaped(&minute(&read.when)), code(version))
            },
        );
        let limited = match crawler.done.limited {
            0 => String::new(),
            limited => format!(" <small>{} limited</small>", grouped(limited)),
        };
        let share = percent(crawler.disallowed, crawler.allowed + crawler.disallowed);
        let done = [
            (crawler.done.refused, "refused"),
            (crawler.done.tagged, "tagged"),
            (crawler.done.observed, "observed"),
            (crawler.done.passed, "passed"),
        ];
        let done =
            done.iter().filter(|(count, _)| *count > 0).map(|(count, what)| format!("{} {what}", grouped(*count)));
        let done = done.collect::<Vec<_>>().join(", ");
        let when = crawler.first_disallowed.as_deref().zip(crawler.last_disallowed.as_deref());
        let when = when.map(|(first, last)| format!("{} to {}", minute(first), minute(last))).unwrap_or_default();
        let (disallowed, share) = (grouped(crawler.disallowed), Escaped(&share));
        let worst_line = crawler.worst_line.as_ref().map_or_else(
            || "none".to_owned(),
            |line| format!("<code>{}</code> {}", disallow(line), counted(line.hits, "hit")),
        );
        [
            text("Crawler", head),
            text("Identity", escaped(&crawler.identity)),
            text("Word", word),
            text("Last read", last_read),
            number("Allowed", format!("{}{limited}", grouped(crawler.allowed))),
            number(
                "Disallowed",
                format!("{disallowed} ({share}) <small>{}</small> <small>{}</small>", Escaped(&done), Escaped(&when)),
            ),
            text("Worst line", worst_line),
            text("Trend", trend(&crawler.trend, self.board.step_seconds)),
        ]
    }
}

/// A step, with the command that does it.
fn to_do(of: &str, step: &NextStep) -> String {
    let what = format!("{}{}", Escaped(of), Escaped(&step.what));
    let words: Vec<String> = step.command.iter().map(|word| shell_word(word)).collect();
    if words.is_empty() { what } else { format!("{what}: {}", code(&words.join(" "))) }
}

/// A line of a file, escaped.
fn disallow(line: &LineBoard) -> String {
    format!("{}: Disallow: {}", line.line, Escaped(&line.pattern))
}

fn cells_of_line(line: &LineBoard) -> [Cell; 4] {
    let head = if line.line == 0 { "other lines".to_owned() } else { format!("<code>{}</code>", disallow(line)) };
    let by = line.crawlers.iter().take(5).map(|by| format!("{} ({}) {}", by.crawler, by.identity, grouped(by.hits)));
    let by = by.collect::<Vec<_>>().join(", ");
    [
        text("Line", head),
        text("Version", code(short_hash(&line.version))),
        number("Hits", grouped(line.hits)),
        text("By", escaped(&by)),
    ]
}

/// The lines that may not be needed any more.
fn never_hit(f: &mut fmt::Formatter<'_>, site: &str, never: &NeverHit) -> fmt::Result {
    writeln!(f, "<section><h2>{}: lines never hit</h2>\n<p>{}</p>", Escaped(site), Escaped(&never.sentence()))?;
    if !never.lines.is_empty() {
        f.write_str("<ul class=\"lines\">\n")?;
        for line in never.lines.iter().take(LINES) {
            writeln!(f, "<li><code>{}</code></li>", disallow(line))?;
        }
        f.write_str("</ul>\n")?;
        let more = never.count.saturating_sub(LINES);
        if more > 0 {
            writeln!(f, "<p>And {} more.</p>", grouped(more as u64))?;
        }
    }
    f.write_str("</section>\n")
}

/// Bars of requests, disallowed below allowed, with the numbers beside them.
fn trend(bars: &[TrendBar], step: u64) -> String {
    const HEIGHT: u64 = 24;
    let most = bars.iter().map(|bar| bar.allowed + bar.disallowed).max().unwrap_or(0);
    let every = if step == DAY { "a day" } else { "an hour" };
    let last = bars.last().map_or(0, |bar| bar.allowed + bar.disallowed);
    let text = escaped(&format!("at most {} in {every}, {} in the last", grouped(most), grouped(last)));
    let width = bars.len() * 4;
    let mut out = format!(
        "<svg class=\"trend\" viewBox=\"0 0 {width} {HEIGHT}\" preserveAspectRatio=\"none\" role=\"img\" aria-label=\"{text}\">"
    );
    for (at, bar) in bars.iter().enumerate() {
        let height = |count: u64| if count == 0 { 0 } else { (count * HEIGHT / most.max(1)).max(1) };
        let (disallowed, allowed) = (height(bar.disallowed), height(bar.allowed));
        for (class, top, height) in [
            ("disallowed", HEIGHT - disallowed, disallowed),
            ("allowed", HEIGHT.saturating_sub(disallowed + allowed), allowed),
        ] {
            if height > 0 {
                let x = at * 4;
                // Writing to a string does not fail.
                let _ = write!(out, "<rect class=\"{class}\" x=\"{x}\" y=\"{top}\" width=\"3\" height=\"{height}\"/>");
            }
        }
    }
    out + "</svg> <small>" + &text + "</small>"
}

/// A cell of a table, with the head of its column.
struct Cell {
    column: &'static str,
    class: &'static str,
    markup: String,
}

fn text(column: &'static str, markup: String) -> Cell {
    Cell { column, class: "", markup }
}

fn number(column: &'static str, markup: String) -> Cell {
    Cell { column, class: " class=\"n\"", markup }
}

/// A table with a row for each value. It has the columns of any, whether there is one or not.
fn table<'v, V: Default + 'v, const N: usize>(
    f: &mut fmt::Formatter<'_>,
    caption: &str,
    values: impl IntoIterator<Item = &'v V>,
    cells: impl Fn(&V) -> [Cell; N],
) -> fmt::Result {
    write!(f, "<table class=\"stacked\"><caption>{}</caption><thead><tr>", Escaped(caption))?;
    for Cell { column, class, .. } in cells(&V::default()) {
        write!(f, "<th scope=\"col\"{class}>{column}</th>")?;
    }
    f.write_str("</tr></thead>\n<tbody>\n")?;
    for value in values {
        for (at, Cell { column, class, markup }) in cells(value).into_iter().enumerate() {
            match at {
                0 => write!(f, "<tr><th scope=\"row\">{markup}</th>")?,
                _ => write!(f, "<td{class} data-label=\"{column}\"><span>{markup}</span></td>")?,
            }
        }
        f.write_str("</tr>\n")?;
    }
    f.write_str("</tbody></table>")
}

fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", Escaped(text))
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

    fn page(board: &BoardReport) -> String {
        let status: StatusReport = serde_json::from_value(serde_json::json!({
            "version": "0", "pid": 1, "state": "serving", "started": "", "uptime_seconds": 0,
        }))
        .unwrap();
        let query = BoardQuery::default();
        BoardPage { status: &status, board, histories: &[], query: &query, reload: PageReload::Never }.to_string()
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
