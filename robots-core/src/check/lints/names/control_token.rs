//! `control-token`: a name that occurs only in robots.txt, never in requests.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "control-token",
    severity: Severity::Note,
    summary: "a token whose rules a server cannot enforce",
    why: "Some product tokens appear in robots.txt only: the operator fetches pages under another name, and the rules \
          for the token tell the operator how it may use the pages. Requests never contain such a token, so a server \
          cannot enforce its rules.",
    bad: Example::new(b"User-agent: Google-Extended\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: GPTBot\nDisallow: /private/\n"),
    pass: Pass::Name(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, name: Name<'_>, sink: &mut Sink) {
    let Some(crawler) = file.crawlers.named(name).filter(|crawler| crawler.is_control) else { return };
    let operator = if crawler.operator.is_empty() { "its operator" } else { &crawler.operator };
    let named = Quoted(name.value());
    sink.report(
        name.range(),
        format_args!(
            "requests never contain the name {named}: {operator} reads the rules, but a server cannot enforce them"
        ),
    )
    .of_agent(name.value());
}
