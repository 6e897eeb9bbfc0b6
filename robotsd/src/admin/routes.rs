//! The routes of the admin interface, the decoded query, and the handlers for the board.
//!
//! The handler of a route receives the decoded query and the header fields, and returns an
//! [`AdminReply`]. The kind of a route, [`Reads` or `Changes`](RouteKind), determines the allowed
//! methods.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{HeaderMap, Method, StatusCode};
use percent_encoding::percent_decode_str;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout, timeout_at};
use tower_robots::internals::Attribution;
use tower_robots::live::{Enforcement, VersionHashPrefix};
use tower_robots::rules::ValueError;

use super::client::ROWS_PATH;
use super::connection_slots::Urgency;
use super::fleet_changes;
use super::metrics;
use super::replicas::{fleet_board, own_rows};
use super::reply::{AdminReply, Answer};
use super::state::{Phase, ServerState, Serving};
use crate::board::{Board, BoardPage, BoardQuery, BoardReport, BoardSpan, csv, seconds, style};
use crate::config::AdminRole::{Admin, Operate, Read};
use crate::config::{AdminRole, Grant};
use crate::report::{ChangeReport, ReloadReport, ReplicaState, StatusReport};
use crate::sites::{ChangeError, Sites};

pub(super) const ROUTES: &[Route] = &[
    Route::reads("/", Need::Nothing, |state, _| {
        now(Ok(AdminReply::redirect(if state.board.get().is_some() { "/board" } else { "/status" })))
    }),
    Route::reads("/livez", Need::Nothing, |state, _| now(Ok(alive(&state)))),
    Route::reads("/readyz", Need::Nothing, |state, request| now(ready(&state, &request.query))),
    Route::reads("/status", Need::Own, |state, request| now(Ok(AdminReply::json(&status(&state, &request.grant))))),
    Route::reads("/metrics", Need::All(Read), |state, request| Box::pin(metrics::answer(state, request.fields))),
    Route::reads("/history", Need::Site(Read), |state, request| now(history(&state, &request.query))),
    Route::reads("/board", Need::Site(Read), |state, request| Box::pin(board_page(state, request))),
    Route::reads("/board.css", Need::Nothing, |_, _| now(Ok(AdminReply::css(style())))),
    Route::reads("/board.json", Need::Site(Read), |state, request| {
        Box::pin(board(state, request, |_, report| AdminReply::json(report)))
    }),
    Route::reads("/board.csv", Need::Site(Read), |state, request| {
        Box::pin(board(state, request, |_, report| AdminReply::csv(csv(report))))
    }),
    Route::reads(ROWS_PATH, Need::Site(Read), |state, request| Box::pin(board_rows(state, request))),
    Route::records_first("/accept", Need::Site(Operate), |state, request| Box::pin(accept(state, request))),
    Route::records_first("/rollback", Need::Site(Operate), |state, request| Box::pin(roll_back(state, request))),
    Route::reads("/rollback/effect", Need::Site(Read), |state, request| Box::pin(rollback_effect(state, request))),
    Route {
        work: Urgency::Urgent,
        ..Route::records_first("/enforce", Need::Site(Operate), |state, request| Box::pin(enforce(state, request)))
    },
    Route::reads("/fleet", Need::All(Read), |state, _| Box::pin(fleet(state))),
    Route::records_first("/fleet/init", Need::All(Admin), |state, request| Box::pin(init_fleet(state, request))),
    Route::records_first("/fleet/restore", Need::All(Admin), |state, request| Box::pin(restore_fleet(state, request))),
    Route::changes("/upgrade", Need::Process(Admin), |state, request| Box::pin(upgrade(state, request))),
    Route::changes("/reload", Need::Site(Operate), |state, request| Box::pin(reload(state, request))),
];

pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) kind: RouteKind,
    need: Need,
    /// Whether requests may use the reserved connection slots.
    pub(super) work: Urgency,
    needs_audit_first: bool,
    pub(super) answer: Handler,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Need {
    /// Anyone may send the request. Health probes need no rights.
    Nothing,
    /// Read access to at least one site. The response contains only the sites that the client may
    /// read.
    Own,
    /// The given role for at least one site, because the request concerns the process and not a
    /// particular site.
    Process(AdminRole),
    /// The given role for all sites, even if the query has `site`.
    All(AdminRole),
    /// The given role for the site in `?site=`, or for all sites if the query has no `site`.
    Site(AdminRole),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteKind {
    Reads,
    Changes,
}

type Handler = fn(Arc<ServerState>, RouteRequest) -> AnswerFuture;

type AnswerFuture = Pin<Box<dyn Future<Output = Answer> + Send>>;

fn now(answer: Answer) -> AnswerFuture {
    Box::pin(std::future::ready(answer))
}

pub(super) struct RouteRequest {
    pub(super) query: Query,
    pub(super) fields: HeaderMap,
    pub(super) grant: Grant,
    pub(super) by: Attribution,
}

impl Route {
    const fn reads(path: &'static str, need: Need, answer: Handler) -> Self {
        Self { path, kind: RouteKind::Reads, need, work: Urgency::Usual, needs_audit_first: false, answer }
    }

    /// Creates a route for POST. Over TCP, requests also need the `Robotsd-Admin` field.
    const fn changes(path: &'static str, need: Need, answer: Handler) -> Self {
        Self { kind: RouteKind::Changes, ..Self::reads(path, need, answer) }
    }

    /// Creates a route for a change whose audit record must be written first.
    const fn records_first(path: &'static str, need: Need, answer: Handler) -> Self {
        Self { needs_audit_first: true, ..Self::changes(path, need, answer) }
    }

    /// Returns the right that a request needs. Turning enforcement off needs only the role
    /// `operate`, because an operator must be able to do this in an emergency.
    pub(super) fn need(&self, query: &Query) -> Need {
        let turns_all_on = self.work == Urgency::Urgent && !query.turns_off() && query.site().is_none();
        if turns_all_on { Need::Site(Admin) } else { self.need }
    }

    /// Reports whether the audit record must be written before the change. Turning enforcement off
    /// never waits for the audit.
    pub(super) fn needs_audit_first(&self, query: &Query) -> bool {
        self.needs_audit_first && !(self.work == Urgency::Urgent && query.turns_off())
    }

    pub(super) const fn is_process_wide(&self) -> bool {
        matches!(self.need, Need::Process(_))
    }
}

impl RouteKind {
    pub(super) const fn allow(self) -> &'static str {
        match self {
            Self::Reads => "GET, HEAD",
            Self::Changes => "POST",
        }
    }

    pub(super) fn allows(self, method: &Method) -> bool {
        self.allow().split(", ").any(|allowed| method == allowed)
    }
}

/// Reports whether all threads are responsive. The control thread runs this handler, so a response
/// shows that this thread is responsive, too.
fn alive(state: &ServerState) -> AdminReply {
    match &state.watchdog.stalled()[..] {
        [] => AdminReply::text(StatusCode::OK, "alive\n"),
        stalled => AdminReply::text(StatusCode::SERVICE_UNAVAILABLE, format!("stalled: {}\n", stalled.join(", "))),
    }
}

/// Reports whether requests should be sent to this process.
///
/// The response lists each site without a robots.txt. A site without a robots.txt does not affect
/// the other sites, and requests to it are forwarded. With `?require=sites`, a site without a
/// robots.txt makes the process unready, but only if the site had no robots.txt when the process
/// started. A robots.txt that becomes unavailable after the start is probably unavailable to all
/// replicas, and one bad file must not take all other sites out of rotation.
///
/// A rejected included file counts as a site without a robots.txt, unless an earlier version of the
/// included file is in use.
///
/// If the config file is rejected, the response reports the problem, and the previous config stays
/// in force. With `?require=config`, a rejected config file makes the process unready. Both
/// conditions can be combined: `?require=sites,config`.
fn ready(state: &ServerState, query: &Query) -> Answer {
    query.only(&["require"])?;
    let (mut sites, mut config) = (StatusCode::OK, StatusCode::OK);
    for required in query.values("require").flat_map(|value| value.split(',')) {
        match required {
            "sites" => sites = StatusCode::SERVICE_UNAVAILABLE,
            "config" => config = StatusCode::SERVICE_UNAVAILABLE,
            other => {
                let message = format!("require={other:?} is unknown: use require=sites or require=config");
                return Err(AdminReply::bad_request(&message));
            }
        }
    }
    let phase = match state.phase() {
        Phase::Starting => Some("starting: not all listeners are open yet"),
        Phase::Draining => Some("draining: the listeners are closed"),
        Phase::Serving => None,
    };
    let mut status = if phase.is_some() { StatusCode::SERVICE_UNAVAILABLE } else { StatusCode::OK };
    let mut lines: Vec<_> = phase.map(str::to_owned).into_iter().collect();
    if let Some(problem) = state.config.problem() {
        lines.push(problem);
        status = status.max(config);
    }
    for refused in state.config.report().refused {
        if !refused.is_kept && state.missing_at_start(&refused.path) {
            status = status.max(sites);
        }
        lines.push(format!(
            "an included file of the config has been rejected since {since}: {why}",
            since = refused.since,
            why = refused.why
        ));
    }
    if let Some(serving) = state.serving() {
        if serving.sites.enforcement() == Enforcement::Off {
            lines.push("enforcement is OFF for every site".to_owned());
        } else {
            let off = serving.sites.switched_off();
            lines.extend(off.into_iter().map(|name| format!("enforcement is OFF for site {name:?}")));
        }
        lines.extend(serving.sites.missing_parts());
        for site in serving.sites.without_robots() {
            if state.missing_at_start(&site.name) {
                status = status.max(sites);
            }
            lines.push(site.why);
        }
    }
    if status == StatusCode::OK {
        lines.insert(0, "ready".to_owned());
    }
    Ok(AdminReply::text(status, lines.join("\n") + "\n"))
}

