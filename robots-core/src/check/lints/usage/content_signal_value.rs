//! `content-signal-value`: a Content-Signal line whose value is invalid.

use crate::check::lint::*;
use crate::check::lints::usage::content_usage_value::{corrected, first_wrong};

pub(crate) const LINT: Lint = Lint {
    code: "content-signal-value",
    severity: Severity::Warning,
    summary: "a Content-Signal line that is not a list of signals",
    why: "Content signals are \"search\", \"ai-input\" and \"ai-train\", each with \"=yes\" or \"=no\", and \"use\" \
          with \"=immediate\", \"=reference\" or \"=full\", separated by commas. If a signal is missing, the line \
          neither permits nor forbids the use that this signal describes. Invalid and unknown signals are treated as \
          missing.",
    bad: Example::new(b"User-agent: *\nContent-Signal: search=y, ai-train=n\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nContent-Signal: search=yes, ai-train=no\nDisallow: /private/\n"),
    pass: Pass::Named("content-signal", run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| corrected(value, words)))),
};

const SIGNALS: [&str; 4] = ["search", "ai-input", "ai-train", "use"];

const fn words(signal: &[u8]) -> &'static [&'static str] {
    match signal {
        b"use" => &["immediate", "reference", "full"],
        _ => &["yes", "no"],
    }
}

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let span = field.value_or_name();
    let help =
        "write signals such as \"search=yes, ai-train=no\"; \"use\" requires \"immediate\", \"reference\" or \"full\"";
    if let Some(item) = first_wrong(field.value, words) {
        sink.report(span, format_args!("{item} is not a content signal", item = Quoted(item))).help(help);
        return;
    }
    let keys = field.value.split(|byte| matches!(byte, b',' | b' ' | b'\t')).filter_map(|item| {
        let at = memchr::memchr(b'=', item)?;
        Some(&item[..at])
    });
    let known = |key: &[u8]| SIGNALS.iter().any(|signal| signal.as_bytes() == key);
    if let Some(key) = keys.into_iter().find(|key| !known(key)) {
        sink.report(span, format_args!("{signal} is not a known content signal", signal = Quoted(key))).help(help);
    }
}
