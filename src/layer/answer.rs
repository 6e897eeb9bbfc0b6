//! The answer of the layer to a request, and how it is carried out.

use bytes::Bytes;
use http::{Extensions, Request, Response};

use super::record::{self, Record};

/// The answer to a request: it owns its parts, so that no snapshot is held while the request goes on.
#[derive(Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What becomes of the request.
    pub outcome: Outcome,
    /// What the layer adds to the extensions of a request that goes on, besides the [`Record`] of one that is tagged: the
    /// [`CrawlerRequest`](super::CrawlerRequest), where the layer adds it.
    pub extensions: Extensions,
}

/// What becomes of a request. The rare cases are boxed to keep the common one small.
#[derive(Debug)]
#[non_exhaustive]
pub enum Outcome {
    /// The request goes on unchanged.
    Pass,
    /// It goes on with a field that carries the verdict.
    Tag(Box<Record>),
    /// It goes no further: a refusal, with its [`Record`] in the extensions, or the robots.txt.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    pub(super) fn new(outcome: Outcome, extensions: Extensions) -> Self {
        Self { outcome, extensions }
    }

    /// Carries the answer out: returns the response of a request that goes no further, and prepares any other to go on.
    /// Nothing else in the layer changes a request.
    ///
    /// A client's own `Robots-Verdict` field is removed, spelled with hyphen or underscore; a request that is tagged gets
    /// ours, and its [`Record`] as an extension. Where the extensions hold a record already, a layer outside has tagged
    /// the request, and its field stays.
    pub fn carry_out<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        match self.outcome {
            Outcome::Pass => {
                // With a record in the extensions the field is that of an outer layer.
                if record::is_present(request.headers()) && request.extensions().get::<Record>().is_none() {
                    record::strip(request.headers_mut());
                }
            }
            Outcome::Tag(record) => {
                record::strip(request.headers_mut());
                record::mark(request.headers_mut(), &record);
                request.extensions_mut().insert(*record);
            }
            Outcome::Respond(response) => return Some(*response),
        }
        if !self.extensions.is_empty() {
            request.extensions_mut().extend(self.extensions);
        }
        None
    }
}

impl Outcome {
    /// The response to a request that goes no further.
    pub(super) fn response(&self) -> Option<&Response<Bytes>> {
        match self {
            Self::Respond(response) => Some(response),
            Self::Pass | Self::Tag(_) => None,
        }
    }
}

impl From<Outcome> for Answer {
    fn from(outcome: Outcome) -> Self {
        Self::new(outcome, Extensions::new())
    }
}
