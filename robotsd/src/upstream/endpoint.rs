//! The operator's settings for an upstream: the address, the HTTP versions to use, and the limits
//! with their defaults.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use http::Uri;
use http::uri::Scheme;
use tower_robots::rules::{Authority, Port};

/// An upstream, written `http://host:port`, `https://host:port` or `unix:/path`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Endpoint {
    pub(super) address: EndpointAddress,
    pub(super) scheme: Scheme,
}

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(super) enum EndpointAddress {
    Server(ServerAddress),
    /// A host name and a port. Each address that the name resolves to is a server.
    #[display("{_0}:{_1}")]
    Name(String, u16),
}

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(super) enum ServerAddress {
    Tcp(SocketAddr),
    /// `localhost`, which is not resolved through DNS (RFC 6761, section 6.3). `localhost` counts
    /// as one server, which may listen on the IPv4 loopback address, the IPv6 loopback address, or
    /// both.
    #[display("localhost:{_0}")]
    Loopback(u16),
    #[display("unix:{}", _0.display())]
    Unix(PathBuf),
}

impl Endpoint {
    /// Reports whether a connection to this endpoint would arrive at a listener with the given
    /// address.
    pub(crate) fn is_listener(&self, listener: SocketAddr) -> bool {
        // A connection to an unspecified address arrives at the loopback address, and a listener on
        // an unspecified address accepts connections to every address.
        let (ip, port) = match &self.address {
            EndpointAddress::Server(ServerAddress::Tcp(address)) => (Some(address.ip().to_canonical()), address.port()),
            EndpointAddress::Server(ServerAddress::Loopback(port)) => (None, *port),
            EndpointAddress::Name(..) | EndpointAddress::Server(ServerAddress::Unix(_)) => return false,
        };
        let own = listener.ip().to_canonical();
        // A listener on the unspecified IPv6 address usually accepts IPv4 connections, too.
        let takes = |ip: IpAddr| own == ip || own.is_unspecified() && (own.is_ipv6() || ip.is_ipv4());
        let is_here = match ip {
            Some(ip) if ip.is_unspecified() => own.is_loopback() || own.is_unspecified(),
            Some(ip) if ip.is_loopback() => takes(ip),
            Some(ip) => own == ip,
            None => own.is_loopback() || own.is_unspecified(),
        };
        port == listener.port() && is_here
    }

    /// Parses an endpoint. The path of a Unix socket is relative to `folder`.
    pub(crate) fn parse(url: &str, folder: &Path) -> Result<Self, String> {
        let wrong = |why: &str| {
            let right = "write an address such as \"http://127.0.0.1:3000\", \"https://app.internal\" or \"unix:/run/app.sock\"";
            Err(format!("{url:?} is not a valid upstream ({why}): {right}"))
        };
        if let Some(path) = url.strip_prefix("unix:") {
            if path.is_empty() {
                return wrong("the path of the socket is missing");
            }
            let address = EndpointAddress::Server(ServerAddress::Unix(folder.join(path)));
            return Ok(Self { address, scheme: Scheme::HTTP });
        }
        let Ok(uri) = url.parse::<Uri>() else { return wrong("this is not a URL") };
        let (scheme, usual_port) = match uri.scheme_str() {
            Some("http") => (Scheme::HTTP, 80),
            Some("https") => (Scheme::HTTPS, 443),
            Some(_) => {
                return wrong(
                    "the scheme must be http, https or unix; HTTP/2 without TLS needs http2 = true in [site.upstream]",
                );
            }
            None => return wrong("the URL has no scheme"),
        };
        let Some(authority) = uri.authority() else { return wrong("the URL has no host") };
        if uri.path_and_query().is_some_and(|path| path.as_str() != "/") {
            return wrong("the URL has a path, but robotsd forwards the paths of requests unchanged");
        }
        let host = authority.host();
        let authority = Authority::split(authority.as_str().as_bytes());
        if authority.userinfo.is_some() {
            return wrong("the URL contains a user name");
        }
        let port = match authority.port {
            Port::Absent => usual_port,
            Port::Number(port) if port != 0 => port,
            _ => return wrong("the port must be a number from 1 to 65535"),
        };
        if host.is_empty() {
            return wrong("the URL has no host");
        }
        let literal = std::str::from_utf8(authority.bare_host()).unwrap_or(host);
        let address = match literal.parse::<IpAddr>() {
            Ok(address) => EndpointAddress::Server(ServerAddress::Tcp(SocketAddr::new(address, port))),
            Err(_) if host.starts_with('[') => return wrong("the part in brackets is not a valid IPv6 address"),
            Err(_) if host.eq_ignore_ascii_case("localhost") => EndpointAddress::Server(ServerAddress::Loopback(port)),
            Err(_) => EndpointAddress::Name(host.to_owned(), port),
        };
        Ok(Self { address, scheme })
    }

    pub(crate) fn is_tls(&self) -> bool {
        self.scheme == Scheme::HTTPS
    }

    /// Returns the `Host` to send if a request has no `Host`.
    pub(super) fn authority(&self) -> String {
        match &self.address {
            EndpointAddress::Server(ServerAddress::Unix(_)) => "localhost".to_owned(),
            address => address.to_string(),
        }
    }

    /// Returns the host name that the server's certificate must match.
    pub(super) fn host(&self) -> String {
        match &self.address {
            EndpointAddress::Server(ServerAddress::Tcp(address)) => address.ip().to_string(),
            EndpointAddress::Name(host, _) => host.clone(),
            EndpointAddress::Server(_) => "localhost".to_owned(),
        }
    }
}

