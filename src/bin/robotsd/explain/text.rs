//! An answer in words, with the file's own lines.

use std::io::{self, Write};

use tower_robots::policy::Reason;
use tower_robots::rules::{Access, Line, PathForm, RobotsTxt};

use super::book::{Answer, Book, Who};

pub(super) fn write(
    out: &mut impl Write,
    file: &str,
    book: &Book,
    who: &Who<'_>,
    method: &str,
    url: &str,
) -> io::Result<()> {
    let path = book.path(url.as_bytes());
    let answer = book.ask(who, method, &path);
    let word = match answer.access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    };
    writeln!(out, "{word}: {method} {}", url.escape_debug())?;
    agent(out, who, &answer)?;
    group(out, file, book.robots(), &answer)?;
    match answer.verdict.and_then(|verdict| verdict.rule()) {
        Some(rule) if rule.pattern().is_empty() => {
            writeln!(out, "  rule:   {file}:{}: an empty value, which restricts nothing", rule.line())?;
        }
        Some(rule) => {
            writeln!(out, "  rule:   {file}:{}: {}", rule.line(), line(book.robots(), rule.line()))?;
        }
        None if answer.verdict.is_some_and(|verdict| verdict.group().is_some()) => {
            writeln!(out, "  rule:   none of the group's rules matches, so the path is allowed")?;
        }
        None => {}
    }
    if !path.is_canonical() {
        for (form, octets) in path.forms() {
            let mark = if form == answer.form { "  <- decides" } else { "" };
            writeln!(out, "  read as {}: {}{mark}", form.as_str(), printable(octets))?;
        }
    } else if answer.form == PathForm::Standard && path.as_bytes() != url.as_bytes() {
        writeln!(out, "  path:   {}", printable(path.as_bytes()))?;
    }
    Ok(())
}

fn agent(out: &mut impl Write, who: &Who<'_>, answer: &Answer<'_>) -> io::Result<()> {
    let (Who::Token(token), None) = (who, &answer.agent) else {
        let Some(recognised) = &answer.agent else { return Ok(()) };
        let agent = &recognised.agent;
        let name = agent.crawler().map_or_else(String::new, |name| format!(" {}", name.escape_debug()));
        let category = agent.category().map_or_else(String::new, |category| format!(", {category}"));
        let tokens: Vec<_> = agent.tokens().iter().map(ToString::to_string).collect();
        write!(out, "  agent:  {}{name}{category}", agent.class())?;
        if !tokens.is_empty() {
            write!(out, "; obeys {}", tokens.join(", then ").escape_debug())?;
        }
        let star = if recognised.held_to_star { "is held to *" } else { "is not held to *" };
        return writeln!(out, "; {star}");
    };
    writeln!(out, "  agent:  the token {}, taken as given", token.escape_debug())
}

fn group(out: &mut impl Write, file: &str, robots: &RobotsTxt, answer: &Answer<'_>) -> io::Result<()> {
    match answer.verdict.and_then(|verdict| verdict.group()) {
        Some(group) => {
            for name in group.names() {
                writeln!(out, "  group:  {file}:{}: {}", name.line(), line(robots, name.line()))?;
            }
            Ok(())
        }
        None if answer.reason == Reason::Exempt => writeln!(out, "  group:  none asked: the path is exempt"),
        None => writeln!(out, "  group:  none is for this agent, so it is not held to the file"),
    }
}

fn line(robots: &RobotsTxt, number: usize) -> String {
    robots.lines().nth(number.saturating_sub(1)).map_or_else(String::new, |line: Line<'_>| printable(line.bytes()))
}

fn printable(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).escape_debug().to_string()
}
