//! Findings as one SARIF 2.1.0 document, for GitHub code scanning and other tools.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Component, Path};

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use tower_robots::check::{Finding, Fix, Lint, Safety, Severity};
use tower_robots::live::VersionHash;
use tower_robots::rules::{Line, RobotsTxt};

use super::checked::Checked;
use super::found_problem::{AnswerLint, FoundProblem};
use super::printable::write_pretty_json;

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";

/// Maximum number of results in one document. This is the maximum that GitHub accepts.
const MAX_RESULTS: usize = 25_000;

/// Maximum number of edits in a fix; larger fixes are left out.
const MAX_EDITS: usize = 1_000;

/// Maximum number of bytes of a line that the fingerprint of a finding covers.
const MAX_LINE_BYTES: usize = 16 << 10;

/// Bytes to percent-encode in a path segment of a URI (RFC 3986, section 3.3).
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Bytes to percent-encode in a string that is already a URL.
const URL: &AsciiSet = &SEGMENT.remove(b'%').remove(b':').remove(b'/').remove(b'@').remove(b'[').remove(b']');

#[derive(Debug, Default)]
pub(crate) struct SarifLog {
    results: Vec<Value>,
    notifications: Vec<Value>,
    /// The lints with findings about responses. In the document's list of rules, these lints follow
    /// the lints of files.
    answer_lints: Vec<&'static AnswerLint>,
    seen_answers: HashMap<(&'static str, String), usize>,
    has_failed: bool,
}

impl SarifLog {
    pub(crate) fn add(&mut self, checked: Checked<'_>) {
        let uri = uri(checked.name);
        let lines: Vec<Line<'_>> = checked.robots.lines().collect();
        let mut seen = HashMap::new();
        let has_exact_positions = has_exact_positions(checked.robots);
        let room = MAX_RESULTS.saturating_sub(self.results.len());
        for (finding, fix) in checked.findings().take(room) {
            let mut result = result(checked.robots, &lines, &uri, finding, &mut seen);
            let is_included =
                |fix: &&Fix| has_exact_positions && fix.safety == Safety::Safe && fix.edits.len() <= MAX_EDITS;
            let fix = fix.filter(is_included);
            if let Some(fix) = fix.and_then(|fix| fix_object(checked.robots, &lines, &uri, fix)) {
                result["fixes"] = json!([fix]);
            }
            self.results.push(result);
        }
        let omitted = checked.report.omitted() + checked.report.findings.len().saturating_sub(room);
        if omitted > 0 {
            self.notify("note", &format!("{omitted} more findings of these kinds are not shown"), &uri);
        }
    }

    pub(crate) fn add_answer(&mut self, findings: &[FoundProblem]) {
        for FoundProblem { file, severity, message: text, help, lint, .. } in findings {
            let (Some(requested), Some(lint)) = (file, lint) else { continue };
            let code = lint.code;
            let known = self.answer_lints.iter().position(|known| known.code == code);
            let index = known.unwrap_or_else(|| {
                self.answer_lints.push(lint);
                self.answer_lints.len() - 1
            });
            let times = self.seen_answers.entry((code, requested.clone())).or_default();
            *times += 1;
            self.results.push(json!({
                "ruleId": code,
                "ruleIndex": Lint::all().len() + index,
                "level": severity.as_str(),
                "message": { "text": with_help(text, help.as_deref()) },
                "locations": [{ "physicalLocation": { "artifactLocation": { "uri": uri_of_url(requested) } } }],
                "partialFingerprints": { "primaryLocationLineHash": fingerprint(code, requested.as_bytes(), *times) },
            }));
        }
    }

    pub(crate) fn add_unread(&mut self, name: &str, reason: &str) {
        self.has_failed = true;
        self.notify("error", reason, &uri(name));
    }

    fn notify(&mut self, level: &str, text: &str, uri: &str) {
        let location = json!({ "physicalLocation": { "artifactLocation": { "uri": uri } } });
        self.notifications
            .push(json!({ "level": level, "message": { "text": message(text) }, "locations": [location] }));
    }