/// Returns the status, with only the sites that the client may read.
fn status(state: &ServerState, grant: &Grant) -> StatusReport {
    let mut report = state.report(grant.covers(None));
    report.fleet = report.fleet.filter(|_| grant.covers(None));
    report.sites.retain(|site| grant.covers(Some(&site.name)));
    report.traffic.iter_mut().for_each(|traffic| traffic.sites.retain(|site| grant.covers(Some(&site.name))));
    // `traffic` contains every site. In `sites`, a site with a folder of robots.txt files has one
    // entry per file, and no entry if the folder is empty.
    let has_no_site = report.traffic.as_ref().is_some_and(|traffic| traffic.sites.is_empty());
    // If an included file is rejected, it is unknown whether the client may read the sites in that
    // file.
    let is_whole = report.config.refused.is_empty();
    report.is_blind = has_no_site && is_whole && report.sites.is_empty() && !grant.covers(None);
    if report.is_blind {
        report.problems.push(format!("[admin] gives you {grant}, but none of these sites exists"));
    }
    report
}

/// Reloads the config and all robots.txt files, or only the robots.txt of the site in `?site=`, and
/// waits for the outcome.
async fn reload(state: Arc<ServerState>, RouteRequest { query, .. }: RouteRequest) -> Answer {
    query.only(&["site"])?;
    serving(&state)?;
    let config = match query.value("site") {
        None => state.reconfigure().await,
        Some(_) => None,
    };
    let sites = &serving(&state)?.sites;
    let report = ReloadReport { config, ..sites.reload(query.value("site")).await.map_err(refused)? };
    let of_sites = report.sites.iter().map(|site| (&*site.outcome, &*site.message));
    let others = [&report.config, &report.registry].into_iter().flatten();
    let outcomes = others.map(|other| (&*other.outcome, &*other.message)).chain(of_sites);
    let kept = outcomes.filter_map(|(outcome, why)| matches!(outcome, "kept" | "partly").then_some(why));
    let kept: Vec<_> = kept.flat_map(str::lines).collect();
    let mut reply = AdminReply::json(&report);
    reply.error = (!kept.is_empty()).then(|| kept.join("; "));
    Ok(reply)
}

async fn upgrade(state: Arc<ServerState>, RouteRequest { query, .. }: RouteRequest) -> Answer {
    query.only(&[])?;
    let report = state
        .upgrade()
        .await
        .ok_or_else(|| AdminReply::unavailable("this process is starting or ending: try again"))?;
    let mut reply = AdminReply::json(&report);
    reply.error = (report.state == "failed").then_some(report.message);
    Ok(reply)
}

fn history(state: &ServerState, query: &Query) -> Answer {
    query.only(&["site"])?;
    let site = query.required_value("site", "NAME")?;
    let report = serving(state)?.sites.history(&site).map_err(refused)?;
    Ok(AdminReply::json(&report))
}

