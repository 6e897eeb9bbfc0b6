//! Tests the program in the tester's page. Its answers must be correct, and the program in the page
//! must give the same answers as a native build. `tester_browser` tests the page itself.
//!
//! `ROBOTSD_TESTER_PAGE` names the page, which `docs/tester/build.py` builds. Node runs its program.
//! If one is missing, the tests are skipped with a message; in CI they fail.

mod native;

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::harness::*;
use crate::shared::cases;

/// A script that returns true once the tester has answered.
pub(crate) const ANSWERED: &str = "return performance.getEntriesByName('answered').length === 1";

/// Returns the page; `None` if it was not built.
pub(crate) fn page() -> Option<PathBuf> {
    let page = std::env::var_os("ROBOTSD_TESTER_PAGE").map(PathBuf::from).filter(|page| page.is_file());
    crate::programs::present(page.ok_or("ROBOTSD_TESTER_PAGE names no page: docs/tester/build.py builds it"))
}

/// Returns a request, as `docs/tester/src/request.rs` describes it.
fn request(operation: &str, reading: &str, parts: [Option<&[u8]>; 4]) -> Vec<u8> {
    let lengths = parts.map(|part| part.map_or("-".to_owned(), |part| part.len().to_string()));
    let head = format!("{operation} {reading} {}\n", lengths.join(" "));
    [head.as_bytes(), &parts.map(Option::unwrap_or_default).concat()].concat()
}

/// Returns the answer to one question about a file.
fn answer(operation: &str, file: &str, old: Option<&str>, urls: &str, crawlers: &str) -> Value {
    let parts = [Some(file), old, Some(urls), Some(crawlers)].map(|part| part.map(str::as_bytes));
    serde_json::from_str(&native::answers(&request(operation, "standard", parts))).unwrap()
}

