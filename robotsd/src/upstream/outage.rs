//! Why a server is out, and how the servers of a site do, for the status.

use std::time::{Duration, SystemTime};

use super::connection_use::ConnectionUse;
use super::failure_kind::FailureKind;

/// A server that is out of service, or a name that cannot be resolved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outage {
    pub(crate) since: SystemTime,
    /// What failed last: connecting, shaking hands, or the connection before an answer.
    pub(crate) check: FailureKind,
    /// The error behind it.
    pub(crate) why: String,
    /// In how long a request tries the server again; zero where the next one does.
    pub(crate) again: Duration,
}

/// One server of a site, or one name that has no address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ServerStatus {
    pub(crate) server: String,
    pub(crate) kind: ServerStatusKind,
    /// Connections to it that are open, by use; none of a name.
    pub(crate) connections: Vec<(ConnectionUse, usize)>,
    /// None where it is in service.
    pub(crate) outage: Option<Outage>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ServerStatusKind {
    Server,
    /// A name whose last lookup failed; the servers that it stood for before have statuses of their own.
    Name,
}
