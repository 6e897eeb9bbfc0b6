//! The layer's answer to a request: a response, or how the request is forwarded.

use bytes::Bytes;
use http::{Extensions, Request, Response};

use super::nesting::OuterDecision;
use super::record::{self, Record};
use crate::policy::Action;

/// The answer to a request. It does not borrow from the snapshot, so a replaced snapshot can be
/// freed while the request is being forwarded.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Answer {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The client, and the decision about its request. `Some` if the request is tagged, refused or
    /// observed; for other crawler requests, only if the record is requested by
    /// ([`RobotsLayer::on_crawler`](super::RobotsLayer::on_crawler),
    /// [`RobotsLayer::with_crawler_records`](super::RobotsLayer::with_crawler_records)).
    pub record: Option<Box<Record>>,
    /// Whether the record is also added to the extensions if the request passes unchanged.
    pub(super) in_extensions: bool,
    /// Extensions to add to the request: the decision of this layer, for inner layers
    /// ([`OuterDecision`]).
    pub(super) extensions: Extensions,
}

/// The outcome of a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The request is forwarded unchanged.
    Pass,
    /// The request is forwarded with a field that contains the verdict.
    Tag,
    /// The layer responds itself, with a refusal or the robots.txt. Boxed to keep the common case
    /// small.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    /// Creates the answer to forward a request unchanged and without a record.
    pub(super) fn pass() -> Self {
        Self { outcome: Outcome::Pass, record: None, in_extensions: false, extensions: Extensions::new() }
    }

    /// Adds a mark for inner layers to the forwarded request.
    pub(super) fn with(mut self, mark: Option<OuterDecision>) -> Self {
        if let Some(mark) = mark {
            self.extensions.insert(mark);
        }
        self
    }

    /// Returns the response if the layer answers the request itself; otherwise prepares the request
    /// to be forwarded. This is the only function that changes requests.
    ///
    /// Removes a client's own `Robots-Verdict` field, spelled with hyphen or underscore. A tagged
    /// request gets the layer's field, and its [`Record`] as an extension. The response to a
    /// refused request gets the record, too. If an outer layer has already tagged the request, the
    /// field and the record of that layer are kept.
    pub fn respond<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        let Self { outcome, record, in_extensions, extensions } = self;
        let record = record.filter(|record| in_extensions || record.action != Action::Pass);
        match outcome {
            Outcome::Pass => {
                if record::is_present(request.headers()) && !is_tagged(request.extensions()) {
                    record::strip(request.headers_mut());
                }
            }
            Outcome::Tag => {
                record::strip(request.headers_mut());
                if let Some(record) = &record {
                    record::mark(request.headers_mut(), record);
                }
            }
            Outcome::Respond(mut response) => {
                if let Some(record) = record {
                    response.extensions_mut().insert(*record);
                }
                return Some(*response);
            }
        }
        // A new record does not replace the record of an outer layer that has tagged the request.
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
