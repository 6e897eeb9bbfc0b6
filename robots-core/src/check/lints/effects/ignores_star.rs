//! `ignores-star`: a group for `*` that some crawlers ignore, because they obey only groups that
//! name them.

use std::collections::HashSet;

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "ignores-star",
    severity: Severity::Note,
    summary: "a group for \"*\" that blocks most of the site, but that some crawlers ignore",
    why: "A few crawlers are documented to obey groups that name them, but to ignore groups for \"*\". If a file \
          blocks the site for \"*\" except for some parts, these crawlers still fetch everything unless the file \
          names them.",
    bad: Example::new(b"User-agent: *\nDisallow: /\nAllow: /public/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let named: HashSet<_> = file.names().filter_map(|name| ProductToken::from_name(name.value())).collect();
    let global = || file.robots.groups().filter(|group| group.is_global()).flat_map(|group| group.rules());
    let closes =
        global().find(|rule| rule.access() == Access::Disallow && matches!(rule.pattern(), b"/" | b"/*" | b"*"));
    let opens = global().any(|rule| rule.access() == Access::Allow && matches!(rule.pattern(), [b'/' | b'*', _, ..]));
    // If no rule allows any part of the site, the lint `whole-site-disallowed` applies instead.
    let (Some(rule), true) = (closes, opens) else { return };
    let ignores_star = |crawler: &&Crawler| {
        let is_documented = crawler.checked_on.is_some() && !crawler.is_control;
        is_documented && crawler.obeys_robots == Obeys::Yes && crawler.obeys_star == Obeys::No
    };
    let ignoring = file.crawlers.registry.crawlers().filter(ignores_star);
    let ignoring = ignoring.filter(|crawler| !crawler.tokens.iter().any(|token| named.contains(token)));
    let ignoring: Vec<&[u8]> = ignoring.map(|crawler| crawler.name.as_bytes()).collect();
    if let Some(first) = ignoring.first() {
        let names = quoted_list(ignoring.iter().copied());
        sink.report(rule.range(), format_args!("the group for \"*\" is ignored by {names}"))
            .of_agent(first)
            .help("add a user-agent line for each of these crawlers");
    }
}
