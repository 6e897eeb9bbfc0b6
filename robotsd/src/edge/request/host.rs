//! Determines the host of a request, which a client can send in three places: in the target, in
//! `Host`, and in `:authority`.
//!
//! The rules are in RFC 9112, section 3.2, and RFC 9113, section 8.3.1. After the checks, the
//! target is in origin-form, and the host is only in `Host`. The site is chosen later.

use http::header::HOST;
use http::request::Parts;
use http::uri::{PathAndQuery, Uri};
use http::{HeaderValue, StatusCode, Version};
use tower_robots::rules::{Authority, Port};

use super::admission::RequestRefusal;
use crate::edge::tls::{Secured, SettledProtocol};

/// Determines the host of a request, stores it in `Host`, and converts the target to origin-form.
pub(crate) fn determine_host(head: &mut Parts) -> Result<(), RequestRefusal> {
    let mut named = head.headers.get_all(HOST).iter();
    let host = named.next();
    if named.next().is_some() {
        return Err(RequestRefusal::bad_request("the request has more than one Host field"));
    }
    if host.is_some_and(|host| !is_valid(host.as_bytes())) {
        return Err(RequestRefusal::bad_request("invalid Host"));
    }
    if host.is_none() && head.version == Version::HTTP_11 {
        return Err(RequestRefusal::bad_request("no Host"));
    }
    let Some(authority) = head.uri.authority() else {
        // On HTTP/2, a request must have `:authority` or `Host`.
        return if host.is_none() && head.version == Version::HTTP_2 {
            Err(RequestRefusal::bad_request("no :authority"))
        } else {
            Ok(())
        };
    };
    if !head.uri.scheme_str().is_some_and(|scheme| matches!(scheme, "http" | "https")) {
        return Err(RequestRefusal::bad_request("the request target is not an http URL"));
    }
    let authority = authority.as_str();
    if !is_valid(authority.as_bytes()) {
        return Err(RequestRefusal::bad_request("invalid authority"));
    }
    // On HTTP/1.1, the host in the target takes precedence, as the specification requires. On
    // HTTP/2, no honest client sends two different hosts, so the request is rejected.
    let differs = host.is_some_and(|host| !host.as_bytes().eq_ignore_ascii_case(authority.as_bytes()));
    if differs && head.version == Version::HTTP_2 {
        return Err(RequestRefusal::bad_request("the Host field differs from :authority"));
    }
    to_origin_form(head)
}

/// Converts the target of a proxy's decision request to origin-form, and stores the target's host
/// in `Host`. The host is not checked, because it comes from the client of the original request.
/// The proxy must get a decision even if that client sent an invalid host.
pub(crate) fn to_origin_form(head: &mut Parts) -> Result<(), RequestRefusal> {
    if let Some(authority) = head.uri.authority()
        && let Ok(host) = HeaderValue::from_str(authority.as_str())
    {
        head.headers.insert(HOST, host);
    }
    head.uri = origin_form(&head.uri)?;
    Ok(())
}

/// Checks whether a request may be sent on its TLS connection. `Host` must already contain the
/// requested host.
///
/// The request must use the protocol that the handshake negotiated (RFC 9113, section 3.2), and its
/// host must be covered by the connection's certificate. If the certificate does not cover the
/// requested host, the client has not verified that the server may answer for this host. The client
/// then needs a new connection (RFC 9110, section 15.5.20). If the client named no host in the
/// handshake, any `Host` is accepted.
pub(crate) fn check_connection(head: &Parts, secured: &Secured) -> Result<(), RequestRefusal> {
    if (head.version == Version::HTTP_2) != (secured.protocol == SettledProtocol::Http2) {
        return Err(RequestRefusal::bad_request("the request does not use the protocol negotiated by TLS"));
    }
    match head.headers.get(HOST).and_then(|host| host.to_str().ok()) {
        Some(host) if !secured.is_for(without_port(host)) => Err(RequestRefusal::new(
            StatusCode::MISDIRECTED_REQUEST,
            "the certificate of this connection is for another host: open a new connection",
        )),
        _ => Ok(()),
    }
}

/// Returns the name or the address in a valid host, without port and brackets.
fn without_port(host: &str) -> &str {
    std::str::from_utf8(Authority::of_host_field(host.as_bytes()).bare_host()).unwrap_or(host)
}