/// Returns the answers of the program in the page, one per line. `None` if it cannot be run.
fn answers_of_page(requests: &[u8]) -> Option<String> {
    let page = page()?;
    let script = project("robotsd/tests/tester.mjs");
    let mut node = Command::new("node");
    node.arg(script).arg(page).stdin(Stdio::piped()).stdout(Stdio::piped());
    let child = node.spawn().map_err(|error| format!("node, of Debian's package nodejs: {error}"));
    let mut child = crate::programs::present(child)?;
    let mut input = child.stdin.take().unwrap();
    let output = thread::scope(|scope| {
        scope.spawn(move || Write::write_all(&mut input, requests).unwrap());
        child.wait_with_output().unwrap()
    });
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

fn parsed(answers: &str) -> Vec<Value> {
    answers.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

struct FileCases {
    file: Vec<u8>,
    urls: Vec<Vec<u8>>,
    agents: Vec<String>,
    cases: Vec<Value>,
}

fn url(case: &Value) -> Vec<u8> {
    match case.get("url_base64") {
        Some(url) => BASE64_STANDARD.decode(url.as_str().unwrap()).unwrap(),
        None => case["url"].as_str().unwrap().as_bytes().to_vec(),
    }
}

/// Returns the shared cases by file. Cases with an empty name or an empty URL are left out, because
/// the page cannot send them.
fn cases_by_file() -> Vec<FileCases> {
    let mut by_file: HashMap<String, FileCases> = HashMap::new();
    for file in cases("robots_files.jsonl.gz") {
        let content = BASE64_STANDARD.decode(file["body_base64"].as_str().unwrap()).unwrap();
        let of_file = FileCases { file: content, urls: Vec::new(), agents: Vec::new(), cases: Vec::new() };
        by_file.insert(file["robots"].as_str().unwrap().to_owned(), of_file);
    }
    let suite =
        cases("reference_suite.jsonl").into_iter().map(|case| (case["robots"].as_str().unwrap().to_owned(), case));
    let verdicts =
        cases("verdicts.jsonl.gz").into_iter().map(|case| (case["robots"].as_str().unwrap().to_owned(), case));
    let is_named = |(_, case): &(String, Value)| case["agent"] != "";
    for (robots, mut case) in suite.chain(verdicts).filter(is_named) {
        if case["url"] == "" {
            case["url"] = "/".into();
        }
        // The files of the suite are in the cases themselves.
        let of_suite =
            || FileCases { file: robots.clone().into(), urls: Vec::new(), agents: Vec::new(), cases: Vec::new() };
        let of_file = by_file.entry(robots.clone()).or_insert_with(of_suite);
        let (url, agent) = (url(&case), case["agent"].as_str().unwrap().to_owned());
        if !of_file.urls.contains(&url) {
            of_file.urls.push(url);
        }
        if !of_file.agents.contains(&agent) {
            of_file.agents.push(agent);
        }
        of_file.cases.push(case);
    }
    let mut files: Vec<_> = by_file.into_iter().collect();
    files.sort_by(|one, other| one.0.cmp(&other.0));
    files.into_iter().map(|(_, cases)| cases).collect()
}

impl FileCases {
    fn request(&self, operation: &str, reading: &str) -> Vec<u8> {
        let (urls, agents) = (self.urls.join(&b'\n'), self.agents.join("\n"));
        request(operation, reading, [Some(&self.file), None, Some(&urls), Some(agents.as_bytes())])
    }

    /// Returns the cases that an answer contradicts.
    fn contradicted(&self, answer: &Value) -> Vec<&Value> {
        let is_right = |case: &&Value| {
            let row = self.urls.iter().position(|one| *one == url(case)).unwrap();
            let column = self.agents.iter().position(|one| *one == case["agent"]).unwrap();
            let cell = &answer["rows"][row]["cells"][column];
            (cell["access"] == "allow") == case["allowed"] && cell["line"].as_u64().unwrap_or(0) == case["line"]
        };
        self.cases.iter().filter(|case| !is_right(case)).collect()
    }
}

#[test]
fn the_page_answers_every_shared_case_like_the_reference_parser() {
    let files = cases_by_file();
    let requests: Vec<_> = files.iter().flat_map(|file| file.request("verdicts", "reference")).collect();
    let Some(answers) = answers_of_page(&requests) else { return };
    let answers = parsed(&answers);
    assert_eq!(answers.len(), files.len());
    let wrong: Vec<_> = files.iter().zip(&answers).flat_map(|(file, answer)| file.contradicted(answer)).collect();
    let all = files.iter().map(|file| file.cases.len()).sum::<usize>();
    println!("{} of {all} verdicts agree in access and line", all - wrong.len());
    assert!(wrong.is_empty(), "{} disagree, such as {:#?}", wrong.len(), &wrong[..wrong.len().min(5)]);
}

/// Removes the effects of unsafe fixes. Their computation has a time limit of one second, which a
/// busy machine may exceed for a crafted file.
fn without_effects(mut answer: Value) -> Value {
    for finding in answer["findings"].as_array_mut().into_iter().flatten() {
        if let Some(fix) = finding["fix"].as_object_mut() {
            fix.remove("effect");
        }
    }
    answer
}

#[test]
fn the_page_and_a_native_build_give_the_same_answers() {
    // A long run uses one in fifteen files, because a build without optimisation needs ten minutes
    // for all of them. The test above covers the verdicts of all files.
    let step = if is_long() { 15 } else { 20 };
    let files: Vec<_> = cases_by_file().into_iter().step_by(step).collect();
    let requests: Vec<_> = files
        .iter()
        .flat_map(|file| [file.request("verdicts", "standard"), file.request("findings", "standard")].concat())
        .collect();
    let Some(answers) = answers_of_page(&requests) else { return };
    let (page, machine) = (parsed(&answers), parsed(&native::answers(&requests)));
    assert_eq!((page.len(), machine.len()), (2 * files.len(), 2 * files.len()));
    for (page, machine) in page.into_iter().zip(machine) {
        assert_eq!(without_effects(page), without_effects(machine));
    }
}

const FILE: &str = "User-agent: *\nDisallow: /cart/\n\nUser-agent: GPTBot\nDisallow: /\nAllow: /open\n\nUser-agent: Googlebot\nAllow: /\n";

#[test]
fn a_cell_of_the_verdict_table_contains_the_verdict_the_rule_and_its_line() {
    let crawlers =
        "GPTBot\nGoogelbot\n*\nMozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0\nAdsBot-Google\n";
    let answer = answer("verdicts", FILE, None, "/cart/1\n https://a.test/open\n\nfoo/bar\n/robots.txt\n", crawlers);
    let cell = |row: usize, column: usize| {
        let cell = &answer["rows"][row]["cells"][column];
        format!("{} {} {}; {}", cell["access"], cell["line"], cell["rule"], cell["group"]).replace('"', "")
    };
    for (row, column, want) in [
        (0, 0, "disallow 5 Disallow: /; GPTBot"),
        (0, 1, "disallow 2 Disallow: /cart/; *"),
        (0, 2, "disallow 2 Disallow: /cart/; *"),
        (0, 3, "allow null no group applies; "),
        (1, 0, "allow 6 Allow: /open; GPTBot"),
        (1, 2, "allow null no rule of the group matches; *"),
        (3, 0, "allow null every crawler may fetch robots.txt; "),
    ] {
        assert_eq!(cell(row, column), want, "row {row}, column {column}");
    }
    assert_eq!(answer["rows"][2]["error"], "neither a path nor a URL: write /foo/bar or https://foo/bar");
    let about = |column: usize| answer["crawlers"][column]["about"].as_str().unwrap();
    assert_has(about(0), &["OpenAI, ai-training; "]);
    assert_eq!(about(1), "not a known crawler: did you mean Googlebot?");
    assert_eq!(about(2), "crawlers that are not named in any group");
    assert_has(about(3), &["not a crawler (browser)"]);
    let kinds: HashMap<_, _> =
        answer["front_page"].as_array().unwrap().iter().map(|kind| (kind["kind"].as_str().unwrap(), kind)).collect();
    assert_eq!(kinds.keys().collect::<HashSet<_>>(), HashSet::from([&"search engines", &"AI search", &"AI training"]));
    assert_has(kinds["AI training"]["may_not"].to_string(), &["\"GPTBot (line 5)\""]);
    assert_eq!(kinds["search engines"]["may_not"], json!([]));
}

#[test]
fn a_comparison_of_two_files_lists_the_effects_on_crawlers() {
    let answer = answer("findings", "User-agent: *\nDisallow: /\n", Some(FILE), "", "");
    let effects = &answer["diff"]["effects"];
    let text = effects.to_string();
    assert_has(&text, &["Googlebot", "crawlers that are not named in any group", "\"what\":\"the whole site\""]);
    assert_eq!(effects[0]["changes"][0]["after"], "line 2, Disallow: /");
}

#[test]
fn unsafe_fixes_show_their_effect_and_only_safe_fixes_are_applied() {
    let file = "User-agent: *\nDissallow: /x\nDisallow: private/\n";
    let found = answer("findings", file, None, "", "");
    let fixes: Vec<_> = found["findings"].as_array().unwrap().iter().map(|finding| &finding["fix"]).collect();
    let safe = fixes.iter().find(|fix| fix["safety"] == "safe").expect("a safe fix");
    assert_eq!((&safe["effect"], &found["fixable"]), (&Value::Null, &json!(1)));
    let other = fixes.iter().find(|fix| fix["safety"] == "unsafe").expect("an unsafe fix");
    assert_has(other["effect"].as_str().unwrap(), &["\"/private/\" is disallowed for"]);
    let fixed = native::answers(&request("fix", "standard", [Some(file.as_bytes()), None, Some(b""), Some(b"")]));
    let fixed: Value = serde_json::from_str(&fixed).unwrap();
    let text: Vec<u8> = serde_json::from_value(fixed["file"].clone()).unwrap();
    assert_eq!(String::from_utf8(text).unwrap(), "User-agent: *\nDisallow: /x\nDisallow: private/\n");
}

#[test]
fn the_tester_checks_only_the_first_500_kib_that_crawlers_read() {
    let line = "Disallow: /directory/page\n";
    let file = ["User-agent: *\nDissallow: /x\n", &line.repeat(512_000 / line.len()), "Dissallow: /y\n"].concat();
    let found = answer("findings", &file, Some("User-agent: *\n"), "", "");
    let of = |code: &str| -> Vec<_> {
        let findings = found["findings"].as_array().unwrap().iter().filter(|finding| finding["code"] == code);
        findings.map(|finding| (finding["line"].as_u64().unwrap(), finding["fix"].is_null())).collect()
    };
    assert_eq!(of("misspelled-directive"), [(2, true)]);
    let read = file[..512_000].matches('\n').count() as u64;
    assert_eq!(of("over-500-kib"), [(read + 1, true)]);
    let rest = file.split('\n').skip(usize::try_from(read).unwrap()).collect::<Vec<_>>().join("\n");
    assert_eq!((&found["fixable"], &found["unread"]), (&json!(0), &json!(rest.len())));
    let answer = native::answers(&request("fix", "standard", [Some(file.as_bytes()), None, Some(b""), Some(b"")]));
    let fixed: Value = serde_json::from_str(&answer).unwrap();
    let text: Vec<u8> = serde_json::from_value(fixed["file"].clone()).unwrap();
    assert!(fixed["corrected"] == 0 && text == file.as_bytes(), "{} findings", fixed["corrected"]);
}

#[test]
fn an_invalid_request_to_the_tester_returns_an_error_message() {
    for (request, want) in [
        ("verdicts standard 1 - 0 0", "the first line has no end"),
        ("verdicts standard 9 - 0 0\nabc", "a part is shorter than its length"),
        ("verdicts standard - - 0 0\n", "the first line must contain four lengths"),
        ("verdicts other 0 - 0 0\n", "is not a reading"),
        ("erase standard 0 - 0 0\n", "\"erase\" is not an operation"),
        ("verdicts standard x - 0 0\n", "\"x\" is not a length"),
    ] {
        let answer: Value = serde_json::from_str(&native::answers(request.as_bytes())).unwrap();
        assert_has(answer["error"].as_str().unwrap(), &[want]);
    }
}

#[test]
fn a_build_without_the_page_prints_where_to_find_it() {
    let error = run(robotsd().arg("tester")).failed(2);
    assert_has(error, &["this build does not contain the tester", "docs/tester/build.py"]);
}
