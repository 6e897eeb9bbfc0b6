//! Writes a site's log lines about disallowed requests, reloads, upstreams and files, and suggests
//! next steps to operators.

use std::borrow::Cow;
use std::path::{Path, absolute};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tower_robots::agent::{Category, Identity, IdentityMethod};
use tower_robots::check::{Finding, Severity};
use tower_robots::internals::DirectoryEvent;
use tower_robots::internals::ProblemEvent;
use tower_robots::internals::text;
use tower_robots::layer::{Event, Record};
use tower_robots::live::{
    Content, Enforcement, ObjectionKind, Pending, ProblemKind, RejectionKind, Reload, ReloadOutcome, Snapshot, Status,
};
use tower_robots::policy::{Override, Policy, Reason};
use tower_robots::rules::{Access, PathForm};

use crate::counting::RequestOutcome;
use crate::date::rfc3339;
use crate::edge::{X_REQUEST_ID, trace_id};
use crate::http_common::{AccessFields, ClientRequest};
use crate::log::{Log, LogEntry, LogEvent, LogLevel, LogPrivacy};
use crate::render::{finding_line, grace_summary, shell_word};
use crate::report::NextStep;
use crate::upstream::{UpstreamEvent, UpstreamEventKind};
use crate::webhooks::{HookEvent, HookEventKind};

/// Returns an observer that logs disallowed requests, requests that come before the crawl delay has
/// passed, and all requests of impostors.
pub(super) fn request_observer(
    site: SiteName,
    policy: Policy,
    log: Log,
    privacy: LogPrivacy,
) -> impl Fn(&Event<'_>) + Send + Sync + 'static {
    move |event| {
        let record = event.record;
        if !record.reason.is_reported() {
            return allowed(&site, &log, privacy, event);
        }
        let limit = record.limit.as_deref();
        let outcome = RequestOutcome::of(record.action, record.reason);
        let done = match outcome {
            RequestOutcome::Refused => LogEvent::Refused,
            RequestOutcome::Tagged => LogEvent::Tagged,
            RequestOutcome::Observed if record.reason == Reason::Impostor => LogEvent::Impostor,
            RequestOutcome::Observed => LogEvent::Observed,
            RequestOutcome::Limited => LogEvent::Limited,
            RequestOutcome::LimitObserved => LogEvent::LimitObserved,
            _ => LogEvent::Passed,
        };
        let (identity, rule) = (record.identity.unwrap_or_default(), record.rule.as_deref().map(str::as_bytes));
        let entry = request_entry(done, &site, event, privacy);
        let now = UNIX_EPOCH + entry.at;
        let over = policy.override_for(&record.agent, identity, rule, record.reason, now);
        add_access_fields(event, Some(if outcome == RequestOutcome::Observed { "observed" } else { done.as_str() }));
        log.write(&LogEntry {
            suspect_human: Some(record.signs.names().collect::<Vec<_>>().join(", ")).filter(|signs| !signs.is_empty()),
            exception: over.map(ToString::to_string),
            would: Some(record.would.as_str()),
            message: record.grace_rules.zip(record.grace_end).map(|(rules, end)| grace_summary(rules, &rfc3339(end))),
            grace_end: record.grace_end.map(rfc3339),
            status: event.status.map(|status| status.as_u16()),
            grpc_status: event.grpc_status,
            group: limit.map(|limit| &*limit.group).or(record.group.as_deref()),
            rule: record.rule.as_deref().filter(|_| limit.is_none()),
            line: limit.map(|limit| limit.line).or(record.line),
            form: shown_form(record),
            ..entry
        });
    }
}

/// Adds fields about a request to its line in the access log. `done` is the action for a disallowed
/// request; `None` if the request was allowed.
fn add_access_fields(event: &Event<'_>, done: Option<&'static str>) {
    let (Some(notes), record) = (ClientRequest::access_of(event.request.extensions), event.record) else { return };
    notes.add("agent", record.name());
    add_field_if_some(notes, "category", record.agent.category().map(Category::as_str));
    notes.add("identity", identity_outcome(record.identity));
    add_field_if_some(notes, "identity_method", record.identity.and_then(Identity::method).map(IdentityMethod::as_str));
    add_field_if_some(notes, "identity_reason", record.identity.and_then(Identity::reason));
    notes.add("decision", decision(record));
    add_field_if_some(notes, "action", done);
    notes.add("reason", record.reason.as_str());
    add_field_if_some(notes, "would", done.map(|_| record.would.as_str()));
    add_field_if_some(notes, "grace_end", done.and(record.grace_end).map(rfc3339));
    let limit = record.limit.as_deref();
    let group = limit.map(|limit| &*limit.group).or(record.group.as_deref());
    add_field_if_some(notes, "group", group.filter(|_| done.is_some()));
    add_field_if_some(notes, "rule", record.rule.as_deref().filter(|_| limit.is_none()));
    add_field_if_some(notes, "line", limit.map(|limit| limit.line).or(record.line));
    add_field_if_some(notes, "form", done.and(shown_form(record)));
    notes.add("robots_hash", record.hash.short());
    add_field_if_some(notes, "grpc_status", done.and(event.grpc_status).map(usize::from));
}

/// Logs an allowed request if an impostor sent it. Allowed requests of other clients appear only in
/// the access log.
fn allowed(site: &str, log: &Log, privacy: LogPrivacy, event: &Event<'_>) {
    add_access_fields(event, None);
    let record = event.record;
    let Some(Identity::Refuted(_)) = record.identity else { return };
    log.write(&LogEntry {
        rule: record.rule.as_deref(),
        line: record.line,
        ..request_entry(LogEvent::Impostor, site, event, privacy)
    });
}

/// Returns the [form of the path](PathForm) that the verdict is based on; `None` for the standard
/// form.
fn shown_form(record: &Record) -> Option<&'static str> {
    Some(record.form).filter(|form| *form != PathForm::Standard).map(PathForm::as_str)
}

