//! Formats findings as JSON, one object per line, and as Markdown, for a comment on a pull request.
//! Also formats rows of CSV files.

use std::io::{self, Write};

use askama::Template;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::Serialize;
use serde_json::json;
use tower_robots::check::{Edit, Finding, Fix, Lint, Safety, Severity};

use super::checked::Checked;
use super::found_problem::FoundProblem;
use super::printable::{plural, printable, write_json};

#[derive(Serialize)]
struct FindingRecord<'a> {
    file: &'a str,
    #[serde(flatten)]
    finding: &'a Finding,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fix: Option<FixRecord<'a>>,
}

#[derive(Serialize)]
struct FixRecord<'a> {
    safety: Safety,
    edits: Vec<EditRecord<'a>>,
}

/// An edit, as JSON: a byte range of the file and its replacement. The replacement is text, or
/// Base64 if it is not UTF-8.
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
            let text = std::str::from_utf8(&edit.replacement).ok();
            let base64 = text.is_none().then(|| BASE64_STANDARD.encode(&edit.replacement));
            EditRecord { start: edit.start, end: edit.end, text, base64 }
        };
        Self { safety: fix.safety, edits: fix.edits.iter().map(record).collect() }
    }
}

pub(super) fn json(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    for (finding, fix) in checked.findings() {
        let (url, fix) = (Lint::of_code(finding.code).map(Lint::url), fix.map(FixRecord::of));
        write_json(out, &FindingRecord { file: checked.name, finding, url, fix })?;
    }
    match checked.report.omitted() {
        0 => Ok(()),
        // If the report omits findings, the number of omitted findings is written.
        omitted => write_json(out, &json!({ "file": checked.name, "omitted": omitted })),
    }
}

#[derive(Template)]
#[template(path = "render/findings_markdown.txt", whitespace = "preserve")]
struct FindingsMarkdown<'a> {
    name: String,
    counts: [usize; 3],
    checked: Checked<'a>,
}

pub(super) fn markdown(out: &mut impl Write, checked: Checked<'_>) -> io::Result<()> {
    let counts = Severity::ALL.map(|severity| checked.report.count(severity));
    writeln!(out, "{}", FindingsMarkdown { name: markdown_code(&printable(checked.name)), counts, checked })
}

#[derive(Template)]
#[template(path = "render/answers_markdown.txt", whitespace = "preserve")]
struct AnswersMarkdown<'a> {
    name: String,
    findings: &'a [FoundProblem],
}

pub(super) fn markdown_answers(out: &mut impl Write, name: &str, findings: &[FoundProblem]) -> io::Result<()> {
    match findings {
        [] => Ok(()),
        _ => writeln!(out, "{}", AnswersMarkdown { name: markdown_code(&printable(name)), findings }),
    }
}

/// Formats counts in the order of [`Severity::ALL`], for example as `1 error, 2 notes`. Empty if
/// all counts are zero.
pub(crate) fn found(counts: [usize; 3]) -> String {
    let counts = Severity::ALL.into_iter().zip(counts).filter(|(_, count)| *count > 0);
    let words = counts.map(|(severity, count)| plural(count, severity.as_str()));
    words.collect::<Vec<_>>().join(", ")
}

/// Formats a message as Markdown. Quoted parts become code, because they come from files and
/// servers. If other parts contain special characters, the whole message becomes code.
pub(crate) fn markdown_text(message: &str) -> String {
    let is_plain = |char: char| char.is_alphanumeric() || " .,:;()'/%+-=".contains(char);
    let (mut shown, mut part, mut is_quoted) = (String::new(), String::new(), false);
    let mut chars = message.chars();
    while let Some(char) = chars.next() {
        match char {
            '"' if is_quoted => shown.push_str(&markdown_code(&std::mem::take(&mut part))),
            '"' => {}
            // Inside quotes, `\"` and `\\` are unescaped; other escapes are kept.
            '\\' if is_quoted => {
                let next = chars.next();
                part.extend(Some(char).filter(|_| !matches!(next, Some('"' | '\\'))).into_iter().chain(next));
            }
            _ if is_quoted => part.push(char),
            _ if is_plain(char) => shown.push(char),
            _ => return markdown_code(message),
        }
        is_quoted ^= char == '"';
    }
    // Markdown turns bare URLs into links, so messages with URLs become code.
    if is_quoted || message.contains("://") || message.contains("www.") { markdown_code(message) } else { shown }
}

