//! SPOP: how HAProxy asks an agent about its requests (SPOE), on a listener that other proxies ask.
//!
//! A connection is one of SPOP by its first octet: a frame begins with its length in four octets, the first of which is 0, and no
//! request of HTTP begins so. A message in a NOTIFY frame becomes a request, goes through the same [chain](super::request) and the same
//! service as a question over HTTP, and the response becomes the variables of the ACK. What the arguments and the variables are called is known
//! behind the edge ([`SpopMessages`]).
//!
//! Of the protocol there is what an agent has to have: the handshake and its health check, NOTIFY and ACK, several of them on the way at a
//! time, and DISCONNECT in both directions. Fragments of a payload are not announced and end the connection, as everything does that is
//! against the protocol.

pub(crate) mod frames;

mod connection;
mod values;

#[cfg(test)]
mod tests;

use bytes::Bytes;
use http::{Request, Response};

pub(crate) use self::connection::serve;
pub(crate) use self::frames::VariableList;
pub(crate) use self::values::{Arguments, Value, split_string};

use crate::edge::http1_fast::Handover;

/// What the messages of a listener mean.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SpopMessages {
    /// The request that the arguments of a message make.
    pub(crate) request: fn(Arguments<'_>) -> Request<()>,
    /// What the proxy is told of the response.
    pub(crate) variables: fn(&Response<Bytes>, &mut VariableList),
}

/// Whether a connection is one of SPOP: its first octet says so.
pub(crate) fn begins<S>(handover: &Handover<S>) -> bool {
    handover.octets.first() == Some(&0) && !handover.service.connection().has_served()
}
