//! Findings as diagnostics, each with a link to the page that explains its lint.

use serde_json::{Value, json};
use tower_robots::check::{Finding, Lint, Report, Severity};

use super::document::Document;
use super::protocol::Range;

/// The value of `DiagnosticSeverity.Information` in the protocol.
const NOTE: u8 = 3;

/// Returns the diagnostics of a document. Diagnostics about the bytes of the file come first.
pub(super) fn diagnostics(document: &Document, report: &Report) -> Vec<Value> {
    let on_disk = document.on_disk.iter().map(disk_diagnostic);
    let mut all: Vec<_> =
        on_disk.chain(report.findings.iter().map(|finding| text_diagnostic(document, finding))).collect();
    if report.omitted() > 0 {
        let message = format!("{} more findings of these kinds are not shown", report.omitted());
        let range = Range::default();
        all.push(json!({ "range": range, "severity": NOTE, "source": "robotsd", "message": message }));
    }
    all
}

pub(super) fn text_diagnostic(document: &Document, finding: &Finding) -> Value {
    let mut diagnostic = diagnostic(finding, document.range(finding.span.clone()), finding.message.clone());
    if let Some(line) = finding.related_line {
        let location = json!({ "uri": document.uri, "range": document.line_range(line) });
        diagnostic["relatedInformation"] = json!([{ "location": location, "message": format!("line {line}") }]);
    }
    diagnostic
}

/// Returns the diagnostic of a finding about the bytes of the file. The position of the diagnostic
/// is the start of the document, because the lines of the text in the editor may differ from the
/// lines of the file.
fn disk_diagnostic(finding: &Finding) -> Value {
    let message = format!("line {} of the file on disk: {}", finding.line, finding.message);
    diagnostic(finding, Range::default(), message)
}

fn diagnostic(finding: &Finding, range: Range, message: String) -> Value {
    let severity = match finding.severity {
        Severity::Error => 1,
        Severity::Warning => 2,
        Severity::Note => NOTE,
    };
    let message = match &finding.help {
        Some(help) => format!("{message}\nhelp: {help}"),
        None => message,
    };
    let mut diagnostic = json!({
        "range": range,
        "severity": severity,
        "code": finding.code,
        "source": "robotsd",
        "message": message,
    });
    if let Some(lint) = Lint::of_code(finding.code) {
        diagnostic["codeDescription"] = json!({ "href": lint.url() });
    }
    diagnostic
}
