//! Decides which requests the admin interface admits. The interface refuses requests from web
//! pages, and requests through a proxy that is not configured.
//!
//! A web page that an operator visits can make the browser send requests to the loopback address.
//! The page can read the responses only if its own host name resolves to that address (DNS
//! rebinding). Over TCP, the `Host` must therefore be a name or address that no other site can use.
//! A page that cannot read responses can still send POST requests. Changes over TCP therefore need
//! the header field `Robotsd-Admin`. A page can send this field only after a CORS preflight
//! request, and preflight requests are refused. Header fields that browsers add (`Origin`,
//! `Sec-Fetch-Site`) are also checked on the Unix socket, because a user may forward the socket to
//! a TCP port that a browser can reach.
//!
//! If a proxy forwarded requests to this interface by mistake, all clients of the proxy would get
//! access. Proxies, including robotsd itself, add header fields about the client to the requests
//! that they forward. Requests with one of these fields are refused unless the listener is
//! configured for a proxy. Requests from robotsd's own fetcher are always refused: if the
//! configured URL of a robots.txt, or a redirect from it, led to this interface by mistake, robotsd
//! would publish the response as robots.txt.
//!
//! [`authority`](super::authority) decides who a client is and what it may do.

use std::net::IpAddr;
use std::sync::Arc;

use http::header::{FORWARDED, HOST, ORIGIN, USER_AGENT};
use http::request::Parts;
use http::uri::Authority;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Version};

use super::reply::AdminReply;
use crate::config::{AdminAccess, AdminListenerConfig, AdminProxy};

/// Header field that a request for a change over TCP must contain, with the value `1`.
pub(super) const ADMIN_FIELD: HeaderName = HeaderName::from_static("robotsd-admin");

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
const FORWARDING_FIELDS: [HeaderName; 4] = [
    HeaderName::from_static("x-forwarded-for"),
    HeaderName::from_static("x-forwarded-host"),
    HeaderName::from_static("x-real-ip"),
    FORWARDED,
];

/// Prefix of the `User-Agent` of robotsd's fetcher.
const FETCHER_AGENT_PREFIX: &[u8] = b"robotsd/";

#[derive(Clone, Debug)]
pub(super) enum AccessRule {
    Address(TcpPeer, Arc<AddressTerms>),
    /// A Unix socket, which browsers cannot reach directly.
    Socket(SocketPeer),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SocketPeer {
    pub(super) uid: u32,
    pub(super) group: u32,
    /// Whether the user is the owner of the socket, the user of this process, or root.
    pub(super) is_owner: bool,
    /// Whether a supervisor such as systemd created the socket. If so, the mode of the socket file
    /// determines who may connect. If robotsd created the socket, users other than the owner can
    /// connect only while the config lists local users.
    pub(super) is_supervisor_socket: bool,
}

#[derive(Clone, Debug)]
pub(super) struct TcpPeer {
    pub(super) local: IpAddr,
    pub(super) remote: IpAddr,
    pub(super) certificate: Option<String>,
}

#[derive(Debug)]
pub(super) struct AddressTerms {
    /// Names that are accepted in `Host`, in addition to `localhost`.
    pub(super) names: Vec<String>,
    pub(super) config: AdminListenerConfig,
}

impl AccessRule {
    pub(super) fn admit(&self, head: &Parts) -> Result<(), AdminReply> {
        let refuse = |message: &str| Err(AdminReply::error(StatusCode::FORBIDDEN, message));
        // Requests from web pages are refused first, because a later branch, such as the branch for
        // HTTP/1.0 probes, could admit them.
        if let Some(message) = foreign_page_error(&head.headers, self.schemes()) {
            return refuse(message);
        }
        // If the request target contained an authority, it would replace the `Host` field (RFC
        // 9112, section 3.2.2).
        if head.uri.authority().is_some() || !head.uri.path().starts_with('/') {
            return Err(AdminReply::bad_request("the request target is not a path: send a path such as /status"));
        }
        let forwarding = FORWARDING_FIELDS.into_iter().find(|name| head.headers.contains_key(name));
        if let Some(name) = forwarding.filter(|_| self.proxy().is_none()) {
            return refuse(&format!(
                "the request has the field {name}, so it came through a proxy, but this admin listener is not \
                 configured for a proxy"
            ));
        }
        let is_fetcher = |agent: &HeaderValue| {
            agent
                .as_bytes()
                .get(..FETCHER_AGENT_PREFIX.len())
                .is_some_and(|start| start.eq_ignore_ascii_case(FETCHER_AGENT_PREFIX))
        };
        if head.headers.get_all(USER_AGENT).iter().any(is_fetcher) {
            return refuse(
                "robotsd itself requested a robots.txt from its admin interface: check the url or the upstreams of \
                 the site, and their redirects",
            );
        }
        let Self::Address(peer, terms) = self else { return Ok(()) };
        let mut hosts = head.headers.get_all(HOST).iter();
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host,
            // Load balancers may send HTTP/1.0 probes without a `Host` field.
            (None, None) if head.version == Version::HTTP_10 => return Ok(()),
            _ => return Err(AdminReply::bad_request("the request must have exactly one Host field")),
        };
        let Some(authority) = authority(host) else { return refuse("the Host field is not a valid host") };
        if !is_own_host(&authority, peer.local, &terms.names) {
            return refuse(&format!(
                "{authority} is not a host of this admin interface: use the address of the interface, or add the \
                 name to hosts in [admin]"
            ));
        }
        Ok(())
    }

