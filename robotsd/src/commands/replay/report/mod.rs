//! The report of a replay, as text, JSON or HTML.

mod chart;
mod contents;
mod html;
mod log_gaps;
mod others;
mod pace_rows;
mod request_counts;
mod rule_rows;
mod rules_text;
mod senders;
mod senders_html;
mod senders_text;
mod tables;
mod text;
mod warnings;

use std::io::{self, Write};

pub(super) use self::contents::{Report, ReportNames};

/// How a report is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(super) enum ReportForm {
    /// Bars in the terminal
    Text,
    /// One JSON object
    Json,
    /// A page that needs nothing else
    Html,
}

pub(super) fn write(report: &Report, out: &mut impl Write, form: ReportForm) -> io::Result<()> {
    match form {
        ReportForm::Text => text::write(out, report),
        ReportForm::Json => {
            serde_json::to_writer(&mut *out, report)?;
            out.write_all(b"\n")
        }
        ReportForm::Html => html::write(out, report),
    }
}
