//! Reads documents of a site, such as sitemaps, from the site's own upstreams or folder, and
//! updates the pages that the gate protects.
//!
//! The public host names of the site are not resolved, and nothing is read from other hosts. Time,
//! bytes, redirects and tried servers are limited.
//!
//! The gate protects the pages in the sitemaps, and the pages that search engines request most. The
//! publication of a version does not wait until the sitemaps are read: the gate uses the pages that
//! are known when it checks the version. If a sitemap cannot be read, the known pages are kept. If
//! the sitemaps list fewer than half of the known pages, the listed pages still replace the known
//! pages. In both cases, a note reports the problem.

use std::fs::File;
use std::io::{self, ErrorKind, Read};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use bytes::{Buf as _, Bytes};
use http::header::{ACCEPT_ENCODING, HOST, LOCATION};
use http::{HeaderName, HeaderValue, StatusCode};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_robots::check::Page;
use tower_robots::internals::{FetchAnswer, FetchBody};
use tower_robots::rules::RobotsTxt;
use tower_robots::source::fetch::FetchRequest;
use tower_robots::source::fetch::{FetchUrl, Fetcher};

use super::appended_parts::fetcher_trusting;
use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_pages::{NoteAbout, max_page_memory};
use crate::board::{Board, seconds};
use crate::config::{Backend, Dotfiles, SiteConfig, StaticFiles};
use crate::fetch::{codings, decoder};
use crate::files;
use crate::pages::{MAX_BYTES, OwnHosts, SitemapSource, SitemapWalk};
use crate::upstream::HttpVersions;

/// Maximum time for reading all documents of a site together.
pub(super) const DOCUMENTS_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum number of redirects per document.
const REDIRECTS: usize = 3;

/// Maximum number of servers that are tried per document.
const SERVERS: usize = 3;

/// Header with the scheme that visitors of the site use. Without this header, an application might
/// redirect the request to the scheme that visitors use.
const SCHEME: HeaderName = HeaderName::from_static("x-forwarded-proto");

/// Reads the documents of one site within a time limit. Blocks the thread.
#[derive(Debug)]
pub(super) struct SiteDocuments {
    place: DocumentSource,
    pub(super) hosts: OwnHosts,
    end: Instant,
    runtime: Handle,
}

#[derive(Debug)]
enum DocumentSource {
    Upstreams(Fetcher, Vec<FetchUrl>),
    Folder(StaticFiles),
}

impl SiteDocuments {
    /// Creates a reader for the documents of a site. Returns `None` if the site has no backend in
    /// this process, or if documents cannot be fetched from its upstreams. Documents cannot be
    /// fetched from a Unix socket, a server with a certificate for another name, or a server that
    /// is configured for HTTP/2 only.
    pub(super) fn of(
        site: &SiteConfig,
        fetcher: impl FnOnce() -> io::Result<Fetcher>,
        runtime: Handle,
    ) -> Result<Option<Self>, String> {
        let place = match &site.backend {
            None => return Ok(None),
            Some(Backend::Files(files)) => DocumentSource::Folder(files.clone()),
            Some(Backend::Upstreams(upstreams)) => {
                let servers = upstreams.endpoints.iter().filter_map(|endpoint| endpoint.to_string().parse().ok());
                let servers: Vec<FetchUrl> = servers.take(SERVERS).collect();
                let can_fetch = upstreams.versions != HttpVersions::Http2;
                if servers.is_empty() || !can_fetch || upstreams.tls.server_name.is_some() {
                    return Ok(None);
                }
                let fetcher = fetcher_trusting(upstreams.tls.trust.as_ref(), fetcher);
                DocumentSource::Upstreams(fetcher.map_err(|error| error.to_string())?, servers)
            }
        };
        let hosts = OwnHosts::of(&site.hosts);
        Ok(Some(Self { place, hosts, end: Instant::now() + DOCUMENTS_TIMEOUT, runtime }))
    }

