//! The refusals of the edge itself: short, plain, never stored.

use bytes::Bytes;
use http::header::{ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_TYPE};
use http::{HeaderValue, Response, StatusCode, Version};

use crate::edge::request::response_body::ResponseBody;

/// Why the edge refuses a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRefusal {
    pub(crate) status: StatusCode,
    reason: &'static str,
}

impl RequestRefusal {
    pub(crate) const fn new(status: StatusCode, reason: &'static str) -> Self {
        Self { status, reason }
    }

    pub(crate) const fn bad_request(reason: &'static str) -> Self {
        Self::new(StatusCode::BAD_REQUEST, reason)
    }

    pub(crate) fn into_response<B>(self, version: Version) -> Response<ResponseBody<B>> {
        let text = format!("{} {}\n", self.status.as_u16(), self.reason);
        let mut response = Response::new(ResponseBody::own(Bytes::from(text)));
        *response.status_mut() = self.status;
        let fields = response.headers_mut();
        fields.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
        fields.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.status == StatusCode::METHOD_NOT_ALLOWED {
            fields.insert(ALLOW, HeaderValue::from_static("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"));
        }
        // After a head that breaks the rules nothing on the connection can be trusted to begin where it seems to.
        if self.status.is_client_error() && version != Version::HTTP_2 {
            fields.insert(CONNECTION, HeaderValue::from_static("close"));
        }
        response
    }
}
