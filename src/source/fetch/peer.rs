//! The server to connect to for a site's robots.txt, if it is not the host of its URL.

use std::fmt;
#[cfg(unix)]
use std::path::PathBuf;

use super::url::{FetchUrl, UrlError, UrlScheme};

/// One upstream of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Peer {
    /// Its target is `/`.
    Server(FetchUrl),
    #[cfg(unix)]
    Unix(PathBuf),
}

impl Peer {
    /// Reads `127.0.0.1:3000`, `http://127.0.0.1:3000`, `https://app.internal` or `unix:/run/app.sock`.
    pub(super) fn parse(upstream: &str) -> Result<Self, UrlError> {
        if let Some(path) = upstream.strip_prefix("unix:") {
            #[cfg(unix)]
            if !path.is_empty() {
                return Ok(Self::Unix(path.into()));
            }
            let _ = path;
            return Err(UrlError::socket(upstream));
        }
        let url: FetchUrl =
            if upstream.contains("://") { upstream.parse()? } else { format!("http://{upstream}").parse()? };
        if url.target().as_str() == "/" { Ok(Self::Server(url)) } else { Err(UrlError::path(upstream)) }
    }

    pub(super) const fn scheme(&self) -> UrlScheme {
        match self {
            Self::Server(url) => url.scheme(),
            #[cfg(unix)]
            Self::Unix(_) => UrlScheme::Http,
        }
    }

    /// Whether a URL names it, with its port.
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
