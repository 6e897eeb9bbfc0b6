//! Recognises the services that refer visitors to a site.
//!
//! A `GET` request for a page is counted as a visitor if its agent is not a crawler and its
//! `Referer` contains a host from the registry's column `referers`. Requests for embedded files,
//! and requests that follow a link within the site, are not counted, because their `Referer`
//! contains the site's own host.

use std::sync::Arc;

use arc_swap::ArcSwap;
use http::Method;
use http::header::REFERER;
use tower_robots::agent::{Referrer, Registry};
use tower_robots::layer::Record;
use tower_robots::parts::OriginalRequest;
use tower_robots::policy::RateLimit;
use tower_robots::rules::Authority;

/// Recognises the services that refer visitors, by their hosts in the site's registry. No service
/// is recognised until `follow` has set the registry.
#[derive(Debug, Default)]
pub(crate) struct SendingServices(ArcSwap<Registry>);

impl SendingServices {
    pub(crate) fn follow(&self, registry: &Arc<Registry>) {
        if !Arc::ptr_eq(&self.0.load(), registry) {
            self.0.store(Arc::clone(registry));
        }
    }

    /// Returns the service that referred the visitor; `None` if no service did. For most requests,
    /// this function reads only the `Referer`.
    pub(crate) fn of_request(&self, request: &OriginalRequest<'_>, record: Option<&Record>) -> Option<Arc<Referrer>> {
        let referer = request.headers.get(REFERER).filter(|_| *request.method == Method::GET)?;
        if record.is_some_and(|record| record.agent.class().is_crawler()) {
            return None;
        }
        let host = request.host().map(str::as_bytes);
        service_of(&self.0.load(), referer.as_bytes(), host, request.target()).cloned()
    }
}

/// Returns the service that referred the visitor; `None` if no service did, or if the request is
/// not for a page. Compares the `Referer` with the site's own host first, because the `Referer` of
/// most requests contains that host.
pub(crate) fn service_of<'r>(
    registry: &'r Registry,
    referer: &[u8],
    host: Option<&[u8]>,
    target: &[u8],
) -> Option<&'r Arc<Referrer>> {
    let (_, authority, _) = Authority::of_url(referer)?;
    let is_own = host.is_some_and(|host| Authority::of_host_field(host).host.eq_ignore_ascii_case(authority.host));
    if is_own { None } else { registry.referrer(referer).filter(|_| !RateLimit::is_for_asset(target)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_referral_comes_from_another_site_and_leads_to_a_page() {
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