/// Returns the name of the verdict. If no rules were applied, the request counts as allowed.
fn decision(record: &Record) -> &'static str {
    record.access.unwrap_or(Access::Allow).as_str()
}

/// Returns the outcome of the identity check for logs; `claimed` if identities are not checked.
fn identity_outcome(identity: Option<Identity>) -> &'static str {
    identity.map_or("claimed", |identity| identity.outcome())
}

fn add_field_if_some(notes: &AccessFields, name: &'static str, value: Option<impl Into<serde_json::Value>>) {
    if let Some(value) = value {
        notes.add(name, value);
    }
}

fn request_entry<'e>(
    event: LogEvent,
    site: &'e str,
    &Event { record, ref request, .. }: &Event<'e>,
    privacy: LogPrivacy,
) -> LogEntry<'e> {
    let identity = record.identity;
    LogEntry {
        request_id: request.headers.get(X_REQUEST_ID).and_then(|id| id.to_str().ok()),
        trace_id: trace_id(request.headers),
        site: Some(site),
        host: request.host(),
        agent: Some(record.name()),
        category: record.agent.category().map(Category::as_str),
        decision: Some(decision(record)),
        reason: Some(record.reason.as_str()),
        robots_hash: Some(record.hash.short()),
        identity: Some(identity_outcome(identity)),
        identity_method: identity.and_then(Identity::method).map(IdentityMethod::as_str),
        identity_reason: identity.and_then(Identity::reason),
        method: Some(request.method.as_str()),
        path: Some(match text(request.target()) {
            Cow::Borrowed(target) => privacy.target(target),
            Cow::Owned(target) => privacy.target(&target).into_owned().into(),
        }),
        address: ClientRequest::peer_of(request.extensions).and_then(|peer| privacy.address(peer.address.ip())),
        ..LogEntry::now(event)
    }
}

/// Returns a listener that logs each reload and, for a newly published version, the errors and
/// warnings found in the file.
pub(super) fn reload(site: SiteName, log: Log) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
    move |reload, snapshot| {
        let (event, hash) = match &reload.outcome {
            ReloadOutcome::Published { hash, .. } => (LogEvent::Published, Some(hash.short())),
            ReloadOutcome::Unchanged { hash, .. } => (LogEvent::Unchanged, Some(hash.short())),
            ReloadOutcome::Absent { .. } => (LogEvent::Absent, None),
            ReloadOutcome::Kept { rejection, live, .. } => {
                let event = match rejection.kind {
                    RejectionKind::Held => LogEvent::Held,
                    RejectionKind::Unreachable => LogEvent::Unreachable,
                    _ => LogEvent::Rejected,
                };
                (event, live.map(|hash| hash.short()))
            }
            ReloadOutcome::Gated { pending, .. } => (LogEvent::Gated, Some(pending.hash().short())),
            _ => (LogEvent::Reloaded, None),
        };
        let has_faults = reload.outcome.report().is_some_and(|report| report.faults().next().is_some());
        log.write(&LogEntry {
            level: if has_faults { LogLevel::Warn } else { event.level() },
            site: Some(&site),
            reason: Some(reload.cause.as_str()),
            robots_hash: hash,
            message: Some(match &reload.outcome {
                ReloadOutcome::Gated { pending, live: None, .. } => without_robots(&site, Some(pending)),
                _ => reload.to_string(),
            }),
            ..LogEntry::now(event)
        });
        let (ReloadOutcome::Published { .. }, Some(content)) = (&reload.outcome, &snapshot.content) else { return };
        for finding in content.report().faults() {
            log.write(&LogEntry {
                level: if finding.severity >= Severity::Error { LogLevel::Error } else { LogLevel::Warn },
                site: Some(&site),
                agent: finding.agent.as_deref(),
                reason: Some(finding.code),
                severity: Some(finding.severity.as_str()),
                line: Some(finding.line),
                message: Some(placed_finding(content, &reload.origin, finding)),
                ..LogEntry::now(LogEvent::Finding)
            });
        }
    }
}