    pub(super) fn admit_change(&self, head: &Parts) -> Result<(), AdminReply> {
        let has_admin_field = head.headers.get(ADMIN_FIELD).map(HeaderValue::as_bytes) == Some(b"1");
        match self {
            Self::Address(_, terms) if terms.config.access == Some(AdminAccess::Read) => Err(AdminReply::error(
                StatusCode::FORBIDDEN,
                "this admin listener is read-only: use the socket or another address of [admin] (with --config FILE, \
                 commands find it themselves)",
            )),
            Self::Address(..) if !has_admin_field => Err(AdminReply::error(
                StatusCode::FORBIDDEN,
                "a request that changes something needs the header field \"Robotsd-Admin: 1\"",
            )),
            _ => Ok(()),
        }
    }

    pub(super) fn proxy(&self) -> Option<&AdminProxy> {
        match self {
            Self::Address(_, terms) => terms.config.proxy.as_ref(),
            Self::Socket(_) => None,
        }
    }

    /// Returns the schemes that `Origin` may have in requests from this listener's own pages. If
    /// the listener is behind a proxy, `https` is allowed, because the proxy may use TLS.
    fn schemes(&self) -> &'static [&'static str] {
        match self {
            Self::Address(_, terms) if terms.config.proxy.is_some() => &["http://", "https://"],
            Self::Address(_, terms) if terms.config.certificates.is_some() => &["https://"],
            _ => &["http://"],
        }
    }
}

/// Returns an error message if a web page of another site seems to have sent the request. Without a
/// `Host`, every `Origin` counts as the origin of another site.
fn foreign_page_error(fields: &HeaderMap, schemes: &[&str]) -> Option<&'static str> {
    let host = fields.get(HOST).and_then(authority);
    let is_own = |origin: &HeaderValue| {
        let origin = origin.to_str().ok();
        let origin = origin.and_then(|origin| schemes.iter().find_map(|scheme| origin.strip_prefix(scheme)));
        origin.zip(host.as_ref()).is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host.as_str()))
    };
    if !fields.get_all(ORIGIN).iter().all(is_own) {
        return Some("the field Origin names another web site, and the admin interface refuses requests of web pages");
    }
    let is_own = |site: &HeaderValue| matches!(site.as_bytes(), b"none" | b"same-origin");
    (!fields.get_all(FETCH_SITE).iter().all(is_own)).then_some("a web page of another site sent the request")
}

fn authority(host: &HeaderValue) -> Option<Authority> {
    let authority: Authority = host.to_str().ok()?.parse().ok()?;
    (!authority.as_str().contains('@')).then_some(authority)
}

