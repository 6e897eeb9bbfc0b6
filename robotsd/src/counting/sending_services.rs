//! The services that send visitors, for the requests of a site.
//!
//! A visitor is a page that was requested with `GET` by something that is no crawler, and whose `Referer` names a host of
//! the registry's column `referers`. Parts of pages name the site itself, so they fall out, as a link within the site does.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::Method;
use http::header::REFERER;
use tower_robots::agent::{Referrer, Registry};
use tower_robots::layer::Record;
use tower_robots::parts::OriginalRequest;
use tower_robots::policy::Pace;
use tower_robots::rules::Authority;

/// Looks services up in the registry of the site; it is empty until it is followed.
#[derive(Debug, Default)]
pub(crate) struct SendingServices(ArcSwap<Registry>);

impl SendingServices {
    /// Follows the registry of the site.
    pub(crate) fn follow(&self, registry: &Arc<Registry>) {
        if !Arc::ptr_eq(&self.0.load(), registry) {
            self.0.store(Arc::clone(registry));
        }
    }

    /// The service that sent a visitor, if the request is one's. Of most requests one field is looked at.
    pub(crate) fn of_request(&self, request: &OriginalRequest<'_>, record: Option<&Record>) -> Option<Arc<Referrer>> {
        let referer = request.headers.get(REFERER).filter(|_| *request.method == Method::GET)?;
        if record.is_some_and(|record| record.agent.class().is_crawler()) {
            return None;
        }
        let host = request.host().map(str::as_bytes);
        service_of(&self.0.load(), referer.as_bytes(), host, request.target()).cloned()
    }
}

/// The service that a request of a page came from. A `Referer` of the site itself is what most requests have, so it is looked
/// at first.
pub(crate) fn service_of<'r>(
    registry: &'r Registry,
    referer: &[u8],
    host: Option<&[u8]>,
    target: &[u8],
) -> Option<&'r Arc<Referrer>> {
    let (_, authority, _) = Authority::of_url(referer)?;
    let is_own = host.is_some_and(|host| Authority::of_host_field(host).host.eq_ignore_ascii_case(authority.host));
    if is_own { None } else { registry.referrer(referer).filter(|_| !Pace::is_for_asset(target)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_visitor_comes_from_another_site_to_a_page() {
        let registry = Registry::builtin();
        let host = |referer: &str, host: Option<&str>, target: &str| {
            let service = service_of(registry, referer.as_bytes(), host.map(str::as_bytes), target.as_bytes());
            service.map(|service| service.host.as_str())
        };
        assert_eq!(host("https://chatgpt.com/", Some("shop.test"), "/a?b=c.png"), Some("chatgpt.com"));
        assert_eq!(host("https://www.google.com/", None, "/"), Some("google.*"));
        assert_eq!(host("https://www.google.com/", Some("www.GOOGLE.com:443"), "/"), None, "its own page");
        assert_eq!(host("https://chatgpt.com/", Some("shop.test"), "/a.css"), None);
        assert_eq!(host("https://shop.test/", Some("shop.test"), "/"), None);
    }
}
