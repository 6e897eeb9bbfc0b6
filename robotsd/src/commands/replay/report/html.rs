//! The report as one page with charts: no scripts, nothing to load, legible in the dark and in the light.
//!
//! Logs hold text of unknown clients; all of it goes through [`Escaped`]. Charts are plain HTML: they are as wide as the page, and
//! their text is as large as any other. Colours come from the page's style sheet, so that they follow its theme. Each number is
//! text, or the title of its bar.

use maud::{Markup, PreEscaped, html};

use super::contents::{CrawlerRow, HourRow, Report, log_gaps, other_requests};
use super::rows::{COUNTED_TOGETHER, RuleRow, RuleRows};
use crate::commands::replay::tally::HourCounts;
use crate::html::{
    Column::{self, Number, Text},
    Escaped, STYLE, counted, grouped, moment, percent, period, table, table_head,
};

/// Crawlers in a chart.
const CHARTED: usize = 20;

/// Columns of the chart over time, at most.
const COLUMNS: i64 = 72;

/// Parts of a bar or column: the class that colours it, and its requests.
type Parts<const N: usize> = [(&'static str, u64); N];

pub(super) fn page(report: &Report) -> Markup {
    let title = match &report.against {
        Some(against) => format!("changing {} to {against}", report.robots),
        None => report.robots.clone(),
    };
    html! {
        (PreEscaped("<!doctype html>\n"))
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                title { "Replay: " (Escaped(&title)) }
                style { (PreEscaped(STYLE)) }
            }
            "\n"
            body {
                main {
                    (head(report, &title))
                    (engines(report))
                    (suspects(report))
                    (suspect_paths(report))
                    (senders(report))
                    (charts(report))
                    (crawlers(report))
                    (paces(report))
                    (impostors(report))
                    (foot(report))
                }
            }
        }
        "\n"
    }
}

fn head(report: &Report, title: &str) -> Markup {
    let (requests, outcomes) = (report.totals.crawler_requests, &report.totals.outcomes);
    let share = |part, whole, of: &str| format!("{} {of}", percent(part, whole));
    let impostors = report.identity.split.impostors.requests;
    html! {
        h1 { "What " (Escaped(title)) " would have done" }
        p.sub {
            (counted(report.requests, "request"))
            @if let (Some(first), Some(last)) = (report.first, report.last) { ", " (period(first, last)) }
            ", from " (Escaped(&report.logs.join(", ")))
        }
        div.cards {
            (card("Requests by crawlers", requests, &share(requests, report.requests, "of all requests")))
            (card("Disallowed", outcomes.disallowed, &share(outcomes.disallowed, requests, "of those")))
            @if report.is_compared() {
                (card("Shut out by the change", outcomes.shut, "were allowed before"))
                (card("Let in by the change", outcomes.opened, "were disallowed before"))
            } @else {
                (card("Allowed", outcomes.allowed, &share(outcomes.allowed, requests, "of those")))
            }
            @if outcomes.not_blamed > 0 {
                (card("Counted apart", outcomes.not_blamed, "came before --effective-from"))
            }
            @if impostors > 0 { (card("Requests by impostors", impostors, "under a crawler's name, counted apart")) }
            (card("Suspected people", report.suspect_human_count as u64, "under a crawler's name"))
        }
        @for gap in log_gaps(report) { p.warn { (Escaped(&gap)) "." } }
    }
}

fn card(title: &str, number: u64, note: &str) -> Markup {
    html! {
        div.card { span { (title) } b { (grouped(number)) } small { (Escaped(note)) } }
    }
}

fn engines(report: &Report) -> Markup {
    let shut_out = |row: &&CrawlerRow| report.search_engines_shut_out.contains(&row.name);
    html! {
        @if !report.search_engines_shut_out.is_empty() {
            section.warn {
                h2 { "Search engines are shut out" }
                p {
                    "The change disallows paths that these search engines requested. Such pages may leave the index."
                }
                ul {
                    @for row in report.crawlers.iter().filter(shut_out) {
                        li { (Escaped(&row.name)) ": " (counted(row.counts.outcomes.shut, "request")) " shut out" }
                    }
                }
            }
        }
    }
}

