//! What the board says, for browsers and for programs.
//!
//! Its files are read on threads that may block, few at a time: the answer to a request that waits too long says what it waited for, and the
//! interface goes on answering.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};

use super::query::Query;
use super::reply::AdminReply;
use super::state::ServerState;
use crate::board::{BoardPage, BoardQuery, BoardReport, BoardSpan, PageReload, seconds};

/// How long a request waits for the files.
const PATIENCE: Duration = Duration::from_secs(5);

/// What the board says of `?site=`, or of every site, over `?period=`. Its files are read on a thread that may block.
pub(super) async fn board(
    state: Arc<ServerState>,
    query: &Query,
    write: impl FnOnce(&ServerState, &BoardReport) -> AdminReply + Send + 'static,
) -> AdminReply {
    let wanted = match board_query(query) {
        Ok(wanted) => wanted,
        Err(reply) => return reply,
    };
    let Some(board) = state.board().cloned() else {
        let message = match state.serving() {
            Some(_) => "there is no board: [board] has mode = \"off\"",
            None => "starting: there are no sites yet",
        };
        return AdminReply::error(StatusCode::SERVICE_UNAVAILABLE, message);
    };
    let late = {
        let what = board.what_is_read();
        move |why: &str| {
            let seconds = PATIENCE.as_secs();
            AdminReply::error(
                StatusCode::SERVICE_UNAVAILABLE,
                &format!("{what} could not be read in {seconds} seconds: {why}"),
            )
        }
    };
    let deadline = Instant::now() + PATIENCE;
    let Ok(reader) = timeout_at(deadline, board.reader()).await else {
        return late("other requests are reading already, and none of them has ended");
    };
    let read = spawn_blocking(move || {
        // Another request may read once this one has ended, also where no request waits for it any more.
        let _reader = reader;
        let report = board.report(&wanted, seconds(SystemTime::now()));
        match (&wanted.site, report.sites.is_empty()) {
            (Some(site), true) => AdminReply::error(StatusCode::NOT_FOUND, &format!("there is no site {site:?}")),
            _ => write(&state, &report),
        }
    });
    let Ok(reply) = timeout_at(deadline, read).await else { return late("reading has begun and has not ended") };
    reply.unwrap_or_else(|error| {
        AdminReply::error(StatusCode::INTERNAL_SERVER_ERROR, &format!("a fault of robotsd: {error}"))
    })
}

/// The board for a browser, which loads it again with `?reload=60`.
pub(super) async fn board_page(state: Arc<ServerState>, query: &Query) -> AdminReply {
    let (asked, reload) = match (board_query(query), query.value("reload")) {
        (Ok(asked), None) => (asked, PageReload::Never),
        (Ok(asked), Some("60")) => (asked, PageReload::EveryMinute),
        (Ok(_), Some(_)) => return AdminReply::error(StatusCode::BAD_REQUEST, "there is reload=60"),
        (Err(reply), _) => return reply,
    };
    board(state, query, move |state, report| {
        let serving = state.serving();
        let history = |site: &str| serving.as_ref()?.sites.history(site).ok();
        let histories: Vec<_> = report.sites.iter().filter_map(|site| history(&site.site)).collect();
        let status = state.report();
        let page = BoardPage { status: &status, board: report, histories: &histories, query: &asked, reload };
        AdminReply::page(page.to_string(), reload)
    })
    .await
}

fn board_query(query: &Query) -> Result<BoardQuery, AdminReply> {
    query.only(&["site", "period", "reload"])?;
    let site = query.value("site").filter(|site| !site.is_empty()).map(str::to_owned);
    let span = match query.value("period") {
        None => BoardSpan::default(),
        Some(written) => BoardSpan::ALL.into_iter().find(|span| span.as_str() == written).ok_or_else(|| {
            let message = format!("{written:?} is no period: there is period=24h and period=30d");
            AdminReply::error(StatusCode::BAD_REQUEST, &message)
        })?,
    };
    Ok(BoardQuery { site, span })
}
