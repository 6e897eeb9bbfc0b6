//! Fixes through the public API, for real and generated files. Their effect is checked with the
//! matcher, not with the proof of the fix.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Write;

use base64::Engine;
use proptest::prelude::*;
use serde_json::Value;
use tower_robots::agent::Registry;
use tower_robots::check::{FixedFile, Lint, Options, Report, Safety, check, fix};
use tower_robots::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet};

use crate::shared::cases;

/// Agents for which the verdicts of each file are compared, in addition to the agents in its cases.
const AGENTS: [&str; 4] = ["Googlebot", "bingbot", "GPTBot", "some-other-bot"];

/// The outcome for the findings of one lint.
#[derive(Default)]
struct Row {
    found: usize,
    safe: usize,
    with_unsafe: usize,
    left: usize,
}

fn bytes(value: &Value) -> Vec<u8> {
    base64::engine::general_purpose::STANDARD.decode(value.as_str().expect("base64")).expect("base64")
}

fn url(case: &Value) -> Vec<u8> {
    match case.get("url") {
        Some(url) => url.as_str().expect("a URL").as_bytes().to_vec(),
        None => bytes(&case["url_base64"]),
    }
}

/// Returns the verdict for each agent and path, under every reading, with the registry's names.
fn verdicts(robots: &RobotsTxt, questions: &[(String, Vec<u8>)]) -> Vec<Access> {
    let compiled: Vec<RuleSet> = Reading::ALL
        .iter()
        .map(|reading| robots.compile_with(*reading, |name| Registry::builtin().stands_for(name.value())))
        .collect();
    let verdict = |rules: &RuleSet, (agent, url): &(String, Vec<u8>)| {
        let token = match rules.reading() {
            Reading::Reference => ProductToken::cut(agent.as_bytes()),
            _ => ProductToken::new(agent),
        };
        let path =
            if rules.reading() == Reading::Reference { RequestPath::verbatim(url) } else { RequestPath::new(url) };
        rules.select(&[token], Fallback::Star).verdict(&path).access()
    };
    compiled.iter().flat_map(|rules| questions.iter().map(move |question| verdict(rules, question))).collect()
}

/// Returns the lines that no verdict depends on. All of them must be kept.
fn other_lines(robots: &RobotsTxt) -> Vec<(Vec<u8>, Vec<u8>)> {
    let sitemaps = robots.sitemaps().map(|sitemap| (b"sitemap".to_vec(), sitemap.value.to_vec()));
    let is_kept = |name: &[u8]| name != b"host" && name != b"crawl-delay";
    let extensions = robots.extensions().map(|line| (line.field.name.to_ascii_lowercase(), line.field.value.to_vec()));
    let mut lines: Vec<_> = sitemaps.chain(extensions.filter(|(name, _)| is_kept(name))).collect();
    lines.sort();
    lines.dedup();
    lines
}

fn count(report: &Report, code: &str) -> usize {
    [0, 1, 2].into_iter().map(|at| report.count_of(code, tower_robots::check::Severity::ALL[at])).sum()
}

/// Checks invariants of every file: safe fixes change no verdict and lose no line, fixed findings
/// are gone, and a second run finds nothing to fix. Returns the report and the fixed file.
fn hold(file: &[u8], questions: &[(String, Vec<u8>)]) -> (Report, FixedFile) {
    let shown = || String::from_utf8_lossy(file).into_owned();
    let (robots, options) = (RobotsTxt::parse(file), Options::new());
    let report = check(&robots, &options);
    let fixed = fix(&robots, &options, Safety::Safe);
    assert!(fixed.applied.iter().all(|(_, safety)| *safety == Safety::Safe));
    let [before, after] = [&robots, &fixed.robots].map(|robots| verdicts(robots, questions));
    let differs = before.iter().zip(&after).position(|(before, after)| before != after);
    let question = |at: usize| (Reading::ALL[at / questions.len()], &questions[at % questions.len()]);
    assert!(differs.is_none(), "{:?}: {}", differs.map(question), shown());
    let applied: BTreeSet<&str> = fixed.applied.iter().map(|(finding, _)| finding.code).collect();
    // These fixes make crawlers read a line that they ignored.
    let reveals = ["unknown-directive", "not-a-field", "missing-colon", "utf-16"];
    if !applied.iter().any(|code| reveals.contains(code)) {
        assert_eq!(other_lines(&robots), other_lines(&fixed.robots), "{}", shown());
    }
    let again = fix(&fixed.robots, &options, Safety::Safe);
    assert!(again.applied.is_empty(), "{:?} in {}", again.applied, String::from_utf8_lossy(fixed.robots.bytes()));
    assert_eq!(again.robots.bytes(), fixed.robots.bytes());
    assert_eq!(fixed.report.fixes.count(Safety::Safe), 0, "{}", shown());
    (report, fixed)
}

