//! Where a redirect of a fetch may lead, and the errors about one that leads elsewhere.

use std::net::IpAddr;

use http::StatusCode;

use super::error::{FetchError, FetchErrorKind};
use super::peer::Peer;
use super::url::{FetchUrl, UrlScheme};
use crate::identity::AddressClass;

/// The statuses that are followed (RFC 9309, section 2.3.1.2).
pub(super) const fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// The URL that a redirect for a site leads to. The site is that of `url`, and is requested from the servers `via`, if there
/// are any: their redirects stay on the site, and at them.
pub(super) fn of_site(url: &FetchUrl, via: &[Peer], from: &FetchUrl, to: FetchUrl) -> Result<FetchUrl, FetchError> {
    let refused = |why: String| Err(FetchError::with_cause(FetchErrorKind::Redirect, why));
    if via.is_empty() {
        return match (from.scheme(), to.scheme()) {
            (UrlScheme::Https, UrlScheme::Http) => refused(format!("{to} is less safe than {from}")),
            _ => Ok(to),
        };
    }
    let is_of_site = to.host() == url.host() || via.iter().any(|via| via.is_at(&to));
    if !is_of_site {
        return refused(format!("{to} is another site: name the file as a URL if it is kept there"));
    }
    // Requested over another scheme or port, the same upstream answers the same.
    if to.target() == from.target() {
        return refused(format!("{to} is where we are: the upstream sends every client to that scheme or port"));
    }
    Ok(from.with_target(to.target().clone()))
}

/// More redirects than are followed, or one without a URL.
pub(super) fn leads_nowhere() -> FetchError {
    FetchError::with_cause(FetchErrorKind::Redirect, "it leads nowhere, or on and on")
}

/// A server at an address of the class `from` named a URL at an address of a class that it must not lead to.
pub(super) fn wrong_class(url: &FetchUrl, from: AddressClass, address: IpAddr, class: AddressClass) -> FetchError {
    let cause = format!(
        "{url} is at {address}, a {class} address, and was named by a server with a {from} address: if the file is kept \
         there, configure that URL itself"
    );
    FetchError::with_cause(FetchErrorKind::RedirectAddress, cause)
}
