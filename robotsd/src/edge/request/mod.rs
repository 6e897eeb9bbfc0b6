//! The steps that a request takes before its site is chosen, and those of its response on the way
//! back.
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

/// Address and `User-Agent` of the client, after reading the forwarded fields.
#[derive(Debug)]
pub(crate) struct ClientInfo {
    pub(crate) peer: Peer,
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
}