/// Tests the files of the case data with the paths and agents of their cases: one in 300, or one in
/// ten with `ROBOTSD_LONG`. Testing all files takes eight minutes.
#[test]
fn safe_fixes_of_real_files_change_no_verdict() {
    let mut questions: HashMap<String, Vec<(String, Vec<u8>)>> = HashMap::new();
    for case in cases("verdicts.jsonl.gz") {
        let (name, url) = (case["robots"].as_str().expect("a name").to_owned(), url(&case));
        let agents = AGENTS.iter().copied().chain(case["agent"].as_str());
        let asked = agents.map(|agent| (agent.to_owned(), url.clone())).collect::<Vec<_>>();
        questions.entry(name).or_default().extend(asked);
    }
    let every = if crate::is_long() { 10 } else { 300 };
    let files: Vec<Value> = cases("robots_files.jsonl.gz").into_iter().step_by(every).collect();
    let half = |files: &[Value]| {
        let (mut rows, mut asked, mut changed): (BTreeMap<&str, Row>, _, _) = (BTreeMap::new(), 0, 0);
        for case in files {
            let name = case["robots"].as_str().expect("a name");
            let file = bytes(&case["body_base64"]);
            let questions = questions.get(name).map_or(&[][..], Vec::as_slice);
            asked += Reading::ALL.len() * questions.len();
            let (report, fixed) = hold(&file, questions);
            // A fix may reveal a finding of another lint.
            let all = |report: &Report| Lint::all().iter().map(|lint| count(report, lint.code)).sum::<usize>();
            assert!(all(&fixed.report) <= all(&report), "{name}");
            changed += usize::from(fixed.robots.bytes()[..] != file);
            add(&mut rows, &report, &fixed);
        }
        (rows, asked, changed)
    };
    let (one, other) = files.split_at(files.len() / 2);
    let halves = std::thread::scope(|scope| {
        let threads = [one, other].map(|files| scope.spawn(|| half(files)));
        threads.map(|thread| thread.join().expect("no panic"))
    });
    let mut rows: BTreeMap<&str, Row> = BTreeMap::new();
    let (mut asked, mut changed) = (0, 0);
    for (half, more_asked, more_changed) in halves {
        (asked, changed) = (asked + more_asked, changed + more_changed);
        for (code, row) in half {
            let all = rows.entry(code).or_default();
            *all = Row {
                found: all.found + row.found,
                safe: all.safe + row.safe,
                with_unsafe: all.with_unsafe + row.with_unsafe,
                left: all.left + row.left,
            };
        }
    }
    let mut table = String::new();
    for (code, Row { found, safe, with_unsafe, left }) in rows.iter().filter(|(_, row)| row.found > 0) {
        writeln!(table, "{code:24} {found:6} {safe:6} {with_unsafe:6} {left:6}").expect("a string grows");
    }
    println!("{:24} {:>6} {:>6} {:>6} {:>6}\n{table}", "lint", "found", "safe", "unsafe", "left");
    println!("{} files, {changed} changed by safe fixes, {asked} verdicts", files.len());
    assert!(changed * 4 > files.len() && asked > files.len(), "{changed} of {}, {asked}", files.len());
}

