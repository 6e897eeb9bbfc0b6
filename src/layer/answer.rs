//! The answer of the layer to a request, and how it is carried out.

use bytes::Bytes;
use http::{Extensions, Request, Response};

use super::nesting::OuterDecision;
use super::record::{self, Record};
use crate::policy::Action;

/// The answer to a request: it owns its parts, so that no snapshot is held while the request goes on.
#[derive(Debug)]
#[must_use]
#[non_exhaustive]
pub struct Answer {
    /// The outcome of the request.
    pub outcome: Outcome,
    /// The client, and the decision about its request: of one that is tagged, refused or observed, and of every other one of a
    /// crawler if somebody wants it ([`RobotsLayer::on_crawler`](super::RobotsLayer::on_crawler),
    /// [`RobotsLayer::with_crawler_records`](super::RobotsLayer::with_crawler_records)).
    pub record: Option<Box<Record>>,
    /// Whether the extensions are to hold the record of a request that passes as any other.
    pub(super) in_extensions: bool,
    /// The mark of a request that may meet other layers.
    pub(super) extensions: Extensions,
}

/// The outcome of a request.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The request goes on unchanged.
    Pass,
    /// It goes on with a field that carries the verdict.
    Tag,
    /// It goes no further: a refusal, or the robots.txt. Boxed to keep the common case small.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    /// The answer to a request that nothing is to be said about.
    pub(super) fn pass() -> Self {
        Self { outcome: Outcome::Pass, record: None, in_extensions: false, extensions: Extensions::new() }
    }

    /// The answer for a request that goes on with this mark.
    pub(super) fn with(mut self, mark: Option<OuterDecision>) -> Self {
        if let Some(mark) = mark {
            self.extensions.insert(mark);
        }
        self
    }

    /// Returns the response to a request that goes no further, and prepares any other to go on. Nothing else in the layer changes a
    /// request.
    ///
    /// A client's own `Robots-Verdict` field is removed, spelled with hyphen or underscore; a request that is tagged gets ours, and
    /// its [`Record`] as an extension, and so does the response to one that is refused. If the extensions hold the record of a tagged
    /// request already, a layer outside has tagged it, and its field stays.
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
        // That of a request which a layer outside has tagged stays.
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