/// Formats a finding with its line number. If the line is from an appended part, adds the line
/// number in that part.
pub(super) fn placed_finding(content: &Content, origin: &str, finding: &Finding) -> String {
    let line = finding_line(origin, finding);
    match content.places.as_ref().and_then(|places| places.of(finding.line)) {
        Some((title, number)) => format!("{line} (appended: line {number} of {title})"),
        None => line,
    }
}

pub(super) fn publish_hook(log: Log) -> impl Fn(&HookEvent<'_>) + Send + Sync + 'static {
    move |HookEvent { notice, kind, status, message }| {
        let event = if notice.event.is_some() { LogEvent::Notify } else { LogEvent::OnPublish };
        log.write(&LogEntry {
            level: match kind {
                HookEventKind::Delivered => LogLevel::Info,
                HookEventKind::Repeated => LogLevel::Warn,
                HookEventKind::GivenUp => LogLevel::Error,
            },
            site: notice.robots(),
            status: *status,
            robots_hash: Some(notice.short().to_owned()).filter(|hash| !hash.is_empty()),
            message: Some(message.clone()),
            ..LogEntry::now(event)
        });
    }
}

pub(super) fn upstream(site: SiteName, log: Log) -> impl Fn(&UpstreamEvent) + Send + Sync + 'static {
    move |event| {
        let detail = &event.detail;
        log.write(&LogEntry {
            level: match event.kind {
                UpstreamEventKind::Returned | UpstreamEventKind::Resolved => LogLevel::Info,
                UpstreamEventKind::Ejected | UpstreamEventKind::GaveUp => LogLevel::Warn,
                UpstreamEventKind::Unresolved | UpstreamEventKind::Failed(_) => LogLevel::Error,
            },
            site: Some(&site),
            reason: Some(event.kind.as_str()),
            message: Some(match event.count {
                1 => detail.clone(),
                count => format!("{detail} ({count} times)"),
            }),
            ..LogEntry::now(LogEvent::Upstream)
        });
    }
}

pub(super) fn problem_observer(log: Log, of: LogEvent) -> impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static {
    move |event| {
        log.write(&LogEntry {
            level: if event.is_over { LogLevel::Info } else { LogLevel::Warn },
            site: event.site,
            message: Some(event.to_string()),
            ..LogEntry::now(of)
        });
    }
}

pub(super) fn directory(log: &Log, site: &str, event: &DirectoryEvent<'_>) {
    let level = match event {
        DirectoryEvent::Removed { .. } => LogLevel::Info,
        DirectoryEvent::Unreadable { .. } => LogLevel::Error,
        _ => LogEvent::Directory.level(),
    };
    log.write_site_message(site, level, LogEvent::Directory, format!("{site}: {event}"));
}

pub(super) fn switched_off(log: &Log, site: &str) {
    let word = shell_word(site);
    let message =
        format!("enforcement is OFF for site {site:?}: to switch it on, run `robotsd enforce on --site {word}`");
    log.write_site_message(site, LogLevel::Warn, LogEvent::Enforcement, message);
}

pub(crate) type SiteName = Arc<str>;

const ENDED: &str = "this override has expired and no longer has any effect; remove this entry, or write a later day";

