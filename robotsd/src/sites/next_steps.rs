//! What to do next about a site, for its status.

use std::path::{Path, absolute};

use tower_robots::check::Severity;
use tower_robots::live::{Enforcement, ObjectionKind, ReloadOutcome, Snapshot, Status};

use crate::report::NextStep;

/// The steps an operator could or should take, the most pressing first; none where all is well.
pub(super) fn for_site(name: &str, snapshot: &Snapshot, status: &Status) -> Vec<NextStep> {
    let mut steps = Vec::new();
    let reload = status.last_reload();
    let file = file(reload.origin());
    if status.switch() == Enforcement::Off {
        steps.push(NextStep::command("to enforce again", ["robotsd", "enforce", "on", "--site", name]));
    }
    if let ReloadOutcome::Kept { rejection, .. } = reload.outcome() {
        steps.push(NextStep::say(format!(
            "correct what is wrong with its source ({rejection}); it is then taken by itself"
        )));
    }
    if let Some(pending) = status.pending() {
        let is_back = pending.objections().iter().any(|objection| objection.kind() == ObjectionKind::RolledBack);
        let hash = format!("sha256:{}", pending.hash().short());
        let source = file.as_deref().unwrap_or("the source");
        let (take, leave) = if is_back {
            ("to bring it live again", format!("or change {source}: another version goes live by itself"))
        } else {
            let leave = format!("if not, correct {source}: what the gate lets through goes live by itself");
            ("if it is meant as it is", leave)
        };
        steps.push(NextStep::command(take, ["robotsd", "accept", name, &hash]));
        steps.push(NextStep::say(leave));
    }
    let errors = snapshot.content().map_or(0, |content| content.report().count(Severity::Error));
    if let (Some(path), true) = (&file, errors > 0) {
        steps.push(NextStep::command("to see the errors that the check finds", ["robotsd", "check", path]));
    }
    let unwritten = [status.save_trouble(), status.switch_trouble(), status.history_trouble()];
    if unwritten.iter().any(Option::is_some) {
        let message = "put the state directory right, or make room on its disk: what waits is then written by itself";
        steps.push(NextStep::say(message.to_owned()));
    } else if status.state_trouble().is_some() && status.behind_trouble().is_none() {
        let message = "put the state directory right: what is damaged in it is ignored";
        steps.push(NextStep::say(message.to_owned()));
    }
    if status.faults() + status.callback_faults() > 0 {
        let message = "report the panic in the output of standard error: it is a fault of robotsd";
        steps.push(NextStep::say(message.to_owned()));
    }
    steps
}

/// How the version that was accepted gets into version control, where the gate compares with what is there. What stays out of
/// it is compared again after the next change.
pub(super) fn after_accepting(status: &Status, has_parts: bool, baseline: Option<&Path>) -> Vec<NextStep> {
    let Some(baseline) = baseline.and_then(|path| absolute(path).ok()) else { return Vec::new() };
    let shown = baseline.display().to_string();
    let hash = status.live().map(|hash| hash.short()).unwrap_or_default();
    match file(status.last_reload().origin()) {
        // The source alone is not what is served.
        Some(_) if has_parts => vec![NextStep::say(format!(
            "to accept it in version control too, save /robots.txt as it is served now, with what is appended, as {shown} and \
             commit that: versions are compared with it"
        ))],
        Some(source) => vec![
            NextStep::command("to accept it in version control too", ["cp", &source, &shown]),
            NextStep::say(format!("and commit {shown}: versions are compared with it")),
        ],
        None => vec![NextStep::say(format!(
            "to accept it in version control too, save version sha256:{hash} as {shown} and commit that: versions are compared \
             with it"
        ))],
    }
}

/// The path of a source that is a file, from wherever the command is typed.
fn file(origin: &str) -> Option<String> {
    if origin == "inline" || origin.contains("://") {
        return None;
    }
    absolute(origin).ok().map(|path| path.display().to_string())
}
