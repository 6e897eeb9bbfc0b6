//! The steps that a request passes through before its site is chosen, and the steps of its response
//! on the way back to the client.
//!
//! [`service`] is the chain: forwarded fields, request id, admission, host. Each step has its own
//! file.

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

/// Address and `User-Agent` of the client, taken from the forwarded fields if the peer is a trusted
/// proxy.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
}
