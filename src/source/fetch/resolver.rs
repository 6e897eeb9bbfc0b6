//! Resolves host names, finds the server to connect to, and checks where redirects lead.
//!
//! **A redirect is checked by the address of its target** (`identity::address_class`), not by its
//! URL. Otherwise, a server could use a redirect to make this process send requests to hosts inside
//! the operator's network. A URL that the operator has configured is not checked.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::{fmt, io};

use robots_core::internals::AddressClass;

use super::url::fault;
use super::{FetchError, FetchErrorKind, FetchUrl};
use crate::rules::ValueError;
use crate::source::hosts::Scheme;

#[cfg(unix)]
use std::path::PathBuf;

/// The system's resolver. Tests can use only loopback addresses, so they replace this resolver with
/// a simulated one.
#[derive(Clone, Default)]
pub(super) struct Resolver {
    elsewhere: Option<Arc<ConnectOverride>>,
    #[cfg(test)]
    pub(super) played: Option<Arc<super::tests::PlayedNetwork>>,
}

/// A function that returns another host and port to connect to; `None` to use the host and port of
/// the URL.
type ConnectOverride = dyn Fn(&str, u16) -> Option<(String, u16)> + Send + Sync;

impl Resolver {
    pub(super) fn connect_to(&mut self, place: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static) {
        self.elsewhere = Some(Arc::new(place));
    }

    pub(super) fn connection_target(&self, host: &str, port: u16) -> Option<(String, u16)> {
        self.elsewhere.as_ref().and_then(|place| place(host, port))
    }

    pub(super) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        #[cfg(test)]
        if let Some(played) = &self.played {
            return Ok((played.resolve)(host, port));
        }
        Ok(tokio::net::lookup_host((host, port)).await?.collect())
    }

    pub(super) fn class(&self, address: IpAddr) -> AddressClass {
        #[cfg(test)]
        if let Some(played) = &self.played {
            return (played.class)(address);
        }
        AddressClass::of(address)
    }
}

robots_core::debug_as!(|_it| Resolver {});

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A server with the given URL. The path of the URL is `/`.
    Server(FetchUrl),
    #[cfg(unix)]
    Unix(PathBuf),
}

// Problems with an upstream. An error message consists of the upstream and one of the following
// strings.
const SOCKET: &str = "is not a valid socket on this system: write it as \"unix:/run/app.sock\"";
const PATH: &str = "has a path: write the upstream without it, because the file is always at /robots.txt";

impl Peer {
    /// Parses `127.0.0.1:3000`, `http://127.0.0.1:3000`, `https://app.internal` or
    /// `unix:/run/app.sock`.
    pub(super) fn parse(upstream: &str) -> Result<Self, ValueError> {
        if let Some(path) = upstream.strip_prefix("unix:") {
            #[cfg(unix)]
            if !path.is_empty() {
                return Ok(Self::Unix(path.into()));
            }
            let _ = path;
            return Err(fault(upstream, SOCKET));
        }
        let url: FetchUrl =
            if upstream.contains("://") { upstream.parse()? } else { format!("http://{upstream}").parse()? };
        if url.target().as_str() == "/" { Ok(Self::Server(url)) } else { Err(fault(upstream, PATH)) }
    }

    pub(super) const fn scheme(&self) -> Scheme {
        match self {
            Self::Server(url) => url.scheme(),
            #[cfg(unix)]
            Self::Unix(_) => Scheme::Http,
        }
    }

    pub(super) fn is_at(&self, url: &FetchUrl) -> bool {
        match self {
            Self::Server(server) => server.authority() == url.authority(),
            #[cfg(unix)]
            Self::Unix(_) => false,
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Server(url) => f.write_str(&url.authority()),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

/// Returns the URL to request after a redirect from `from` to `to`. `url` is the configured URL of
/// the site. If the file is fetched from the upstreams `via`, the URL `to` must be on the same
/// site, and is requested from the same upstream.
pub(super) fn redirect_of_site(
    url: &FetchUrl,
    via: &[Peer],
    from: &FetchUrl,
    to: FetchUrl,
) -> Result<FetchUrl, FetchError> {
    let refused = |why: String| Err(FetchError::with_cause(FetchErrorKind::Redirect, why));
    if via.is_empty() {
        let is_less_safe = from.is_https() && !to.is_https();
        return if is_less_safe { refused(format!("{to} does not use TLS, but {from} does")) } else { Ok(to) };
    }
    let is_of_site = to.host() == url.host() || via.iter().any(|via| via.is_at(&to));
    if !is_of_site {
        return refused(format!(
            "{to} is on another site; if the robots.txt is at this URL, configure the URL instead of the upstream"
        ));
    }
    // The URLs `from` and `to` differ only in scheme, host or port. So the next request to the
    // upstream would be identical, and the upstream would send the same redirect again.
    if to.target() == from.target() {
        return refused(format!(
            "{to} differs from the requested URL only in scheme or port, so the upstream would redirect again"
        ));
    }
    Ok(from.with_target(to.target().clone()))
}

pub(super) fn redirect_error() -> FetchError {
    FetchError::with_cause(FetchErrorKind::Redirect, "the redirect has no target, or there are too many redirects")
}

/// Returns the error for a forbidden redirect to `url`, whose host has the address `address` of the
/// class `class`. The address of the server that sent the redirect has the class `from`.
pub(super) fn wrong_class(url: &FetchUrl, from: AddressClass, address: IpAddr, class: AddressClass) -> FetchError {
    let cause = format!(
        "{url} has the {class} address {address}, but the redirecting server has a {from} address; if the robots.txt \
         is at this URL, configure the URL directly"
    );
    FetchError::with_cause(FetchErrorKind::RedirectAddress, cause)
}
