//! The board as a page: no scripts, nothing of another host, legible in the dark and in the light, on a telephone too.
//!
//! Names come from clients and files; all of them go through [`Escaped`]. The style sheet is a path of its own, and every
//! bar is an attribute of SVG, so that the page needs no inline style.

use std::collections::BTreeMap;
use std::fmt;

use super::given_back;
use super::report::{BoardReport, CrawlerBoard, LineBoard, SiteBoard, TrendBar};
use super::view::{BoardQuery, BoardSpan};
use crate::date;
use crate::html::{
    ChartPart, CrawlerGroup, CrawlerLine, Escaped, STYLE, TimeChart, bars, cards, counted, crawler_lines, facts,
    grouped, moment, percent, value_of,
};
use crate::render::{shell_word, short_hash};
use crate::report::{HistoryReport, NextStep, RecordedReload, SiteReport, StatusReport, is_of};

/// Lines of a site that the page lists; `/board.json` has more.
const LINES: usize = 20;

/// Reloads of a site that the page lists, the newest first.
const RELOADS: usize = 10;

/// Sites that stand open; of more, each opens by itself.
const OPEN_SITES: usize = 3;

/// The page, from the same facts as `robotsd status` and `robotsd board` have.
pub(crate) struct BoardPage<'a> {
    pub(crate) status: &'a StatusReport,
    pub(crate) board: &'a BoardReport,
    /// Of the sites that are shown.
    pub(crate) histories: &'a [HistoryReport],
    pub(crate) query: &'a BoardQuery,
    /// The seconds after which the browser loads the page again by itself.
    pub(crate) reload: Option<&'static str>,
}

const fn in_words(span: BoardSpan) -> &'static str {
    match span {
        BoardSpan::Day => "24 hours",
        BoardSpan::Month => "30 days",
    }
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
        let to = board.to.replace(['T', 'Z'], " ");
        writeln!(
            f,
            "<p class=\"sub\">The last {}: {} to {} UTC<span class=\"age\"></span></p>",
            in_words(self.query.span),
            Escaped(&minute(&board.from)),
            Escaped(to.trim())
        )?;
        self.links(f)?;
        self.to_do(f)?;
        f.write_str(&self.figures())?;
        for note in &board.notes {
            writeln!(f, "<p class=\"note\">{}</p>", Escaped(note))?;
        }
        for site in &board.sites {
            self.site(f, site)?;
        }
        f.write_str("<footer>\n")?;
        if !board.sees_all {
            f.write_str(
                "<p>No crawler is said to ignore robots.txt, because not every read of it may be seen here: \
                 <code>sees_all = true</code> in <code>[board]</code> says that it is.</p>\n",
            )?;
        }
        f.write_str(
            "<p>For programs: <a href=\"/board.json\">JSON</a>, <a href=\"/board.csv\">CSV</a>.</p>\n</footer>\n</main>\n</body>\n</html>\n",
        )
    }
}

