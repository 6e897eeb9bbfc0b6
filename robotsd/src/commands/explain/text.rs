//! An explanation as text. The first sentence states whether the crawler may fetch the URL, and
//! names the deciding line. The lines of the file follow.
//!
//! `text.txt` is the template; this module computes the values for it.

use std::io::{self, Write};
use std::time::SystemTime;

use askama::Template;
use tower_robots::agent::{Agent, Obeys};
use tower_robots::internals::first_few;
use tower_robots::policy::{Action, RateMode, Reason};
use tower_robots::rules::{Access, Fallback, FormTrace, Group, Line, PathForm, ProductToken, Rule, Trace, Verdict};

use super::explanation::{ExplainedRequest, Requester};
use crate::date::rfc3339;
use crate::refusal::ExpectedRefusal;
use crate::render::{grace_summary, printable};

/// Maximum number of shown rules, and maximum number of shown path forms.
const MAX_SHOWN: usize = 20;

#[derive(Template)]
#[template(path = "commands/explain/text.txt", whitespace = "preserve")]
struct ExplanationText<'a> {
    request: &'a ExplainedRequest<'a>,
}

impl ExplainedRequest<'_> {
    pub(super) fn write_text(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "{}", ExplanationText { request: self })
    }

    fn agent(&self) -> Option<String> {
        match self.requester {
            Requester::Token { crawler: Some(crawler), tokens, .. } => {
                let tokens: Vec<_> = tokens.iter().map(ToString::to_string).collect();
                Some(format!("the token of {crawler}; obeys {tokens}", tokens = tokens.join(", then ")))
            }
            Requester::Token { name, crawler: None, .. } => {
                Some(format!("the token {name}, which the registry does not contain"))
            }
            Requester::Agents { .. } => self.explanation.agent().map(|agent| agent.to_string()),
        }
    }

    /// Describes the override of the site's mode for the request; `None` if no override applies.
    fn exception(&self) -> Option<String> {
        let Self { explanation, sender, .. } = self;
        let rule = explanation.verdict.and_then(|verdict| verdict.rule()).map(Rule::pattern);
        let (policy, identity) = (&explanation.evaluator.settings.policy, sender.known().identity);
        let agent = explanation.agent.as_ref()?;
        policy.override_for(agent, identity, rule, explanation.reason, SystemTime::now()).map(ToString::to_string)
    }

    /// Describes the response to a refused request, and the refusal case of the config that
    /// determines it.
    fn answer(&self) -> Option<String> {
        let ExpectedRefusal { status, case } = self.explanation.refusal?;
        let answer = status.map_or_else(|| "the response of its upstream".to_owned(), |status| status.to_string());
        let by = case.map(|case| format!(" (case {case} of [[site.refusal.case]])"));
        Some(answer + &by.unwrap_or_default())
    }

    /// Describes the rules in the grace period of the deciding rule.
    fn grace(&self) -> Option<String> {
        let (rules, end) = (self.explanation.grace_rules()?, self.explanation.grace_end?);
        Some(grace_summary(rules, &rfc3339(end)))
    }

    /// Returns a line of the file, preceded by the name of the file and the line number.
    fn line(&self, number: usize) -> String {
        let text = self.explanation.evaluator.robots().lines().nth(number.saturating_sub(1));
        let text = text.map_or_else(String::new, |line: Line<'_>| printable(line.bytes()));
        format!("{}:{number}: {text}", printable(self.file))
    }

    /// Returns the requester as the subject of a sentence. Capitalizes phrases such as "any
    /// crawler", but not names.
    fn subject(&self) -> String {
        let name = self.requester.name();
        match ["a ", "this ", "any "].iter().any(|class| name.starts_with(class)) {
            true => name[..1].to_uppercase() + &name[1..],
            false => name,
        }
    }

    /// Formats a reason such as ``line 4, `Disallow: /drafts/`, in the group for GPTBot``.
    fn why(&self) -> String {
        let Self { explanation, .. } = self;
        match (explanation.reason, explanation.verdict) {
            (Reason::Exempt, _) => self.exempt(),
            (_, Some(verdict)) if verdict.group().is_some() => {
                let token = self.trace.as_ref().and_then(|trace| explanation.token_of(trace));
                let decider = decider(verdict, token);
                [decider, path_form_note(explanation.form, self.trace.as_ref()), self.without_own_group()].concat()
            }
            _ => self.without_group(),
        }
    }

    /// Returns the rule in the group for `*` that disallows the path; `None` if that group allows
    /// the path.
    fn rule_of_star(&self) -> Option<Rule<'_>> {
        let star = self.explanation.evaluator.rules.select(&[], Fallback::Star);
        star.verdict(self.path).rule().filter(|rule| rule.access() == Access::Disallow && !rule.pattern().is_empty())
    }

    /// Returns a note if the crawler's own group allows the path, but the group for `*` would
    /// disallow it; otherwise an empty string. Many owners expect the rules for `*` to apply in
    /// addition to the crawler's own group.
    fn without_own_group(&self) -> String {
        let is_judged = self.explanation.fallback == Fallback::Star && matches!(self.method, "GET" | "HEAD");
        let star = self.rule_of_star().filter(|_| is_judged && self.explanation.access == Access::Allow);
        star.map_or_else(String::new, |rule| {
            format!("; the group for `*` would have disallowed the path (line {line})", line = rule.line())
        })
    }

    fn without_group(&self) -> String {
        let Self { explanation, .. } = self;
        let star = explanation.evaluator.rules.select(&[], Fallback::Star).applies();
        let agent = explanation.agent.as_ref();
        match (star, explanation.fallback == Fallback::Star) {
            (true, false) if agent.is_none_or(|agent| agent.obeys_star() == Obeys::No) => {
                "no group names it, and its operator says that it does not obey `*`".to_owned()
            }
            (true, false) => match agent.filter(|agent| agent.is_registered()).and_then(Agent::category) {
                // The message contains the rule of the group for `*` that disallows the path,
                // because `robotsd test` applies this group to the crawler.
                Some(category) => {
                    let exception_note = self.rule_of_star().map_or_else(String::new, |rule| {
                        format!(", although {rule}, is for every crawler without a group", rule = rule_line(rule))
                    });
                    let who = if self.site.is_configured() { "the config" } else { "robotsd by default" };
                    format!("no group names it, and {who} does not apply `*` to {category} agents{exception_note}")
                }
                None => "no group names it, and the group for `*` does not apply to it".to_owned(),
            },
            // The group for `*` applies to the agent, but not to the method of this request.
            (true, true) => {
                format!(
                    "no group names it, and the group for `*` does not apply to {method}",
                    method = printable(self.method)
                )
            }
            (false, _) => "no group in the file applies to it".to_owned(),
        }
    }

    /// Explains why a request is exempt from the policy. Includes the rule that would disallow the
    /// request, if any.
    fn exempt(&self) -> String {
        let Self { explanation, path, .. } = self;
        if path.is_robots_txt() {
            return "every crawler may read robots.txt itself".to_owned();
        }
        let is_well_known = path.as_bytes().starts_with(b"/.well-known/");
        let who = if is_well_known {
            "paths below /.well-known/ are always exempt"
        } else {
            "the config exempts the path or the agent"
        };
        match explanation.verdict_of_file(path).rule().filter(|rule| rule.access() == Access::Disallow) {
            Some(rule) if !rule.pattern().is_empty() => {
                format!("{who}, although this path is disallowed by {}", rule_line(rule))
            }
            _ => who.to_owned(),
        }
    }
}