/// Maximum number of consecutive backticks in the output. Markdown renderers do not support much
/// longer fences.
const MAX_BACKTICKS: usize = 16;

pub(crate) fn markdown_code(text: &str) -> String {
    code_span(text).replace('|', "\\|")
}

/// Formats text as code. In code, nothing is treated as markup, as a mention or as a link, and the
/// text can be copied unchanged.
pub(crate) fn code_span(text: &str) -> String {
    let (mut shown, mut run, mut longest) = (String::with_capacity(text.len()), 0, 0);
    for char in text.chars() {
        run = if char == '`' { run + 1 } else { 0 };
        longest = longest.max(run.min(MAX_BACKTICKS));
        match char {
            '`' if run == MAX_BACKTICKS + 1 => shown.push('…'),
            '`' if run > MAX_BACKTICKS => {}
            _ => shown.push(char),
        }
    }
    if shown.is_empty() {
        // Two backticks without content would begin another code span, so a space is added.
        shown.push(' ');
    }
    let fence = "`".repeat(longest + 1);
    let space = if shown.starts_with('`') || shown.ends_with('`') { " " } else { "" };
    format!("{fence}{space}{shown}{space}{fence}")
}

/// Formats a row of a CSV file (RFC 4180). Fields may come from clients and files, so a field that
/// a spreadsheet would treat as a formula is prefixed with an apostrophe.
pub(crate) fn csv_row<const N: usize>(fields: [String; N]) -> String {
    let quoted = fields.map(|field| {
        let is_formula = field.starts_with(['=', '+', '-', '@', '\t', '\r']);
        let field = if is_formula { format!("'{field}") } else { field };
        let is_quoted = field.contains(['"', ',', ';', '\n', '\r', '\'']);
        if is_quoted { format!("\"{}\"", field.replace('"', "\"\"")) } else { field }
    });
    quoted.join(",") + "\r\n"
}

#[cfg(test)]
mod tests {
    use tower_robots::check::{Options, check};
    use tower_robots::rules::RobotsTxt;

    use super::super::found_problem::github;
    use super::*;

    fn written(write: fn(&mut Vec<u8>, Checked<'_>) -> io::Result<()>, name: &str, file: &[u8]) -> String {
        let robots = RobotsTxt::parse(file);
        let report = check(&robots, &Options::new());
        let mut out = Vec::new();
        write(&mut out, Checked { name, robots: &robots, report: &report }).expect("a vector takes all");
        String::from_utf8(out).expect("the output is UTF-8")
    }

    #[test]
    fn characters_that_end_a_workflow_command_are_escaped() {
        let want = "::error file=a%2Cb%3Ac\\n,line=2,col=11,title=path-without-slash::\"100%25\" begins with neither \"/\" nor \"*\", so it matches no path%0Ahelp: write \"/100%25\"%0Asee https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash\n";
        assert_eq!(written(github, "a,b:c\n", b"User-agent: *\nDisallow: 100%\n"), want);
    }

    #[test]
    fn a_fix_is_written_as_its_edits_and_safety() {
        let with_fixes = |out: &mut Vec<u8>, checked: Checked<'_>| {
            let report = checked.report.clone().with_fixes(checked.robots, &Options::new());
            json(out, Checked { report: &report, ..checked })
        };
        let text = written(with_fixes, "a", b"User-agent: *\nDissallow: /p\n");
        let want = r#""fix":{"safety":"safe","edits":[{"start":14,"end":23,"text":"Disallow"}]}}"#;
        assert!(text.trim_end().ends_with(want), "{text}");
    }

