//! What holds for every connection of a listener.

use hyper::server::conn::http1;
use hyper_util::server::conn::auto;

use crate::edge::connection::parser_policy;
use crate::edge::http2::stream_timeout::StreamExecutor;
use crate::edge::limits::EdgeLimits;
use crate::edge::request::access_record::OnAccess;

pub(crate) struct ConnectionSettings {
    pub(crate) limits: EdgeLimits,
    pub(crate) on_access: Option<OnAccess>,
    /// For connections that speak HTTP/1.1 for certain.
    pub(crate) http1: http1::Builder,
    /// For connections whose first octets decide between HTTP/1.1 and HTTP/2.
    pub(crate) http1_or_2: auto::Builder<StreamExecutor>,
}

impl ConnectionSettings {
    pub(crate) fn new(limits: EdgeLimits, on_access: Option<OnAccess>) -> Self {
        let (http1, http1_or_2) = (parser_policy::http1(&limits), parser_policy::http1_or_2(&limits));
        Self { limits, on_access, http1, http1_or_2 }
    }

    /// The same with other limits.
    pub(crate) fn with(&self, limits: EdgeLimits) -> Self {
        Self::new(limits, self.on_access.clone())
    }
}
