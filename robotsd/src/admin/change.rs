//! Handles a request: checks the rights of the client, calls the handler of the route, and writes
//! the audit record.
//!
//! A change runs in its own task, because it must be completed even if its client disconnects.
//! Accepting a version, rolling back and turning enforcement on are refused if the audit record
//! cannot be written first. If enforcement is turned off, the audit record is written after the
//! change, so a disk that hangs does not delay the change.

use std::mem::take;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use http::StatusCode;
use http::request::Parts;
use tokio::time::timeout;
use tower_robots::internals::Attribution;

use super::access_rule::AccessRule;
use super::audit_writer::AuditWriter;
use super::reply::{AdminReply, Answer, ChangeRecord};
use super::routes::{Need, Query, Route, RouteKind, RouteRequest};
use super::state::ServerState;
use crate::audit::{AuditRecord, cut};
use crate::config::{AdminRole, Grant};
use crate::log::{LogEvent, LogLevel};
use crate::report::SettingChange;

/// Maximum time that a response waits until its audit record is written.
const MAX_AUDIT_DELAY: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(super) struct Attempt {
    query: Query,
    record: AuditRecord,
    is_change: bool,
}

impl Attempt {
    pub(super) fn new(head: &Parts, access: &AccessRule, route: Option<&Route>, audit: &AuditWriter) -> Self {
        let mut query = Query::new(head.uri.query());
        let is_change = route.is_some_and(|route| route.kind == RouteKind::Changes);
        let action = route.map_or("?", |route| route.path.trim_start_matches('/'));
        let is_of_sites = route.is_some_and(|route| matches!(route.need(&query), Need::Site(_) | Need::All(_)));
        let record = AuditRecord {
            from: access.from(),
            site: is_of_sites.then(|| cut(query.site().unwrap_or("*"))),
            reason: is_change.then(|| query.take("reason")).flatten().as_deref().map(cut),
            replica: audit.replica(),
            ..AuditRecord::new(access.identification(), action)
        };
        Self { query, record, is_change }
    }

    pub(super) async fn refused(self, state: Arc<ServerState>, reply: &AdminReply) {
        let is_refusal = matches!(reply.status(), StatusCode::FORBIDDEN | StatusCode::UNAUTHORIZED);
        // Refused reads are recorded only if the client is unknown.
        if is_refusal
            && (self.is_change || reply.status() == StatusCode::UNAUTHORIZED)
            && let Some(left_out) = state.audit.admit_refusal()
        {
            let (message, left_out) = (reply.error.clone(), Some(left_out).filter(|count| *count > 0));
            note(state, AuditRecord { message, left_out, ..self.record.with_result("refused") }).await;
        }
    }

    pub(super) async fn answer(
        &mut self,
        state: Arc<ServerState>,
        access: &AccessRule,
        head: Parts,
        route: &'static Route,
    ) -> Answer {
        let need = route.need(&self.query);
        let query = take(&mut self.query);
        let mut grant = Grant::everywhere(AdminRole::Read);
        if need != Need::Nothing {
            let rights = state.rights.load_full();
            let client = access.client(&head, &rights)?;
            (self.record.who, self.record.how) = (Some(cut(&client.who)), client.how.to_owned());
            if self.is_change {
                access.admit_change(&head)?;
                access.require_token(&client, &rights)?;
            }
            client.permit(need, query.site())?;
            grant = client.grant;
        }
        let by = Attribution { who: self.record.who.clone(), reason: self.record.reason.clone() };
        let request = RouteRequest { query, fields: head.headers, grant, by };
        if !self.is_change {
            return (route.answer)(state, request).await;
        }
        let made = tokio::spawn(change(state, route, request, self.record.clone()));
        made.await.unwrap_or_else(|error| Err(AdminReply::internal_error(&error)))
    }
}

impl ServerState {
    /// Records changes of a `mode` in the audit file, because a mode, like the kill switch, can
    /// turn enforcement off.
    pub(crate) fn audit_modes(self: &Arc<Self>, changes: &[SettingChange]) {
        let is_mode = |change: &&SettingChange| matches!(&*change.setting, "mode" | "enforcement.mode");
        let (state, changes) = (Arc::clone(self), changes.iter().filter(is_mode).cloned().collect::<Vec<_>>());
        if changes.is_empty() {
            return;
        }
        let mut last = self.audit.config_task.lock();
        let before = OptionFuture::from(last.take());
        *last = Some(tokio::spawn(async move {
            before.await;
            for SettingChange { site, before, after, .. } in changes {
                let (site, replica) = (site.or_else(|| Some("*".to_owned())), state.audit.replica());
                let made = AuditRecord::new("file", "mode").with_result("done");
                state.audit.note(AuditRecord { site, before, after, replica, ..made }).await;
            }
        }));
    }
}

async fn change(state: Arc<ServerState>, route: &Route, request: RouteRequest, record: AuditRecord) -> Answer {
    if route.needs_audit_first(&request.query)
        && let Err(why) = state.audit.append(record.with_result("started")).await
    {
        let message =
            format!("{why}; nothing was changed, because without the audit file, enforcement can only be switched off");
        state.log.write_message_at(LogLevel::Error, LogEvent::Admin, &*message);
        return Err(AdminReply::error(StatusCode::INSUFFICIENT_STORAGE, &message));
    }
    let mut answer = make(&state, route, request).await;
    let (Ok(reply) | Err(reply)) = &mut answer;
    let result = if reply.status() == StatusCode::OK && reply.error.is_none() { "done" } else { "failed" };
    let (ChangeRecord { before, after }, message) = (take(&mut reply.outcome), reply.error.clone());
    note(state, AuditRecord { before, after, message, ..record.with_result(result) }).await;
    answer
}

/// Writes an audit record. Delays the response by at most [`MAX_AUDIT_DELAY`], because the disk
/// may hang.
async fn note(state: Arc<ServerState>, record: AuditRecord) {
    let noting = tokio::spawn(async move { state.audit.note(record).await });
    let _ = timeout(MAX_AUDIT_DELAY, noting).await;
}

async fn make(state: &Arc<ServerState>, route: &Route, request: RouteRequest) -> Answer {
    let mut _change = None;
    if !route.is_process_wide() {
        // While a new process is about to replace this process, a change waits until the upgrade
        // has ended. If the new process has taken over, this process must not make the change.
        _change = Some(Arc::clone(&state.changes).read_owned().await);
        if let Some(process) = state.successor() {
            let message = format!("process {process} has replaced this process: try again");
            return Err(AdminReply::unavailable(&message));
        }
    }
    (route.answer)(Arc::clone(state), request).await
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::audit;
    use crate::config::LogFormat;
    use crate::log::Log;

    #[tokio::test]
    async fn mode_changes_are_audited_in_order_and_finish_waits_for_all() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("audit.jsonl");
        let (state, _requests) = ServerState::new(Path::new("robotsd.toml"), Log::start(LogFormat::Json), None);
        let state = Arc::new(state);
        state.audit.set_destination(Some(place.clone()), "a".to_owned());
        let mode = |number: usize| SettingChange {
            site: None,
            setting: "mode".to_owned(),
            before: None,
            after: Some(number.to_string()),
        };
        for number in 0..20 {
            state.audit_modes(&[mode(2 * number), mode(2 * number + 1)]);
        }
        state.audit.finish().await;
        let (records, broken) = audit::read(&place).unwrap();
        let modes: Vec<_> = records.into_iter().filter_map(|record| record.after).collect();
        assert_eq!((modes, broken), ((0..40).map(|number: usize| number.to_string()).collect::<Vec<_>>(), 0));
    }
}