impl BoardPage<'_> {
    /// The same page over another time, or loaded again by itself.
    fn links(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (BoardQuery { site, span }, reload) = (self.query, self.reload);
        let site = site.as_deref();
        let spans = BoardSpan::ALL.map(|of| {
            (target(site, of, reload), if of == *span { " aria-current=\"page\"" } else { "" }, in_words(of))
        });
        let other = match reload {
            None => (target(site, *span, Some("5")), "", "Reload every 5 seconds"),
            Some(_) => (target(site, *span, None), "", "Stop reloading"),
        };
        let every = site.map(|_| (target(None, *span, reload), "", "Every site"));
        f.write_str("<nav aria-label=\"This page\"><ul class=\"links\">\n")?;
        for (target, current, what) in spans.into_iter().chain([other]).chain(every) {
            writeln!(f, "<li><a href=\"{}\"{current}>{what}</a></li>", Escaped(&target))?;
        }
        f.write_str("</ul></nav>\n")
    }

    /// The things that need an operator: what is so, why, and the command for it.
    fn to_do(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let status = self.status;
        let is_all_off = status.enforcement == "off";
        let mut tasks = Vec::new();
        let config = status.config.as_ref().map(|config| &*config.path);
        let task = |title: &str, reasons: &[String], steps: &[NextStep]| task(title, reasons, steps, config);
        let rejected = status.config.as_ref().and_then(|config| config.rejected.as_ref());
        let why = rejected.map(|rejected| format!("Since {}: {}", minute(&rejected.since), rejected.why));
        tasks.extend(rejected.map(|rejected| task("The config is rejected", why.as_slice(), &rejected.next)));
        let whole = if is_all_off { "Enforcement is off for every site" } else { "robotsd" };
        let reasons: Vec<_> = status.switch_trouble.iter().chain(&status.troubles).cloned().collect();
        if is_all_off || !reasons.is_empty() || !status.next.is_empty() {
            tasks.push(task(whole, &reasons, &status.next));
        }
        for site in &status.sites {
            let is_off = !is_all_off && site.enforcement == "off";
            let reasons = self.reasons(site);
            if is_off || !site.next.is_empty() || !site.troubles.is_empty() {
                let what = match (is_off, &site.pending) {
                    (true, _) => "enforcement is off",
                    (false, Some(_)) => "a version waits to be accepted",
                    (false, None) => "look at this",
                };
                tasks.push(task(&format!("{}: {what}", site.name), &reasons, &site.next));
            }
        }
        if tasks.is_empty() {
            return f.write_str("<p role=\"status\">Nothing needs your attention.</p>\n");
        }
        f.write_str("<section class=\"warn\" role=\"status\" aria-labelledby=\"waits\"><h2 id=\"waits\">To do</h2>\n")?;
        tasks.iter().try_for_each(|task| f.write_str(task))?;
        f.write_str("</section>\n")
    }

    /// The reasons why a site needs attention, and what would change.
    fn reasons(&self, site: &SiteReport) -> Vec<String> {
        let mut reasons: Vec<_> = site.switch_trouble.iter().cloned().collect();
        if let Some(pending) = &site.pending {
            let hash = short_hash(&pending.hash);
            let why = pending.objections.join("; ");
            reasons.push(format!("Version {hash} waits since {}: {why}.", minute(&pending.since)));
            let entries = self.histories.iter().filter(|history| is_of(&history.site, &site.name));
            let mut entries = entries.flat_map(|history| history.entries.iter().rev());
            let entry = entries.find(|entry| entry.hash.as_deref().is_some_and(|of| short_hash(of) == hash));
            reasons.extend(entry.and_then(|entry| entry.effect.as_ref()).map(|effect| format!("It changes: {effect}")));
        }
        reasons.extend(site.last_reload.iter().filter(|last| last.outcome == "kept").map(|last| last.message.clone()));
        reasons.extend(site.findings_summary.iter().filter(|_| site.findings.errors > 0).cloned());
        reasons.extend(site.troubles.iter().cloned());
        reasons
    }

    /// The sums over all sites that are shown.
    fn figures(&self) -> String {
        use CrawlerGroup::{AiAnswers, AiTraining, Impostors, SearchEngines};
        let sums = |is_meant: &dyn Fn(CrawlerGroup) -> bool| {
            let all = self.board.sites.iter().flat_map(|site| &site.crawlers);
            all.filter(|crawler| is_meant(group(crawler))).fold((0, 0, 0), |(requests, disallowed, refused), of| {
                (requests + of.requests(), disallowed + of.disallowed, refused + of.done.refused)
            })
        };
        let (requests, disallowed, refused) = sums(&|group| group != Impostors);
        let [engines, ai, impostors] =
            [&[SearchEngines][..], &[AiTraining, AiAnswers], &[Impostors]].map(|of| sums(&|group| of.contains(&group)));
        let note = |(requests, disallowed, _)| format!("{} disallowed", percent(disallowed, requests));
        let figures = [
            ("Requests by crawlers", requests, "without impostors".to_owned()),
            ("Disallowed", disallowed, format!("{} of those", percent(disallowed, requests))),
            ("Refused", refused, format!("{} of those disallowed", percent(refused, disallowed))),
            ("Of search engines", engines.0, note(engines)),
            ("Of AI crawlers", ai.0, note(ai)),
            ("Of impostors", impostors.0, format!("{} refused", grouped(impostors.2))),
        ];
        cards(figures.map(|(title, figure, note)| (title, grouped(figure), note)))
    }

    fn site(&self, f: &mut fmt::Formatter<'_>, site: &SiteBoard) -> fmt::Result {
        let reports: Vec<_> = self.status.sites.iter().filter(|report| is_of(&site.site, &report.name)).collect();
        let open = if self.board.sites.len() > OPEN_SITES { "" } else { " open" };
        let name = Escaped(&site.site);
        let now = site.traffic.map_or_else(|| "not known yet".to_owned(), |now| now.rate());
        let (badges, now) = (badges(&reports), Escaped(&now));
        writeln!(
            f,
            "<details class=\"site\"{open}><summary><h2>{name}</h2> {badges} <small>now {now}</small></summary>"
        )?;
        if let Some(mode) = reports.first().map(|report| &*report.mode).filter(|mode| *mode != "refuse") {
            f.write_str(&if_refused(mode, &site.crawlers))?;
        }
        if site.crawlers.is_empty() {
            f.write_str("<p>No crawler came in this time.</p>\n")?;
        } else {
            f.write_str(&self.chart(&site.crawlers).markup("Requests by crawlers"))?;
            let lines: Vec<_> = site.crawlers.iter().map(|crawler| self.line(crawler)).collect();
            f.write_str(&crawler_lines(&lines, "disallowed", &[]))?;
        }
        f.write_str(&given_back::section("What crawling gives back", &site.given_back))?;
        f.write_str(&self.facts_of_site(site, &reports))?;
        let live = reports.first().and_then(|report| report.hash.as_deref()).map(short_hash);
        if !site.lines.is_empty() {
            let lines: Vec<_> = site.lines.iter().take(LINES).map(|line| bar_of_line(line, live)).collect();
            writeln!(f, "<h3>Lines of robots.txt that disallowed</h3>\n{}", bars(&lines))?;
        }
        if let Some(never) = site.never_hit.as_ref().filter(|never| never.of > 0) {
            let more = never.count.saturating_sub(LINES) as u64;
            let more = (more > 0).then(|| format!("and {} more", grouped(more)));
            let lines = never.lines.iter().take(LINES).map(|line| format!("<code>{}</code>", disallow(line)));
            f.write_str(&opening(&never.sentence(), lines.chain(more)))?;
        }
        let history = self.histories.iter().find(|history| history.site == site.site && !history.entries.is_empty());
        if let Some(history) = history {
            let item = |entry: &RecordedReload| {
                let hash = entry.hash.as_deref().map(short_hash).unwrap_or_default();
                let (when, outcome) = (minute(&entry.when), Escaped(&entry.outcome));
                let (when, cause, hash) = (Escaped(&when), Escaped(&entry.cause), code(hash));
                let effect = Escaped(entry.effect.as_deref().unwrap_or(&entry.message));
                let by = entry.attribution();
                format!("{when} <strong>{outcome}</strong> ({cause}{}) {hash}<br>{effect}", Escaped(&by))
            };
            f.write_str(&opening("What went live", history.entries.iter().rev().take(RELOADS).map(item)))?;
        }
        f.write_str("</details>\n")
    }

    fn facts_of_site(&self, site: &SiteBoard, reports: &[&SiteReport]) -> String {
        let traffic = self.status.traffic.as_ref();
        let traffic = traffic.and_then(|traffic| traffic.sites.iter().find(|traffic| is_of(&site.site, &traffic.name)));
        let since_start = traffic.map(|traffic| &traffic.requests).map(|requests| {
            let share = percent(requests.refused, requests.total);
            format!("{} since the start, {} refused ({share})", grouped(requests.total), grouped(requests.refused))
        });
        let p99 = site.traffic.and_then(|now| now.decision_p99());
        let link = target(Some(&site.site), self.query.span, self.reload);
        let only = (self.board.sites.len() > 1).then(|| format!("<a href=\"{}\">only this site</a>", Escaped(&link)));
        // A directory has a version for each host.
        let one = reports.first().filter(|_| reports.len() == 1);
        let version = one.map(|report| {
            let since = report.since.as_deref().map(|since| format!(" since {}", minute(since))).unwrap_or_default();
            format!("{}{}", code(short_hash(report.hash.as_deref().unwrap_or("none"))), Escaped(&since))
        });
        let findings = one.map(|report| {
            let (errors, warnings) = (report.findings.errors as u64, report.findings.warnings as u64);
            format!("{}, {}", counted(errors, "error"), counted(warnings, "warning"))
        });
        facts([
            ("Requests", escaped(&since_start.unwrap_or_default())),
            ("p99 of a decision", escaped(p99.as_deref().unwrap_or("none timed yet"))),
            ("Version", version.unwrap_or_default()),
            ("Findings", findings.unwrap_or_default()),
            ("Show", only.unwrap_or_default()),
        ])
    }

    /// Requests of these crawlers over time.
    fn chart<'c>(&self, crawlers: impl IntoIterator<Item = &'c CrawlerBoard> + Clone) -> TimeChart {
        let step = i64::try_from(self.board.step_seconds).unwrap_or(i64::MAX);
        let first = humantime::parse_rfc3339_weak(&self.board.from).map_or(0, date::seconds);
        let columns = crawlers.clone().into_iter().map(|crawler| crawler.trend.len()).max().unwrap_or(0);
        let column = |at: usize| {
            let [mut engines, mut others] = [TrendBar::default(); 2];
            for crawler in crawlers.clone() {
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
        let parts: Vec<ChartPart> = vec![(group.disallowed(), crawler.disallowed), ("allowed", crawler.allowed)];
        let (name, details) = (crawler.crawler.clone(), self.facts_of_crawler(crawler));
        CrawlerLine { group, name, badge, parts, value, details }
    }

    fn facts_of_crawler(&self, crawler: &CrawlerBoard) -> String {
        let whose = [&*crawler.identity, &*crawler.operator, &*crawler.category].into_iter();
        let whose = whose.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(", ");
        let judgement = crawler.word.as_deref().or(crawler.no_word.as_deref()).unwrap_or("none");
        let last_read = crawler.last_read.as_ref().map_or_else(
            || "none seen here".to_owned(),
            |read| {
                let version = match (read.is_newest, read.version.as_deref()) {
                    (Some(true), _) => "the live version".to_owned(),
                    (_, Some(version)) => format!("version {}, not the live one", short_hash(version)),
                    (_, None) => "from another server".to_owned(),
                };
                format!("{}: {version}", minute(&read.when))
            },
        );
        let done = crawler.done;
        let count = |count| if count == 0 { String::new() } else { grouped(count) };
        let when = crawler.first_disallowed.as_deref().zip(crawler.last_disallowed.as_deref());
        let when = when.map(|(first, last)| format!("{} to {}", minute(first), minute(last))).unwrap_or_default();
        let worst = crawler.worst_line.as_ref();
        let worst = worst.map(|line| format!("<code>{}</code>, {}", disallow(line), counted(line.hits, "hit")));
        facts([
            ("Identity", escaped(&whose)),
            ("Judgement", escaped(judgement)),
            ("Last read of robots.txt", escaped(&last_read)),
            ("Allowed", grouped(crawler.allowed)),
            ("Limited", count(done.limited)),
            ("Disallowed", grouped(crawler.disallowed)),
            ("Refused", count(done.refused)),
            ("Tagged", count(done.tagged)),
            ("Observed", count(done.observed)),
            ("Exempt", count(done.passed)),
            ("Disallowed from", escaped(&when)),
            ("Most by line", worst.unwrap_or_default()),
            ("Over time", self.chart([crawler]).small()),
        ])
    }
}

/// The group of a crawler. Whatever an impostor claims to be, it is none.
fn group(crawler: &CrawlerBoard) -> CrawlerGroup {
    if crawler.identity == "impostor" { CrawlerGroup::Impostors } else { CrawlerGroup::of_category(&crawler.category) }
}

/// The states and the mode of a site, or of its hosts.
fn badges(reports: &[&SiteReport]) -> String {
    let mut states = BTreeMap::<_, usize>::new();
    for report in reports {
        let state = if report.enforcement == "off" { "off" } else { &*report.state };
        *states.entry(state).or_default() += 1;
    }
    let badge = |(state, count): (&str, usize)| {
        let (class, text) = match state {
            "live" => ("good", "live"),
            "gated" => ("gated", "a version waits"),
            "last-good" => ("gated", "last good version"),
            "none" => ("bad", "no robots.txt"),
            "off" => ("bad", "enforcement off"),
            other => ("soft", other),
        };
        let count = if reports.len() > 1 { format!("{count} ") } else { String::new() };
        format!("<em class=\"badge {class}\">{count}{}</em>", Escaped(text))
    };
    let mode = reports.first().map(|report| format!("<em class=\"badge soft\">{}</em>", Escaped(&report.mode)));
    states.into_iter().map(badge).chain(mode).collect::<Vec<_>>().join(" ")
}

/// The effect that the mode `refuse` would have had on requests that another mode let through.
fn if_refused(mode: &str, crawlers: &[CrawlerBoard]) -> String {
    let through = |is_engine: bool| {
        let of_kind = crawlers.iter().filter(move |of| (group(of) == CrawlerGroup::SearchEngines) == is_engine);
        of_kind.map(|crawler| crawler.done.observed + crawler.done.tagged).sum::<u64>()
    };
    let (others, engines) = (counted(through(false), "request"), through(true));
    let engines = match engines {
        0 => String::new(),
        engines => {
            format!(" {} more are by search engines: of those that people use they are only tagged.", grouped(engines))
        }
    };
    format!(
        "<p class=\"note\">The mode is <code>{}</code>, so disallowed requests go on. If this were <code>refuse</code>, {others} \
         would have been refused.{engines}</p>\n",
        Escaped(mode)
    )
}

/// Something to do: its title, why, and each step with the command that does it.
fn task(title: &str, reasons: &[String], steps: &[NextStep], config: Option<&str>) -> String {
    let mut out = format!("<h3>{}</h3>\n", Escaped(title));
    for reason in reasons {
        out += &format!("<p>{}</p>\n", Escaped(reason));
    }
    for step in steps {
        let of_config = config.filter(|_| step.is_for_running()).map(|config| ["--config", config]);
        let words = step.command.iter().map(String::as_str).chain(of_config.into_iter().flatten());
        let words: Vec<String> = words.map(shell_word).collect();
        out += &match words.is_empty() {
            true => format!("<p class=\"step\">{}</p>\n", Escaped(&step.what)),
            false => format!("<p class=\"step\">{}:</p>\n<pre>{}</pre>\n", Escaped(&step.what), code(&words.join(" "))),
        };
    }
    out
}

/// A line of a file, escaped.
fn disallow(line: &LineBoard) -> String {
    format!("{}: Disallow: {}", line.line, Escaped(&line.pattern))
}

fn bar_of_line(line: &LineBoard, live: Option<&str>) -> (String, Vec<ChartPart>, String) {
    let version = short_hash(&line.version);
    let of = if live == Some(version) { String::new() } else { format!(" <small>of {}</small>", Escaped(version)) };
    let name = if line.line == 0 { "other lines".to_owned() } else { format!("<code>{}</code>{of}", disallow(line)) };
    let by = line.crawlers.iter().take(5).map(|by| match &*by.identity {
        "impostor" => format!("impostors of {} {}", by.crawler, grouped(by.hits)),
        _ => format!("{} {}", by.crawler, grouped(by.hits)),
    });
    (name, vec![("disallowed", line.hits)], by.collect::<Vec<_>>().join(", "))
}

/// A line that opens to items, which are markup.
fn opening(title: &str, items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>\n")).collect();
    let title = Escaped(title);
    match items.is_empty() {
        true => format!("<p>{title}</p>\n"),
        false => format!("<details><summary>{title}</summary>\n<ul class=\"items\">\n{items}</ul></details>\n"),
    }
}

fn escaped(text: &str) -> String {
    Escaped(text).to_string()
}

fn code(text: &str) -> String {
    format!("<code>{}</code>", Escaped(text))
}

fn target(site: Option<&str>, span: BoardSpan, reload: Option<&str>) -> String {
    let site =
        site.map(|site| percent_encoding::utf8_percent_encode(site, percent_encoding::NON_ALPHANUMERIC).to_string());
    let site = site.map(|site| format!("&site={site}")).unwrap_or_default();
    let reload = reload.map(|seconds| format!("&reload={seconds}")).unwrap_or_default();
    format!("/board?period={}{site}{reload}", span.as_str())
}

/// A moment as `2026-11-22 12:16`.
fn minute(written: &str) -> String {
    written.get(..16).unwrap_or(written).replace('T', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::board::report::NeverHit;
    use crate::board::row::Done;

    fn page(board: &BoardReport) -> String {
        let status: StatusReport = serde_json::from_value(serde_json::json!({
            "version": "0", "pid": 1, "state": "serving", "started": "", "uptime_seconds": 0,
        }))
        .unwrap();
        let query = BoardQuery::default();
        BoardPage { status: &status, board, histories: &[], query: &query, reload: None }.to_string()
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

    /// Red is for what a search engine is kept from; what keeps AI crawlers out is meant.
    #[test]
    fn search_engines_stand_apart_from_ai_crawlers_and_impostors_from_both() {
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
        let said = if_refused("observe", &crawlers);
        assert!(said.contains("8 requests would have been refused. 4 more are by search engines"), "{said}");
        let site = SiteBoard { site: "shop".into(), crawlers, ..SiteBoard::default() };
        let text = page(&BoardReport { sites: vec![site], ..BoardReport::default() });
        let groups: Vec<_> =
            text.split("<h3>").skip(1).map(|part| (&part[..6], part.contains("class=\"engine\""))).collect();
        assert_eq!(groups, [("Search", true), ("AI tra", false), ("Impost", false)]);
        assert_eq!(text.matches("<h1>").count(), 1);
    }

    #[test]
    fn a_site_whose_version_waits_looks_unlike_one_that_is_live() {
        let report = |state: &str, enforcement: &str| SiteReport {
            state: state.into(),
            enforcement: enforcement.into(),
            mode: "observe".into(),
            ..SiteReport::default()
        };
        let (live, gated, off) = (report("live", "on"), report("gated", "on"), report("live", "off"));
        assert!(badges(&[&live]).starts_with("<em class=\"badge good\">live</em>"));
        assert!(badges(&[&gated]).starts_with("<em class=\"badge gated\">a version waits</em>"));
        let of_hosts = badges(&[&live, &gated, &off, &live]);
        assert!(
            ["1 a version waits<", "2 live<", "1 enforcement off<"].iter().all(|part| of_hosts.contains(part)),
            "{of_hosts}"
        );
    }
}
