//! What a request goes through before its site is chosen, and its response on the way back.
//!
//! [`service`] is the chain, from top to bottom: forwarded fields, request id, admission, host; each step is a file.

pub(crate) mod service;

pub(crate) mod incoming_forwarded;
pub(crate) mod outgoing_forwarded;
pub(crate) mod trace_id;
pub(crate) mod trusted;

pub(crate) mod request_id;

pub(crate) mod admission;

pub(crate) mod host;

pub(crate) mod fields;
pub(crate) mod trailers;

pub(crate) mod access_record;
pub(crate) mod client_info;
pub(crate) mod exchange;
pub(crate) mod ready_call;
pub(crate) mod request_body;
pub(crate) mod request_refusal;
pub(crate) mod response_body;
pub(crate) mod response_counts;