async fn accept(state: Arc<ServerState>, RouteRequest { query, by, .. }: RouteRequest) -> Answer {
    query.only(&["site", "hash", "fleet"])?;
    let (site, hash) = (query.required_value("site", "NAME")?, version(&query.required_value("hash", "HASH")?)?);
    match query.value("fleet") {
        Some(_) => fleet_changes::accept(serving(&state)?, &site, Some(hash.to_string()), &by).await,
        None => change(serving(&state)?, move |sites| sites.accept(&site, &hash, &by)).await,
    }
}

/// Rolls the site in `?site=` back to the previously accepted version. With `?fleet=`, rolls back
/// all replicas. With `?hash=`, the replicas roll back to the version with this hash.
async fn roll_back(state: Arc<ServerState>, RouteRequest { query, by, .. }: RouteRequest) -> Answer {
    query.only(if query.value("fleet").is_some() { &["site", "fleet", "hash"] } else { &["site"] })?;
    let (site, hash) = (query.required_value("site", "NAME")?, query.value("hash").map(version).transpose()?);
    match query.value("fleet") {
        Some(_) => fleet_changes::accept(serving(&state)?, &site, hash.map(|hash| hash.to_string()), &by).await,
        None => change(serving(&state)?, move |sites| sites.roll_back(&site, &by)).await,
    }
}

async fn rollback_effect(state: Arc<ServerState>, RouteRequest { query, .. }: RouteRequest) -> Answer {
    query.only(&["site"])?;
    let site = query.required_value("site", "NAME")?;
    change(serving(&state)?, move |sites| sites.rollback_effect(&site)).await
}

fn version(written: &str) -> Result<VersionHashPrefix, AdminReply> {
    written.parse().map_err(|error: ValueError| AdminReply::bad_request(&error.to_string()))
}

/// Turns enforcement on or off, for all sites or for the site in `?site=`. If the query contains
/// `?mark=` (the ID of an off switch), the change affects the whole fleet.
async fn enforce(state: Arc<ServerState>, RouteRequest { query, by, .. }: RouteRequest) -> Answer {
    query.only(&["to", "site", "mark"])?;
    let to = match &*query.required_value("to", "off or to=on")? {
        "off" => Enforcement::Off,
        "on" => Enforcement::On,
        other => return Err(AdminReply::bad_request(&format!("\"to\" is {other:?}: write to=off or to=on"))),
    };
    let site = query.value("site").map(|_| query.required_value("site", "NAME")).transpose()?;
    let serving = serving(&state)?;
    let Some(mark) = query.value("mark").filter(|_| serving.sites.state.fleet.is_some()) else {
        return change(serving, move |sites| sites.enforce(site.as_deref(), to)).await;
    };
    if !(1..=64).contains(&mark.len()) || !mark.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(AdminReply::bad_request(
            "\"mark\" is not a valid id of an off switch: write 1 to 64 letters and digits",
        ));
    }
    fleet_changes::enforce(serving, to, site, mark.to_owned(), by).await
}

/// Makes or previews a change on a blocking thread. The change is completed even if the client
/// disconnects.
async fn change(
    serving: Arc<Serving>,
    make: impl FnOnce(&Sites) -> Result<ChangeReport, ChangeError> + Send + 'static,
) -> Answer {
    let made = spawn_blocking(move || make(&serving.sites)).await;
    let made = made.map_err(|error| AdminReply::internal_error(&format_args!("{error}: check `robotsd status`")))?;
    made.map(AdminReply::change).map_err(refused)
}

/// Maximum time that a request to `/fleet` waits for the store.
const STORE_TIMEOUT: Duration = Duration::from_millis(750);

/// Returns the state of the fleet from the store. If the store does not respond in time, returns
/// the state from the last successful read.
async fn fleet(state: Arc<ServerState>) -> Answer {
    let serving = serving(&state)?;
    let fleet = fleet_changes::fleet_of(&serving)?;
    let is_late = timeout(STORE_TIMEOUT, fleet.refresh()).await.is_err();
    let mut report = fleet.report();
    if is_late && report.state == ReplicaState::Current {
        report.state = ReplicaState::Stale;
        let late = format!(
            "{store}: the store did not respond within {limit} ms, so this report shows the state of the last \
             read",
            store = report.store,
            limit = STORE_TIMEOUT.as_millis()
        );
        report.problems.push(late);
    }
    Ok(AdminReply::json(&report))
}

