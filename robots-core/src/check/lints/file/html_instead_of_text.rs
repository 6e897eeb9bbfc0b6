//! `html-instead-of-text`: an HTML page instead of a robots.txt.

use crate::check::file_kind::{FileKind, first_tag};
use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "html-instead-of-text",
    severity: Severity::Error,
    summary: "a web page instead of rules",
    why: "If a server answers every unknown path with its home page or an error page, it does the same for \
          /robots.txt. Crawlers find no rules in this page, and fetch everything. Other lints do not check such a \
          file.",
    bad: Example::new(b"<!DOCTYPE html>\n<html><body>Not found</body></html>\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::OfKind(FileKind::Html, run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    if let Some(beginning) = first_tag(file.robots) {
        let text = Quoted(&file.bytes()[beginning.clone()]);
        sink.report(beginning, format_args!("the file begins with {text}: it is a web page, not a robots.txt"))
            .help("serve rules or a comment at this URL, or let the server answer 404");
    }
}
