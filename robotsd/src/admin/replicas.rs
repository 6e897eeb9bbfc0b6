//! Sends a request to the admin listeners of all replicas of a fleet at the same time, for commands
//! and for the board that covers all replicas.
//!
//! If a replica cannot be reached, the result contains the error of this replica, and the responses
//! of all other replicas.

use std::collections::HashSet;
use std::net::ToSocketAddrs;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use http::{Method, StatusCode};
use parking_lot::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::client::{AskError, ROWS_PATH, ask_replica};
use super::reply::AdminReply;
use super::state::ServerState;
use crate::audit::host_name;
use crate::board::{Board, BoardQuery, BoardReport, ReplicaRows, join, seconds};
use crate::config::{AdminPlace, ConfigError, replicas};
use crate::report::ReplicaAnswer;
use crate::sites::in_parallel;

/// Sends a request to all replicas, and returns the responses in the order of `places`. Blocks.
pub(crate) fn ask_all<T: Send>(
    places: &[AdminPlace],
    ask: impl Fn(&AdminPlace) -> Result<T, AskError> + Sync,
) -> Vec<ReplicaAnswer<T>> {
    let answered = |place: &AdminPlace, answer: Result<T, String>| {
        let (answer, error) = answer.map_or_else(|error| (None, Some(error)), |answer| (Some(answer), None));
        ReplicaAnswer { replica: place.to_string(), answer, error }
    };
    // A host name may resolve to an address that is also configured. Each address is queried only
    // once.
    let asked = Mutex::new(HashSet::new());
    let answers = in_parallel(places, |place| match resolve_place(place) {
        Err(error) => vec![answered(place, Err(format!("NOT REACHED: {error}")))],
        Ok(mut found) => {
            found.retain(|place| asked.lock().insert(place.to_string()));
            in_parallel(&found, |place| answered(place, ask(place).map_err(|error| replica_error(&error))))
        }
    });
    answers.into_iter().flatten().collect()
}

/// Returns the board rows of this process, with the names of the replicas in its fleet. Blocks.
pub(super) fn own_rows(state: &ServerState, board: &Board, query: &BoardQuery) -> ReplicaRows {
    let fleet = state.serving().and_then(|serving| Some(serving.sites.state.fleet.as_ref()?.report()));
    let heard = fleet.iter().flat_map(|fleet| &fleet.replicas).map(|of| of.replica.clone()).collect();
    let process = format!("{} {} {:?}", host_name(), std::process::id(), state.started.0);
    ReplicaRows { replica: state.audit.replica(), process, heard, ..board.rows_of(query, seconds(SystemTime::now())) }
}

/// Maximum time for querying all replicas, including the time until an earlier query has ended.
const FLEET_QUERY_TIMEOUT: Duration = Duration::from_secs(5);

/// Returns a board that covers all configured replicas, including this replica. Like a command,
/// this function uses the token in the environment of this process.
pub(super) async fn fleet_board(state: &ServerState, query: BoardQuery) -> Result<BoardReport, AdminReply> {
    let config = PathBuf::from(state.config.report().path);
    let asking = async {
        let alone = Arc::clone(&state.asking).write_owned().await;
        let ask = move || {
            // The guard is held until all replicas have responded, even if the client has
            // disconnected.
            let _alone = alone;
            let answers = ask_all(&replicas(&config)?.1, |at| ask_replica(at, (&Method::GET, &query.at(ROWS_PATH))));
            Ok(join(answers, &query, seconds(SystemTime::now())))
        };
        spawn_blocking(ask).await
    };
    let late = |_| {
        AdminReply::unavailable(
            "the replicas did not answer in time, or are still being asked because of an earlier request: try again",
        )
    };
    let asked = timeout(FLEET_QUERY_TIMEOUT, asking)
        .await
        .map_err(late)?
        .map_err(|error| AdminReply::internal_error(&error))?;
    asked.map_err(|why: ConfigError| AdminReply::error(StatusCode::CONFLICT, &why.to_string()))
}

/// Resolves the host name of a place, and returns one place for each IP address. A place without a
/// host name is returned unchanged.
pub(crate) fn resolve_place(place: &AdminPlace) -> Result<Vec<AdminPlace>, String> {
    let AdminPlace::Name(name, port) = place else { return Ok(vec![place.clone()]) };
    let found = (&**name, *port).to_socket_addrs().map_err(|error| error.to_string())?;
    let found: Vec<_> = found.map(AdminPlace::Address).collect();
    if found.is_empty() { Err("the name does not resolve to an address".to_owned()) } else { Ok(found) }
}

pub(crate) fn replica_error(error: &AskError) -> String {
    match error {
        AskError::NotRunning(_) => "NOT REACHED: no process listens there".to_owned(),
        AskError::Refused(_, message) => format!("REFUSED: {message}"),
        AskError::Broken(_, message) => format!("NOT REACHED: {message}"),
    }
}