    pub(crate) fn write(&self, out: &mut impl Write) -> io::Result<()> {
        let mut invocation = json!({ "executionSuccessful": !self.has_failed });
        if !self.notifications.is_empty() {
            invocation["toolExecutionNotifications"] = json!(self.notifications);
        }
        let of_files =
            Lint::all().iter().map(|lint| rule(lint.code, lint.severity, lint.summary, lint.why, &lint.url()));
        let of_answers = self.answer_lints.iter();
        let of_answers = of_answers.map(|lint| rule(lint.code, lint.severity, lint.summary, lint.why, &lint.url()));
        let rules: Vec<_> = of_files.chain(of_answers).collect();
        let driver = json!({
            "name": "robotsd",
            "semanticVersion": env!("CARGO_PKG_VERSION"),
            "informationUri": "https://docs.rs/tower-robots",
            "rules": rules,
        });
        let run = json!({
            "tool": { "driver": driver },
            "columnKind": "unicodeCodePoints",
            "invocations": [invocation],
            "results": self.results,
        });
        write_pretty_json(out, &json!({ "$schema": SCHEMA, "version": "2.1.0", "runs": [run] }))
    }
}

fn rule(code: &str, severity: Severity, summary: &str, why: &str, url: &str) -> Value {
    let problem = match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Note => "recommendation",
    };
    json!({
        "id": code,
        "shortDescription": { "text": summary },
        "fullDescription": { "text": why },
        "helpUri": url,
        "help": { "text": why, "markdown": format!("{why}\n\n[{code}]({url})") },
        "defaultConfiguration": { "level": severity.as_str() },
        "properties": { "tags": ["robots.txt"], "precision": "high", "problem.severity": problem },
    })
}

fn result<'f>(
    robots: &RobotsTxt,
    lines: &[Line<'_>],
    uri: &str,
    finding: &'f Finding,
    seen: &mut HashMap<(&'f str, Vec<u8>), usize>,
) -> Value {
    let line = lines.get(finding.line.saturating_sub(1)).map_or(&b""[..], Line::bytes).trim_ascii();
    let line = line[..line.len().min(MAX_LINE_BYTES)].to_vec();
    let times = seen.entry((finding.code, line.clone())).or_default();
    *times += 1;
    json!({
        "ruleId": finding.code,
        "ruleIndex": Lint::all().iter().position(|lint| lint.code == finding.code),
        "level": finding.severity.as_str(),
        "message": { "text": with_help(&finding.message, finding.help.as_deref()) },
        "locations": [{ "physicalLocation": {
            "artifactLocation": { "uri": uri },
            "region": region(robots, lines, finding.span.clone()),
        } }],
        "partialFingerprints": { "primaryLocationLineHash": fingerprint(finding.code, &line, *times) },
    })
}

fn with_help(text: &str, help: Option<&str>) -> String {
    message(&help.map_or_else(|| text.to_owned(), |help| format!("{text}\nhelp: {help}")))
}

/// Percent-encodes a URL without its query. `url` may be invalid and contain any characters.
fn uri_of_url(url: &str) -> String {
    utf8_percent_encode(url.split('?').next().unwrap_or(url), URL).to_string()
}

/// Returns the fingerprint of a finding. The fingerprint does not change if other lines are added
/// or removed. `times` is the number of earlier findings with the same code and line.
fn fingerprint(code: &str, line: &[u8], times: usize) -> String {
    let hash = VersionHash::of(&[code.as_bytes(), b"\n", line].concat()).to_string();
    let hash = hash.trim_start_matches("sha256:").get(..16).unwrap_or_default();
    format!("{hash}:{times}")
}

/// Reports whether the positions that this module writes are correct for programs that read SARIF.
/// Programs that read SARIF do not treat a lone CR as a line end, and count columns in characters.
/// The file must therefore be valid UTF-8 without lone CRs.
fn has_exact_positions(robots: &RobotsTxt) -> bool {
    let file = robots.bytes();
    let is_lone_cr = |at: usize| file[at] == b'\r' && file.get(at + 1) != Some(&b'\n');
    std::str::from_utf8(file).is_ok() && !(0..file.len()).any(is_lone_cr)
}

/// Returns the SARIF object of a fix; `None` if an edit changes bytes before the first line, or if
/// a replacement is not UTF-8.
fn fix_object(robots: &RobotsTxt, lines: &[Line<'_>], uri: &str, fix: &Fix) -> Option<Value> {
    let first = lines.first().map_or(0, |line| line.range.start);
    let mut replacements = Vec::new();
    for edit in fix.edits.clone() {
        let mut replacement = json!({ "deletedRegion": region(robots, lines, edit.start..edit.end) });
        match std::str::from_utf8(&edit.replacement).ok()? {
            "" => {}
            text => replacement["insertedContent"] = json!({ "text": text }),
        }
        if edit.start < first {
            return None;
        }
        replacements.push(replacement);
    }
    let change = json!({ "artifactLocation": { "uri": uri }, "replacements": replacements });
    let text = "Corrects the finding without changing anything for any crawler.";
    Some(json!({ "description": { "text": text }, "artifactChanges": [change] }))
}

/// Escapes `text` so that it contains neither links nor placeholders (SARIF 2.1.0, sections 3.11.5
/// and 3.11.6).
fn message(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '{' | '}' => escaped.extend([char, char]),
            '\\' | '[' | ']' => escaped.extend(['\\', char]),
            _ => escaped.push(char),
        }
    }
    escaped
}

