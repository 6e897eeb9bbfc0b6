//! What the layer does with a request: respond itself, or forward the request.

use bytes::Bytes;
use http::{Extensions, Request, Response};

use super::nesting::OuterDecision;
use super::record::{self, Record};
use super::signals::ResponseFields;
use crate::policy::Action;

/// The answer to a request. An answer does not borrow from the snapshot, so a replaced snapshot can
/// be freed while the request is being forwarded.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Answer {
    /// Whether the request is forwarded unchanged, tagged, or answered by the layer.
    pub outcome: Outcome,
    /// Which client sent the request, and what was decided. This is always `Some` if the request is
    /// tagged, refused or observed. For other crawler requests, `Some` only if records are
    /// requested by [`RobotsLayer::on_crawler`](super::RobotsLayer::on_crawler) or
    /// [`RobotsLayer::with_crawler_records`](super::RobotsLayer::with_crawler_records).
    pub record: Option<Box<Record>>,
    /// Fields that the response to a forwarded request gets ([`Signals`](crate::layer::Signals)).
    /// The layer's service adds these fields. If you do not use the service, take the fields before
    /// you call [`Answer::respond`], and add them to the response.
    pub response_fields: Option<Box<ResponseFields>>,
    /// Whether the record is also added to the request's extensions if the request passes
    /// unchanged.
    pub(super) in_extensions: bool,
    /// Extensions that are added to a forwarded request. They tell inner layers what this layer has
    /// decided ([`OuterDecision`]).
    pub(super) extensions: Extensions,
}

/// What the layer does with a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The request is forwarded unchanged.
    Pass,
    /// The request is forwarded with a `Robots-Verdict` field.
    Tag,
    /// The layer responds itself, with a refusal or the robots.txt. The response is boxed to keep
    /// the other variants small.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    /// Returns an answer that forwards the request unchanged and without a record.
    pub(super) fn pass() -> Self {
        Self {
            outcome: Outcome::Pass,
            record: None,
            response_fields: None,
            in_extensions: false,
            extensions: Extensions::new(),
        }
    }

    /// Sets the fields of the response to a forwarded request. If the layer responds itself, adds
    /// only the links of `fields` to its response.
    pub(super) fn with_fields(mut self, fields: Option<Box<ResponseFields>>) -> Self {
        match (&mut self.outcome, fields) {
            (Outcome::Respond(response), Some(fields)) => fields.add_to_refusal(response.headers_mut()),
            (_, fields) => self.response_fields = fields,
        }
        self
    }

    /// Adds `mark` to the extensions of the forwarded request, so that inner layers know this
    /// layer's decision.
    pub(super) fn with(mut self, mark: Option<OuterDecision>) -> Self {
        if let Some(mark) = mark {
            self.extensions.insert(mark);
        }
        self
    }

    /// Returns the response if the layer answers the request itself; otherwise prepares the request
    /// to be forwarded. This is the only function that changes requests.
    ///
    /// Removes a client's own `Robots-Verdict` field, spelled with hyphens or underscores. If the
    /// request is tagged, adds the layer's own field and its [`Record`] as an extension. If it is
    /// refused, adds the record to the response. If an outer layer has already tagged the request,
    /// keeps that layer's field and record.
    pub fn respond<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        let Self { outcome, record, in_extensions, extensions, .. } = self;
        let record = record.filter(|record| in_extensions || record.action != Action::Pass);
        match outcome {
            Outcome::Pass => {
                if record::is_present(request.headers()) && !is_tagged(request.extensions()) {
                    record::strip(request.headers_mut());
                }
            }
            Outcome::Tag => record::mark(request.headers_mut(), record.as_deref()),
            Outcome::Respond(mut response) => {
                if let Some(record) = record {
                    response.extensions_mut().insert(*record);
                }
                return Some(*response);
            }
        }
        // If an outer layer has tagged the request, its record is kept.
        if let Some(record) = record.filter(|record| record.action == Action::Tag || !is_tagged(request.extensions())) {
            request.extensions_mut().insert(*record);
        }
        if !extensions.is_empty() {
            request.extensions_mut().extend(extensions);
        }
        None
    }
}

fn is_tagged(extensions: &Extensions) -> bool {
    extensions.get::<Record>().is_some_and(|record| record.action == Action::Tag)
}