fn suspects(report: &Report) -> Markup {
    let columns = [Text("Network"), Text("Claims to be"), Number("Disallowed"), Text("Such as")];
    let rows = report.suspect_humans.iter().map(|suspect| {
        vec![
            html! { (Escaped(&suspect.address)) },
            html! { (Escaped(&suspect.claims)) },
            html! { (grouped(suspect.disallowed)) },
            html! { code { (Escaped(&suspect.target)) } },
        ]
    });
    let more = report.suspect_human_count.saturating_sub(report.suspect_humans.len());
    html! {
        @if !report.suspect_humans.is_empty() {
            section.warn {
                h2 { "These may be people" }
                p {
                    "They have a crawler's name, but fetch styles, scripts and pictures with the site's own Referer, as "
                    "browsers do. Some crawlers that render pages do so too: look before you refuse them."
                }
                (table(None, &columns, rows))
                @if more > 0 { p { "and " (counted(more as u64, "more visitor")) } }
            }
        }
    }
}

/// Crawlers whose claims fail because of the path, as it seems.
fn suspect_paths(report: &Report) -> Markup {
    let suspects = &report.identity.suspect_paths;
    html! {
        @if !suspects.is_empty() {
            section.warn {
                h2 { "Suspect path" }
                p {
                    "These have no address of their operator, and nothing shows that the log has the addresses of clients. A "
                    "proxy that is missing in " code { "trusted_proxies" } " does that, so they count as claimed, not as "
                    "impostors."
                }
                ul {
                    @for suspect in suspects {
                        li {
                            (Escaped(&suspect.crawler)) ": " (counted(suspect.requests, "request"))
                            " from " (Escaped(&suspect.addresses.join(", ")))
                            @if suspect.other_addresses > 0 { ", …" }
                        }
                    }
                }
            }
        }
    }
}

/// What is verified, claimed and an impostor's, and why claims are no more than that.
fn senders(report: &Report) -> Markup {
    let split = &report.identity.split;
    let rows = [
        ("Verified crawlers", split.verified),
        ("Only claimed", split.claimed),
        ("Impostors, counted in no other table", split.impostors),
    ];
    let rows = rows.into_iter().map(|(name, share)| {
        vec![html! { (name) }, html! { (grouped(share.requests)) }, html! { (grouped(share.disallowed)) }]
    });
    let reasons = report.identity.reasons();
    html! {
        @if let Some(evidence) = report.identity.evidence() {
            section {
                h2 { "Who sent them" }
                p.sub { "As far as claims can be checked " (Escaped(&evidence)) "." }
                (table(None, &[Text("Sender"), Number("Requests"), Number("Disallowed")], rows))
                @if !reasons.is_empty() {
                    p.sub { "Only claimed, because:" }
                    ul {
                        @for (reason, requests) in reasons {
                            li { (Escaped(&reason)) ": " (counted(requests, "request")) }
                        }
                    }
                }
            }
        }
    }
}

fn charts(report: &Report) -> Markup {
    let disallowed = format!("disallowed by {}", report.against.as_ref().unwrap_or(&report.robots));
    let early = (report.totals.outcomes.not_blamed > 0).then_some(("early", "disallowed, but before --effective-from"));
    let parts = [("disallowed", disallowed.as_str())].into_iter().chain(early).chain([("allowed", "allowed")]);
    html! {
        @if !report.crawlers.is_empty() {
            @if report.is_compared() { (change(report)) }
            section {
                h2 { "By crawler" }
                (key(parts))
                (by_crawler(&report.crawlers.iter().collect::<Vec<_>>(), |row| row.counts.requests, crawler_bar))
            }
            @if !report.is_compared() && !report.hours.is_empty() {
                section {
                    h2 { "Over time" }
                    (hours(&report.hours))
                }
            }
        }
    }
}

/// What the change changes, by crawler and over time.
fn change(report: &Report) -> Markup {
    let count = |row: &CrawlerRow| row.counts.outcomes.shut + row.counts.outcomes.opened;
    let changed: Vec<_> = report.crawlers.iter().filter(|row| count(row) > 0).collect();
    let over_time =
        [("engine", "search engines shut out"), ("disallowed", "other crawlers shut out"), ("opened", "let in")];
    html! {
        @if changed.is_empty() {
            section {
                h2 { "The change" }
                p { "No request is judged differently." }
            }
        } @else {
            section {
                h2 { "The change, by crawler" }
                (key([("disallowed", "shut out"), ("opened", "let in")]))
                (by_crawler(&changed, count, change_bar))
            }
            @if !report.hours.is_empty() {
                section {
                    h2 { "The change, over time" }
                    (key(over_time))
                    (changed_hours(&report.hours))
                }
            }
        }
    }
}

