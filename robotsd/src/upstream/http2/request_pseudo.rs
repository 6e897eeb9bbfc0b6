//! The head of a request as HTTP/2 has it (RFC 9113, section 8.3.1).

use http::header::{CONNECTION, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderValue, Request, Uri, Version};

use super::super::endpoint::EndpointScheme;
use crate::edge::{AcceptsTrailers, RequestBody};

/// Turns the head of a request for HTTP/1.1 into one for HTTP/2; `None` where its host cannot be an authority.
///
/// `Host` becomes `:authority`, and is not said twice. What HTTP/1.1 says of its connection goes.
pub(super) fn convert(
    request: &Request<RequestBody>,
    scheme: EndpointScheme,
    trailers: Option<AcceptsTrailers>,
) -> Option<Request<()>> {
    let host = request.headers().get(HOST)?;
    let mut uri = http::uri::Parts::default();
    uri.authority = Some(Authority::try_from(host.as_bytes()).ok()?);
    uri.scheme = Some(match scheme {
        EndpointScheme::Plain => Scheme::HTTP,
        EndpointScheme::Tls => Scheme::HTTPS,
    });
    uri.path_and_query = Some(request.uri().path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")));
    let mut head = Request::new(());
    *head.method_mut() = request.method().clone();
    *head.uri_mut() = Uri::from_parts(uri).ok()?;
    *head.version_mut() = Version::HTTP_2;
    let mut fields = request.headers().clone();
    for name in [HOST, CONNECTION, TE, TRANSFER_ENCODING, UPGRADE] {
        fields.remove(name);
    }
    if trailers.is_some() {
        // Nothing else may stand there (RFC 9113, section 8.2.2), and servers of gRPC insist on it.
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    *head.headers_mut() = fields;
    Some(head)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_head_says_its_host_once_and_nothing_of_a_connection() {
        let mut request = Request::new(RequestBody::empty());
        *request.uri_mut() = Uri::from_static("/a%2Fb?c=%20");
        for (name, value) in [
            ("host", "h.test:8080"),
            ("connection", "upgrade"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("te", "trailers"),
            ("x-a", "1"),
            ("x-a", "2"),
        ] {
            request.headers_mut().append(name, HeaderValue::from_static(value));
        }
        let head = convert(&request, EndpointScheme::Tls, Some(AcceptsTrailers)).unwrap();
        assert_eq!(head.uri(), "https://h.test:8080/a%2Fb?c=%20");
        assert_eq!(head.headers().keys().map(|name| name.as_str()).collect::<Vec<_>>(), ["x-a", "te"]);
        assert_eq!(head.headers().get_all("x-a").iter().count(), 2);
        request.headers_mut().insert(HOST, HeaderValue::from_static("a b"));
        assert!(convert(&request, EndpointScheme::Plain, None).is_none());
    }
}
