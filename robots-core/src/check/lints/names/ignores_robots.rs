//! `ignores-robots`: rules for a crawler that does not obey robots.txt.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "ignores-robots",
    severity: Severity::Note,
    summary: "rules for a crawler that does not obey robots.txt",
    why: "Some clients do not obey robots.txt, mostly because a person starts each request. Rules for them have no \
          effect unless a server enforces the file.",
    bad: Example::new(b"User-agent: Pingdom\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: Googlebot\nDisallow: /private/\n"),
    pass: Pass::Group(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, group: Group<'_>, sink: &mut Sink) {
    let restricts = group.rules().any(|rule| rule.access() == Access::Disallow && !rule.pattern().is_empty());
    for name in group.names().filter(|_| restricts) {
        let crawler = file.crawlers.named(name);
        if crawler.is_some_and(|crawler| crawler.obeys_robots == Obeys::No && !crawler.is_control) {
            sink.report(
                name.range(),
                format_args!(
                    "{crawler} does not obey robots.txt: only a server that enforces the file can block it",
                    crawler = Quoted(name.value())
                ),
            )
            .of_agent(name.value());
        }
    }
}
