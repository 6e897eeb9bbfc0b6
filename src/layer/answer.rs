//! What becomes of a request.

use bytes::Bytes;
use http::{Request, Response};

use super::record::Record;
use super::tag;

/// What becomes of a request. The rare cases are boxed to keep the common one small.
#[derive(Debug)]
#[non_exhaustive]
pub enum Answer {
    /// It goes on unchanged.
    Pass,
    /// It goes on with a mark that says what robots.txt says.
    Tag(Box<Record>),
    /// It goes no further: a refusal, with its [`Record`] in the extensions, or the robots.txt.
    Respond(Box<Response<Bytes>>),
}

impl Answer {
    /// Does it to a request: gives the response of one that goes no further, and makes any other ready to go on.
    ///
    /// A client's own `Robots-Verdict` field is removed, spelled with hyphen or underscore; a request that is tagged gets
    /// ours, and its [`Record`] as an extension. Where the extensions hold a record already, a layer outside has tagged
    /// the request, and its field stays.
    #[must_use]
    pub fn carry_out<B>(self, request: &mut Request<B>) -> Option<Response<Bytes>> {
        match self {
            Self::Pass => {
                // A record says that the field is no client's.
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
