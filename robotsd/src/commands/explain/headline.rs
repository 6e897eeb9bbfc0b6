//! The answer in one sentence: may this crawler fetch this URL, and which line says so.

use tower_robots::policy::Reason;
use tower_robots::rules::{Access, Fallback, Group, PathForm, ProductToken, RequestPath, Rule, Trace, Verdict};

use super::explanation::{ExplainedRequest, Explanation, ShownPolicy};
use crate::evaluator::Evaluator;
use crate::render::printable;

/// Names of a group that are shown.
const NAMES: usize = 3;

/// As in ``GPTBot may not fetch /drafts/x: line 4, `Disallow: /drafts/`, in the group for GPTBot``.
pub(super) fn of(
    evaluator: &Evaluator,
    request: &ExplainedRequest<'_>,
    explanation: &Explanation<'_>,
    trace: Option<&Trace<'_>>,
    path: &RequestPath<'_>,
) -> String {
    let may = match explanation.access {
        Access::Allow => "may",
        Access::Disallow => "may not",
    };
    let url = printable(request.url.as_bytes());
    let fetch = match request.method {
        "GET" | "HEAD" => format!("fetch {url}"),
        method => format!("send {} to {url}", printable(method.as_bytes())),
    };
    let why = match (explanation.reason, explanation.verdict) {
        (Reason::Exempt, _) => exempt(request.policy, explanation, path),
        (_, Some(verdict)) if verdict.group().is_some() => {
            let token = trace.and_then(|trace| explanation.token_of(trace));
            [decider(verdict, token), read_as(explanation.form, trace)].concat()
        }
        _ => without_group(evaluator, request, explanation, path),
    };
    let sentence = format!("{} {may} {fetch}: {why}", request.requester.name());
    // A class of agents begins the sentence, and a name stays as it is written.
    match sentence
        .strip_prefix("a ")
        .or_else(|| sentence.strip_prefix("this "))
        .or_else(|| sentence.strip_prefix("any "))
    {
        Some(_) => sentence[..1].to_uppercase() + &sentence[1..],
        None => sentence,
    }
}

/// The line that decides, and its group.
fn decider(verdict: Verdict<'_>, token: Option<&ProductToken>) -> String {
    let group = verdict.group().map_or_else(String::new, |group| names(group, token));
    match verdict.rule().filter(|rule| !rule.pattern().is_empty()) {
        Some(rule) => format!("{}, in the group for {group}", line(rule)),
        None => format!("no rule in the group for {group} matches"),
    }
}

fn line(rule: Rule<'_>) -> String {
    let field = match rule.access() {
        Access::Allow => "Allow",
        Access::Disallow => "Disallow",
    };
    format!("line {}, `{field}: {}`", rule.line(), printable(rule.pattern()))
}

/// The name of a group that names the crawler; else the first of its names.
fn names(group: Group<'_>, token: Option<&ProductToken>) -> String {
    let is_meant = |value: &[u8]| {
        let own = ProductToken::from_name(value);
        token.is_some_and(|token| own.as_ref() == Some(token))
    };
    if let Some(name) = group.names().find(|name| is_meant(name.value())) {
        return printable(name.value());
    }
    if token.is_none() && group.is_global() {
        return "every other crawler (`*`)".to_owned();
    }
    let shown: Vec<_> = group.names().take(NAMES).map(|name| printable(name.value())).collect();
    match group.names().len().saturating_sub(NAMES) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Which form of the path the rule matches, where it is not the one that was given.
fn read_as(form: PathForm, trace: Option<&Trace<'_>>) -> String {
    if matches!(form, PathForm::Standard | PathForm::Verbatim) {
        return String::new();
    }
    match trace.and_then(Trace::deciding) {
        Some(deciding) => format!("; servers may read the path as {}", printable(deciding.path())),
        None => String::new(),
    }
}

fn without_group(
    evaluator: &Evaluator,
    request: &ExplainedRequest<'_>,
    explanation: &Explanation<'_>,
    path: &RequestPath<'_>,
) -> String {
    let star = evaluator.rules().select(&[], Fallback::Star).applies();
    match (star, explanation.holds_to_star()) {
        (true, false) if explanation.ignores_star() => {
            "no group names it, and its operator says that it does not obey `*`".to_owned()
        }
        (true, false) => match explanation.unheld_category() {
            // The crawler itself may obey the file: that is what an expectation asks for.
            Some(category) => {
                let star = evaluator.rules().select(&[], Fallback::Star).verdict(path);
                let disallows = |rule: &Rule<'_>| rule.access() == Access::Disallow && !rule.pattern().is_empty();
                let though = star.rule().filter(disallows).map_or_else(String::new, |rule| {
                    format!(", though {}, is for every crawler without a group", line(rule))
                });
                let who = match request.policy {
                    ShownPolicy::Configured => "the config",
                    ShownPolicy::Default => "robotsd by default",
                };
                format!("no group names it, and {who} does not hold {category} agents to `*`{though}")
            }
            None => "no group names it, and the group for `*` does not apply to it".to_owned(),
        },
        // It holds for the agent, so it does not for the method.
        (true, true) => {
            format!(
                "no group names it, and the group for `*` does not hold for {}",
                printable(request.method.as_bytes())
            )
        }
        (false, _) => "no group of the file is for it".to_owned(),
    }
}

/// Exempt from judging, regardless of the file; its verdict is printed too.
fn exempt(policy: ShownPolicy, explanation: &Explanation<'_>, path: &RequestPath<'_>) -> String {
    if path.is_robots_txt() {
        return "every crawler may read robots.txt itself".to_owned();
    }
    let who = match policy {
        ShownPolicy::Configured => "the config exempts the path or the agent",
        ShownPolicy::Default => "robotsd exempts the path by default",
    };
    match explanation.verdict_of_file(path).rule().filter(|rule| rule.access() == Access::Disallow) {
        Some(rule) if !rule.pattern().is_empty() => format!("{who}, though {}, disallows it", line(rule)),
        _ => who.to_owned(),
    }
}