    /// Opens a document, whose content is read as it arrives. Returns `None` if the document does
    /// not exist (404, 410).
    pub(super) fn open(&self, url: &FetchUrl) -> Result<Option<Box<dyn Read + '_>>, String> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            if !self.hosts.has(url.authority().as_bytes()) {
                return Err(format!("{url} is on another host"));
            }
            let (fetcher, servers) = match &self.place {
                DocumentSource::Folder(files) => {
                    let file = open_file(files, &url)?;
                    return Ok(file.map(|file| Box::new(DeadlineFile { file, end: self.end }) as Box<dyn Read>));
                }
                DocumentSource::Upstreams(fetcher, servers) => (fetcher, servers),
            };
            let (answer, body) = self.answer(fetcher, servers, &url)?;
            match (answer.status, answer.headers.get(LOCATION)) {
                (StatusCode::OK, _) => {
                    let body = ArrivingBody { body, part: Bytes::new(), end: self.end, runtime: &self.runtime };
                    let body = decoder(&codings(&answer.headers), body, MAX_BYTES);
                    return body.map(Some).map_err(|error| format!("{url}: {error}"));
                }
                (StatusCode::NOT_FOUND | StatusCode::GONE, _) => return Ok(None),
                (status, Some(location)) if status.is_redirection() => {
                    url = url
                        .join(location.as_bytes())
                        .map_err(|error| format!("{url}: the redirect cannot be followed: {error}"))?;
                }
                (status, _) => return Err(format!("{url}: {status}")),
            }
        }
        Err(format!("{url}: there are more than {REDIRECTS} redirects"))
    }

    fn answer(
        &self,
        fetcher: &Fetcher,
        servers: &[FetchUrl],
        url: &FetchUrl,
    ) -> Result<(FetchAnswer, FetchBody), String> {
        let host = HeaderValue::try_from(url.authority())
            .map_err(|_| format!("{url}: the host cannot be used in a request"))?;
        let mut problem = String::new();
        for server in servers {
            let scheme = if url.is_https() { "https" } else { "http" };
            let mut request = FetchRequest::new(server.with_target(url.target().clone()));
            request.headers.insert(HOST, host.clone());
            request.headers.insert(SCHEME, HeaderValue::from_static(scheme));
            request.headers.insert(ACCEPT_ENCODING, HeaderValue::from_static("gzip"));
            // One byte more than the maximum may be read, to detect a document that is too large.
            request.most = MAX_BYTES as u64 + 1;
            let left = self.end.saturating_duration_since(Instant::now());
            let (fetching, body) = fetcher.stream(request);
            let fetched = self.runtime.block_on(async { timeout(left, fetching).await });
            let error = match fetched.map_err(|_| format!("{url}: {}", timeout_error()))? {
                Ok(answer) => return Ok((answer, body)),
                Err(error) => error,
            };
            problem = format!("{url}: {error}");
            if error.address.is_some() {
                break;
            }
        }
        Err(problem)
    }
}

struct ArrivingBody<'a> {
    body: FetchBody,
    part: Bytes,
    end: Instant,
    runtime: &'a Handle,
}

impl Read for ArrivingBody<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.part.is_empty() {
            // The deadline is checked for every part, so it also applies if a server never stops
            // sending, or if the reader is slow.
            let left = time_left(self.end)?;
            let part = self.runtime.block_on(async { timeout(left, self.body.part()).await });
            match part.map_err(|_| timeout_error())? {
                Some(part) => self.part = part.map_err(io::Error::other)?,
                None => return Ok(0),
            }
        }
        let read = buffer.len().min(self.part.len());
        self.part.copy_to_slice(&mut buffer[..read]);
        Ok(read)
    }
}

struct DeadlineFile {
    file: File,
    end: Instant,
}

impl Read for DeadlineFile {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        time_left(self.end)?;
        self.file.read(buffer)
    }
}

fn time_left(end: Instant) -> io::Result<Duration> {
    let left = end.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(timeout_error()) } else { Ok(left) }
}

fn timeout_error() -> io::Error {
    io::Error::new(
        ErrorKind::TimedOut,
        format!(
            "the document was not read in time: all documents of the site together must be read within {limit} s",
            limit = DOCUMENTS_TIMEOUT.as_secs()
        ),
    )
}

fn open_file(files: &StaticFiles, url: &FetchUrl) -> Result<Option<File>, String> {
    let Some(path) = path_below(url.target().path()) else { return Ok(None) };
    let is_hidden = |part: Component<'_>| part.as_os_str().as_encoded_bytes().starts_with(b".");
    if files.dotfiles == Dotfiles::Hide && path.components().any(is_hidden) {
        return Ok(None);
    }
    let path = files.root.join(path);
    match files::open(&path) {
        Ok((file, _)) => Ok(Some(file)),
        Err(error)
            if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory | ErrorKind::InvalidInput) =>
        {
            Ok(None)
        }
        Err(error) => Err(format!("{}: {error}", path.display())),
    }
}

/// Returns the relative file path for a URL path. Returns `None` for a path with dot segments or
/// escapes, which sitemaps do not need.
fn path_below(path: &str) -> Option<PathBuf> {
    let path = Path::new(path.strip_prefix('/')?);
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    let is_escaped = path.as_os_str().as_encoded_bytes().contains(&b'%');
    (is_plain && !is_escaped).then(|| path.to_owned())
}

/// Interval between reads of the sitemaps, unless a reload reads them earlier.
const EVERY: Duration = Duration::from_secs(3600);

/// Maximum time that one site may delay the updates of the other sites. This time is reached only
/// if a file system hangs.
const PATIENCE: Duration = Duration::from_secs(30);