/// Reports whether the host is a name or an address of this interface that no other site can use.
fn is_own_host(authority: &Authority, local: IpAddr, names: &[String]) -> bool {
    let host = authority.host();
    if let Ok(address) = host.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>() {
        let address = address.to_canonical();
        return address.is_loopback() || address == local.to_canonical();
    }
    let host = host.trim_end_matches('.');
    host.eq_ignore_ascii_case("localhost") || names.iter().any(|name| name.eq_ignore_ascii_case(host))
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    const LOCAL: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 7));

    fn status(door: &AccessRule, fields: &[(&str, &str)]) -> u16 {
        let request =
            fields.iter().fold(Request::builder().uri("/x"), |request, (name, value)| request.header(*name, *value));
        let (head, ()) = request.body(()).unwrap().into_parts();
        match door.admit(&head).and_then(|()| door.admit_change(&head)) {
            Ok(()) => 200,
            Err(reply) => reply.into_response().status().as_u16(),
        }
    }

    const SOCKET: AccessRule =
        AccessRule::Socket(SocketPeer { uid: 0, group: 0, is_owner: true, is_supervisor_socket: false });

    fn rule(access: AdminAccess) -> AccessRule {
        let (address, access) = ((LOCAL, 1).into(), Some(access));
        let config = AdminListenerConfig { address, access, certificates: None, proxy: None };
        let terms = AddressTerms { names: vec!["admin.internal".to_owned()], config };
        AccessRule::Address(TcpPeer { local: LOCAL, remote: LOCAL, certificate: None }, Arc::new(terms))
    }

    fn over_tcp() -> AccessRule {
        rule(AdminAccess::Full)
    }

    #[test]
    fn a_host_field_must_be_a_local_or_configured_name_or_address() {
        let ours = "127.0.0.1:9145 127.1.2.3 localhost LocalHost.:80 [::1]:9145 192.0.2.7:9145 [::ffff:192.0.2.7] Admin.internal";
        let others = "192.0.2.8 evil.test localhost.evil.test 127.0.0.1.evil.test user@127.0.0.1 2130706433 ";
        for (hosts, want) in [(ours, 200), (others, 403)] {
            for host in hosts.split(' ') {
                assert_eq!(status(&over_tcp(), &[("host", host), ("robotsd-admin", "1")]), want, "{host}");
            }
        }
        assert_eq!(status(&over_tcp(), &[("robotsd-admin", "1")]), 400);
        let twice = [("host", "localhost"), ("host", "localhost"), ("robotsd-admin", "1")];
        assert_eq!(status(&over_tcp(), &twice), 400);
    }

    #[test]
    fn requests_from_web_pages_of_other_sites_and_from_proxies_are_refused() {
        let others =
            "http://evil.test|http://127.0.0.1:80|https://127.0.0.1:9145|null||http://127.0.0.1:9145, http://evil.test";
        for (name, passes, refused) in [
            ("origin", Some("http://127.0.0.1:9145"), others),
            ("sec-fetch-site", Some("none"), "cross-site|same-site"),
            ("x-forwarded-for", None, "192.0.2.1"),
            ("forwarded", None, "for=192.0.2.1"),
            ("user-agent", Some("curl/8 robotsd/9"), "robotsd/0.1.0|Robotsd/9"),
        ] {
            let values = refused.split('|').map(|value| (value, 403)).chain(passes.map(|value| (value, 200)));
            for (value, want) in values {
                let fields = [("host", "127.0.0.1:9145"), ("robotsd-admin", "1"), (name, value)];
                assert_eq!(status(&over_tcp(), &fields), want, "{name}: {value}");
            }
        }
    }

    #[test]
    fn a_request_from_another_site_is_refused_regardless_of_its_other_fields() {
        let sent = |version: Version, target: &str, fields: &[(&str, &str)], rule: &AccessRule| {
            let request = Request::builder().method("POST").uri(target).version(version).header(ADMIN_FIELD, "1");
            let request = fields.iter().fold(request, |request, (name, value)| request.header(*name, *value));
            let (head, ()) = request.body(()).unwrap().into_parts();
            rule.admit(&head).map_or_else(|reply| reply.into_response().status().as_u16(), |()| 200)
        };
        let own = ("origin", "http://127.0.0.1:9145");
        let pages = ["http://evil.test", "null", "http://"].map(|origin| ("origin", origin));
        let pages = [&pages[..], &[("sec-fetch-site", "cross-site")]].concat();
        let hosts: [&[(&str, &str)]; 4] =
            [&[], &[("host", "")], &[("host", "127.0.0.1:9145")], &[("host", "localhost"), ("host", "127.0.0.1:9145")]];
        for rule in [over_tcp(), SOCKET] {
            for version in [Version::HTTP_10, Version::HTTP_11] {
                for target in ["/enforce?to=off", "http://127.0.0.1:9145/enforce?to=off"] {
                    for (page, host) in pages.iter().flat_map(|page| hosts.map(|host| (page, host))) {
                        // The request is refused even if only one of several field lines names
                        // another site.
                        let behind = [host, &[own, ("sec-fetch-site", "same-origin"), *page]].concat();
                        for fields in [[host, &[*page]].concat(), behind] {
                            let status = sent(version, target, &fields, &rule);
                            assert_eq!(status, 403, "{rule:?} {version:?} {target} {fields:?}");
                        }
                    }
                }
                let same = [("host", "127.0.0.1:9145"), own, own, ("sec-fetch-site", "same-origin")];
                assert_eq!(sent(version, "/board", &same, &rule), 200, "{rule:?} {version:?}");
            }
        }
        // The first request is a probe of a load balancer.
        assert_eq!(sent(Version::HTTP_10, "/readyz", &[], &over_tcp()), 200);
        assert_eq!(sent(Version::HTTP_10, "/readyz", &[own], &over_tcp()), 403);
    }

    #[test]
    fn a_change_needs_the_admin_header_field_over_tcp_but_not_over_the_socket() {
        let host = ("host", "127.0.0.1");
        assert_eq!(status(&over_tcp(), &[host]), 403);
        assert_eq!(status(&over_tcp(), &[host, ("robotsd-admin", "yes")]), 403);
        assert_eq!(status(&over_tcp(), &[host, ("robotsd-admin", "1")]), 200);
        assert_eq!(status(&rule(AdminAccess::Read), &[host, ("robotsd-admin", "1")]), 403);
        assert_eq!(status(&SOCKET, &[("host", "robotsd")]), 200);
        assert_eq!(status(&SOCKET, &[("host", "robotsd"), ("x-forwarded-for", "192.0.2.1")]), 403);
        assert_eq!(status(&SOCKET, &[("host", "robotsd"), ("user-agent", "robotsd/0.1.0")]), 403);
    }
}