fn origin_form(uri: &Uri) -> Result<Uri, RequestRefusal> {
    let target = uri.path_and_query().map_or("/", PathAndQuery::as_str);
    match target.as_bytes() {
        [b'/', ..] | b"*" => Ok(uri.path_and_query().cloned().unwrap_or(PathAndQuery::from_static("/")).into()),
        // `http://host?query` has an empty path, which means `/`.
        _ => format!("/{target}").parse().map_err(|_| RequestRefusal::bad_request("invalid target")),
    }
}

/// Reports whether the bytes are a valid host with an optional port.
///
/// The grammar of URIs also allows commas, quotes and escapes. These characters are rejected here,
/// because no name that can be resolved contains them.
pub(crate) fn is_valid(host: &[u8]) -> bool {
    let authority = Authority::of_host_field(host);
    let name_is_valid = match authority.host {
        [b'[', inner @ .., b']'] => {
            std::str::from_utf8(inner).is_ok_and(|inner| inner.parse::<std::net::Ipv6Addr>().is_ok())
        }
        name => {
            (1..=255).contains(&name.len())
                && name.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_'))
        }
    };
    name_is_valid && authority.port != Port::Malformed
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    fn settled(version: Version, target: &str, hosts: &[&str]) -> Result<(Option<String>, String), RequestRefusal> {
        let mut request = Request::builder().version(version).uri(target);
        for host in hosts {
            request = request.header(HOST, *host);
        }
        let (mut head, ()) = request.body(()).unwrap().into_parts();
        determine_host(&mut head)?;
        Ok((head.headers.get(HOST).map(|host| host.to_str().unwrap().to_owned()), head.uri.to_string()))
    }

    fn host(version: Version, target: &str, hosts: &[&str]) -> Option<String> {
        settled(version, target, hosts).unwrap().0
    }

    #[test]
    fn rfc_9112_3_2_http_1_1_needs_exactly_one_valid_host() {
        assert_eq!(host(Version::HTTP_11, "/", &["h.test"]).as_deref(), Some("h.test"));
        assert!(settled(Version::HTTP_11, "/", &[]).is_err());
        assert!(settled(Version::HTTP_11, "/", &["a", "a"]).is_err());
        assert!(settled(Version::HTTP_11, "http://h.test/", &[]).is_err());
    }

    #[test]
    fn http_1_0_may_omit_host() {
        assert_eq!(host(Version::HTTP_10, "/", &[]), None);
        assert!(settled(Version::HTTP_10, "/", &["a b"]).is_err());
    }

    #[test]
    fn rfc_9112_3_2_2_absolute_form_replaces_host() {
        for (target, path) in [
            ("http://h.test/a?b", "/a?b"),
            ("http://h.test", "/"),
            ("http://h.test?q=1", "/?q=1"),
            ("HTTP://h.test/", "/"),
        ] {
            let expected = (Some("h.test".to_owned()), path.to_owned());
            assert_eq!(settled(Version::HTTP_11, target, &["evil.test"]).unwrap(), expected, "{target}");
        }
        for target in ["ftp://h.test/a", "http://user@h.test/a"] {
            assert!(settled(Version::HTTP_11, target, &["h.test"]).is_err(), "{target}");
        }
    }

    #[test]
    fn rfc_9113_8_3_1_authority_and_host_must_agree() {
        assert_eq!(host(Version::HTTP_2, "http://h.test/", &[]).as_deref(), Some("h.test"));
        assert_eq!(host(Version::HTTP_2, "http://h.test/", &["H.test"]).as_deref(), Some("h.test"));
        assert!(settled(Version::HTTP_2, "http://h.test/", &["evil.test"]).is_err());
        assert!(settled(Version::HTTP_2, "/", &[]).is_err());
    }

    #[test]
    fn a_host_is_compared_without_its_port() {
        for (host, bare) in [("a.test", "a.test"), ("a.test:443", "a.test"), ("[::1]:443", "::1"), ("[::1]", "::1")] {
            assert_eq!(without_port(host), bare);
        }
    }

    #[test]
    fn hosts_are_names_or_addresses_with_an_optional_port() {
        for host in ["a", "a.", "a_b.test:80", "127.0.0.1:0", "[::1]", "[::1]:8080", "h.test:"] {
            assert!(is_valid(host.as_bytes()), "{host}");
        }
        let hosts = ":80~h.test/x~a@h.test~h.test:99999~h.test:80a~a,b~h.test?x~h.test#x~a b~::1~[::1~[x]~\
            [::1]x~h\\.test~h%2e.test";
        for host in hosts.split('~').chain([""]) {
            assert!(!is_valid(host.as_bytes()), "{host}");
        }
    }
}