/// What the colours of a chart mean.
fn key<'a>(parts: impl IntoIterator<Item = (&'a str, &'a str)>) -> Markup {
    html! {
        p.key { @for (class, meaning) in parts { span { i class=(class) {} (Escaped(meaning)) } " " } }
    }
}

/// A bar for each of the first crawlers, and the count of the others.
fn by_crawler(rows: &[&CrawlerRow], count: fn(&CrawlerRow) -> u64, bar: fn(&CrawlerRow, u64) -> Markup) -> Markup {
    let (shown, rest) = rows.split_at(rows.len().min(CHARTED));
    let most = shown.iter().map(|row| count(row)).max().unwrap_or(0);
    let requests = rest.iter().map(|row| count(row)).sum();
    html! {
        ul.bars {
            "\n"
            @for row in shown { (bar(row, most)) "\n" }
        }
        @if !rest.is_empty() {
            p.sub { "and " (counted(rest.len() as u64, "more crawler")) " with " (counted(requests, "request")) }
        }
    }
}

/// Requests of a crawler, allowed and disallowed.
fn crawler_bar(row: &CrawlerRow, most: u64) -> Markup {
    let (requests, outcomes) = (row.counts.requests, &row.counts.outcomes);
    let mut value = counted(requests, "request");
    if outcomes.disallowed > 0 {
        value += &format!(", {} disallowed", percent(outcomes.disallowed, requests));
    }
    let parts = [("disallowed", outcomes.disallowed), ("early", outcomes.not_blamed), ("allowed", outcomes.allowed)];
    bar(&row.name, parts, most, &value)
}

/// Requests of a crawler that a change shuts out and lets in.
fn change_bar(row: &CrawlerRow, most: u64) -> Markup {
    let (shut, opened) = (row.counts.outcomes.shut, row.counts.outcomes.opened);
    let value = format!("{} shut out, {} let in", grouped(shut), grouped(opened));
    bar(&row.name, [("disallowed", shut), ("opened", opened)], most, &value)
}

fn bar<const N: usize>(name: &str, parts: Parts<N>, most: u64, value: &str) -> Markup {
    html! {
        li {
            span { (Escaped(name)) }
            span.bar {
                @for (class, count) in parts.into_iter().filter(|(_, count)| *count > 0) {
                    i class=(class) style={ "width:" (of_hundred(count, most)) } {}
                }
            }
            span.value { (Escaped(value)) }
        }
    }
}

/// Requests of crawlers over time, allowed and disallowed, as columns.
fn hours(hours: &[HourRow]) -> Markup {
    let parts =
        |sum: &HourCounts| [("disallowed", sum.disallowed), ("early", sum.not_blamed), ("allowed", sum.allowed)];
    let title = |sum: &HourCounts| format!("{} allowed, {} disallowed", grouped(sum.allowed), grouped(sum.disallowed));
    columns(hours, "Requests of crawlers", parts, title)
}

/// Requests of crawlers over time that a change shuts out and lets in, as columns; those of search engines at the bottom.
fn changed_hours(hours: &[HourRow]) -> Markup {
    let parts = |sum: &HourCounts| {
        let others = sum.shut - sum.shut_search_engines;
        [("engine", sum.shut_search_engines), ("disallowed", others), ("opened", sum.opened)]
    };
    let title = |sum: &HourCounts| {
        let engines = grouped(sum.shut_search_engines);
        format!("{} shut out, {engines} of them of search engines, {} let in", grouped(sum.shut), grouped(sum.opened))
    };
    columns(hours, "Requests that the change shuts out or lets in", parts, title)
}

