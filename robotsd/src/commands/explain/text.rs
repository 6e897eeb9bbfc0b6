//! An answer in words, with the file's own lines.

use std::io::{self, Write};

use tower_robots::policy::{Action, Reason};
use tower_robots::rules::{Access, Line, PathForm, RobotsTxt, Rule, Trace};

use super::Asked;
use super::book::{Answer, Book, Who};
use crate::render::printable;

/// Rules that are shown of those that match, and forms of the path; more say nothing new.
const SHOWN: usize = 20;

pub(super) fn write(out: &mut impl Write, book: &Book, asked: &Asked<'_>) -> io::Result<()> {
    let path = book.path(asked.url.as_bytes());
    let answer = book.ask(&asked.who, asked.method, &path);
    let word = match answer.access {
        Access::Allow => "allowed",
        Access::Disallow => "disallowed",
    };
    writeln!(out, "{word}: {} {}", printable(asked.method.as_bytes()), printable(asked.url.as_bytes()))?;
    agent(out, &asked.who, &answer)?;
    let trace = book.trace(&asked.who, &answer, &path);
    group(out, asked, book, &answer, trace.as_ref())?;
    if let Some(trace) = &trace {
        rules(out, asked.file, book.robots(), trace)?;
    }
    if answer.form == PathForm::Standard && path.as_bytes() != asked.url.as_bytes() {
        writeln!(out, "  path:   {}", printable(path.as_bytes()))?;
    }
    decision(out, &answer)
}

fn agent(out: &mut impl Write, who: &Who<'_>, answer: &Answer<'_>) -> io::Result<()> {
    let (Who::Token(token), None) = (who, &answer.agent) else {
        let Some(recognised) = &answer.agent else { return Ok(()) };
        let agent = &recognised.agent;
        let name = agent.crawler().map_or_else(String::new, |name| format!(" {}", printable(name.as_bytes())));
        let category = agent.category().map_or_else(String::new, |category| format!(", {category}"));
        let tokens: Vec<_> = agent.tokens().iter().map(|token| printable(token.as_bytes())).collect();
        write!(out, "  agent:  {}{name}{category}", agent.class())?;
        if !tokens.is_empty() {
            write!(out, "; obeys {}", tokens.join(", then "))?;
        }
        let star = if recognised.held_to_star { "is held to *" } else { "is not held to *" };
        return writeln!(out, "; {star}");
    };
    writeln!(out, "  agent:  the token {}, taken as given", printable(token.as_bytes()))
}

/// Which groups were asked, and why those.
fn group(
    out: &mut impl Write,
    asked: &Asked<'_>,
    book: &Book,
    answer: &Answer<'_>,
    trace: Option<&Trace<'_>>,
) -> io::Result<()> {
    let Some(trace) = trace else {
        return match answer.reason {
            Reason::Exempt => writeln!(out, "  group:  none asked: the path or the agent is exempt"),
            _ => writeln!(out, "  group:  none is for this agent, so it is not held to the file"),
        };
    };
    for name in trace.groups().iter().flat_map(|group| group.names()) {
        writeln!(
            out,
            "  group:  {}:{}: {}",
            printable(asked.file.as_bytes()),
            name.line(),
            line(book.robots(), name.line())
        )?;
    }
    match book.token_of(&asked.who, answer, trace) {
        Some(token) => writeln!(out, "          because it names {}", printable(token.as_bytes())),
        None => writeln!(out, "          because no group names it, and \"*\" is for everyone else"),
    }
}

/// Every rule that matches, form by form; the one that decides is marked.
fn rules(out: &mut impl Write, file: &str, robots: &RobotsTxt, trace: &Trace<'_>) -> io::Result<()> {
    let file = printable(file.as_bytes());
    let decider = trace.verdict().rule().filter(|rule| !rule.pattern().is_empty()).map(Rule::line);
    let many = trace.forms().len() > 1;
    let deciding = trace.deciding();
    for (number, form) in trace.forms().iter().enumerate() {
        let decides = deciding.is_some_and(|deciding| std::ptr::eq(deciding, form));
        if number >= SHOWN && !decides {
            continue;
        }
        if many {
            let mark = if decides { "  <- decides" } else { "" };
            writeln!(out, "  read as {}: {}{mark}", form.form().as_str(), printable(form.path()))?;
        }
        for rule in form.rules().iter().take(SHOWN) {
            let mark = if decides && Some(rule.line()) == decider { "  <- decides" } else { "" };
            writeln!(out, "  rule:   {file}:{}: {}{mark}", rule.line(), line(robots, rule.line()))?;
        }
        if form.rules().len() > SHOWN {
            writeln!(out, "          and {} more", form.rules().len() - SHOWN)?;
        }
        if form.rules().is_empty() {
            writeln!(out, "  rule:   none of the group's rules matches, so the path is allowed")?;
        }
    }
    if trace.forms().len() > SHOWN {
        writeln!(out, "  of {} forms the first {SHOWN} are shown, and the one that decides", trace.forms().len())?;
    }
    Ok(())
}

/// What the policy does about it.
fn decision(out: &mut impl Write, answer: &Answer<'_>) -> io::Result<()> {
    let Some(action) = answer.action else { return Ok(()) };
    let what = match (action, answer.reason) {
        (Action::Refuse, _) => "refuse",
        (Action::Tag, _) => "tag, and let pass",
        (Action::Pass, Reason::Observed) => "let pass, and record (the mode is observe)",
        (Action::Pass, Reason::Off) => "let pass (the mode is off)",
        (Action::Pass, Reason::Exempt) => "let pass unjudged",
        _ => "let pass",
    };
    writeln!(out, "  policy: {what}")
}

fn line(robots: &RobotsTxt, number: usize) -> String {
    robots.lines().nth(number.saturating_sub(1)).map_or_else(String::new, |line: Line<'_>| printable(line.bytes()))
}
