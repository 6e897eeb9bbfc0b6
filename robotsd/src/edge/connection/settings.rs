//! What holds for every connection of a listener.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;

use crate::edge::connection::parser_policy;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    /// For connections that hyper speaks on.
    pub(crate) http1: http1::Builder,
    /// Whether another process accepts by now, for all settings of a process.
    successor: Arc<AtomicBool>,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_access: Option<OnAccess>) -> Self {
        let http1 = parser_policy::http1(&limits);
        Self { limits, on_access, http1, successor: Arc::default() }
    }

    /// The same with other limits.
    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self { successor: Arc::clone(&self.successor), ..Self::new(limits, self.on_access.clone()) }
    }

    /// Another process accepts: clients are told to connect to that.
    pub(crate) fn set_successor(&self) {
        self.successor.store(true, Ordering::Relaxed);
    }

    pub(crate) fn has_successor(&self) -> bool {
        self.successor.load(Ordering::Relaxed)
    }

    /// How long a connection without a request in progress is kept once its listener has stopped.
    ///
    /// A client that sends a request while its connection is being closed gets no answer. So where another process accepts,
    /// a connection is closed behind an answer that says so, and only one that stays idle is closed without.
    pub(crate) fn farewell(&self, has_served: bool) -> Duration {
        match (self.has_successor(), has_served) {
            // The other half is for requests that come at its end.
            (true, _) => self.limits.drain / 2,
            (false, true) => Duration::ZERO,
            (false, false) => self.limits.greeting,
        }
    }
}
