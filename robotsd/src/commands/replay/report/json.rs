//! The report as one JSON object.

use std::io::{self, Write};

use super::Report;

pub(super) fn write(out: &mut impl Write, report: &Report) -> io::Result<()> {
    serde_json::to_writer(&mut *out, report)?;
    out.write_all(b"\n")
}
