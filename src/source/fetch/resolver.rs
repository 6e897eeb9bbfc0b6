//! Addresses of a name and their classes, the server to connect to, and valid targets of redirects.
//!
//! **A redirect is checked by the class of its target's address** (`identity::address_class`), not
//! by its URL. The server chooses the target, and the fetch comes from inside the operator's
//! network. A configured URL is not checked.

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

/// The system's resolver. A test can replace it, because tests have only the loopback.
#[derive(Clone, Default)]
pub(super) struct Resolver {
    /// Callback that may replace the host and port of a URL by those to connect to.
    elsewhere: Option<Arc<PlaceOf>>,
    #[cfg(test)]
    pub(super) played: Option<Arc<super::tests::PlayedNetwork>>,
}

/// Returns the host and port to connect to for a given host and port; `None` to connect to the
/// given ones.
type PlaceOf = dyn Fn(&str, u16) -> Option<(String, u16)> + Send + Sync;

impl Resolver {
    pub(super) fn connect_to(&mut self, place: impl Fn(&str, u16) -> Option<(String, u16)> + Send + Sync + 'static) {
        self.elsewhere = Some(Arc::new(place));
    }

    /// Returns the place to connect to for a host and a port, if the caller sets one.
    pub(super) fn place_of(&self, host: &str, port: u16) -> Option<(String, u16)> {
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

/// One upstream of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// A server; the path of its URL is `/`.
    Server(FetchUrl),
    #[cfg(unix)]
    Unix(PathBuf),
}

// Problems with an upstream; a message puts them after it.
const SOCKET: &str = "is not a valid socket on this system: write it as \"unix:/run/app.sock\"";
const PATH: &str = "has a path: write the upstream without it, the file is always at /robots.txt";

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

    /// Reports whether a URL has this upstream's host and port.
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

/// Returns the URL to request after a redirect, for a site with this `url`. If the site is
/// requested from the servers `via`, their redirects must stay on the site, and the same server is
/// asked again.
pub(super) fn of_site(url: &FetchUrl, via: &[Peer], from: &FetchUrl, to: FetchUrl) -> Result<FetchUrl, FetchError> {
    let refused = |why: String| Err(FetchError::with_cause(FetchErrorKind::Redirect, why));
    if via.is_empty() {
        let is_less_safe = from.is_https() && !to.is_https();
        return if is_less_safe { refused(format!("{to} is less safe than {from}")) } else { Ok(to) };
    }
    let is_of_site = to.host() == url.host() || via.iter().any(|via| via.is_at(&to));
    if !is_of_site {
        return refused(format!("{to} is another site: name the file as a URL if it is kept there"));
    }
    // Over another scheme or port, the same upstream would send the same response.
    if to.target() == from.target() {
        return refused(format!("{to} is the site itself: the upstream redirects every client to that scheme or port"));
    }
    Ok(from.with_target(to.target().clone()))
}

/// Returns the error for too many redirects, or for a redirect without a valid target.
pub(super) fn leads_nowhere() -> FetchError {
    FetchError::with_cause(FetchErrorKind::Redirect, "it has no target, or there are too many redirects")
}

/// Returns the error for a server with an address of class `from` that named a URL at an address of
/// a forbidden class.
pub(super) fn wrong_class(url: &FetchUrl, from: AddressClass, address: IpAddr, class: AddressClass) -> FetchError {
    let cause = format!(
        "{url} is at {address}, a {class} address, and was named by a server with a {from} address: if the file is kept \
         there, configure that URL itself"
    );
    FetchError::with_cause(FetchErrorKind::RedirectAddress, cause)
}
