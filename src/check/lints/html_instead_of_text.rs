//! `html-instead-of-text`: a web page under the name of robots.txt.

use std::ops::Range;

use crate::check::Severity;
use crate::check::lint::{Example, Lint, Pass, Subject};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;

pub(in crate::check) const LINT: Lint = Lint {
    code: "html-instead-of-text",
    severity: Severity::Error,
    summary: "a web page instead of rules",
    why: "A server that answers every unknown path with its start page or an error page answers /robots.txt with it \
          too. Crawlers look for rules in it and, finding none, fetch everything. No other lint looks at such a file.",
    bad: Example::new(b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
};

/// How web pages begin. Not every tag: rules wrapped in `<pre>` are still rules to a crawler.
const BEGINNINGS: [&[u8]; 9] =
    [b"<!doctype", b"<html", b"<head", b"<body", b"<title", b"<meta", b"<script", b"<?xml", b"<!--"];

fn run(subject: &Subject<'_>, sink: &mut Sink) {
    if let Some(beginning) = page(subject.bytes()) {
        let text = Quoted(&subject.bytes()[beginning.clone()]);
        sink.report(beginning, format_args!("the file begins with {text}: it is a web page, not a robots.txt"))
            .help(format_args!("put rules or a comment here, or have the server answer 404"));
    }
}

/// Where the first tag of a web page stands.
pub(in crate::check) fn page(file: &[u8]) -> Option<Range<usize>> {
    let text = file.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(file);
    let start = file.len() - text.trim_ascii_start().len();
    BEGINNINGS
        .iter()
        .map(|beginning| start..start + beginning.len())
        .zip(BEGINNINGS)
        .find(|(at, beginning)| file.get(at.clone()).is_some_and(|head| head.eq_ignore_ascii_case(beginning)))
        .map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::found;

    #[test]
    fn pages_are_found_by_how_they_begin() {
        for (file, want) in [
            (&b"<!DocType html><html>"[..], vec!["1:1"]),
            (b"\xEF\xBB\xBF\n  <HTML lang=en>\nfoo\n", vec!["2:3"]),
            (b"<?xml version='1.0'?>", vec!["1:1"]),
            (b"# <html>\n", vec![]),
            (b"<pre>User-agent: *", vec![]),
            (b"User-agent: *\nDisallow: /\n<html>", vec![]),
            (b"<", vec![]),
        ] {
            assert_eq!(found("html-instead-of-text", file), want, "{file:?}");
        }
    }
}
