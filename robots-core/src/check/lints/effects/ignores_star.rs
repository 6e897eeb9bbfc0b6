//! `ignores-star`: crawlers that read their own group and no other.

use std::collections::HashSet;

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "ignores-star",
    severity: Severity::Note,
    summary: "\"*\" closes the site except for some paths, and does not reach every crawler",
    why: "A few crawlers obey groups that name them and ignore those for \"*\", by their operators' own words. A file \
          that closes the site to \"*\" and opens only parts of it leaves all of it open to them, unless it names \
          them.",
    bad: Example::new(b"User-agent: *\nDisallow: /\nAllow: /public/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let named: HashSet<ProductToken> = file
        .robots
        .groups()
        .flat_map(|group| group.names())
        .filter_map(|name| ProductToken::from_name(name.value()))
        .collect();
    let global = || file.robots.groups().filter(|group| group.is_global()).flat_map(|group| group.rules());
    let closes =
        global().find(|rule| rule.access() == Access::Disallow && matches!(rule.pattern(), b"/" | b"/*" | b"*"));
    let opens = global().any(|rule| rule.access() == Access::Allow && matches!(rule.pattern(), [b'/' | b'*', _, ..]));
    // A site shut altogether is a lint of its own.
    let (Some(rule), true) = (closes, opens) else { return };
    let deaf: Vec<&Crawler> = file
        .crawlers
        .registry
        .crawlers()
        .filter(|crawler| crawler.checked_on.is_some() && !crawler.is_control)
        .filter(|crawler| crawler.obeys_robots == Obeys::Yes && crawler.obeys_star == Obeys::No)
        .filter(|crawler| !crawler.tokens.iter().any(|token| named.contains(token)))
        .collect();
    if let Some(first) = deaf.first() {
        sink.report(
            rule.range(),
            format_args!(
                "the group for \"*\" does not reach {}",
                quoted_list(deaf.iter().map(|crawler| crawler.name.as_bytes()))
            ),
        )
        .of_agent(first.name.as_bytes())
        .help("name them in user-agent lines of their own");
    }
}
