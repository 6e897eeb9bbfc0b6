//! The answers to the requests of the page.

use std::sync::Arc;
use std::time::{Duration, Instant};

use robots_core::agent::{Agent, NamedAs, Obeys, Recognizer, Registry};
use robots_core::check::{
    CrawlerKind, Edit, FileKind, Finding, Fix, FixedFile, FrontPageAccess, Lint, Options, Report, Safety, Severity,
    check,
};
use robots_core::internals::damerau_levenshtein;
use robots_core::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet, Verdict};
use serde::Serialize;

use super::effect::{ShownDiff, compare, rule_text, shown};
use super::request::{MAX_CRAWLERS, MAX_URLS, Operation, Request};

/// Maximum time for computing the effects of unsafe fixes. Most files take milliseconds.
const MAX_TIME_OF_EFFECTS: Duration = Duration::from_millis(200);

/// Maximum time for fixing a file. Most files take milliseconds.
const MAX_TIME_OF_FIXES: Duration = Duration::from_secs(1);

/// An answer; each variant is an object.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Reply {
    Verdicts(Verdicts),
    Findings(Findings),
    Fixed(FixedBytes),
    Error { error: String },
}

#[derive(Debug, Serialize)]
struct Verdicts {
    /// Access to the front page by kind of crawlers; empty if the file is not a robots.txt.
    front_page: Vec<KindAccess>,
    crawlers: Vec<Column>,
    rows: Vec<Row>,
    /// Numbers of URLs and of crawlers that exceed the maximum, and are left out.
    left_out: [usize; 2],
}

#[derive(Debug, Serialize)]
struct Findings {
    findings: Vec<ShownFinding>,
    /// Numbers of errors, warnings and notes, including those that are only counted.
    counts: [usize; 3],
    /// Number of findings that safe fixes correct.
    fixable: usize,
    /// Number of bytes at the end that crawlers do not read. They are not checked.
    unread: usize,
    /// Effect of the change since the other version, if there is one.
    diff: Option<ShownDiff>,
}

/// The file with all safe fixes.
#[derive(Debug, Serialize)]
struct FixedBytes {
    file: Vec<u8>,
    /// Number of corrected findings.
    corrected: usize,
}

/// The crawlers of a kind that may fetch the front page, and those that may not.
#[derive(Debug, Serialize)]
struct KindAccess {
    kind: &'static str,
    may: Vec<String>,
    may_not: Vec<String>,
}

/// A crawler at the head of a column.
#[derive(Debug, Serialize)]
struct Column {
    name: String,
    about: String,
}

/// The verdicts about one URL.
#[derive(Debug, Serialize)]
struct Row {
    url: String,
    /// The problem, if the URL is invalid.
    error: Option<String>,
    cells: Vec<Cell>,
}

#[derive(Debug, Serialize)]
struct Cell {
    access: Access,
    /// Line of the deciding rule, if there is one.
    line: Option<usize>,
    /// The deciding rule, or the reason why there is none.
    rule: String,
    /// Names of the group that applies.
    group: String,
}

#[derive(Debug, Serialize)]
struct ShownFinding {
    code: &'static str,
    severity: Severity,
    line: usize,
    message: String,
    help: Option<String>,
    why: &'static str,
    fix: Option<ShownFix>,
}

#[derive(Debug, Serialize)]
struct ShownFix {
    safety: Safety,
    /// Effect of an unsafe fix on crawlers, if it was computed.
    effect: Option<String>,
    /// Start, end and replacement of each edit, in bytes of the file.
    edits: Vec<(usize, usize, Vec<u8>)>,
}

