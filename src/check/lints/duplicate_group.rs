//! `duplicate-group`: a name in more than one group.

use std::collections::HashMap;

use crate::check::Severity;
use crate::check::checked_file::CheckedFile;
use crate::check::lint::{Example, Lint, Pass};
use crate::check::quote::Quoted;
use crate::check::sink::Sink;
use crate::rules::{Name, ProductToken};

pub(super) const LINT: Lint = Lint {
    code: "duplicate-group",
    severity: Severity::Note,
    summary: "a crawler that is named more than once",
    why: "Groups for the same crawler are read as one (RFC 9309, section 2.2.1), wherever they stand. Older parsers \
          take the first or the last of them only, and people overlook the other one.",
    bad: Example::new(b"User-agent: *\nDisallow: /private/\n\nUser-agent: *\nDisallow: /drafts/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n"),
    pass: Pass::File(run),
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut seen: HashMap<Option<ProductToken>, (Name<'_>, usize)> = HashMap::new();
    for (group, name) in
        file.robots.groups().enumerate().flat_map(|(at, group)| group.names().map(move |name| (at, name)))
    {
        let token = if name.is_star() { None } else { ProductToken::from_name(name.value()) };
        if token.is_none() && !name.is_star() {
            continue;
        }
        let Some((first, known)) = seen.get(&token).copied() else {
            seen.insert(token, (name, group));
            continue;
        };
        let (value, line) = (Quoted(name.value()), first.line());
        if known == group {
            sink.report(name.range(), format_args!("{value} stands in line {line} of the same group already"))
                .help(format_args!("remove one of the lines"));
        } else {
            sink.report(
                name.range(),
                format_args!("{value} has a group in line {line} already: crawlers read the two as one"),
            )
            .help(format_args!("move the rules to the group in line {line}"));
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::check::lints::tests::{found, messages};

    #[test]
    fn names_are_compared_as_tokens() {
        let file =
            b"User-agent: A\nUser-agent: *\nAllow: /\nUser-agent: a/2\nUser-agent: * all\nUser-agent: b\nAllow: /";
        assert_eq!(found("duplicate-group", file), ["4:13", "5:13"]);
        let file = b"User-agent: a\nUser-agent: a\nAllow: /\nUser-agent:\nUser-agent:\nAllow: /\n";
        assert_eq!(messages("duplicate-group", file), ["\"a\" stands in line 1 of the same group already"]);
    }
}
