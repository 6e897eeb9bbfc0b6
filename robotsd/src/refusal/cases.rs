//! The responses to refused requests of a site: a default response, and refusal cases with other
//! responses for some crawlers, paths and identities.
//!
//! A case can name an operator's server that responds instead of robotsd, for example with terms of
//! use, or slowly as a tarpit. This module only adds [`AnsweringCase`] to the response; the proxy
//! then forwards the request to this server.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use bytes::Bytes;
use http::{HeaderMap, Response};
use serde::Serialize;
use tower_robots::internals::{Provisional, RefusalTable, RefusedRequest};
use tower_robots::layer::Event;
use tower_robots::policy::Policy;

use super::RefusalPage;
use crate::http_common::ClientRequest;
use crate::upstream::OriginsSettings;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SiteRefusals {
    pub(crate) page: RefusalPage,
    pub(crate) cases: RefusalTable<CaseAnswer>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CaseAnswer {
    pub(crate) page: RefusalPage,
    /// Header fields that are added to the response, such as a challenge or a price.
    pub(crate) fields: HeaderMap,
    /// The operator's server that responds instead of robotsd, if any.
    pub(crate) server: Option<CaseServer>,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CaseServer {
    pub(crate) origins: OriginsSettings,
    /// Maximum number of concurrent requests and connections.
    pub(crate) max_connections: NonZeroUsize,
}

/// The index of the case whose server must respond, stored in the extensions of the response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AnsweringCase(pub(crate) usize);

#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct ExpectedRefusal {
    /// Status of the response; `None` if a server of the operator responds.
    pub(crate) status: Option<u16>,
    /// Number of the case that applies, from 1; `None` for the default response.
    pub(crate) case: Option<usize>,
}

impl ExpectedRefusal {
    pub(crate) const USUAL: Self = Self { status: Some(403), case: None };
}

impl SiteRefusals {
    pub(crate) fn files(&self) -> impl Iterator<Item = PathBuf> {
        let pages = self.cases.0.iter().map(|(_, answer)| &answer.page);
        std::iter::once(&self.page).chain(pages).filter_map(|page| page.file.clone())
    }

    pub(crate) fn respond(&self, event: &Event<'_>, policy: &Policy) -> Response<Bytes> {
        // No case applies to gRPC calls, because their status is not the HTTP status.
        let has_case = !self.cases.0.is_empty() && !event.request.is_grpc_call();
        let path = if has_case { Some(policy.path(event.request.target())) } else { None };
        let found = path.as_ref().and_then(|path| {
            let (agent, identity) = (&event.record.agent, event.record.identity);
            self.cases.find(&RefusedRequest { agent, identity, path, robots: event.robots })
        });
        let Some((case, answer)) = found else { return self.page.respond(event) };
        let mut response = answer.page.respond(event);
        response.headers_mut().extend(answer.fields.clone());
        // A decision request is not forwarded to the server, because it only describes the original
        // request.
        let is_here = ClientRequest::of(event.request.extensions).is_some_and(|client| client.forwarded.is_some());
        if answer.server.is_some() && is_here && is_forwardable(event.request.method.as_str()) {
            response.extensions_mut().insert(Provisional);
            response.extensions_mut().insert(AnsweringCase(case));
        }
        response
    }

    pub(crate) fn expected(&self, request: &RefusedRequest<'_>, method: &str) -> ExpectedRefusal {
        match self.cases.find(request) {
            None => ExpectedRefusal { status: Some(self.page.status.as_u16()), case: None },
            Some((case, answer)) => {
                let is_forwarded = answer.server.is_some() && is_forwardable(method);
                let status = (!is_forwarded).then_some(answer.page.status.as_u16());
                ExpectedRefusal { status, case: Some(case + 1) }
            }
        }
    }
}

/// Reports whether requests with this method are forwarded to the server of a case. Only `GET` and
/// `HEAD` requests are forwarded: requests with other methods may have a body, which robotsd would
/// not forward.
fn is_forwardable(method: &str) -> bool {
    matches!(method, "GET" | "HEAD")
}
