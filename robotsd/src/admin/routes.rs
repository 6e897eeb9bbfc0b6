//! The table of paths: one entry each.
//!
//! An entry takes the decoded query, or the fields, and gives an [`AdminReply`]; whether it reads or changes something decides which methods
//! it has and which clients may send them.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use http::{HeaderMap, Method, StatusCode};
use tokio::task::spawn_blocking;
use tower_robots::live::{Enforcement, VersionHashError, VersionHashPrefix};

use super::board_answer::{board, board_page};
use super::connections::Urgency;
use super::metrics;
use super::query::Query;
use super::reply::AdminReply;
use super::state::{Phase, ServerState, Serving};
use crate::board::{csv, style};
use crate::report::{ChangeReport, ReloadReport};
use crate::sites::{ChangeError, Sites, UnknownSite};

/// Every path there is.
pub(super) const ROUTES: &[Route] = &[
    Route::reads("/livez", |_, _| Box::pin(async { AdminReply::text(StatusCode::OK, "alive\n") })),
    Route::reads("/readyz", |state, query| Box::pin(async move { ready(&state, &query) })),
    Route::reads("/status", |state, _| Box::pin(async move { AdminReply::json(&state.report()) })),
    Route::negotiates("/metrics", |state, fields| Box::pin(async move { metrics::answer(state, &fields).await })),
    Route::reads("/history", |state, query| Box::pin(async move { history(&state, &query) })),
    Route::reads("/board", |state, query| Box::pin(async move { board_page(state, &query).await })),
    Route::reads("/board.css", |_, _| Box::pin(async { AdminReply::css(style()) })),
    Route::reads("/board.json", |state, query| {
        Box::pin(async move { board(state, &query, |_, report| AdminReply::json(report)).await })
    }),
    Route::reads("/board.csv", |state, query| {
        Box::pin(async move { board(state, &query, |_, report| AdminReply::csv(csv(report))).await })
    }),
    Route::changes("/accept", |state, query| Box::pin(async move { accept(&state, &query).await })),
    Route::changes("/rollback", |state, query| Box::pin(async move { roll_back(&state, &query).await })),
    Route::changes("/enforce", |state, query| Box::pin(async move { enforce(&state, &query).await })).urgent(),
    Route::changes("/upgrade", |state, query| Box::pin(async move { upgrade(&state, &query).await })).of_process(),
    Route::changes("/reload", |state, query| Box::pin(async move { reload(&state, &query).await })),
];

/// A path and its handler.
pub(super) struct Route {
    pub(super) path: &'static str,
    pub(super) kind: RouteKind,
    pub(super) work: Urgency,
    /// Whether what it changes is the process, and no site.
    pub(super) is_of_process: bool,
    pub(super) answer: Handler,
}

/// Whether asking changes something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RouteKind {
    Reads,
    Changes,
}

/// What answers, from the part of a request that it reads.
#[derive(Clone, Copy)]
pub(super) enum Handler {
    Query(fn(Arc<ServerState>, Query) -> Answering),
    Fields(fn(Arc<ServerState>, HeaderMap) -> Answering),
}

pub(super) type Answering = Pin<Box<dyn Future<Output = AdminReply> + Send>>;

impl Route {
    /// GET and HEAD.
    const fn reads(path: &'static str, answer: fn(Arc<ServerState>, Query) -> Answering) -> Self {
        Self::new(path, RouteKind::Reads, Handler::Query(answer))
    }

    /// GET and HEAD, where the form of the answer is negotiated. There is nothing to ask for in a query.
    const fn negotiates(path: &'static str, answer: fn(Arc<ServerState>, HeaderMap) -> Answering) -> Self {
        Self::new(path, RouteKind::Reads, Handler::Fields(answer))
    }

    /// POST, and over TCP with the field that says so.
    const fn changes(path: &'static str, answer: fn(Arc<ServerState>, Query) -> Answering) -> Self {
        Self::new(path, RouteKind::Changes, Handler::Query(answer))
    }