async fn init_fleet(state: Arc<ServerState>, RouteRequest { query, .. }: RouteRequest) -> Answer {
    query.only(&[])?;
    fleet_changes::written(fleet_changes::fleet_of(&*serving(&state)?)?.init().await)
}

/// Restores entries that the store has lost. `?repair=1` also replaces entries that cannot be
/// parsed.
async fn restore_fleet(state: Arc<ServerState>, RouteRequest { query, by, .. }: RouteRequest) -> Answer {
    query.only(&["repair"])?;
    let serving = serving(&state)?;
    let fleet = fleet_changes::fleet_of(&serving)?;
    let is_repair = query.value("repair").is_some();
    fleet_changes::written(if is_repair { fleet.repair(&by).await } else { fleet.restore().await })
}

fn serving(state: &ServerState) -> Result<Arc<Serving>, AdminReply> {
    state
        .serving()
        .ok_or_else(|| AdminReply::unavailable("robotsd is starting, and its sites are not loaded yet: try again"))
}

fn refused(refusal: ChangeError) -> AdminReply {
    match refusal {
        ChangeError::Unknown(message) => AdminReply::error(StatusCode::NOT_FOUND, &message),
        ChangeError::Conflict(message) => AdminReply::error(StatusCode::CONFLICT, &message),
    }
}

#[derive(Debug, Default)]
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    pub(super) fn new(query: Option<&str>) -> Self {
        let decoded = |text: &str| percent_decode_str(text).decode_utf8_lossy().into_owned();
        let pairs = query.unwrap_or_default().split('&').filter(|pair| !pair.is_empty());
        Self(
            pairs
                .map(|pair| pair.split_once('=').unwrap_or((pair, "")))
                .map(|(name, value)| (decoded(name), decoded(value)))
                .collect(),
        )
    }

    /// Returns the value of `site`; `None` if it is missing or empty.
    pub(super) fn site(&self) -> Option<&str> {
        self.value("site").filter(|site| !site.is_empty())
    }

    fn turns_off(&self) -> bool {
        self.value("to") == Some("off")
    }

    pub(super) fn take(&mut self, name: &str) -> Option<String> {
        let at = self.0.iter().position(|(known, _)| known == name)?;
        Some(self.0.remove(at).1)
    }

    fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| &**value)
    }

    fn values<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.0.iter().filter(move |(known, _)| known == name).map(|(_, value)| &**value)
    }

    /// Returns the value of a required parameter. `what` describes the value in the error message.
    fn required_value(&self, name: &str, what: &str) -> Result<String, AdminReply> {
        match self.value(name) {
            Some(value) if !value.is_empty() => Ok(value.to_owned()),
            _ => Err(AdminReply::bad_request(&format!("the query must contain {name}={what}"))),
        }
    }

    fn only(&self, names: &[&str]) -> Result<(), AdminReply> {
        let Some((name, _)) = self.0.iter().find(|(name, _)| !names.contains(&&**name)) else { return Ok(()) };
        Err(AdminReply::bad_request(&format!(
            "the query has the unknown parameter {name:?}: use {known}",
            known = names.join(", ")
        )))
    }
}

/// Maximum time that a request waits for the files of the board.
const BOARD_READ_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the board. With `?fleet=1`, it covers all configured replicas that respond.
async fn board(
    state: Arc<ServerState>,
    RouteRequest { query, grant, .. }: RouteRequest,
    write: impl FnOnce(&ServerState, &BoardReport) -> AdminReply + Send + 'static,
) -> Answer {
    let wanted = board_query(&query)?;
    if wanted.is_of_fleet {
        let mut report = fleet_board(&state, wanted).await?;
        // The first note states how many replicas the board covers. All later notes contain
        // addresses of replicas, which only clients with access to all sites may see.
        report.notes.truncate(if grant.covers(None) { usize::MAX } else { 1 });
        return Ok(write(&state, &report));
    }
    read_board(state, move |state, board| {
        let report = board.report(&wanted, seconds(SystemTime::now()));
        match (&wanted.site, report.sites.is_empty()) {
            (Some(site), true) => AdminReply::error(StatusCode::NOT_FOUND, &format!("there is no site {site:?}")),
            _ => write(state, &report),
        }
    })
    .await
}