/// Adds the outcome for the findings of a file, including its unsafe fixes.
fn add(rows: &mut BTreeMap<&str, Row>, report: &Report, fixed: &FixedFile) {
    let is_more = fixed.report.fixes.count(Safety::Unsafe) > 0;
    let all = is_more.then(|| fix(&fixed.robots, &Options::new(), Safety::Unsafe));
    let of = |fixed: &FixedFile, code: &str, safety: Safety| {
        fixed.applied.iter().filter(|(finding, of)| finding.code == code && *of == safety).count()
    };
    for lint in Lint::all() {
        let row = rows.entry(lint.code).or_default();
        row.found += count(report, lint.code);
        row.safe += of(fixed, lint.code, Safety::Safe);
        row.with_unsafe += all.as_ref().map_or(0, |all| of(all, lint.code, Safety::Unsafe));
        row.left += count(&all.as_ref().unwrap_or(fixed).report, lint.code);
    }
}

fn piece() -> impl Strategy<Value = &'static str> {
    let pieces = "User-agent: *|user-agent: a|User-agent: a/1|Useragent: b|User-agent: a b|User-agent:|\
        User-agent: * x|User-agent Googlebot|Disallow: /a|Disallow: /a*|Disallow: /a/*$|Dissallow: /a/b|\
        Disallow /%61|Disallow: /*b # x|Disallow: /a#b|Disallow: /\u{e9}|Disallow: /a b|Disallow: a|Disallow:|\
        Disallow: /$a|Disallow: /a$*|Allow: /a|Allow: /a/|Allow: /**|Allow: /*a|Allow: *|Allow: /%c3%a9*|\
        Crawl-delay: 5|Crawl-delay: 0|Host: a.test|Content-Usage: ai=n|Sitemap: https://a.test/a|Sitemap: /b|\
        Disalllow: /a|some words here|# why|# robots-check: allow(duplicate-rule)|\
        # robots-check: allow(duplicate-rules)|Disallow: /a # robots-check: allow(redundant-star)| ||";
    prop::sample::select(pieces.split('|').collect::<Vec<_>>())
}

fn paths() -> Vec<(String, Vec<u8>)> {
    let paths = "/|/a|/a/|/a/b|/ab|/b|/%61|/\u{e9}|/%C3%A9x|/a%20b|/a b|/x/a|/$a|/robots.txt";
    let agents = ["a", "b", "googlebot", "other", "a b"];
    agents
        .iter()
        .flat_map(|agent| paths.split('|').map(move |path| ((*agent).to_owned(), path.as_bytes().to_vec())))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(if crate::is_long() { 300 } else { 30 }))]

    #[test]
    fn safe_fixes_of_generated_files_change_no_verdict(
        lines in prop::collection::vec(piece(), 0..14),
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        mark in prop::bool::weighted(0.1),
        is_ended in any::<bool>(),
    ) {
        let mut file = lines.join(end);
        file.insert_str(0, if mark { "\u{feff}" } else { "" });
        file.push_str(if is_ended { end } else { "" });
        hold(file.as_bytes(), &paths());
        let fixed = fix(&RobotsTxt::parse(file.as_bytes()), &Options::new(), Safety::Unsafe);
        prop_assert!(fixed.robots.bytes().len() <= file.len() * 2 + 200);
    }
}

/// Returns arbitrary bytes, and text as UTF-16 with a byte order mark.
fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    let utf_16 =
        (prop::collection::vec(prop_oneof![piece().prop_map(str::to_owned), any::<String>()], 0..6), any::<bool>());
    let utf_16 = utf_16.prop_map(|(lines, is_big_endian)| {
        let text = format!("\u{feff}{}", lines.join("\n"));
        let bytes = |unit: u16| if is_big_endian { unit.to_be_bytes() } else { unit.to_le_bytes() };
        text.encode_utf16().flat_map(bytes).collect()
    });
    prop_oneof![3 => prop::collection::vec(any::<u8>(), 0..300), 1 => utf_16]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn a_second_run_of_safe_fixes_changes_nothing_for_any_bytes(file in any_bytes()) {
        hold(&file, &[]);
        let _ = fix(&RobotsTxt::parse(file), &Options::new(), Safety::Unsafe);
    }
}