/// Answers every request of the input, each with a line of JSON.
pub(super) fn answer_all(mut input: &[u8]) -> String {
    let mut output = String::new();
    while !input.is_empty() {
        let reply = match Request::parse(input) {
            Ok((request, rest)) => {
                input = rest;
                reply(&request)
            }
            Err(error) => {
                input = &[];
                Reply::Error { error }
            }
        };
        let json = serde_json::to_string(&reply);
        output += &json.unwrap_or_else(|_| r#"{"error":"the answer cannot be written"}"#.to_owned());
        output.push('\n');
    }
    output
}

fn reply(request: &Request<'_>) -> Reply {
    match request.operation {
        Operation::Verdicts => Reply::Verdicts(verdicts(&RobotsTxt::parse(request.file), request)),
        Operation::Findings => Reply::Findings(findings(&RobotsTxt::parse_beginning(request.file), request.old)),
        Operation::Fix => Reply::Fixed(fixed(request.file)),
    }
}

fn verdicts(robots: &RobotsTxt, request: &Request<'_>) -> Verdicts {
    let judge = Judge::new(robots, request.reading);
    let names = request.crawlers.iter().take(MAX_CRAWLERS);
    let (crawlers, senders): (Vec<_>, Vec<_>) = names.map(|name| judge.sender(name)).unzip();
    Verdicts {
        front_page: judge.front_page(),
        crawlers,
        rows: request.urls.iter().take(MAX_URLS).map(|url| judge.row(url, &senders)).collect(),
        left_out: [request.urls.len().saturating_sub(MAX_URLS), request.crawlers.len().saturating_sub(MAX_CRAWLERS)],
    }
}

fn findings(robots: &RobotsTxt, old: Option<&[u8]>) -> Findings {
    let options = Options::new();
    let report = check(robots, &options);
    // A fix that makes a file shorter would let crawlers read more lines.
    let report = if robots.unread() == 0 { report.with_fixes(robots, &options) } else { report };
    Findings {
        findings: shown_findings(robots, &report),
        counts: Severity::ALL.map(|severity| report.count(severity)),
        fixable: report.fixes.count(Safety::Safe),
        unread: robots.unread(),
        diff: old.map(|old| ShownDiff::of(&compare(&RobotsTxt::parse_beginning(old), robots))),
    }
}

/// Applies the safe fixes, or none if crawlers do not read the whole file.
fn fixed(file: &[u8]) -> FixedBytes {
    let (robots, start) = (RobotsTxt::parse_beginning(file), Instant::now());
    let goes_on = || robots.unread() == 0 && start.elapsed() < MAX_TIME_OF_FIXES;
    let fixed = FixedFile::of_while(&robots, &Options::new(), Safety::Safe, &goes_on);
    let rest = &file[robots.bytes().len()..];
    FixedBytes { file: [&fixed.robots.bytes()[..], rest].concat(), corrected: fixed.applied.len() }
}

/// The tokens whose groups each agent of a column obeys.
type Sender = Vec<(Vec<ProductToken>, Fallback)>;

/// A compiled file, with the known crawlers.
struct Judge {
    rules: RuleSet,
    reading: Reading,
    registry: Arc<Registry>,
    recognizer: Recognizer,
}

impl Judge {
    fn new(robots: &RobotsTxt, reading: Reading) -> Self {
        let registry = Registry::builtin().clone();
        let rules = robots.compile_with(reading, |name| registry.stands_for(name.value()));
        let recognizer = Recognizer::new(registry.clone(), robots);
        Self { rules, reading, registry, recognizer }
    }

    fn front_page(&self) -> Vec<KindAccess> {
        if FileKind::of(self.rules.document()) != FileKind::Rules {
            return Vec::new();
        }
        let all = FrontPageAccess::by_rules(&self.rules, &self.registry);
        let of_kind = |kind: &CrawlerKind| {
            let names = |access: Access| -> Vec<String> {
                let is_meant = |row: &&FrontPageAccess| row.kind == *kind && row.access == access;
                all.iter().filter(is_meant).map(front_page_name).collect()
            };
            KindAccess { kind: kind.noun(), may: names(Access::Allow), may_not: names(Access::Disallow) }
        };
        CrawlerKind::ALL.iter().map(of_kind).collect()
    }

    /// Looks up the name of a column: a crawler, a `User-Agent` header or `*`. The reference parser
    /// takes the name as a token.
    fn sender(&self, name: &str) -> (Column, Sender) {
        let column = |about| Column { name: shown(name.as_bytes()), about };
        if self.reading == Reading::Reference {
            return (column("used as given".to_owned()), vec![(vec![ProductToken::new(name)], Fallback::Star)]);
        }
        let (named_as, agents) = self.recognizer.resolve(name);
        let sender = agents.iter().map(|agent| (agent.tokens().to_vec(), agent.fallback())).collect();
        let about = match (named_as, agents.first().registered()) {
            (NamedAs::Star, _) => "crawlers that are not named in any group".to_owned(),
            (NamedAs::Unregistered, _) => self.about_unknown(name),
            (_, Some(_)) => about_registered(agents.first()),
            (_, None) if agents.first().class().is_crawler() => "not a known crawler".to_owned(),
            (_, None) => format!("not a crawler ({}), so it does not read robots.txt", agents.first().class()),
        };
        (column(about), sender)
    }

    /// Describes a name that no known crawler has, with the most similar name.
    fn about_unknown(&self, name: &str) -> String {
        let name = name.to_lowercase();
        let distance = |known: &str| (damerau_levenshtein(&name, &known.to_lowercase()), known.to_owned());
        let nearest = self.registry.crawlers().map(|crawler| distance(&crawler.name)).min();
        match nearest.filter(|(distance, _)| name.len() < 64 && distance * 4 <= name.len()) {
            Some((_, nearest)) => format!("not a known crawler: did you mean {nearest}?"),
            None => "not a known crawler".to_owned(),
        }
    }

    fn row(&self, url: &[u8], senders: &[Sender]) -> Row {
        // The reference parser takes any text as a URL.
        let error = (self.reading != Reading::Reference).then(|| url_error(url)).flatten();
        let path = self.reading.path(url);
        let cells = match error {
            Some(_) => Vec::new(),
            None => senders.iter().map(|sender| self.cell(sender, &path)).collect(),
        };
        Row { url: shown(url), error, cells }
    }

    /// Judges the URL for each agent of a column; one that may not fetch it decides.
    fn cell(&self, sender: &Sender, path: &RequestPath<'_>) -> Cell {
        if self.reading != Reading::Reference && path.is_robots_txt() {
            let rule = "every crawler may fetch robots.txt".to_owned();
            return Cell { access: Access::Allow, line: None, rule, group: String::new() };
        }
        let verdict_of = |(tokens, fallback): &(Vec<_>, _)| self.rules.select(tokens, *fallback).verdict(path);
        let verdicts: Vec<_> = sender.iter().map(verdict_of).collect();
        let strictest = verdicts.iter().find(|verdict| verdict.access() == Access::Disallow).or(verdicts.first());
        strictest.map_or_else(Cell::without_group, Cell::of)
    }
}

impl Cell {
    fn of(verdict: &Verdict<'_>) -> Self {
        let Some(group) = verdict.group() else { return Self::without_group() };
        let rule = match verdict.rule() {
            Some(rule) => rule_text(rule.access(), rule.pattern()),
            None => "no rule of the group matches".to_owned(),
        };
        let names: Vec<_> = group.names().map(|name| shown(name.value())).collect();
        Self { access: verdict.access(), line: verdict.line(), rule, group: names.join(" ") }
    }

    fn without_group() -> Self {
        Self { access: Access::Allow, line: None, rule: "no group applies".to_owned(), group: String::new() }
    }
}

fn front_page_name(row: &FrontPageAccess) -> String {
    let line = row.line.filter(|_| row.access == Access::Disallow).map(|line| format!(" (line {line})"));
    let ignores = if row.ignores_robots { " (ignores robots.txt)" } else { "" };
    format!("{}{}{ignores}", row.crawler, line.unwrap_or_default())
}

fn about_registered(agent: &Agent) -> String {
    let Some(crawler) = agent.registered() else { return String::new() };
    let obeys = match crawler.obeys_robots {
        _ if crawler.is_control => "only a name for robots.txt, never sent",
        Obeys::Yes => "obeys robots.txt",
        Obeys::No => "ignores robots.txt",
        Obeys::Partial => "obeys robots.txt in part",
        _ => "not known whether it obeys",
    };
    format!("{}, {}; {obeys}", crawler.operator, crawler.category)
}

/// Returns the problem with a URL: it must begin with a slash, or with its scheme.
fn url_error(url: &[u8]) -> Option<String> {
    let scheme = url.get(..8).unwrap_or(url).to_ascii_lowercase();
    if url.starts_with(b"/") || scheme.starts_with(b"http://") || scheme.starts_with(b"https://") {
        return None;
    }
    Some(format!("neither a path nor a URL: write /{0} or https://{0}", shown(url)))
}

fn shown_findings(robots: &RobotsTxt, report: &Report) -> Vec<ShownFinding> {
    let start = Instant::now();
    let shown_fix = |fix: &Fix| {
        let needs_effect = fix.safety == Safety::Unsafe && start.elapsed() < MAX_TIME_OF_EFFECTS;
        let effect = needs_effect.then(|| compare(robots, &RobotsTxt::parse(Edit::apply(robots.bytes(), &fix.edits))));
        let edits = fix.edits.iter().map(|edit| (edit.start, edit.end, edit.replacement.clone()));
        ShownFix { safety: fix.safety, effect: effect.map(|diff| diff.to_string()), edits: edits.collect() }
    };
    let shown_finding = |(at, finding): (usize, &Finding)| ShownFinding {
        code: finding.code,
        severity: finding.severity,
        line: finding.line,
        message: finding.message.clone(),
        help: finding.help.clone(),
        why: Lint::of_code(finding.code).map_or("", |lint| lint.why),
        fix: report.fixes.get(at).map(shown_fix),
    };
    report.findings.iter().enumerate().map(shown_finding).collect()
}