async fn board_rows(state: Arc<ServerState>, RouteRequest { query, .. }: RouteRequest) -> Answer {
    let wanted = board_query(&query)?;
    read_board(state, move |state, board| AdminReply::json(&own_rows(state, board, &wanted))).await
}

/// Reads the board on a blocking thread. Limits the number of concurrent readers, because each
/// reader blocks a thread while the disk hangs.
async fn read_board(
    state: Arc<ServerState>,
    read: impl FnOnce(&ServerState, &Board) -> AdminReply + Send + 'static,
) -> Answer {
    let Some(board) = state.board.get().cloned() else {
        serving(&state)?;
        return Err(AdminReply::unavailable("the board is disabled: set enabled = true in [board]"));
    };
    let what = board.files_description();
    let late = |why: &str| {
        let seconds = BOARD_READ_TIMEOUT.as_secs();
        AdminReply::unavailable(&format!("{what} could not be read in {seconds} seconds: {why}"))
    };
    let deadline = Instant::now() + BOARD_READ_TIMEOUT;
    let reader = timeout_at(deadline, board.reader()).await;
    let reader = reader.map_err(|_| late("other requests are still reading these files"))?;
    let read = spawn_blocking(move || {
        // The permit is held until the files are read, even if the client has disconnected.
        let _reader = reader;
        read(&state, &board)
    });
    let read = timeout_at(deadline, read).await.map_err(|_| late("the disk is slow or does not respond"))?;
    read.map_err(|error| AdminReply::internal_error(&error))
}

/// Allowed values of `?reload=`: the seconds until the browser reloads the board. Shorter intervals
/// are useless, because the counts are up to five seconds old.
const RELOAD_SECONDS: [&str; 2] = ["5", "60"];

async fn board_page(state: Arc<ServerState>, request: RouteRequest) -> Answer {
    let (query, grant) = (board_query(&request.query)?, request.grant.clone());
    let reload =
        request.query.value("reload").map(|written| RELOAD_SECONDS.into_iter().find(|seconds| *seconds == written));
    let reload = reload.map(|known| {
        known.ok_or_else(|| {
            AdminReply::bad_request("\"reload\" must be a number of seconds: write reload=5 or reload=60")
        })
    });
    let reload = reload.transpose()?;
    board(state, request, move |state, report| {
        let serving = state.serving();
        let history = |site: &str| serving.as_ref()?.sites.history(site).ok();
        let histories: Vec<_> = report.sites.iter().filter_map(|site| history(&site.site)).collect();
        let status = status(state, &grant);
        let links_to_all_replicas =
            query.is_of_fleet || serving.as_ref().is_some_and(|serving| serving.sites.is_of_fleet());
        let page = BoardPage {
            status: &status,
            board: report,
            histories: &histories,
            query: &query,
            links_to_all_replicas,
            reload,
        };
        AdminReply::page(page.to_string(), reload)
    })
    .await
}

fn board_query(query: &Query) -> Result<BoardQuery, AdminReply> {
    query.only(&["site", "period", "reload", "fleet"])?;
    let site = query.value("site").filter(|site| !site.is_empty()).map(str::to_owned);
    let span = match query.value("period") {
        None => BoardSpan::default(),
        Some(written) => BoardSpan::ALL.into_iter().find(|span| span.as_str() == written).ok_or_else(|| {
            AdminReply::bad_request(&format!("{written:?} is not a valid period: use period=24h or period=30d"))
        })?,
    };
    Ok(BoardQuery { site, span, is_of_fleet: query.value("fleet").is_some() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_decoded() {
        let query = Query::new(Some("site=b%C3%BCcher%20%26&site=x&flag&"));
        assert_eq!(query.value("site"), Some("bücher &"));
        assert_eq!(query.value("flag"), Some(""));
        assert_eq!(query.value("other"), None);
        assert!(query.only(&["site", "flag"]).is_ok());
        assert!(query.only(&["site"]).is_err());
        assert!(Query::new(None).only(&[]).is_ok());
    }

    #[test]
    fn every_route_has_a_unique_path() {
        for (number, route) in ROUTES.iter().enumerate() {
            assert!(route.path.starts_with('/'));
            assert!(ROUTES[..number].iter().all(|before| before.path != route.path), "{}", route.path);
        }
    }
}
