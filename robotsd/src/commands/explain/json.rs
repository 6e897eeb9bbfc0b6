//! An answer as a JSON object on one line.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use tower_robots::agent::Obeys;
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::{Access, FormTrace, Group, Name, PathForm, Rule};

use super::explanation::{ExplainedRequest, Explanation};
use crate::commands::claim::CheckedClaim;
use crate::commands::output::agent_summary::AgentSummary;
use crate::evaluator::Evaluator;

#[derive(Serialize)]
struct ExplanationJson<'a> {
    url: Cow<'a, str>,
    /// Of the URL, or that of the site; `null` where the answer holds for any.
    host: Option<String>,
    method: &'a str,
    access: Access,
    agent: Option<AgentSummary<'a>>,
    /// The token the groups were chosen for; `null` for those of `*`, and where there are none.
    token: Option<String>,
    groups: Vec<ExplainedGroup>,
    /// The form that decided.
    form: PathForm,
    /// The rule that decided.
    rule: Option<ExplainedRule>,
    forms: Vec<ExplainedForm>,
    /// The delay that the agent's requests shall keep.
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl_delay: Option<ExplainedDelay>,
    reason: Reason,
    action: Option<Action>,
    /// What became of the claim, where an address was named.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a CheckedClaim>,
}

#[derive(Serialize)]
struct ExplainedGroup {
    line: usize,
    names: Vec<String>,
}

#[derive(Serialize)]
struct ExplainedRule {
    line: usize,
    access: Access,
    pattern: String,
}

#[derive(Serialize)]
struct ExplainedDelay {
    line: usize,
    seconds: f64,
    /// Whether the agent's operator says that it keeps a delay.
    obeys: Obeys,
}

#[derive(Serialize)]
struct ExplainedForm {
    form: PathForm,
    path: String,
    access: Access,
    /// Every rule that matches, the one that decides first.
    rules: Vec<ExplainedRule>,
}

pub(super) fn write(out: &mut impl Write, evaluator: &Evaluator, request: &ExplainedRequest<'_>) -> io::Result<()> {
    let path = evaluator.path(request.url.as_bytes());
    let explanation =
        Explanation::for_sender(evaluator, request.requester, request.sender.known(), request.method, &path);
    let trace = explanation.trace(&path);
    let token = trace.as_ref().and_then(|trace| explanation.token_of(trace));
    let json = ExplanationJson {
        url: String::from_utf8_lossy(request.url.as_bytes()),
        host: request.host.name(),
        method: request.method,
        access: explanation.access,
        agent: explanation.agent(),
        token: token.map(ToString::to_string),
        groups: trace.iter().flat_map(|trace| trace.groups()).map(|group| ExplainedGroup::from(*group)).collect(),
        form: explanation.form,
        rule: explanation.verdict.and_then(|verdict| verdict.rule()).map(ExplainedRule::from),
        forms: trace.iter().flat_map(|trace| trace.forms()).map(ExplainedForm::from).collect(),
        crawl_delay: explanation.crawl_delay().map(|delay| ExplainedDelay {
            line: delay.line(),
            seconds: delay.interval().as_secs_f64(),
            obeys: explanation.obeys_crawl_delay(),
        }),
        reason: explanation.reason,
        action: explanation.action,
        identity: request.sender.claim.as_ref(),
    };
    serde_json::to_writer(&mut *out, &json)?;
    out.write_all(b"\n")
}

impl From<Group<'_>> for ExplainedGroup {
    fn from(group: Group<'_>) -> Self {
        Self { line: group.line(), names: group.names().map(Name::value).map(text).collect() }
    }
}

impl From<Rule<'_>> for ExplainedRule {
    fn from(rule: Rule<'_>) -> Self {
        Self { line: rule.line(), access: rule.access(), pattern: text(rule.pattern()) }
    }
}

impl From<&FormTrace<'_>> for ExplainedForm {
    fn from(form: &FormTrace<'_>) -> Self {
        let rules = form.rules().iter().copied().map(ExplainedRule::from).collect();
        Self { form: form.form(), path: text(form.path()), access: form.access(), rules }
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