/// Returns the forms of the path that are shown, each with a flag that is `true` for the deciding
/// form.
fn shown_forms<'t, 'a>(trace: &'t Trace<'a>) -> impl Iterator<Item = (&'t FormTrace<'a>, bool)> {
    let deciding = trace.deciding();
    let forms = trace.forms.iter().map(move |form| {
        let decides = deciding.is_some_and(|deciding| std::ptr::eq(deciding, form));
        (form, decides)
    });
    forms.enumerate().filter(|(number, (_, decides))| *number < MAX_SHOWN || *decides).map(|(_, form)| form)
}

/// Reports whether `rule` is the deciding rule. `rule` must match the deciding form of the path.
fn is_decider(trace: &Trace<'_>, rule: &Rule<'_>) -> bool {
    trace.verdict.rule().filter(|rule| !rule.pattern().is_empty()).is_some_and(|decider| decider.line() == rule.line())
}

/// Maximum number of names of a group that are shown.
const MAX_NAMES: usize = 3;

fn decider(verdict: Verdict<'_>, token: Option<&ProductToken>) -> String {
    let group = verdict.group().map_or_else(String::new, |group| names(group, token));
    match verdict.rule().filter(|rule| !rule.pattern().is_empty()) {
        Some(rule) => format!("{rule}, in the group for {group}", rule = rule_line(rule)),
        None => format!("no rule in the group for {group} matches"),
    }
}

fn rule_line(rule: Rule<'_>) -> String {
    let field = match rule.access() {
        Access::Allow => "Allow",
        Access::Disallow => "Disallow",
    };
    format!("line {}, `{field}: {}`", rule.line(), printable(rule.pattern()))
}

/// Returns the name in the group that matches the crawler, or the first names of the group if no
/// name matches.
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
    first_few(group.names().map(|name| printable(name.value())), MAX_NAMES)
}

/// Describes the form of the path that the rule matches. The result is empty if this is the form of
/// the path in the request.
fn path_form_note(form: PathForm, trace: Option<&Trace<'_>>) -> String {
    if matches!(form, PathForm::Standard | PathForm::Verbatim) {
        return String::new();
    }
    match trace.and_then(Trace::deciding) {
        Some(deciding) => format!("; some servers read this path as {path}", path = printable(&deciding.path)),
        None => String::new(),
    }
}
