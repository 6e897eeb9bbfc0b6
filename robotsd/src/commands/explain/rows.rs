//! Writes answers as rows: JSON with one object per line, CSV for spreadsheets, or a matrix of
//! crawlers and URLs for people.

use std::borrow::Cow;
use std::io::{self, Write};

use serde::Serialize;
use serde_json::{Value, json};
use tower_robots::agent::Obeys;
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::{Access, FormTrace, Group, Name, PathForm, Rule};

use super::explanation::{ExplainedRequest, Explanation};
use crate::commands::agents::AgentSummary;
use crate::commands::claim::CheckedClaim;
use crate::date::rfc3339;
use crate::refusal::ExpectedRefusal;
use crate::render::{csv_row, printable, write_json};
use crate::target_url::TargetUrl;

/// Minimum width of a matrix column, in characters: enough for `no (1234)`. Names are not
/// truncated, because two truncated names might look the same.
const MIN_WIDTH: usize = 9;

pub(super) const CSV_HEAD: &str = "url,crawler,access,line,rule,group\r\n";

/// Writes a row for one crawler and one URL (RFC 4180).
pub(super) fn write_csv(
    out: &mut impl Write,
    url: &TargetUrl<'_>,
    crawler: &str,
    answer: &Explanation<'_>,
) -> io::Result<()> {
    let rule = decider(answer);
    let group = answer.verdict.and_then(|verdict| verdict.group());
    let names = group.map_or_else(String::new, |group| {
        group.names().map(|name| printable(name.value())).collect::<Vec<_>>().join(" ")
    });
    let row = csv_row([
        printable(url.as_bytes()),
        crawler.to_owned(),
        answer.access.as_str().to_owned(),
        rule.map_or_else(String::new, |rule| rule.line().to_string()),
        rule.map_or_else(String::new, |rule| printable(rule.pattern())),
        names,
    ]);
    out.write_all(row.as_bytes())
}

/// Writes the heading of a matrix: the names of the crawlers, in the columns of [`matrix_row`].
pub(super) fn matrix_head<'n>(out: &mut impl Write, crawlers: impl IntoIterator<Item = &'n str>) -> io::Result<()> {
    for name in crawlers {
        write!(out, "{:width$}  ", printable(name), width = width(name))?;
    }
    writeln!(out, "URL")
}

/// Writes a row. The URL is in the last column, because rows are written while the list is read, so
/// the length of the longest URL is unknown.
pub(super) fn matrix_row<'n, 'e: 'n>(
    out: &mut impl Write,
    url: &TargetUrl<'_>,
    answers: impl IntoIterator<Item = (&'n str, &'n Explanation<'e>)>,
) -> io::Result<()> {
    for (name, answer) in answers {
        let text = match (answer.access, decider(answer)) {
            (Access::Allow, _) => "yes".to_owned(),
            (Access::Disallow, Some(rule)) => format!("no ({})", rule.line()),
            (Access::Disallow, None) => "no".to_owned(),
        };
        write!(out, "{text:width$}  ", width = width(name))?;
    }
    writeln!(out, "{}", printable(url.as_bytes()))
}

fn width(name: &str) -> usize {
    printable(name).chars().count().max(MIN_WIDTH)
}

fn decider<'e>(answer: &Explanation<'e>) -> Option<Rule<'e>> {
    answer.verdict.and_then(|verdict| verdict.rule()).filter(|rule| !rule.pattern().is_empty())
}

