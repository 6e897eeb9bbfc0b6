//! A request as its client sent it, before proxies and routers rewrote it.
//!
//! **A function that is set with `target_from` receives only the extensions**, not the request,
//! because it must work with any body type and must not be able to change the request.

use http::header::HOST;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};

use crate::rules::Authority;
use crate::source::Scheme;

/// The request to judge: method, target, host and fields as the client sent them.
///
/// [`OriginalRequest::of`] creates an `OriginalRequest` from an [`http::Request`]. If a proxy asks
/// for a decision, set the method, target and host of the client's request, because the proxy's own
/// request has other values. The target is a byte string, because it may contain bytes that
/// [`http::Uri`] rejects.
#[derive(Clone, Copy, Debug)]
#[must_use]
#[non_exhaustive]
pub struct OriginalRequest<'a> {
    /// The method that the client used.
    pub method: &'a Method,
    version: Option<Version>,
    uri: &'a Uri,
    target: TargetSource<'a>,
    host: HostSource<'a>,
    /// The header fields of the request.
    pub headers: &'a HeaderMap,
    /// The extensions of the request.
    pub extensions: &'a Extensions,
    pub(super) answered_by: AnsweredBy,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// This process answers the request, so it also responds to requests for `/robots.txt`.
    Layer,
    /// Another server answers the request, and only asks this process for a decision.
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
enum TargetSource<'a> {
    InRequest,
    Found(&'a Uri),
    Given(&'a [u8]),
}

#[derive(Clone, Copy, Debug)]
enum HostSource<'a> {
    InRequest,
    Given(Option<&'a [u8]>),
}

impl<'a> OriginalRequest<'a> {
    /// Creates an `OriginalRequest` from a request that has not been changed since its client sent
    /// it.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            version: Some(request.version()),
            uri: request.uri(),
            target: TargetSource::InRequest,
            host: HostSource::InRequest,
            headers: request.headers(),
            extensions: request.extensions(),
            answered_by: AnsweredBy::Layer,
        }
    }

    /// Declares that another server responds to the client, and only asks this layer for a
    /// decision. A request for `/robots.txt` then passes, like any exempt request.
    pub const fn answered_elsewhere(self) -> Self {
        Self { answered_by: AnsweredBy::Elsewhere, ..self }
    }

    /// Sets the method that the client used.
    pub const fn with_method(self, method: &'a Method) -> Self {
        Self { method, ..self }
    }

    /// Sets the target that the client sent: path and query, or a whole URL. This target takes
    /// precedence over [`RobotsLayer::target_from`](super::RobotsLayer::target_from). After this
    /// call, the HTTP version is unknown, because the proxy that asks for the decision may use a
    /// different version than the client.
    pub const fn with_target(self, target: &'a [u8]) -> Self {
        Self { target: TargetSource::Given(target), version: None, ..self }
    }

    /// Sets the host that the client requested, with the port if the client sent one; `None` if the
    /// client did not send a host.
    pub const fn with_host(self, host: Option<&'a [u8]>) -> Self {
        Self { host: HostSource::Given(host), ..self }
    }

    /// Returns the path and query that the layer judges. Escape the path and query before you print
    /// or log them, because the client can send any bytes.
    pub fn target(&self) -> &'a [u8] {
        match self.target {
            TargetSource::InRequest => bytes(self.uri),
            TargetSource::Found(uri) => bytes(uri),
            TargetSource::Given(target) => target,
        }
    }

    /// Returns the host of the request, if it is valid UTF-8.
    pub fn host(&self) -> Option<&'a str> {
        self.host_bytes().and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Reports whether the request is a gRPC call: a `POST` over HTTP/2 or later with a [gRPC
    /// content type](Self::has_grpc_type). The HTTP version is not checked after a call of
    /// [`with_target`](Self::with_target), because it is then unknown.
    ///
    /// Clients and caches without gRPC support would treat a gRPC refusal, which has status 200 and
    /// no body, as an empty page. So a request with the content type of gRPC, but another method or
    /// version, does not count as a gRPC call.
    pub fn is_grpc_call(&self) -> bool {
        // The method is checked first, because few requests use `POST`.
        *self.method == Method::POST
            && self.version.is_none_or(|version| version >= Version::HTTP_2)
            && Self::has_grpc_type(self.headers)
    }

    /// Returns the host and scheme that select the site; `None` if the request has no host.
    pub(super) fn site_key(&self) -> Option<(&'a [u8], Option<Scheme>)> {
        Some((self.host_bytes()?, self.scheme()))
    }

    pub(super) fn host_bytes(&self) -> Option<&'a [u8]> {
        match (self.host, self.uri.authority()) {
            (HostSource::Given(host), _) => host,
            // The host is in an absolute target or HTTP/2's `:authority`; otherwise, it is in the
            // `Host` field (RFC 9112, section 3.2.2). User information, as in `http://user@host/`,
            // is not part of the host.
            (HostSource::InRequest, Some(authority)) => {
                Some(Authority::split(authority.as_str().as_bytes()).host_and_port)
            }
            (HostSource::InRequest, None) => self.headers.get(HOST).map(|host| host.as_bytes()),
        }
    }

    /// Returns the scheme if the target contains one. The scheme determines the default port. If
    /// the host was set by [`with_host`](Self::with_host), the scheme is unknown.
    pub(super) fn scheme(&self) -> Option<Scheme> {
        match self.host {
            HostSource::InRequest => self.uri.scheme_str().and_then(Scheme::from_name),
            HostSource::Given(_) => None,
        }
    }

    /// Sets the target to the result of `find`, unless the target was already found or set.
    pub(super) fn with_target_from(self, find: impl FnOnce(&'a Extensions) -> Option<&'a Uri>) -> Self {
        let TargetSource::InRequest = self.target else { return self };
        find(self.extensions).map_or(self, |uri| Self { target: TargetSource::Found(uri), ..self })
    }

    pub(super) const fn target_uri(&self) -> Option<&'a Uri> {
        match self.target {
            TargetSource::InRequest => Some(self.uri),
            TargetSource::Found(uri) => Some(uri),
            TargetSource::Given(_) => None,
        }
    }

    /// Returns the request's own URI; `None` if the judged target comes from an extension or from
    /// [`with_target`](Self::with_target).
    #[cfg(feature = "axum08")]
    pub(super) const fn own_uri(&self) -> Option<&'a Uri> {
        if let TargetSource::InRequest = self.target { Some(self.uri) } else { None }
    }
}

fn bytes(uri: &Uri) -> &[u8] {
    uri.path_and_query().map_or("/", |target| target.as_str()).as_bytes()
}
