//! Documents of a site, read from where it serves them: its upstreams or its folder.
//!
//! No name of a public host is resolved, and nothing is read from another host. Octets, time, redirects and servers that are tried
//! are bounded.

use std::fs::File;
use std::io::Read as _;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

use http::header::{ACCEPT_ENCODING, HOST, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::runtime::Handle;
use tokio::time::timeout;
use tower_robots::source::fetch::{FetchAnswer, FetchRequest, FetchUrl, Fetcher, FetcherBuilder};

use crate::config::{Backend, Dotfiles, SiteConfig, StaticFiles};
use crate::pages::{MOST_OCTETS, OwnHosts};
use crate::retrieval::{codings, decode};
use crate::upstream::{HttpVersions, Trust};

/// For all documents of a site together.
const WITHIN: Duration = Duration::from_secs(10);

/// Redirects that are followed to a document.
const REDIRECTS: usize = 3;

/// Servers that are tried for a document.
const SERVERS: usize = 3;

/// The scheme that the site is visited in, without which an application would redirect to it.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// The documents of one site for a while. It blocks the thread it is used on: one that may be blocked.
#[derive(Debug)]
pub(super) struct SiteDocuments {
    place: DocumentPlace,
    hosts: OwnHosts,
    end: Instant,
    runtime: Handle,
}

#[derive(Debug)]
enum DocumentPlace {
    Upstreams(Fetcher, Vec<FetchUrl>),
    Folder(StaticFiles),
}

impl SiteDocuments {
    /// None where the site has no backend here, or one that is not read from: Unix sockets, certificates for another name, HTTP/2
    /// alone.
    pub(super) fn of(
        site: &SiteConfig,
        fetcher: impl FnOnce() -> std::io::Result<Fetcher>,
        runtime: Handle,
    ) -> Result<Option<Self>, String> {
        let place = match &site.backend {
            None => return Ok(None),
            Some(Backend::Files(files)) => DocumentPlace::Folder(files.clone()),
            Some(Backend::Upstreams(upstreams)) => {
                let servers = upstreams.endpoints.iter().filter_map(|endpoint| endpoint.to_string().parse().ok());
                let servers: Vec<FetchUrl> = servers.take(SERVERS).collect();
                let is_spoken = upstreams.versions != HttpVersions::Http2;
                if servers.is_empty() || !is_spoken || upstreams.tls.server_name.is_some() {
                    return Ok(None);
                }
                let fetcher = match &upstreams.tls.trust {
                    Trust::System => fetcher(),
                    Trust::File(path, _) => std::fs::read(path)
                        .and_then(|pem| Fetcher::builder().trust_only(&pem))
                        .and_then(FetcherBuilder::start),
                };
                DocumentPlace::Upstreams(fetcher.map_err(|error| error.to_string())?, servers)
            }
        };
        let hosts = OwnHosts::of(&site.hosts);
        Ok(Some(Self { place, hosts, end: Instant::now() + WITHIN, runtime }))
    }

    pub(super) const fn hosts(&self) -> &OwnHosts {
        &self.hosts
    }

    /// Reads a document; none where the site has none there (404, 410).
    pub(super) fn read(&self, url: &FetchUrl) -> Result<Option<Vec<u8>>, String> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            if !self.hosts.has(url.authority().as_bytes()) {
                return Err(format!("{url} is on another host"));
            }
            let (fetcher, servers) = match &self.place {
                DocumentPlace::Folder(files) => return read_file(files, &url),
                DocumentPlace::Upstreams(fetcher, servers) => (fetcher, servers),
            };
            let answer = self.answer(fetcher, servers, &url)?;
            match (answer.status(), answer.headers().get(LOCATION)) {
                (StatusCode::OK, _) => {
                    let decoded = decode(&codings(answer.headers()), answer.body(), answer.is_cut(), MOST_OCTETS);
                    let decoded = decoded.map_err(|error| format!("{url}: {error}"))?;
                    if decoded.is_cut {
                        return Err(format!("{url}: larger than {} MiB", MOST_OCTETS >> 20));
                    }
                    return Ok(Some(decoded.octets));
                }
                (StatusCode::NOT_FOUND | StatusCode::GONE, _) => return Ok(None),
                (status, Some(location)) if status.is_redirection() => {
                    url = url.join(location.as_bytes()).map_err(|error| format!("{url}: its redirect: {error}"))?;
                }
                (status, _) => return Err(format!("{url}: {status}")),
            }
        }
        Err(format!("{url}: more than {REDIRECTS} redirects"))
    }

    /// The answer of the first server that can be connected to.
    fn answer(&self, fetcher: &Fetcher, servers: &[FetchUrl], url: &FetchUrl) -> Result<FetchAnswer, String> {
        let host = HeaderValue::try_from(url.authority()).map_err(|_| format!("{url}: no host for a request"))?;
        let mut trouble = String::new();
        for server in servers {
            let scheme = if url.is_https() { "https" } else { "http" };
            let request = FetchRequest::new(server.with_target(url.target().clone()))
                .field(HOST, host.clone())
                .field(SCHEME, HeaderValue::from_static(scheme))
                .field(ACCEPT_ENCODING, HeaderValue::from_static("gzip"))
                .at_most(MOST_OCTETS as u64);
            let left = self.end.saturating_duration_since(Instant::now());
            let late = || format!("{url}: not within the {} s that all of them have", WITHIN.as_secs());
            let fetching = fetcher.exchange(request);
            let exchange = self.runtime.block_on(async { timeout(left, fetching).await }).map_err(|_| late())?;
            match exchange.answer {
                Ok(answer) => return Ok(answer),
                Err(error) => trouble = format!("{url}: {error}"),
            }
            if exchange.address.is_some() {
                break;
            }
        }
        Err(trouble)
    }
}

/// Reads the file that a path stands for, as static files are served.
fn read_file(files: &StaticFiles, url: &FetchUrl) -> Result<Option<Vec<u8>>, String> {
    let Some(path) = path_below(url.target().path()) else { return Ok(None) };
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    if files.dotfiles == Dotfiles::Hide && path.components().any(is_hidden) {
        return Ok(None);
    }
    let path = files.root.join(path);
    if !path.is_file() {
        return Ok(None);
    }
    let failed = |error| format!("{}: {error}", path.display());
    let mut octets = Vec::new();
    let file = File::open(&path).map_err(failed)?;
    file.take(MOST_OCTETS as u64 + 1).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() > MOST_OCTETS {
        return Err(format!("{}: larger than {} MiB", path.display(), MOST_OCTETS >> 20));
    }
    Ok(Some(octets))
}

/// A path below a folder; none for one that a sitemap has no reason for: with dots that lead elsewhere, or escapes.
fn path_below(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_escaped = path.as_os_str().as_encoded_bytes().contains(&b'%');
    (is_plain && !is_escaped).then(|| path.to_owned())
}
