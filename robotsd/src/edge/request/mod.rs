//! The steps for every request before its site is chosen, and for every response on its way back to
//! the client.
//!
//! [`service`] performs the steps: forwarded fields, request id, admission, host.

pub(crate) mod service;

pub(crate) mod trusted;

pub(crate) mod request_id;

pub(crate) mod admission;

pub(crate) mod host;

pub(crate) mod access_record;
pub(crate) mod response_body;

use std::sync::Arc;

use http::HeaderValue;

use crate::http_common::Peer;

/// The address and the `User-Agent` of a request's client. The values come from the forwarded
/// fields if the peer is a trusted proxy.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
}
