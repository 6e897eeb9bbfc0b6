//! The report of a replay, as text, JSON or HTML.

mod contents;
mod html;
mod rows;
mod senders;
mod tables;
mod text;

use std::io::{self, Write};

use crate::render::write_json;

pub(super) use self::contents::Report;

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
        ReportForm::Json => write_json(out, report),
        ReportForm::Html => html::write(out, report),
    }
}
