//! `control-token`: a name that no request ever has.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "control-token",
    severity: Severity::Note,
    summary: "a token that cannot be enforced",
    why: "Some product tokens appear only in robots.txt: their operators fetch pages under other names, and look up \
          the token to learn how they may use the pages. The operator reads rules for the token, but no request \
          contains it, so a server cannot enforce them.",
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
        format_args!("no request contains the name {named}: {operator} reads the rules, but they cannot be enforced"),
    )
    .of_agent(name.value());
}
