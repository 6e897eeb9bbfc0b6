//! `costly-wildcards`: rules that take long to compare with a path.

use crate::check::lint::*;
use crate::rules::Costly;

pub(crate) const LINT: Lint = Lint {
    code: "costly-wildcards",
    severity: Severity::Warning,
    summary: "so many wildcards that matching a path is slow",
    why: "Each \"*\" of a pattern can match at many places in a path. Some crawlers try every combination, others \
          give up or ignore such a rule. A server that enforces the rule needs much processor time, especially for \
          crafted paths. A single \"*\" between two literal parts is almost always enough.",
    bad: Example::new(b"User-agent: *\nDisallow: /*a*b*c*d*e*f*g*h*i*j*k*l*m*n*o*p*q\n"),
    good: Example::new(b"User-agent: *\nDisallow: /*a*q\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let rules = file.robots.compile(Reading::Standard);
    let mut costly = rules.costly().iter().peekable();
    for line in file.robots.lines() {
        while let Some(found) = costly.next_if(|costly| costly.line == line.number) {
            let Costly { wildcards, is_together, .. } = *found;
            let (what, most) = match is_together {
                false => ("a pattern with", Costly::MANY_WILDCARDS),
                true => ("the rules for this crawler have", Costly::MANY_TOGETHER),
            };
            let message = format_args!(
                "{what} {wildcards} wildcards: matching a path against more than {most} wildcards is slow"
            );
            let draft = sink.report(line.content(), message);
            draft.help("shorten the pattern to its longest literal parts, or name directories instead");
        }
    }
}
