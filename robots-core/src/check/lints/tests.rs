//! Tests properties that every lint must have.

use std::collections::HashSet;

use crate::check::{Example, Finding, Lint, Options, Severity, check};
use crate::rules::RobotsTxt;

mod delays;
mod effects;
mod fields;
mod file;
mod groups;
mod names;
mod paths;
mod rules;
mod sitemaps;
mod usage;

/// The code of a lint, and a description of its test cases.
struct Case(&'static str, &'static str);

impl Case {
    /// Checks the positions of the lint's findings in a file.
    #[track_caller]
    fn found(self, file: impl AsRef<[u8]>, places: &[&str]) -> Self {
        self.same(found, file.as_ref(), places)
    }

    /// Replaces `{}` in a file with each of these values, and checks the positions of the lint's
    /// findings.
    #[track_caller]
    fn found_each(self, file: &str, values: &[&str], places: &[&str]) -> Self {
        values.iter().fold(self, |case, value| case.found(file.replace("{}", value), places))
    }

    #[track_caller]
    fn says(self, file: impl AsRef<[u8]>, said: &[&str]) -> Self {
        self.same(messages, file.as_ref(), said)
    }

    /// Checks the help lines of the lint's findings in a file.
    #[track_caller]
    fn helps(self, file: impl AsRef<[u8]>, helped: &[&str]) -> Self {
        self.same(helps, file.as_ref(), helped)
    }

    /// Checks the path in the help line for each value. `cases` is a list of `VALUE → PATH`,
    /// separated by `~`.
    #[track_caller]
    fn writes(self, cases: &str) -> Self {
        cases.split('~').fold(self, |case, words| {
            let (value, path) = words.split_once(" → ").expect("an arrow");
            case.helps(format!("Allow: {value}"), &[&format!("write \"{path}\"")])
        })
    }

    #[track_caller]
    fn same(self, ask: fn(&str, &[u8]) -> Vec<String>, file: &[u8], want: &[&str]) -> Self {
        assert_eq!(ask(self.0, file), want, "{}: {}: \"{}\"", self.0, self.1, file.escape_ascii());
        self
    }
}

pub(super) fn words(text: &str) -> Vec<&str> {
    text.split(' ').collect()
}

/// Returns the positions of one lint's findings in a file, as `line:column`.
pub(super) fn found(code: &str, file: &[u8]) -> Vec<String> {
    of(code, file).iter().map(|finding| format!("{}:{}", finding.line, finding.column)).collect()
}

pub(super) fn messages(code: &str, file: &[u8]) -> Vec<String> {
    of(code, file).iter().map(|finding| finding.message.to_owned()).collect()
}

/// Returns the help lines of one lint's findings in a file.
pub(super) fn helps(code: &str, file: &[u8]) -> Vec<String> {
    of(code, file).iter().filter_map(|finding| finding.help.as_deref().map(str::to_owned)).collect()
}

fn severities(code: &str, file: &[u8]) -> Vec<Severity> {
    of(code, file).iter().map(|finding| finding.severity).collect()
}

fn of(code: &str, file: &[u8]) -> Vec<Finding> {
    let report = check(&RobotsTxt::parse(file), &Options::new());
    report.findings.iter().filter(|finding| finding.code == code).cloned().collect()
}

fn findings(lint: &Lint, example: &Example) -> Vec<Finding> {
    let file = example.bytes().into_owned();
    check(&RobotsTxt::parse(file), &lint.example_options()).findings.to_vec()
}

#[test]
fn codes_are_kebab_case_and_unique() {
    let mut seen = HashSet::new();
    for lint in Lint::all() {
        let code = lint.code;
        assert!(seen.insert(code), "{code} twice");
        assert!(code.bytes().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-')), "{code}");
        assert!(Lint::of_code(code).is_some(), "{code}");
    }
    assert!(Lint::of_code("no-such-lint").is_none());
}

#[test]
fn every_lint_explains_its_reason_in_one_paragraph() {
    for lint in Lint::all() {
        assert!(lint.why.len() > 60 && !lint.why.contains('\n') && lint.why.ends_with('.'), "{}", lint.code);
        assert!(lint.summary.len() > 10 && !lint.summary.ends_with('.'), "{}", lint.code);
    }
}

#[test]
fn every_bad_example_triggers_its_lint() {
    for lint in Lint::all() {
        let found = findings(lint, &lint.bad);
        assert!(found.iter().any(|finding| finding.code == lint.code), "{}: {found:?}", lint.code);
        assert!(found.iter().all(|finding| finding.code == lint.code), "{}: others too: {found:?}", lint.code);
        assert!(found.iter().any(|finding| finding.severity == lint.severity), "{}: {found:?}", lint.code);
    }
}

#[test]
fn every_good_example_is_clean() {
    for lint in Lint::all() {
        assert_eq!(findings(lint, &lint.good), [], "{}", lint.code);
    }
}

#[test]
fn a_finding_about_a_crawler_contains_its_escaped_and_shortened_name() {
    let agents = |code: &str, file: &[u8]| -> Vec<Option<String>> {
        of(code, file).iter().map(|finding| finding.agent.as_deref().map(str::to_owned)).collect()
    };
    let named = |name: &str| vec![Some(name.to_owned())];
    assert_eq!(agents("ignores-robots", b"User-agent: Pingdom\nDisallow: /x\n"), named("Pingdom"));
    let want = named("Googlebot");
    assert_eq!(agents("whole-site-disallowed", b"User-agent: Googlebot\nUser-agent: bingbot\nDisallow: /\n"), want);
    assert_eq!(agents("whole-site-disallowed", b"User-agent: *\nDisallow: /\n"), [None]);
    assert_eq!(agents("cut-product-token", b"User-agent: a\x1b[31m\nDisallow: /x\n"), named("a\\u{1b}[31m"));
    let long = [b"User-agent: a b", &*b"x".repeat(5000), b"\nDisallow: /x\n"].concat();
    assert!(agents("cut-product-token", &long)[0].as_ref().is_some_and(|agent| agent.chars().count() < 100));
}

#[test]
fn every_message_starts_in_lower_case_without_a_final_full_stop() {
    for finding in Lint::all().iter().flat_map(|lint| findings(lint, &lint.bad)) {
        for text in [Some(finding.message), finding.help].into_iter().flatten() {
            assert!(!text.starts_with(|char: char| char.is_uppercase()), "{text}");
            assert!(!text.ends_with('.') && !text.chars().any(char::is_control), "{text}");
            assert!(text.len() < 300, "{text}");
        }
    }
}

#[test]
fn every_span_is_inside_the_file_and_agrees_with_line_and_column() {
    for lint in Lint::all() {
        let file = lint.bad.bytes().into_owned();
        let robots = RobotsTxt::parse(file.clone());
        for finding in &check(&robots, &lint.example_options()) {
            assert!(finding.span.start <= finding.span.end && finding.span.end <= file.len(), "{finding:?}");
            let line = robots.lines().nth(finding.line - 1).expect("the line exists");
            let start = line.range.start + finding.column - 1;
            assert!(start == finding.span.start || finding.code == "byte-order-mark", "{finding:?}");
        }
    }
}
