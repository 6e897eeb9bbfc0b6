//! A request as its client sent it, whatever has become of it on the way here.

use http::header::HOST;
use http::{Extensions, HeaderMap, Method, Request, Uri};

use crate::rules::Authority;
use crate::source::Scheme;

/// What is judged: method, target, host and fields of the client's request.
///
/// Of an ordinary request everything is taken from it ([`Original::of`]). Where a proxy only asks about another request,
/// method, target and host are what it says they are; the target is octets, because it may hold some that
/// [`http::Uri`] refuses.
#[derive(Clone, Copy, Debug)]
pub struct Original<'a> {
    method: &'a Method,
    uri: &'a Uri,
    target: Option<&'a [u8]>,
    host: HostIs<'a>,
    headers: &'a HeaderMap,
    extensions: &'a Extensions,
}

/// Looked for only where there are several sites.
#[derive(Clone, Copy, Debug)]
enum HostIs<'a> {
    InRequest,
    Given(Option<&'a [u8]>),
}

impl<'a> Original<'a> {
    /// A request that came here as its client sent it.
    #[must_use]
    pub fn of<B>(request: &'a Request<B>) -> Self {
        Self {
            method: request.method(),
            uri: request.uri(),
            target: None,
            host: HostIs::InRequest,
            headers: request.headers(),
            extensions: request.extensions(),
        }
    }

    /// With the method the client used.
    #[must_use]
    pub const fn with_method(self, method: &'a Method) -> Self {
        Self { method, ..self }
    }

    /// With the target the client sent: path and query, or a whole URL. It comes before
    /// [`RobotsLayer::target_from`](super::RobotsLayer::target_from).
    #[must_use]
    pub const fn with_target(self, target: &'a [u8]) -> Self {
        Self { target: Some(target), ..self }
    }

    /// With the host the client meant, as octets, and the port where it named one; `None` where it named no host.
    #[must_use]
    pub const fn with_host(self, host: Option<&'a [u8]>) -> Self {
        Self { host: HostIs::Given(host), ..self }
    }

    /// The method.
    #[must_use]
    pub const fn method(&self) -> &'a Method {
        self.method
    }

    /// Path and query in the octets that are judged. From the client: escape them before writing them anywhere.
    #[must_use]
    pub fn target(&self) -> &'a [u8] {
        match self.target {
            Some(target) => target,
            None => octets(self.uri),
        }
    }

    /// The host the request is for, where it is text.
    #[must_use]
    pub fn host(&self) -> Option<&'a str> {
        self.host_octets().and_then(|host| std::str::from_utf8(host).ok())
    }

    /// The fields.
    #[must_use]
    pub const fn headers(&self) -> &'a HeaderMap {
        self.headers
    }

    /// What others have noted about the request.
    #[must_use]
    pub const fn extensions(&self) -> &'a Extensions {
        self.extensions
    }

    pub(super) fn host_octets(&self) -> Option<&'a [u8]> {
        match (self.host, self.uri.authority()) {
            (HostIs::Given(host), _) => host,
            // An absolute target and HTTP/2's `:authority` say which host is meant; else the `Host` field does (RFC 9112,
            // 3.2.2). Who asks is no part of where: `http://user@host/`.
            (HostIs::InRequest, Some(authority)) => {
                Some(Authority::split(authority.as_str().as_bytes()).host_and_port())
            }
            (HostIs::InRequest, None) => self.headers.get(HOST).map(|host| host.as_bytes()),
        }
    }

    /// The scheme, where the target says it: it makes a port the default one. Of a host that was given it is not known.
    pub(super) fn scheme(&self) -> Option<Scheme> {
        match self.host {
            HostIs::InRequest => self.uri.scheme_str().and_then(Scheme::from_name),
            HostIs::Given(_) => None,
        }
    }

    /// With the target found where the layer was told to look, unless it has been given.
    pub(super) fn looked_up(self, find: impl FnOnce(&'a Extensions) -> Option<&'a Uri>) -> Self {
        Self { target: self.target.or_else(|| find(self.extensions).map(octets)), ..self }
    }
}

fn octets(uri: &Uri) -> &[u8] {
    uri.path_and_query().map_or("/", |target| target.as_str()).as_bytes()
}