    const fn new(path: &'static str, kind: RouteKind, answer: Handler) -> Self {
        Self { path, kind, work: Urgency::Usual, is_of_process: false, answer }
    }

    /// It changes the process, and no site.
    const fn of_process(self) -> Self {
        Self { is_of_process: true, ..self }
    }

    /// It is answered however many others are worked on.
    const fn urgent(self) -> Self {
        Self { work: Urgency::Urgent, ..self }
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
        match self {
            Self::Reads => matches!(*method, Method::GET | Method::HEAD),
            Self::Changes => method == Method::POST,
        }
    }
}

/// Whether requests are to be sent here.
///
/// A site without a robots.txt is named, but does not affect the others, and its own requests pass: it counts as not
/// ready only with `?require=sites`. A config that cannot be used is named, and the one before is served: with
/// `?require=config` it counts. Both may be required, as `?require=sites,config`.
fn ready(state: &ServerState, query: &Query) -> AdminReply {
    if let Some(reply) = query.beyond(&["require"]) {
        return reply;
    }
    let (mut sites, mut config) = (StatusCode::OK, StatusCode::OK);
    for required in query.values("require").flat_map(|value| value.split(',')) {
        match required {
            "sites" => sites = StatusCode::SERVICE_UNAVAILABLE,
            "config" => config = StatusCode::SERVICE_UNAVAILABLE,
            other => {
                let message = format!("{other:?} cannot be required; there is require=sites and require=config");
                return AdminReply::error(StatusCode::BAD_REQUEST, &message);
            }
        }
    }
    let mut status = StatusCode::OK;
    let mut lines = Vec::new();
    match state.phase() {
        Phase::Starting => lines.push("starting: not every listener listens yet".to_owned()),
        Phase::Draining => lines.push("draining: the listeners are closed".to_owned()),
        Phase::Serving => {}
    }
    if !lines.is_empty() {
        status = StatusCode::SERVICE_UNAVAILABLE;
    }
    if let Some(trouble) = state.config().trouble() {
        lines.push(trouble);
        status = status.max(config);
    }
    if let Some(serving) = state.serving() {
        if serving.sites.enforcement() == Enforcement::Off {
            lines.push("enforcement is OFF for every site".to_owned());
        } else {
            let off = serving.sites.switched_off();
            lines.extend(off.into_iter().map(|name| format!("enforcement is OFF for site {name:?}")));
        }
        lines.extend(serving.sites.missing_parts());
        for name in serving.sites.without_robots() {
            lines.push(format!("site {name:?} has no robots.txt: nothing is enforced"));
            status = status.max(sites);
        }
    }
    if status == StatusCode::OK {
        lines.insert(0, "ready".to_owned());
    }
    AdminReply::text(status, lines.join("\n") + "\n")
}

/// Reads the config and robots.txt again, of all sites, or robots.txt of `?site=` one, and waits for what comes of it.
async fn reload(state: &ServerState, query: &Query) -> AdminReply {
    if let Some(reply) = query.beyond(&["site"]) {
        return reply;
    }
    let starting = || AdminReply::error(StatusCode::SERVICE_UNAVAILABLE, "starting: there are no sites yet");
    if state.serving().is_none() {
        return starting();
    }
    let config = match query.value("site") {
        None => state.requests().reconfigure().await,
        Some(_) => None,
    };
    // Those of the config as it is now.
    let Some(serving) = state.serving() else { return starting() };
    match serving.sites.reload(query.value("site")).await {
        Ok(report) => AdminReply::json(&ReloadReport { config, ..report }),
        Err(UnknownSite(name)) => AdminReply::error(StatusCode::NOT_FOUND, &serving.sites.unknown(&name)),
    }
}

/// Has a new process take the place of this one, and waits for what comes of it.
async fn upgrade(state: &ServerState, query: &Query) -> AdminReply {
    if let Some(reply) = query.beyond(&[]) {
        return reply;
    }
    match state.upgrades().upgrade().await {
        Some(report) => AdminReply::json(&report),
        None => AdminReply::error(StatusCode::SERVICE_UNAVAILABLE, "this process starts or ends"),
    }
}

