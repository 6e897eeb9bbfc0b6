//! The answer of the layer to a request, and how it is carried out.

use bytes::Bytes;
use http::{Request, Response};

use super::record::Record;
use super::tag;

/// The answer to a request: it owns its parts, so that no snapshot is held while the request goes on. The rare cases are
/// boxed to keep the common one small.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// The request goes on unchanged.
    Pass,
    /// It goes on with a field that carries the verdict.
    Tag(Box<Record>),
    /// It goes no further: a refusal, with its [`Record`] in the extensions, or the robots.txt.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    /// Carries the answer out: returns the response of a request that goes no further, and prepares any other to go on.
    /// Nothing else in the layer changes a request.
    ///
    /// A client's own `Robots-Verdict` field is removed, spelled with hyphen or underscore; a request that is tagged gets
    /// ours, and its [`Record`] as an extension. Where the extensions hold a record already, a layer outside has tagged
    /// the request, and its field stays.
    #[must_use]
    pub fn carry_out<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        match self {
            Self::Pass => {
                // With a record in the extensions the field is that of an outer layer.
                if tag::is_present(request.headers()) && request.extensions().get::<Record>().is_none() {
                    tag::strip(request.headers_mut());
                }
                None
            }
            Self::Tag(record) => {
                tag::strip(request.headers_mut());
                tag::mark(request.headers_mut(), &record);
                request.extensions_mut().insert(*record);
                None
            }
            Self::Respond(response) => Some(*response),
        }
    }
}
