//! Fixes as code actions, and formatting. Code actions and formatting apply the same fixes as
//! `robotsd check --fix`.
//!
//! Formatting and `source.fixAll` apply safe fixes only. Unsafe fixes are offered only as quick
//! fixes. The title of an unsafe quick fix states the effect of the fix on crawlers.

use lsp_server::{ErrorCode, ResponseError};
use serde_json::{Value, json};
use tower_robots::check::{Diff, DiffOptions, Edit, Finding, Fix, FixedFile, Report, Safety};
use tower_robots::rules::{Reading, RobotsTxt};

use super::diagnostics;
use super::document::{Document, Interrupted};
use super::protocol::{ActionContext, Client, Range, error};
use crate::evaluator::TimeBudget;

const QUICK_FIX: &str = "quickfix";
const FIX_ALL: &str = "source.fixAll";

pub(super) const KINDS: [&str; 2] = [QUICK_FIX, FIX_ALL];

const MAX_ACTIONS: usize = 50;

pub(super) fn actions(
    client: &Client,
    document: &Document,
    report: &Report,
    range: Range,
    context: &ActionContext,
    should_continue: &dyn Fn() -> bool,
) -> Result<Vec<Value>, Interrupted> {
    if !client.has_code_actions {
        return Ok(Vec::new());
    }
    let mut actions = Vec::new();
    if context.wants(QUICK_FIX) {
        let fixes = document.fixes(report);
        let found = report.findings.iter().enumerate().filter_map(|(at, finding)| Some((finding, fixes.get(at)?)));
        let in_range = found.filter(|(finding, _)| document.range(finding.span.clone()).touches(&range));
        let time = TimeBudget::start();
        actions.extend(
            in_range.filter_map(|(finding, fix)| quick_fix(client, document, finding, fix, &time)).take(MAX_ACTIONS),
        );
    }
    if context.wants(FIX_ALL)
        && let Some(edit) = safe_fixes(document, document.fixed(should_continue)?)
    {
        let title = "Apply all safe fixes (no verdict changes)";
        actions.push(json!({ "title": title, "kind": FIX_ALL, "edit": workspace_edit(client, document, vec![edit]) }));
    }
    Ok(actions)
}

fn quick_fix(client: &Client, document: &Document, finding: &Finding, fix: &Fix, time: &TimeBudget) -> Option<Value> {
    let edits: Option<Vec<Value>> = fix.edits.iter().map(|edit| text_edit(document, edit)).collect();
    let what = format!("{}: {}", finding.code, finding.help.as_ref().unwrap_or(&finding.message));
    let title = match fix.safety {
        Safety::Safe => format!("Fix {what}"),
        _ => format!("Fix {what} (effect: {})", effect(document, fix, time)),
    };
    Some(json!({
        "title": title,
        "kind": QUICK_FIX,
        "isPreferred": fix.safety == Safety::Safe,
        "diagnostics": [diagnostics::text_diagnostic(document, finding)],
        "edit": workspace_edit(client, document, edits?),
    }))
}

fn effect(document: &Document, fix: &Fix, time: &TimeBudget) -> String {
    let fixed = RobotsTxt::parse(Edit::apply(document.robots().bytes(), &fix.edits));
    let options = DiffOptions::new().with_reading(Reading::Standard);
    let diff = Diff::of_while(document.robots(), &fixed, &options, &|| time.is_left());
    if diff.is_cut { "not computed, because it takes too long".to_owned() } else { diff.to_string() }
}

fn workspace_edit(client: &Client, document: &Document, edits: Vec<Value>) -> Value {
    if client.versions_edits {
        let id = json!({ "uri": document.uri, "version": document.version });
        return json!({ "documentChanges": [{ "textDocument": id, "edits": edits }] });
    }
    json!({ "changes": { document.uri.as_str(): edits } })
}

/// Converts an edit to the format of the protocol. `None` if the edit would split a character.
fn text_edit(document: &Document, edit: &Edit) -> Option<Value> {
    let text = document.buffer.text();
    let is_whole = text.is_char_boundary(edit.start) && text.is_char_boundary(edit.end);
    let replacement = std::str::from_utf8(&edit.replacement).ok().filter(|_| is_whole)?;
    Some(json!({ "range": document.range(edit.start..edit.end), "newText": replacement }))
}

fn safe_fixes(document: &Document, fixed: &FixedFile) -> Option<Value> {
    let before = document.buffer.text();
    let after = std::str::from_utf8(fixed.robots.bytes()).ok()?;
    let start = common_start(before, after);
    let end = common_end(&before[start..], &after[start..]);
    let (old, new) = (start..before.len() - end, &after[start..after.len() - end]);
    (!old.is_empty() || !new.is_empty()).then(|| json!({ "range": document.range(old), "newText": new }))
}

/// Returns the size of the equal lines at the start of `one` and `other`, in bytes.
fn common_start(one: &str, other: &str) -> usize {
    let same = one.bytes().zip(other.bytes()).take_while(|(one, other)| one == other).count();
    memchr::memrchr(b'\n', &one.as_bytes()[..same]).map_or(0, |line_end| line_end + 1)
}

fn common_end(one: &str, other: &str) -> usize {
    let same = one.bytes().rev().zip(other.bytes().rev()).take_while(|(one, other)| one == other).count();
    let shared = &one.as_bytes()[one.len() - same..];
    memchr::memchr(b'\n', shared).map_or(0, |line_end| same - line_end - 1)
}

pub(super) fn formatting(document: &Document) -> Result<Value, ResponseError> {
    if document.is_long() {
        let fault = "the document is longer than 512,000 bytes: run \"robotsd check --fix\" on the file";
        return Err(error(ErrorCode::RequestFailed, fault));
    }
    let fixed = document.fixed(&|| true).ok();
    Ok(json!(fixed.and_then(|fixed| safe_fixes(document, fixed)).into_iter().collect::<Vec<_>>()))
}