    #[test]
    fn a_finding_is_a_json_object_on_one_line() {
        let want = concat!(
            r#"{"file":"a\nb","code":"path-without-slash","severity":"error","line":2,"column":11,"#,
            r#""span":{"start":24,"end":26},"message":"\"a\\u{1b}\" begins with neither \"/\" nor \"*\", so it matches "#,
            r#"no path","help":"write \"/a\\u{1b}\"","#,
            r#""url":"https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash"}"#,
            "\n"
        );
        assert_eq!(written(json, "a\nb", b"User-agent: *\nDisallow: a\x1b\n"), want);
    }

    #[test]
    fn quoted_code_in_a_message_is_unquoted_in_markdown() {
        let text = "a\\b \"c\"\u{202e}";
        let want = format!("{} is odd", markdown_code("a\\b \"c\"\\u{202e}"));
        assert_eq!(markdown_text(&format!("{text:?} is odd")), want);
    }

    #[test]
    fn a_finding_is_a_markdown_row_with_a_link() {
        let text = written(markdown, "robots.txt", b"User-agent: *\nDisallow: private/\n");
        let row = text.lines().nth(4).expect("a row");
        assert!(text.starts_with("`robots.txt`: 1 error\n\n| line | | finding |\n"), "{text}");
        let want = "| 2 | error [path-without-slash](https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash) \
                    | `private/` begins with neither `/` nor `*`, so it matches no path<br>help: write `/private/` |";
        assert_eq!(row, want);
        let expected = "`robots.txt`: nothing found\n\n";
        assert_eq!(written(markdown, "robots.txt", b"User-agent: *\nDisallow: /private/\n"), expected);
    }

    #[test]
    fn file_content_appears_only_inside_markdown_code() {
        assert_eq!(markdown_code("a @team | b"), "`a @team \\| b`");
        assert_eq!(markdown_code("a``b`c"), "```a``b`c```");
        assert_eq!(markdown_code("`a"), "`` `a ``");
        assert_eq!(markdown_code(""), "` `");
        let (ticks, fence) = ("`".repeat(16), "`".repeat(17));
        assert_eq!(markdown_code(&ticks), format!("{fence} {ticks} {fence}"));
        assert_eq!(markdown_code(&format!("{}@team", "`".repeat(400))), format!("{fence} {ticks}…@team {fence}"));
        let text = written(
            markdown,
            "a|b`c.txt",
            b"User-agent: *\nDisallow: @team <img src=x> | [a](b) ``c` https://x.test\n",
        );
        for row in text.lines().filter(|line| line.starts_with("| 2 |")) {
            assert_eq!(row.replace("\\|", "").matches('|').count(), 4, "{row}");
            // Content of the file must not appear outside code.
            let outside: String = row.split("```").step_by(2).flat_map(|part| part.split('`').step_by(2)).collect();
            assert!(!outside.contains('@') && !outside.contains("<img"), "{row}");
        }
    }

    #[test]
    fn csv_fields_are_quoted_and_never_read_as_formulas() {
        for (field, want) in [
            ("GPTBot", "GPTBot"),
            ("/a?b=c", "/a?b=c"),
            ("a,b", "\"a,b\""),
            ("a\"b", "\"a\"\"b\""),
            ("/a,b\"c", "\"/a,b\"\"c\""),
            ("=HYPERLINK(1)", "\"'=HYPERLINK(1)\""),
            ("=1+1", "\"'=1+1\""),
            ("@bot", "\"'@bot\""),
            ("@x\n", "\"'@x\n\""),
            ("-1+1", "\"'-1+1\""),
            ("+x", "\"'+x\""),
            ("", ""),
        ] {
            assert_eq!(csv_row([field.to_owned()]), format!("{want}\r\n"));
        }
    }
}
