//! The layer's answer to a request: the layer either responds itself or forwards the request.

use bytes::Bytes;
use http::{Extensions, Request, Response};

use super::nesting::OuterDecision;
use super::record::{self, Record};
use super::signals::ResponseFields;
use crate::policy::Action;

/// The layer's answer to a request. An answer borrows nothing from the site's snapshot. So if a
/// reload replaces the snapshot, the old one can be freed while the request is being forwarded.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Answer {
    /// Whether the request is forwarded unchanged, tagged, or answered by the layer.
    pub outcome: Outcome,
    /// The record of the request's agent and of the decision. Always `Some` if the request is
    /// tagged, refused or observed. For other requests of crawlers, the record is `Some` only if
    /// the layer has [`RobotsLayer::on_crawler`](super::RobotsLayer::on_crawler),
    /// [`RobotsLayer::with_crawler_records`](super::RobotsLayer::with_crawler_records) or
    /// [`RobotsLayer::with_crawler_extension`](super::RobotsLayer::with_crawler_extension).
    pub record: Option<Box<Record>>,
    /// Header fields to add to the response of a forwarded request
    /// ([`Signals`](crate::layer::Signals)). The layer's service adds these fields. If you do not
    /// use the service, take the fields before you call [`Answer::respond`], and add them to the
    /// response ([`ResponseFields::add_to`]).
    pub response_fields: Option<Box<ResponseFields>>,
    /// Whether the record is added to the request's extensions even if the request passes
    /// unchanged.
    pub(super) in_extensions: bool,
    /// Extensions that are added to a forwarded request: this layer's decision, for inner layers
    /// ([`OuterDecision`]).
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
    /// the enum small.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    pub(super) fn pass() -> Self {
        Self {
            outcome: Outcome::Pass,
            record: None,
            response_fields: None,
            in_extensions: false,
            extensions: Extensions::new(),
        }
    }

    /// Sets the fields to add to the response of a forwarded request. If the layer responds itself,
    /// adds only the licence links in `fields` to its own response.
    pub(super) fn with_fields(mut self, fields: Option<Box<ResponseFields>>) -> Self {
        match (&mut self.outcome, fields) {
            (Outcome::Respond(response), Some(fields)) => fields.add_to_refusal(response.headers_mut()),
            (_, fields) => self.response_fields = fields,
        }
        self
    }

    /// Adds `mark`, this layer's decision for inner layers, to the extensions of the forwarded
    /// request.
    pub(super) fn with(mut self, mark: Option<OuterDecision>) -> Self {
        if let Some(mark) = mark {
            self.extensions.insert(mark);
        }
        self
    }

    /// Returns the response if the layer answers the request itself; otherwise prepares the request
    /// to be forwarded. No other function of the layer changes requests.
    ///
    /// Removes every `Robots-Verdict` or `Robots_Verdict` field that the client sent. If the
    /// request is tagged, adds the layer's `Robots-Verdict` field, and the [`Record`] to the
    /// request's extensions. If the request is refused, adds the record to the response's
    /// extensions. If an outer layer has already tagged the request, keeps that layer's field and
    /// record. The [`response_fields`](Self::response_fields) are lost, unless the caller has taken
    /// them before.
    #[must_use = "send this response instead of calling the inner service: the layer has answered the request"]
    pub fn respond<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        let Self { outcome, record, response_fields, in_extensions, extensions } = self;
        if let Some(fields) = response_fields {
            fields.count_as_lost();
        }
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
