//! A request as its client sent it, before proxies and routers rewrote it.
//!
//! **`target_from` takes the extensions**, not the request: it has to work for any body type and must not be able to
//! change anything.

use http::header::HOST;
use http::{Extensions, HeaderMap, Method, Request, Uri, Version};

use crate::rules::Authority;
use crate::source::Scheme;

/// The request that is judged: method, target, host and fields as the client sent them.
///
/// They are taken from an ordinary request as it is ([`OriginalRequest::of`]). A proxy that requests a decision about another
/// request names method, target and host. The target is octets, because it may hold some that [`http::Uri`] refuses.
#[derive(Clone, Copy, Debug)]
#[must_use]
#[non_exhaustive]
pub struct OriginalRequest<'a> {
    /// The method.
    pub method: &'a Method,
    /// Of HTTP, where it is the client's own.
    version: Option<Version>,
    uri: &'a Uri,
    target: TargetIs<'a>,
    host: HostIs<'a>,
    /// The fields.
    pub headers: &'a HeaderMap,
    /// The request's extensions.
    pub extensions: &'a Extensions,
    /// The server that answers the request.
    pub(super) answered_by: AnsweredBy,
}

/// The server that answers a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AnsweredBy {
    /// This process, also a request for `/robots.txt`.
    Layer,
    /// Another server, which only asks for a decision.
    Elsewhere,
}

#[derive(Clone, Copy, Debug)]
enum TargetIs<'a> {
    InRequest,
    Found(&'a Uri),
    Given(&'a [u8]),
}

/// The host is only read where there are several sites.
#[derive(Clone, Copy, Debug)]
enum HostIs<'a> {
    InRequest,
    Given(Option<&'a [u8]>),
}

impl<'a> OriginalRequest<'a> {
    /// A request that came here as its client sent it.
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            version: Some(request.version()),
            uri: request.uri(),
            target: TargetIs::InRequest,
            host: HostIs::InRequest,
            headers: request.headers(),
            extensions: request.extensions(),
            answered_by: AnsweredBy::Layer,
        }
    }

    /// A request that another server answers, which only asks for a decision: one for `/robots.txt` passes, like anything that is exempt.
    pub const fn answered_elsewhere(self) -> Self {
        Self { answered_by: AnsweredBy::Elsewhere, ..self }
    }

    /// With the method the client used.
    pub const fn with_method(self, method: &'a Method) -> Self {
        Self { method, ..self }
    }

    /// With the target the client sent: path and query, or a whole URL. It comes before
    /// [`RobotsLayer::target_from`](super::RobotsLayer::target_from). The version of HTTP is the one of who names the target, so that of
    /// the client is not known any more.
    pub const fn with_target(self, target: &'a [u8]) -> Self {
        Self { target: TargetIs::Given(target), version: None, ..self }
    }

    /// With the host the client meant, as octets, and the port where it named one; `None` where it named no host.
    pub const fn with_host(self, host: Option<&'a [u8]>) -> Self {
        Self { host: HostIs::Given(host), ..self }
    }

    /// Path and query in the octets that are judged. From the client: escape them before writing them anywhere.
    pub fn target(&self) -> &'a [u8] {
        match self.target {
            TargetIs::InRequest => octets(self.uri),
            TargetIs::Found(uri) => octets(uri),
            TargetIs::Given(target) => target,
        }
    }

    /// The host the request is for, where it is text.
    pub fn host(&self) -> Option<&'a str> {
        self.host_octets().and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Whether it is a call of gRPC: a `POST` over HTTP/2 or later whose fields [say so](Self::has_grpc_type). If the version is not known,
    /// after [`with_target`](Self::with_target), the rest suffices.
    ///
    /// The field alone proves nothing: a call is refused with status 200 and without a body, which a client or a cache that
    /// does not speak gRPC would take for a page.
    pub fn is_grpc_call(&self) -> bool {
        // The method first: of most requests it is another.
        *self.method == Method::POST
            && self.version.is_none_or(|version| version >= Version::HTTP_2)
            && Self::has_grpc_type(self.headers)
    }

    pub(super) fn host_octets(&self) -> Option<&'a [u8]> {
        match (self.host, self.uri.authority()) {
            (HostIs::Given(host), _) => host,
            // An absolute target and HTTP/2's `:authority` say which host is meant; else the `Host` field does (RFC 9112,
            // 3.2.2). User information is no part of the host: `http://user@host/`.
            (HostIs::InRequest, Some(authority)) => Some(Authority::split(authority.as_str().as_bytes()).host_and_port),
            (HostIs::InRequest, None) => self.headers.get(HOST).map(|host| host.as_bytes()),
        }
    }

    /// The scheme, where the target holds it: it makes a port the default one. It is unknown for a host that was given.
    pub(super) fn scheme(&self) -> Option<Scheme> {
        match self.host {
            HostIs::InRequest => self.uri.scheme_str().and_then(Scheme::from_name),
            HostIs::Given(_) => None,
        }
    }

    /// With the target that `find` finds, unless one was found or given before.
    pub(super) fn looked_up(self, find: impl FnOnce(&'a Extensions) -> Option<&'a Uri>) -> Self {
        let TargetIs::InRequest = self.target else { return self };
        find(self.extensions).map_or(self, |uri| Self { target: TargetIs::Found(uri), ..self })
    }

    /// The URI that holds the target, where one does.
    pub(super) const fn target_uri(&self) -> Option<&'a Uri> {
        match self.target {
            TargetIs::InRequest => Some(self.uri),
            TargetIs::Found(uri) => Some(uri),
            TargetIs::Given(_) => None,
        }
    }

    /// The request's own URI, where the target is its own and not one that was found or given.
    #[cfg(feature = "axum08")]
    pub(super) const fn own_uri(&self) -> Option<&'a Uri> {
        if let TargetIs::InRequest = self.target { Some(self.uri) } else { None }
    }
}

fn octets(uri: &Uri) -> &[u8] {
    uri.path_and_query().map_or("/", |target| target.as_str()).as_bytes()
}