fn columns<const N: usize>(
    hours: &[HourRow],
    label: &str,
    parts: impl Fn(&HourCounts) -> Parts<N>,
    title: impl Fn(&HourCounts) -> String,
) -> Markup {
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else { return html! {} };
    let (first, last) = (first.start, last.start);
    let step = (((last - first) / 3600 + 1) + COLUMNS - 1) / COLUMNS * 3600;
    let mut sums = vec![HourCounts::default(); usize::try_from((last - first) / step + 1).unwrap_or(1)];
    for hour in hours {
        if let Some(sum) = usize::try_from((hour.start - first) / step).ok().and_then(|at| sums.get_mut(at)) {
            sum.add(hour.counts);
        }
    }
    let height = |sum: &HourCounts| parts(sum).iter().map(|(_, count)| count).sum::<u64>();
    let most = sums.iter().map(height).max().unwrap_or(0);
    let every = if step == 3600 { "hour".to_owned() } else { format!("{} hours", step / 3600) };
    let (from, to) = (moment(first), moment(last + 3600));
    let label = format!("{label}, from {from} to {to} UTC, at most {} in {every}", grouped(most));
    html! {
        figure {
            p.most { (counted(most, "request")) " in the busiest " (every) }
            div.columns role="img" aria-label=(label) {
                "\n"
                @for (at, sum) in sums.iter().enumerate() {
                    span title={ (moment(first + step * at as i64)) " UTC: " (title(sum)) } {
                        @for (class, count) in parts(sum).into_iter().rev().filter(|(_, count)| *count > 0) {
                            i class=(class) style={ "height:" (of_hundred(count, most)) } {}
                        }
                    }
                    "\n"
                }
            }
            figcaption { span { (from) " UTC" } span { (to) " UTC" } }
        }
    }
}

fn of_hundred(count: u64, most: u64) -> String {
    format!("{:.2}%", 100.0 * count as f64 / most.max(1) as f64)
}

/// The table of crawlers, and a section for each whose requests are disallowed or change.
fn crawlers(report: &Report) -> Markup {
    if report.lacks_names() {
        return html! {};
    }
    let (is_apart, is_compared) = (report.totals.outcomes.not_blamed > 0, report.is_compared());
    let mut columns =
        vec![Text("Crawler"), Text("Category"), Number("Requests"), Number("Verified"), Number("Allowed")];
    columns.extend(outcome_columns(is_apart, is_compared));
    columns.push(Number("robots.txt fetched"));
    let rows = report.crawlers.iter().enumerate().map(|(at, row)| {
        let outcomes = &row.counts.outcomes;
        let mut cells = vec![
            linked(&row.name, &format!("crawler-{at}"), &row.by_rule),
            html! { (row.category.map_or(row.class.as_str(), |category| category.as_str())) },
        ];
        let counts = [row.counts.requests, row.identity.verified.requests, outcomes.allowed, outcomes.disallowed];
        cells.extend(counts.map(number));
        cells.extend(is_apart.then(|| number(outcomes.not_blamed)));
        cells.extend(is_compared.then(|| [outcomes.shut, outcomes.opened].map(number)).into_iter().flatten());
        cells.push(if row.counts.robots_txt == 0 {
            html! { "never" }
        } else {
            number(row.counts.robots_txt)
        });
        cells
    });
    let detailed = || report.crawlers.iter().enumerate().filter(|(_, row)| !row.by_rule.rules.is_empty());
    html! {
        @if report.crawlers.is_empty() {
            p { "The logs hold no request by a crawler." }
        } @else {
            section id="crawlers" {
                h2 { "Crawlers" }
                (table(None, &columns, rows))
            }
            @if detailed().next().is_some() {
                section {
                    h2 { (if is_compared { "What changes" } else { "What is disallowed" }) ", by rule and path" }
                    p.sub { "A * stands for what varies." }
                    @for (at, row) in detailed() {
                        (details(&format!("crawler-{at}"), &row.name, ("crawlers", "all crawlers"), &row.by_rule))
                    }
                }
            }
        }
    }
}

/// What impostors did.
fn impostors(report: &Report) -> Markup {
    let is_compared = report.is_compared();
    let is_apart =
        report.totals.outcomes.not_blamed > 0 || report.impostors.iter().any(|row| row.counts.outcomes.not_blamed > 0);
    let mut columns = vec![Text("Impostors of"), Number("Requests"), Number("Allowed")];
    columns.extend(outcome_columns(is_apart, is_compared));
    columns.push(Text("From"));
    let rows = report.impostors.iter().enumerate().map(|(at, row)| {
        let outcomes = &row.counts.outcomes;
        let mut cells = vec![linked(&row.crawler, &format!("impostor-{at}"), &row.by_rule)];
        cells.extend([row.counts.requests, outcomes.allowed, outcomes.disallowed].map(number));
        cells.extend(is_apart.then(|| number(outcomes.not_blamed)));
        cells.extend(is_compared.then(|| [outcomes.shut, outcomes.opened].map(number)).into_iter().flatten());
        cells.push(html! { (Escaped(&row.addresses_in_words(usize::MAX))) });
        cells
    });
    let detailed = report.impostors.iter().enumerate().filter(|(_, row)| !row.by_rule.rules.is_empty());
    html! {
        @if !report.impostors.is_empty() {
            section id="impostors" {
                h2 { "Impostors" }
                p.sub {
                    "Requests under a crawler's name from addresses that are not its operator's. No crawler is blamed for them."
                }
                (table(None, &columns, rows))
                @for (at, row) in detailed {
                    @let name = format!("Impostors of {}", row.crawler);
                    (details(&format!("impostor-{at}"), &name, ("impostors", "all impostors"), &row.by_rule))
                }
            }
        }
    }
}

