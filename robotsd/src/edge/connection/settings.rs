//! What holds for every connection of a listener.

use hyper::server::conn::http1;

use crate::edge::connection::parser_policy;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    /// For connections that hyper speaks on.
    pub(crate) http1: http1::Builder,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_access: Option<OnAccess>) -> Self {
        let http1 = parser_policy::http1(&limits);
        Self { limits, on_access, http1 }
    }

    /// The same with other limits.
    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self::new(limits, self.on_access.clone())
    }
}
