//! Findings as JSON, one object a line.

use std::io::{self, Write};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use tower_robots::check::{Edit, Finding, Fix, Lint, Safety, lint};

use super::answer_finding::Checked;
use super::printable::write_json;

#[derive(Serialize)]
struct FindingRecord<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    /// Where the lint is explained.
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<FixRecord<'a>>,
}

/// How a finding can be corrected.
#[derive(Serialize)]
struct FixRecord<'a> {
    safety: Safety,
    edits: Vec<EditRecord<'a>>,
}

/// Octets of the file and what takes their place: text, or what is no UTF-8 in Base64.
#[derive(Serialize)]
struct EditRecord<'a> {
    start: usize,
    end: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl<'a> FixRecord<'a> {
    fn of(fix: &'a Fix) -> Self {
        let record = |edit: &'a Edit| {
            let (range, text) = (edit.range(), std::str::from_utf8(edit.replacement()).ok());
            let base64 = text.is_none().then(|| BASE64_STANDARD.encode(edit.replacement()));
            EditRecord { start: range.start, end: range.end, text, base64 }
        };
        Self { safety: fix.safety, edits: fix.edits.iter().map(record).collect() }
    }
}

/// Where a report holds only the first findings, the last line of the file says how many more there are.
#[derive(Serialize)]
struct Omitted<'a> {
    file: &'a str,
    omitted: usize,
}

pub(super) fn write(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    for (finding, fix) in checked.findings() {
        let (url, fix) = (lint(finding.code).map(Lint::url), fix.map(FixRecord::of));
        write_json(out, &FindingRecord { file: checked.name, finding, url, fix })?;
    }
    match checked.report.omitted() {
        0 => Ok(()),
        omitted => write_json(out, &Omitted { file: checked.name, omitted }),
    }
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::*;

    #[test]
    fn a_fix_is_its_edits() {
        let robots = RobotsTxt::parse(&b"User-agent: *\nDissallow: /p\n"[..]);
        let report = check(&robots, &Options::new()).with_fixes(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, Checked { name: "a", robots: &robots, report: &report }).expect("a vector takes all");
        let want = r#""fix":{"safety":"safe","edits":[{"start":14,"end":23,"text":"Disallow"}]}}"#;
        assert!(String::from_utf8_lossy(&out).trim_end().ends_with(want), "{}", String::from_utf8_lossy(&out));
    }

    #[test]
    fn a_finding_is_an_object_on_one_line() {
        let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: a\x1b\n"[..]);
        let report = check(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, Checked { name: "a\nb", robots: &robots, report: &report }).expect("a vector takes all");
        let want = concat!(
            r#"{"file":"a\nb","code":"path-without-slash","severity":"error","line":2,"column":11,"#,
            r#""span":{"start":24,"end":26},"message":"\"a\\u{1b}\" begins with neither \"/\" nor \"*\": it matches "#,
            r#"no path","help":"write \"/a\\u{1b}\"","#,
            r#""url":"https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash"}"#,
            "\n"
        );
        assert_eq!(String::from_utf8_lossy(&out), want);
    }
}
