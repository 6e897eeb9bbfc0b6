//! Parses addresses of admin interfaces, from `--admin` and from `replicas` in `[fleet]`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::uri::Authority;

use super::admin::PORT;

#[derive(Clone, Debug, PartialEq, Eq, derive_more::Display)]
pub(crate) enum AdminPlace {
    Address(SocketAddr),
    /// A loopback address, and the file with the local token for changes.
    #[display("{_0}")]
    Local(SocketAddr, TokenFile),
    #[display("{}", _0.display())]
    Socket(PathBuf),
    /// A host name and a port. The host name represents all addresses that it resolves to.
    #[display("{_0}:{_1}")]
    Name(String, u16),
    /// The host name and port of a single robotsd that uses TLS. The certificate must be valid for
    /// this host name.
    #[display("https://{_0}:{_1}")]
    Tls(String, u16),
}

impl AdminPlace {
    /// Returns the host (an IPv6 address without brackets) and the port; `None` for a socket.
    pub(super) fn host_and_port(&self) -> Option<(String, u16)> {
        match self {
            Self::Address(address) | Self::Local(address, _) => Some((address.ip().to_string(), address.port())),
            Self::Name(host, port) | Self::Tls(host, port) => Some((host.trim_matches(['[', ']']).to_owned(), *port)),
            Self::Socket(_) => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TokenFile {
    pub(crate) path: PathBuf,
    /// User ID of the running robotsd. A token file of another user is not used, because it cannot
    /// contain robotsd's token.
    pub(crate) owner: u32,
}

impl FromStr for AdminPlace {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("unix:") {
            return Ok(Self::Socket(path.into()));
        }
        let bare = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        if let Ok(address) = bare.parse().or_else(|_| bare.parse().map(|address: IpAddr| (address, PORT).into())) {
            return Ok(Self::Address(address));
        }
        let (authority, is_tls) = text.strip_prefix("https://").map_or((text, false), |text| (text, true));
        let is_path = text.contains('/') && !text.contains("://");
        if is_path || Path::new(text).extension() == Some("sock".as_ref()) {
            return Ok(Self::Socket(text.into()));
        }
        let host_and_port = |authority: Authority| {
            let port = authority.as_str().strip_prefix(authority.host())?.strip_prefix(':').map(str::parse);
            Some((authority.host().to_owned(), port.unwrap_or(Ok(PORT)).ok()?))
        };
        let parsed = authority.trim_end_matches('/').parse().ok().and_then(host_and_port);
        let is_name = |host: &str| host.bytes().any(|byte| byte.is_ascii_alphabetic()) && !host.starts_with('[');
        match parsed {
            Some((host, port)) if is_tls => Ok(Self::Tls(host, port)),
            Some((host, port)) if is_name(&host) => Ok(Self::Name(host, port)),
            _ => Err(format!(
                "{text:?} is not the place of an admin interface: write an address such as 127.0.0.1:{PORT}, a host \
                 such as robotsd-pods:{PORT}, https://HOST:PORT for an interface with TLS, or the path of a socket \
                 such as /run/robotsd/admin.sock"
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_admin_place_is_an_address_a_name_a_url_or_a_socket_path() {
        let address = |text: &str| Some(AdminPlace::Address(text.parse().unwrap()));
        let socket = |text: &str| Some(AdminPlace::Socket(text.into()));
        let tls = |host: &str, port| Some(AdminPlace::Tls(host.to_owned(), port));
        let name = |host: &str, port| Some(AdminPlace::Name(host.to_owned(), port));
        for (text, want) in [
            ("127.0.0.1:9145", address("127.0.0.1:9145")),
            ("http://[::1]:9145/", address("[::1]:9145")),
            ("10.0.0.5", address("10.0.0.5:9145")),
            ("::1", address("[::1]:9145")),
            ("[::1]:9000", address("[::1]:9000")),
            ("/run/a.sock", socket("/run/a.sock")),
            ("./a.sock", socket("./a.sock")),
            ("unix:a.sock", socket("a.sock")),
            ("admin.sock", socket("admin.sock")),
            ("https://127.0.0.1:1", tls("127.0.0.1", 1)),
            ("https://[::1]:9145/", tls("[::1]", 9145)),
            ("https://admin.internal:9146", tls("admin.internal", 9146)),
            ("https://web-1.internal", tls("web-1.internal", 9145)),
            ("localhost", name("localhost", 9145)),
            ("robotsd_pods:9000", name("robotsd_pods", 9000)),
            ("web-1.internal:9000", name("web-1.internal", 9000)),
            ("", None),
            ("9145", None),
            ("2130706433:80", None),
            (":9145", None),
            ("web:x", None),
            ("web:", None),
            ("web 1", None),
            ("a@b:1", None),
            ("https://a@b:1", None),
            ("https://a:1/x", None),
            ("http://admin.internal/", None),
            ("http://web:9145", None),
        ] {
            let place = text.parse::<AdminPlace>();
            assert_eq!(place.clone().ok(), want, "{text}: {place:?}");
            if let Some(place) = want {
                assert_eq!(place.to_string().parse().as_ref(), Ok(&place), "{text}");
            }
        }
    }
}