#[derive(Serialize)]
struct ExplanationJson<'a> {
    url: Cow<'a, str>,
    /// Host of the URL, or of the site; `null` if the answer applies to any host.
    host: Option<String>,
    method: &'a str,
    access: Access,
    agent: Option<AgentSummary<'a>>,
    /// The token that selected the groups; `null` if the groups for `*` were selected, or if no
    /// group applies.
    token: Option<String>,
    /// Selected groups, each with its line and names.
    groups: Vec<Value>,
    /// Form of the path that the deciding rule matches.
    form: PathForm,
    /// The deciding rule, if any rule matches.
    rule: Option<ExplainedRule>,
    forms: Vec<ExplainedForm>,
    /// Minimum delay between the agent's requests, according to the file.
    #[serde(skip_serializing_if = "Option::is_none")]
    crawl_delay: Option<ExplainedDelay>,
    /// Usage preferences for the agent and the path, with the line of the file that states them.
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Value>,
    /// URLs of the licences for the agent.
    #[serde(skip_serializing_if = "<[Box<str>]>::is_empty")]
    licenses: &'a [Box<str>],
    /// Header fields that the config adds to the response.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fields: Vec<String>,
    reason: Reason,
    action: Option<Action>,
    /// Until this time, the request is not refused or tagged, because the deciding rule is in its
    /// grace period.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_end: Option<String>,
    /// Number of rules in the file that are not enforced until `grace_end`.
    #[serde(skip_serializing_if = "Option::is_none")]
    grace_rules: Option<usize>,
    /// Status of the response to a refused request, and the number of the `[[site.refusal.case]]`
    /// that determines it. The status is `null` if an upstream sends the response.
    #[serde(skip_serializing_if = "Option::is_none")]
    refusal: Option<ExpectedRefusal>,
    /// Result of checking the sender; `None` if no address was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<&'a CheckedClaim>,
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
    /// Whether the agent's operator documents that the agent obeys a crawl delay.
    obeys: Obeys,
}

#[derive(Serialize)]
struct ExplainedForm {
    form: PathForm,
    path: String,
    access: Access,
    /// Every rule that matches; the deciding rule is the first.
    rules: Vec<ExplainedRule>,
}

pub(super) fn json_row(out: &mut impl Write, request: &ExplainedRequest<'_>) -> io::Result<()> {
    let ExplainedRequest { explanation, trace, .. } = request;
    let token = trace.as_ref().and_then(|trace| explanation.token_of(trace));
    let names = |group: &Group<'_>| group.names().map(Name::value).map(text).collect::<Vec<_>>();
    let group = |group: &Group<'_>| json!({ "line": group.line(), "names": names(group) });
    let form = |form: &FormTrace<'_>| ExplainedForm {
        form: form.form,
        path: text(&form.path),
        access: form.access(),
        rules: form.rules.iter().copied().map(explained_rule).collect(),
    };
    let json = ExplanationJson {
        url: String::from_utf8_lossy(request.url.as_bytes()),
        host: request.host(),
        method: request.method,
        access: explanation.access,
        agent: explanation.agent(),
        token: token.map(ToString::to_string),
        groups: trace.iter().flat_map(|trace| &trace.groups).map(group).collect(),
        form: explanation.form,
        rule: explanation.verdict.and_then(|verdict| verdict.rule()).map(explained_rule),
        forms: trace.iter().flat_map(|trace| &trace.forms).map(form).collect(),
        crawl_delay: explanation.crawl_delay().map(|delay| ExplainedDelay {
            line: delay.line(),
            seconds: delay.interval().as_secs_f64(),
            obeys: explanation.obeys_crawl_delay(),
        }),
        usage: explanation
            .usage(request.path)
            .map(|usage| json!({ "line": usage.line, "preferences": usage.preferences.as_str() })),
        licenses: explanation.licenses(),
        fields: request.fields(),
        reason: explanation.reason,
        action: explanation.action,
        grace_end: explanation.grace_end.map(rfc3339),
        grace_rules: explanation.grace_rules(),
        refusal: explanation.refusal,
        identity: request.sender.claim.as_ref(),
    };
    write_json(out, &json)
}

fn explained_rule(rule: Rule<'_>) -> ExplainedRule {
    ExplainedRule { line: rule.line(), access: rule.access(), pattern: text(rule.pattern()) }
}

pub(super) fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