impl Sites {
    /// Updates the protected pages of all sites that are due for an update. Updates one site after
    /// another, so that the pages of only one site are in memory twice.
    pub(crate) async fn refresh_pages(self: Arc<Self>, board: Option<Arc<Board>>) {
        let is_due = |site: &ServedSite| site.gate.is_on() && !site.has_directory() && site.gate.pages.take_due(EVERY);
        let due: Vec<usize> =
            self.iter().enumerate().filter(|(_, site)| is_due(site)).map(|(number, _)| number).collect();
        for number in due {
            let Some(pages) = self.iter().nth(number).map(|site| site.gate.pages.clone()) else { continue };
            // If an earlier read of the site hangs, no second thread is started.
            let Some(reading) = pages.begin_reading() else { continue };
            let (this, board, runtime) = (Arc::clone(&self), board.clone(), Handle::current());
            let refresh = move || {
                let _reading = reading;
                let Some(site) = this.iter().nth(number) else { return };
                if let Some(board) = board {
                    let requested = board.most_requested(&site.name, seconds(SystemTime::now()));
                    site.gate.pages.set_requested(requested.iter().map(Page::new).collect());
                }
                this.refresh_sitemaps(site, runtime);
            };
            // The result is ignored, because the panic hook has reported any panic.
            if timeout(PATIENCE, spawn_blocking(refresh)).await.is_err() {
                let why = format!(
                    "the sitemaps are not available yet: they are still being read after {} s",
                    PATIENCE.as_secs()
                );
                pages.note(NoteAbout::Sitemaps, Some(why));
            }
        }
    }

    /// Reads the sitemaps of a site. Blocks for at most [`DOCUMENTS_TIMEOUT`], unless a file system
    /// hangs.
    fn refresh_sitemaps(&self, site: &ServedSite, runtime: Handle) {
        let pages = &site.gate.pages;
        if !site.gate.reads_sitemaps() {
            return pages.drop_sitemaps();
        }
        let opener = self.opener();
        let documents = match SiteDocuments::of(&site.settings, || opener.fetcher(), runtime) {
            Ok(Some(documents)) => documents,
            Ok(None) => return,
            Err(why) => return pages.note(NoteAbout::Sitemaps, Some(format!("the sitemaps cannot be read: {why}"))),
        };
        let (named, usual) = sitemaps_of(site, &documents.hosts);
        let fetch = |source: &SitemapSource| match source {
            SitemapSource::Url(url) => documents.open(url),
            SitemapSource::File(_) => Ok(None),
        };
        let known = pages.sitemap_page_count();
        let mut walk = SitemapWalk::within(&documents.hosts, self.max_page_memory_of(site));
        walk.walk(named.into_iter().map(SitemapSource::Url), fetch);
        let (of_named, read_of_named) = (walk.problem(), walk.read);
        walk.walk(usual.map(SitemapSource::Url), fetch);
        // A site without sitemaps may respond to `/sitemap.xml` with another document, such as a
        // page of the application; this is not a problem.
        let has_usual = walk.read > read_of_named;
        let mut problem = if known > 0 || has_usual { walk.problem() } else { of_named };
        let (has_read, listed) = (walk.read > 0, walk.listed());
        let read = walk.into_pages();
        let mut unsaved = None;
        if (problem.is_none() && (has_read || known == 0)) || read.len() > known {
            if known > 0 || !read.is_empty() {
                unsaved = opener.saved_pages(&site.name).save(&read).err();
            }
            pages.set_sitemaps(read, listed);
        } else if problem.is_none() {
            problem = Some("the site no longer has a sitemap".to_owned());
        }
        let kept = match pages.sitemap_page_count() {
            0 => String::new(),
            count => format!("; the gate continues to watch the {count} pages that it knows"),
        };
        let unsaved = unsaved.map(|error| {
            format!(
                "the pages of the sitemaps were not saved, so a restart forgets them until they are read again: {error}"
            )
        });
        let unread = problem.map(|why| format!("the sitemaps cannot be read: {why}{kept}"));
        pages.note(NoteAbout::Sitemaps, unread.or(unsaved));
    }

    /// Returns how much memory the pages of a site's sitemaps may use, in bytes.
    fn max_page_memory_of(&self, site: &ServedSite) -> usize {
        let others = self.iter().filter(|other| !std::ptr::eq(*other, site));
        let others =
            others.filter(|other| other.gate.reads_sitemaps()).map(|other| other.gate.pages.memory_of_sitemaps());
        max_page_memory(self.iter().filter(|site| site.gate.reads_sitemaps()).count(), others)
    }
}

/// Returns the sitemaps on the site's own hosts that the live or the pending version lists, and the
/// URL of `/sitemap.xml`. The URL is `None` if one of the versions lists it, or if no host of the
/// site is known.
fn sitemaps_of(site: &ServedSite, hosts: &OwnHosts) -> (Vec<FetchUrl>, Option<FetchUrl>) {
    let mut named: Vec<FetchUrl> = Vec::new();
    if let Some(live) = site.robots.single_robots() {
        if let Some(content) = live.with(|snapshot| snapshot.content.clone()) {
            named.extend(hosts.sitemaps_of(content.robots()).0);
        }
        if let Some(pending) = live.status().pending.as_ref() {
            named.extend(hosts.sitemaps_of(&RobotsTxt::from(pending.bytes().clone())).0);
        }
    }
    let usual = match (named.first(), hosts.name.as_deref()) {
        (Some(named), _) => named.join(b"/sitemap.xml").ok(),
        (None, Some(host)) => format!("https://{host}/sitemap.xml").parse().ok(),
        (None, None) => None,
    };
    let usual = usual.filter(|usual| !named.contains(usual));
    (named, usual)
}