/// Formats the endpoint in the syntax of the config.
impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            EndpointAddress::Server(ServerAddress::Unix(_)) => self.address.fmt(f),
            address => write!(f, "{}://{address}", self.scheme),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum HttpVersions {
    #[default]
    Http1,
    /// HTTP/2 only. With TLS, the server must agree to HTTP/2 in the handshake. Without TLS, HTTP/2
    /// is used from the first byte.
    Http2,
    /// The version that the server prefers in the TLS handshake. Without TLS, no version can be
    /// negotiated, so HTTP/1.1 is used.
    Negotiated,
}

impl HttpVersions {
    /// Returns the protocols to offer in the TLS handshake (RFC 7301).
    pub(super) fn offered(self) -> Vec<Vec<u8>> {
        match self {
            Self::Http1 => vec![b"http/1.1".to_vec()],
            Self::Http2 => vec![b"h2".to_vec()],
            Self::Negotiated => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UpstreamLimits {
    /// Maximum time to connect, including the TLS handshake, in total for all servers that are
    /// tried for a request.
    pub(crate) connect: Duration,
    /// Maximum time until the head of the response arrives, counted from the moment when the
    /// upstream last accepted a part of the request.
    pub(crate) response_header: Duration,
    /// Maximum time without progress of a response body. The total time is not limited.
    pub(crate) body_idle: Duration,
    /// Size of the buffer for a response body, in bytes. The head and the interim responses
    /// together have the same limit. A head that is complete after a single read may be twice as
    /// large as the buffer.
    pub(crate) buffer_bytes: usize,
    /// Maximum number of bytes to read ahead for one stalled client. A response of known length is
    /// read ahead only if this number covers all of its remaining bytes: otherwise, the connection
    /// would not become free.
    pub(crate) buffer: usize,
    /// Maximum total number of bytes read ahead in the process.
    pub(crate) buffer_total: usize,
    /// Maximum number of open connections to all servers of a site, over all workers, including
    /// idle connections. At the limit, a request waits up to `connect` for a connection.
    pub(crate) connections: NonZeroUsize,
    /// Maximum number of open connections to one server.
    pub(crate) address_connections: NonZeroUsize,
    /// Maximum number of idle connections per server. Each worker may keep an equal part of this
    /// number, because a hash of the kernel distributes clients about equally among the workers.
    pub(crate) idle_connections: usize,
    /// Maximum time that an idle connection is kept.
    pub(crate) idle_timeout: Duration,
}

const CONNECTIONS: NonZeroUsize = NonZeroUsize::new(2048).unwrap();

impl Default for UpstreamLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(3),
            response_header: Duration::from_secs(30),
            body_idle: Duration::from_secs(60),
            // With this size, a typical large response arrives in one read. With a quarter of this
            // size, such a response needs 25 % more CPU.
            buffer_bytes: 256 * 1024,
            buffer: 64 * 1024,
            buffer_total: 64 * 1024 * 1024,
            connections: CONNECTIONS,
            address_connections: CONNECTIONS,
            idle_connections: 128,
            // This time is shorter than the idle timeout of most servers, so that robotsd usually
            // closes a connection before the server does.
            idle_timeout: Duration::from_secs(4),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_upstream_that_is_the_listener_itself_is_recognised_in_every_spelling() {
        let is_listener = |url: &str, listener: &str| {
            Endpoint::parse(url, Path::new("")).unwrap().is_listener(listener.parse().unwrap())
        };
        // Each case: a listener, URLs that connect to it, and URLs that do not.
        for (listener, same, others) in [
            (
                "127.0.0.1:80",
                "http://127.0.0.1:80 http://localhost http://0.0.0.0 http://[::ffff:127.0.0.1]",
                "http://127.0.0.1:81 http://127.0.0.2 http://app.internal unix:app.sock",
            ),
            ("0.0.0.0:80", "http://127.0.0.1", "http://[::1] http://192.0.2.1"),
            ("[::]:80", "http://127.0.0.1 http://LOCALHOST", ""),
            ("192.0.2.1:80", "http://192.0.2.1", "http://localhost"),
        ] {
            for (urls, is_same) in [(same, true), (others, false)] {
                for url in urls.split_whitespace() {
                    assert_eq!(is_listener(url, listener), is_same, "{url} {listener}");
                }
            }
        }
    }

    #[test]
    fn an_endpoint_is_a_url_or_a_unix_socket() {
        for (url, address, is_tls) in [
            ("http://127.0.0.1:3000", "127.0.0.1:3000", false),
            ("http://127.0.0.1", "127.0.0.1:80", false),
            ("https://[::1]:8443/", "[::1]:8443", true),
            ("https://app.internal", "app.internal:443", true),
            ("HTTP://LocalHost:80", "localhost:80", false),
            ("unix:/run/app.sock", "unix:/run/app.sock", false),
            ("unix:app.sock", "unix:/etc/robotsd/app.sock", false),
        ] {
            let endpoint = Endpoint::parse(url, Path::new("/etc/robotsd")).unwrap();
            assert_eq!((endpoint.address.to_string().as_str(), endpoint.is_tls()), (address, is_tls), "{url}");
        }
        for (url, why) in [
            ("127.0.0.1:3000", "scheme"),
            ("ftp://a", "the scheme must be http"),
            ("http://a/b", "the URL has a path"),
            ("http://u@a", "a user"),
            ("http://a:0", "the port"),
            ("http://a:99999", "the port"),
            ("unix:", "the path of the socket"),
            ("http://[a]:1", "not a valid IPv6 address"),
        ] {
            let message = Endpoint::parse(url, Path::new("")).unwrap_err();
            assert!(message.contains(why) && message.contains(url), "{message}");
        }
    }
}