/// The columns of what became of requests, after those that were allowed.
fn outcome_columns(is_apart: bool, is_compared: bool) -> impl Iterator<Item = Column> {
    let apart = is_apart.then_some(Number("Counted apart"));
    let change = is_compared.then_some([Number("Shut out"), Number("Let in")]).into_iter().flatten();
    [Number("Disallowed")].into_iter().chain(apart).chain(change)
}

fn number(count: u64) -> Markup {
    html! { (grouped(count)) }
}

/// A name that leads to its rules, where there are any.
fn linked(name: &str, id: &str, by_rule: &RuleRows) -> Markup {
    html! {
        @if by_rule.rules.is_empty() { (Escaped(name)) } @else { a href={ "#" (id) } { (Escaped(name)) } }
    }
}

/// The rules that decide about what is requested under a name, under a heading that leads back to a table.
fn details(id: &str, name: &str, (table, back): (&str, &str), by_rule: &RuleRows) -> Markup {
    html! {
        h3 id=(id) { (Escaped(name)) " " a href={ "#" (table) } { (back) } }
        table.rules {
            (table_head(&[Text("Rule, and its paths"), Number("Requests")]))
            tbody {
                @for rule in &by_rule.rules {
                    (line("rule", rule_name(rule), rule.requests))
                    @for path in &rule.paths {
                        (line("path", html! { code { (Escaped(&path.pattern)) } }, path.requests))
                    }
                    @if rule.other_paths > 0 {
                        @let name = html! { (counted(rule.other_paths, "more pattern")) };
                        (line("path", name, rule.other_paths_requests))
                    }
                }
                @if by_rule.other_rules > 0 {
                    @let name = html! { (counted(by_rule.other_rules, "more rule")) };
                    (line("rule", name, by_rule.other_rules_requests))
                }
            }
        }
    }
}

fn rule_name(rule: &RuleRow) -> Markup {
    let file = Escaped(&rule.file);
    html! {
        (rule.effect_words())
        @if let (Some(number), Some(pattern)) = (rule.line, &rule.pattern) {
            code { "Disallow: " (Escaped(pattern)) } " " small { (file) ":" (number) }
        } @else {
            "other rules " small { (file) }
        }
    }
}

fn line(class: &str, name: Markup, requests: u64) -> Markup {
    html! {
        tr class=(class) { th scope="row" { (name) } td.n { (grouped(requests)) } } "\n"
    }
}

/// Crawlers that came sooner than their delay lets them.
fn paces(report: &Report) -> Markup {
    let file = Escaped(report.against.as_ref().unwrap_or(&report.robots));
    let more = report.paces.len().saturating_sub(CHARTED);
    html! {
        @if !report.paces.is_empty() {
            section {
                h2 { "Faster than asked" }
                ul {
                    @for row in report.paces.iter().take(CHARTED) {
                        li { (Escaped(&row.crawler)) ": " (row.sentence()) " " small { (file) ":" (row.line) } }
                    }
                    @if more > 0 { li { "and " (counted(more as u64, "more crawler")) } }
                }
                @if report.paces.iter().any(|row| row.paced.without_address > 0) { p { (COUNTED_TOGETHER) "." } }
            }
        }
    }
}

fn foot(report: &Report) -> Markup {
    html! {
        footer {
            @if let Some(others) = other_requests(&report.others).filter(|_| report.has_others()) {
                p { "Requests that are not of crawlers: " (others) "." }
            }
            @if report.unread_lines > 0 {
                p { (counted(report.unread_lines, "line")) " could not be read, such as:" }
                @for line in &report.unread_samples { p { code { (Escaped(line)) } } }
            }
            p {
                "Crawlers are identified by what they claim, which is checked as far as evidence goes. The counts of paths add up "
                "to those of their rules; where a crawler requested very many paths, a * may hold some requests of a path that is "
                "listed as well."
            }
        }
    }
}
