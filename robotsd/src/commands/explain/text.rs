//! An explanation as text, with the lines of the file.

use std::io::{self, Write};

use tower_robots::agent::Obeys;
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::{Line, PathForm, RobotsTxt, Rule, Seconds, Trace};

use super::explanation::{ExplainedRequest, Explanation, ShownPolicy};
use super::headline;
use crate::evaluator::Evaluator;
use crate::render::printable;

/// Matching rules that are shown, and forms of the path.
const SHOWN: usize = 20;

pub(super) fn write(out: &mut impl Write, evaluator: &Evaluator, request: &ExplainedRequest<'_>) -> io::Result<()> {
    let path = evaluator.path(request.url.as_bytes());
    let explanation =
        Explanation::for_sender(evaluator, request.requester, request.sender.known(), request.method, &path);
    let trace = explanation.trace(&path);
    writeln!(out, "{}", headline::of(evaluator, request, &explanation, trace.as_ref(), &path))?;
    match (request.requester.as_token(), explanation.agent()) {
        (Some((_, Some(crawler), tokens)), _) => {
            let tokens: Vec<_> = tokens.iter().map(ToString::to_string).collect();
            let (crawler, tokens) = (printable(crawler.as_bytes()), printable(tokens.join(", then ").as_bytes()));
            writeln!(out, "  agent:  the token of {crawler}; obeys {tokens}")?;
        }
        (Some((token, None, _)), _) => {
            writeln!(out, "  agent:  the token {}, taken as given", printable(token.as_bytes()))?;
        }
        (None, Some(agent)) => writeln!(out, "  agent:  {agent}")?,
        (None, None) => {}
    }
    if let Some(claim) = &request.sender.claim {
        writeln!(out, "  sender: {}", claim.identity)?;
        claim.steps.iter().try_for_each(|step| writeln!(out, "          {}", printable(step.as_bytes())))?;
    }
    writeln!(out, "  host:   {}", request.host)?;
    group(out, request.file, evaluator, &explanation, trace.as_ref())?;
    if let Some(trace) = &trace {
        rules(out, request.file, evaluator.robots(), trace)?;
    }
    if let Some(delay) = explanation.crawl_delay() {
        let reads = match explanation.obeys_crawl_delay() {
            Obeys::Yes => "its operator says that it keeps to it",
            Obeys::No => "its operator says that it does not read it",
            _ => "whether it keeps to it is not known",
        };
        let (file, interval) = (printable(request.file.as_bytes()), Seconds(delay.interval()));
        let text = line(evaluator.robots(), delay.line());
        writeln!(out, "  delay:  {file}:{}: {text}", delay.line())?;
        writeln!(out, "          one request in {interval}; {reads}")?;
    }
    if explanation.form == PathForm::Standard && path.as_bytes() != request.url.as_bytes() {
        writeln!(out, "  path:   {}", printable(path.as_bytes()))?;
    }
    match request.policy {
        ShownPolicy::Configured => decision(out, &explanation),
        ShownPolicy::Default if request.sender.claim.is_some() => decision(out, &explanation),
        ShownPolicy::Default => Ok(()),
    }
}

/// The groups that apply, and why.
fn group(
    out: &mut impl Write,
    file: &str,
    evaluator: &Evaluator,
    explanation: &Explanation<'_>,
    trace: Option<&Trace<'_>>,
) -> io::Result<()> {
    let Some(trace) = trace else {
        return match explanation.reason {
            Reason::Exempt => writeln!(out, "  group:  none applies: the path or the agent is exempt"),
            _ => writeln!(out, "  group:  none applies to this request, so the file does not hold for it"),
        };
    };
    for name in trace.groups().iter().flat_map(|group| group.names()) {
        writeln!(
            out,
            "  group:  {}:{}: {}",
            printable(file.as_bytes()),
            name.line(),
            line(evaluator.robots(), name.line())
        )?;
    }
    match explanation.token_of(trace) {
        Some(token) => writeln!(out, "          because it names {}", printable(token.as_bytes())),
        None => writeln!(out, "          because no group names it, and \"*\" is for every other crawler"),
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
fn decision(out: &mut impl Write, explanation: &Explanation<'_>) -> io::Result<()> {
    let Some(action) = explanation.action else { return Ok(()) };
    let what = match (action, explanation.reason) {
        (Action::Refuse, _) => "refuse",
        (Action::Tag, Reason::SearchEngine) => "tag, and let pass (a search engine is not refused without an override)",
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