/// What was tried for `?site=`.
fn history(state: &ServerState, query: &Query) -> AdminReply {
    let report = query.only(&["site"]).and_then(|()| {
        let site = query.needed("site", "NAME")?;
        serving(state)?.sites.history(&site).map_err(refused)
    });
    report.map_or_else(|reply| reply, |report| AdminReply::json(&report))
}

/// Brings the version `?hash=` of `?site=` live, which waits.
async fn accept(state: &ServerState, query: &Query) -> AdminReply {
    let wanted = query.only(&["site", "hash"]).and_then(|()| {
        let (site, hash) = (query.needed("site", "NAME")?, query.needed("hash", "HASH")?);
        let hash: VersionHashPrefix = hash
            .parse()
            .map_err(|error: VersionHashError| AdminReply::error(StatusCode::BAD_REQUEST, &error.to_string()))?;
        Ok((site, hash))
    });
    change(state, wanted, |sites, (site, hash)| sites.accept(&site, &hash)).await
}

/// Brings the version of `?site=` live that was accepted before.
async fn roll_back(state: &ServerState, query: &Query) -> AdminReply {
    let wanted = query.only(&["site"]).and_then(|()| query.needed("site", "NAME"));
    change(state, wanted, |sites, site| sites.roll_back(&site)).await
}

/// Turns enforcement `?to=off` or `?to=on`, of every site or of `?site=`.
async fn enforce(state: &ServerState, query: &Query) -> AdminReply {
    let wanted = query.only(&["to", "site"]).and_then(|()| {
        let to = match &*query.needed("to", "off or to=on")? {
            "off" => Enforcement::Off,
            "on" => Enforcement::On,
            other => {
                let message = format!("{other:?} is neither \"off\" nor \"on\"");
                return Err(AdminReply::error(StatusCode::BAD_REQUEST, &message));
            }
        };
        let site = query.value("site").map(|_| query.needed("site", "NAME")).transpose()?;
        Ok((site, to))
    });
    change(state, wanted, |sites, (site, to)| sites.enforce(site.as_deref(), to)).await
}

/// Makes a change on a thread that may block. It is made also when the client has gone.
async fn change<T: Send + 'static>(
    state: &ServerState,
    wanted: Result<T, AdminReply>,
    make: impl FnOnce(&Sites, T) -> Result<ChangeReport, ChangeError> + Send + 'static,
) -> AdminReply {
    let (wanted, serving) = match wanted.and_then(|wanted| Ok((wanted, serving(state)?))) {
        Ok(both) => both,
        Err(reply) => return reply,
    };
    match spawn_blocking(move || make(&serving.sites, wanted)).await {
        Ok(Ok(report)) => AdminReply::json(&report),
        Ok(Err(refusal)) => refused(refusal),
        Err(error) => AdminReply::error(
            StatusCode::INTERNAL_SERVER_ERROR,
            &format!("a fault of robotsd: {error}: see the status"),
        ),
    }
}

fn serving(state: &ServerState) -> Result<Arc<Serving>, AdminReply> {
    let starting = || AdminReply::error(StatusCode::SERVICE_UNAVAILABLE, "starting: there are no sites yet");
    state.serving().ok_or_else(starting)
}

fn refused(refusal: ChangeError) -> AdminReply {
    match refusal {
        ChangeError::Unknown(message) => AdminReply::error(StatusCode::NOT_FOUND, &message),
        ChangeError::Conflict(message) => AdminReply::error(StatusCode::CONFLICT, &message),
    }
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
        assert!(query.beyond(&["site", "flag"]).is_none());
        assert!(query.beyond(&["site"]).is_some());
        assert!(Query::new(None).beyond(&[]).is_none());
    }

    #[test]
    fn paths_are_there_once() {
        for (number, route) in ROUTES.iter().enumerate() {
            assert!(route.path.starts_with('/'));
            assert!(ROUTES[..number].iter().all(|before| before.path != route.path), "{}", route.path);
        }
    }
}
