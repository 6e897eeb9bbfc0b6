//! The steps between a connection and the site, for requests before their site is chosen, and for
//! all responses.
//!
//! [`service`] connects the steps: forwarded fields, request id, admission, host.

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

/// If the peer is a trusted proxy, these values come from the forwarded fields.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
}