/// Returns the region of a byte range, in lines and characters from 1; the end is exclusive.
fn region(robots: &RobotsTxt, lines: &[Line<'_>], span: Range<usize>) -> Value {
    let place = |byte: usize| {
        let at = lines.partition_point(|line| line.range.start <= byte).saturating_sub(1);
        let Some(line) = lines.get(at) else { return (1, 1) };
        let start = line.range.start;
        let before = robots.bytes().get(start..byte.min(start + line.bytes().len())).unwrap_or(b"");
        // Each invalid sequence counts as one character, as in a lossy conversion.
        let characters =
            before.utf8_chunks().map(|chunk| chunk.valid().chars().count() + usize::from(!chunk.invalid().is_empty()));
        (line.number, characters.sum::<usize>() + 1)
    };
    let ((line, column), (end_line, end_column)) = (place(span.start), place(span.end));
    json!({ "startLine": line, "startColumn": column, "endLine": end_line, "endColumn": end_column })
}

/// Converts a file name to a URI, relative to the working directory if the file is below it.
fn uri(name: &str) -> String {
    if name.contains("://") {
        return uri_of_url(name);
    }
    let path = Path::new(name);
    let here = std::env::current_dir().unwrap_or_default();
    let path = path.strip_prefix(&here).unwrap_or(path);
    let segments: Vec<String> = path
        .components()
        .filter_map(|component| match component {
            Component::Normal(segment) => Some(utf8_percent_encode(&segment.to_string_lossy(), SEGMENT).to_string()),
            Component::ParentDir => Some("..".to_owned()),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => None,
        })
        .collect();
    let start = if path.is_absolute() { "file:///" } else { "" };
    format!("{start}{}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};

    use super::*;

    fn document(name: &str, file: &[u8]) -> Value {
        let robots = RobotsTxt::parse(file);
        let report = check(&robots, &Options::new());
        let mut log = SarifLog::default();
        log.add(Checked { name, robots: &robots, report: &report });
        let mut out = Vec::new();
        log.write(&mut out).expect("a vector takes all");
        serde_json::from_slice(&out).expect("the output is JSON")
    }

    fn results(file: &[u8]) -> Vec<Value> {
        document("robots.txt", file)["runs"][0]["results"].as_array().expect("results").clone()
    }

    fn regions(file: &[u8]) -> Vec<(String, Value)> {
        let region = |result: &Value| {
            let region = &result["locations"][0]["physicalLocation"]["region"];
            let [line, column] = ["startLine", "startColumn"].map(|name| region[name].clone());
            let [end_line, end_column] = ["endLine", "endColumn"].map(|name| region[name].clone());
            (result["ruleId"].as_str().expect("a rule").to_owned(), json!([line, column, end_line, end_column]))
        };
        results(file).iter().map(region).collect()
    }

    #[test]
    fn columns_count_characters_instead_of_bytes() {
        let file = "\u{feff}User-agent: *\nDisallow: é x\nDisallow: ä\n".as_bytes();
        let found = regions(file);
        let of = |code: &str| {
            found.iter().filter(|(found, _)| found == code).map(|(_, place)| place.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of("path-without-slash"), [json!([2, 11, 2, 14]), json!([3, 11, 3, 12])], "{found:?}");
    }

    #[test]
    fn every_region_starts_at_its_finding_and_does_not_end_before_its_start() {
        for lint in Lint::all() {
            let bytes = lint.bad.bytes();
            let robots = RobotsTxt::parse(&*bytes);
            let lines: Vec<Line<'_>> = robots.lines().collect();
            for finding in &check(&robots, &lint.example_options()) {
                let region = region(&robots, &lines, finding.span.clone());
                let at = |name: &str| region[name].as_u64().expect("a number");
                assert_eq!(at("startLine"), finding.line as u64, "{}", lint.code);
                assert!(at("startColumn") >= 1 && at("startLine") <= at("endLine"), "{}: {region}", lint.code);
                assert!(at("startLine") < at("endLine") || at("startColumn") <= at("endColumn"), "{region}");
            }
        }
    }

    #[test]
    fn a_finding_keeps_its_fingerprint_if_lines_are_added_before_it() {
        let prints = |file: &[u8]| -> Vec<String> {
            let print = |result: &Value| result["partialFingerprints"]["primaryLocationLineHash"].to_string();
            results(file).iter().filter(|result| result["ruleId"] == "path-without-slash").map(print).collect()
        };
        let alone = prints(b"User-agent: *\nDisallow: a\nDisallow: a\n");
        let behind = prints(b"# New\nUser-agent: *\nDisallow: /b\nDisallow: a\nDisallow: a\n");
        assert_eq!(alone, behind);
        assert_ne!(alone[0], alone[1]);
    }

    #[test]
    fn findings_about_a_response_have_different_fingerprints() {
        static LINT: AnswerLint =
            AnswerLint { code: "answer-it", severity: Severity::Note, summary: "It", why: "Because it is." };
        let mut log = SarifLog::default();
        let found = |message: &str| FoundProblem::answer(&LINT, &"https://example.com/", message);
        log.add_answer(&[found("one"), found("two")]);
        let print = |at: usize| log.results[at]["partialFingerprints"]["primaryLocationLineHash"].clone();
        assert_ne!(print(0), print(1));
    }

    #[test]
    fn a_safe_fix_is_written_as_its_replacements() {
        let robots = RobotsTxt::parse("User-agent: *\r\nDisallow: /é*\r\nDisallow: /é*\r\nDisallow: x\r\n".as_bytes());
        let report = check(&robots, &Options::new()).with_fixes(&robots, &Options::new());
        let mut log = SarifLog::default();
        log.add(Checked { name: "robots.txt", robots: &robots, report: &report });
        let results = json!(log.results);
        let fix = |code: &str| {
            let result = results.as_array().and_then(|all| all.iter().rev().find(|result| result["ruleId"] == code));
            result.map(|result| result["fixes"][0]["artifactChanges"][0]["replacements"].clone())
        };
        let region = json!({ "startLine": 3, "startColumn": 1, "endLine": 4, "endColumn": 1 });
        assert_eq!(fix("duplicate-rule"), Some(json!([{ "deletedRegion": region }])));
        let region = json!({ "startLine": 3, "startColumn": 11, "endLine": 3, "endColumn": 14 });
        let want = json!([{ "deletedRegion": region, "insertedContent": { "text": "/%C3%A9*" } }]);
        assert_eq!(fix("unescaped-non-ascii"), Some(want));
        assert_eq!(fix("path-without-slash"), Some(Value::Null));
    }

    #[test]
    fn file_content_cannot_add_a_link_to_a_message() {
        let results = results(b"User-agent: *\nDisallow: [x](https://x.test){0}\n");
        let texts = || results.iter().filter_map(|result| result["message"]["text"].as_str());
        assert!(texts().any(|text| text.contains("\\[x\\](https://x.test){{0}}")), "{results:?}");
        assert!(!texts().any(|text| text.replace("\\[", "").contains('[')), "{results:?}");
    }

    #[test]
    fn file_names_become_uris_that_are_relative_if_possible() {
        assert_eq!(uri("a b/ro%bots.txt"), "a%20b/ro%25bots.txt");
        assert_eq!(uri("./x/../é.txt"), "x/../%C3%A9.txt");
        assert_eq!(uri("ftp://…@[::1]:21/a b?…"), "ftp://%E2%80%A6@[::1]:21/a%20b");
        let here = std::env::current_dir().expect("a directory");
        assert_eq!(uri(&here.join("robots.txt").to_string_lossy()), "robots.txt");
        assert_eq!(uri("/etc/robots.txt"), "file:///etc/robots.txt");
    }
}
