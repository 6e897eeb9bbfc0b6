//! External authorisation as Envoy asks for it over gRPC (`envoy.service.auth.v3`): one message asks, one answers.
//!
//! What a message asks about is decided where every question is; here it is read ([`question`]) and answered ([`answer`]).

mod answer;
mod call;
mod messages;
mod question;

pub(super) mod fuzzing;

use bytes::Bytes;
use http::{Request, Version};
use tower_robots::layer::is_grpc;

pub(super) use self::answer::{allowed, denied, metadata};
pub(super) use self::call::{CallError, IncomingMessage};
pub(super) use self::messages::CheckResponse;
pub(super) use self::question::CheckQuestion;

const SERVICE: &str = "/envoy.service.auth.v3.Authorization/";

/// What a request to the listener is to this service.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServiceRequest {
    /// A question.
    Check,
    /// A call that there is not.
    Unknown,
    /// It is for the service, and no call of gRPC: that needs HTTP/2.
    NoCall,
}

impl ServiceRequest {
    /// None where the request is for something else.
    pub(super) fn of<B>(request: &Request<B>) -> Option<Self> {
        let is_call = request.version() == Version::HTTP_2 && is_grpc(request.headers());
        match (request.uri().path().strip_prefix(SERVICE), is_call) {
            (Some("Check"), true) => Some(Self::Check),
            (Some(_), true) => Some(Self::Unknown),
            (Some(_), false) => Some(Self::NoCall),
            (None, _) => None,
        }
    }
}

/// The content of a response that is this message.
pub(super) fn framed(message: &CheckResponse) -> Bytes {
    call::framed(message)
}
