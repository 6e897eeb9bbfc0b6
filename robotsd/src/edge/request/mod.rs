//! What a request goes through before its site is chosen, and its response on the way back.

pub(crate) mod access_record;
pub(crate) mod admission;
pub(crate) mod body;
pub(crate) mod fields;
pub(crate) mod forwarded;
pub(crate) mod hops;
pub(crate) mod host;
pub(crate) mod ready_call;
pub(crate) mod refusal;
pub(crate) mod request_id;
pub(crate) mod service;
pub(crate) mod trusted;
