//! An answer as a JSON object on one line.

use std::io::{self, Write};

use serde::Serialize;
use tower_robots::policy::{Action, Reason};
use tower_robots::rules::{Access, FormTrace, Group, Name, PathForm, Rule};

use super::Asked;
use super::book::{Book, Recognised};
use crate::commands::agents::SaidAgent;

#[derive(Serialize)]
struct Explained<'a> {
    url: &'a str,
    method: &'a str,
    access: Access,
    agent: Option<SaidAgent<'a>>,
    /// The token the groups were chosen for; `null` for those of `*`, and where there are none.
    token: Option<String>,
    groups: Vec<SaidGroup>,
    /// The form that decided.
    form: PathForm,
    /// The rule that decided.
    rule: Option<SaidRule>,
    forms: Vec<SaidForm>,
    reason: Reason,
    action: Option<Action>,
}

#[derive(Serialize)]
struct SaidGroup {
    line: usize,
    names: Vec<String>,
}

#[derive(Serialize)]
struct SaidRule {
    line: usize,
    access: Access,
    pattern: String,
}

#[derive(Serialize)]
struct SaidForm {
    form: PathForm,
    path: String,
    access: Access,
    /// Every rule that matches, the one that decides first.
    rules: Vec<SaidRule>,
}

pub(super) fn write(out: &mut impl Write, book: &Book, asked: &Asked<'_>) -> io::Result<()> {
    let path = book.path(asked.url.as_bytes());
    let answer = book.ask(&asked.who, asked.method, &path);
    let trace = book.trace(&asked.who, &answer, &path);
    let token = trace.as_ref().and_then(|trace| book.token_of(&asked.who, &answer, trace));
    let said = Explained {
        url: asked.url,
        method: asked.method,
        access: answer.access,
        agent: answer.agent.as_ref().map(Recognised::said),
        token: token.map(|token| token.to_string()),
        groups: trace.iter().flat_map(|trace| trace.groups()).map(|group| SaidGroup::from(*group)).collect(),
        form: answer.form,
        rule: answer.verdict.and_then(|verdict| verdict.rule()).map(SaidRule::from),
        forms: trace.iter().flat_map(|trace| trace.forms()).map(SaidForm::from).collect(),
        reason: answer.reason,
        action: answer.action,
    };
    serde_json::to_writer(&mut *out, &said)?;
    out.write_all(b"\n")
}

impl From<Group<'_>> for SaidGroup {
    fn from(group: Group<'_>) -> Self {
        Self { line: group.line(), names: group.names().map(Name::value).map(text).collect() }
    }
}

impl From<Rule<'_>> for SaidRule {
    fn from(rule: Rule<'_>) -> Self {
        Self { line: rule.line(), access: rule.access(), pattern: text(rule.pattern()) }
    }
}

impl From<&FormTrace<'_>> for SaidForm {
    fn from(form: &FormTrace<'_>) -> Self {
        let rules = form.rules().iter().copied().map(SaidRule::from).collect();
        Self { form: form.form(), path: text(form.path()), access: form.access(), rules }
    }
}

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}