/// Returns the next steps for an operator, the most urgent one first.
pub(super) fn next_steps(name: &str, snapshot: &Snapshot, status: &Status, flags: [CommandFlags; 2]) -> Vec<NextStep> {
    let [of_decision, of_switch] = flags;
    let mut steps = Vec::new();
    let reload = &status.last_reload;
    let file = file(&reload.origin);
    if status.switch == Enforcement::Off {
        let command = command(&["enforce", "on", "--site", name], of_switch);
        steps.push(NextStep::command("to enforce again", command));
    }
    if let ReloadOutcome::Kept { rejection, .. } = &reload.outcome {
        steps.push(NextStep::without_command(format!(
            "correct the source of the robots.txt ({rejection}); the new version then goes live automatically"
        )));
    }
    if let Some(pending) = status.pending.as_ref() {
        let is_back = pending.objections.iter().any(|objection| objection.kind == ObjectionKind::RolledBack);
        let hash = pending.hash().short();
        let source = file.as_deref().unwrap_or("the source");
        let (take, leave, which) = if is_back {
            ("to make it live again", "or change", "another version")
        } else {
            ("if the change is intended", "if not, correct", "a version")
        };
        steps.push(NextStep::command(take, command(&["accept", name, &hash], of_decision)));
        steps.push(NextStep::without_command(format!(
            "{leave} {source}: {which} that passes the gate goes live automatically"
        )));
    }
    let has_ended = |over: &&Override| over.until.is_some_and(|end| end <= SystemTime::now());
    let ended = snapshot.policy.overrides.iter().filter(has_ended);
    steps.extend(ended.map(|over| NextStep::without_command(format!("{over}: {ENDED}"))));
    let errors = snapshot.content.as_ref().map_or(0, |content| content.report().count(Severity::Error));
    if let (Some(path), true) = (&file, errors > 0) {
        steps.push(NextStep::command("to see the errors in the robots.txt", ["robotsd", "check", path]));
    }
    let is_wrong = |kind| status.state_problem(kind).is_some();
    if [ProblemKind::Save, ProblemKind::Switch, ProblemKind::History].into_iter().any(is_wrong) {
        let repair = "repair the state directory, or free space on its disk: unsaved changes are then written \
            automatically";
        steps.push(NextStep::without_command(repair));
    } else if !status.state_problems.is_empty() && !is_wrong(ProblemKind::Behind) {
        steps.push(NextStep::without_command("repair the state directory: robotsd ignores the damaged files in it"));
    }
    if status.faults + status.callback_faults > 0 {
        steps.push(NextStep::without_command(
            "report the panic that was printed on stderr, because it is a bug in robotsd",
        ));
    }
    steps
}

pub(super) type CommandFlags = &'static [&'static str];

pub(super) fn command<'a>(words: &[&'a str], flags: CommandFlags) -> Vec<&'a str> {
    [&["robotsd"][..], words, flags].concat()
}

/// Describes a site without a robots.txt, in one line for `/readyz`, the status and the log.
pub(super) fn without_robots(name: &str, pending: Option<&Pending>) -> String {
    let none = format!("site {name:?} has no robots.txt: nothing is enforced");
    let Some(pending) = pending else { return none };
    let hash = pending.hash().short();
    let source = file(pending.origin()).unwrap_or_else(|| pending.origin().to_owned());
    let word = shell_word(name);
    format!(
        "{none}, because version {hash} is held until accepted: {pending}; if the change is intended, run `robotsd \
         accept {word} {hash}`, or put accept = [\"{hash}\"] in [gate] for every replica; if not, correct {source}"
    )
}

/// Returns the steps that copy the accepted version to the baseline in version control. Without
/// these steps, the gate compares the next version with the old baseline.
pub(super) fn after_accepting(status: &Status, has_parts: bool, baseline: Option<&Path>) -> Vec<NextStep> {
    let Some(baseline) = baseline.and_then(|path| absolute(path).ok()) else { return Vec::new() };
    let shown = baseline.display().to_string();
    let hash = status.live.map(|hash| hash.short()).unwrap_or_default();
    match file(&status.last_reload.origin) {
        // The source cannot be copied, because it lacks the appended parts that the served version
        // contains.
        Some(_) if has_parts => vec![NextStep::without_command(format!(
            "to accept this version in version control, too, save /robots.txt as it is served now (with the appended \
             lists) as {shown}, and commit that file: later versions are compared with it"
        ))],
        Some(source) => vec![
            NextStep::command("to accept this version in version control, too", ["cp", &source, &shown]),
            NextStep::without_command(format!("then commit {shown}: later versions are compared with it")),
        ],
        None => vec![NextStep::without_command(format!(
            "to accept this version in version control, too, save version {hash} as {shown}, and commit that file: \
             later versions are compared with it"
        ))],
    }
}

/// Returns the absolute path of a source file, so that commands with this path work in any folder.
/// Returns `None` if the source is inline or a URL.
fn file(origin: &str) -> Option<String> {
    if origin == "inline" || origin.contains("://") {
        return None;
    }
    absolute(origin).ok().map(|path| path.display().to_string())
}
