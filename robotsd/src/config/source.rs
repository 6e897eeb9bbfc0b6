//! The source of a site's robots.txt: which keys go with which source, their values, and what is appended to it.

use std::ops::{Range, RangeInclusive};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use toml::Spanned;
use tower_robots::live::LiveRobots;
use tower_robots::source::fetch::{FetchUrl, Schedule};
use tower_robots::source::{Directory, Origin};

use super::error::{Fault, Faults, Placed, parsed};
use super::settings::{AppendSettings, AppendSource, Backend, PublishedSettings, Remote, RobotsSource};
use super::tables::{RawAppend, RawConfig, RawRobots, RawSite, SourceKind};
use super::values::Span;
use crate::regular_file;
use crate::upstream::{Endpoint, Trust};

/// The interval of fetches, where the response has no max-age.
const REFRESH: RangeInclusive<Duration> = Duration::from_secs(60)..=DAY;

const DAY: Duration = Duration::from_secs(24 * 3600);

pub(super) fn resolve(site: &RawSite, backend: Option<&Backend>, folder: &Path) -> Result<RobotsSource, Fault> {
    let robots = &site.robots;
    let source = match (&robots.source, &robots.text, &robots.url) {
        (Some(source), _, _) => *source.get_ref(),
        (None, Some(_), _) => SourceKind::Inline,
        (None, None, Some(_)) => SourceKind::Url,
        (None, None, None) => SourceKind::File,
    };
    if let Some((key, span, goes_with)) = stray(robots, source) {
        return Err(Fault::new(span, format!("{key} goes with {goes_with}")));
    }
    let span = robots.source.as_ref().map_or(0..0, Spanned::span);
    match source {
        SourceKind::File => match (&robots.path, backend) {
            (Some(path), _) if path.get_ref().as_os_str().is_empty() => {
                Err(path.fault("the path of the robots.txt is empty"))
            }
            (Some(path), _) => Ok(RobotsSource::File(folder.join(path.get_ref()))),
            (None, Some(Backend::Files(files))) => Ok(RobotsSource::File(files.root.join("robots.txt"))),
            (None, Some(Backend::Upstreams(_)) | None) => {
                let message = format!(
                    "the site {:?} has no robots.txt: write [site.robots] with path = \"…\", or with \
                     source = \"upstream\" for the one its upstreams have",
                    site.name.get_ref()
                );
                Err(site.name.fault(message))
            }
        },
        SourceKind::Inline => match &robots.text {
            Some(text) if text.get_ref().trim().is_empty() => {
                Err(text.fault("the text is empty: to restrict nothing, write a comment, \"# nothing is restricted\""))
            }
            Some(text) => Ok(RobotsSource::Inline(text.get_ref().clone())),
            None => Err(Fault::new(span, "source = \"inline\" needs the robots.txt itself in text = \"…\"")),
        },
        SourceKind::Directory => directory(robots, span, folder),
        SourceKind::Upstream => upstream(site, backend, span, folder),
        SourceKind::Url => url(robots, span, folder),
    }
}

fn directory(robots: &RawRobots, span: Range<usize>, folder: &Path) -> Result<RobotsSource, Fault> {
    let Some(path) = &robots.path else {
        let message = "source = \"directory\" needs the folder of the files in path = \"…\"";
        return Err(Fault::new(span, message));
    };
    let shown = folder.join(path.get_ref());
    if !shown.is_dir() {
        let message = format!(
            "{:?} is not a folder: path names the folder that holds a robots.txt for each host, such as \
             example.com.txt",
            shown.display().to_string()
        );
        return Err(path.fault(message));
    }
    let fallback = match &robots.fallback {
        None => Directory::DEFAULT_FALLBACK.to_owned(),
        Some(name) if name.get_ref().is_empty() || name.get_ref().contains('/') => {
            return Err(name.fault(format!("{:?} is not the name of a file in the folder: write one", name.get_ref())));
        }
        Some(name) => name.get_ref().clone(),
    };
    Ok(RobotsSource::Directory { path: shown, fallback })
}

fn upstream(
    site: &RawSite,
    backend: Option<&Backend>,
    span: Range<usize>,
    folder: &Path,
) -> Result<RobotsSource, Fault> {
    let robots = &site.robots;
    let Some(Backend::Upstreams(settings)) = backend else {
        return Err(Fault::new(span, "source = \"upstream\" needs upstreams, and the site has none"));
    };
    let concrete = || site.hosts.iter().find(|host| !host.get_ref().contains('*'));
    let Some(written) = robots.host.as_ref().or_else(concrete) else {
        let message =
            "source = \"upstream\" needs a host to request: write host = \"example.com\", or a name without * in hosts";
        return Err(Fault::new(span, message));
    };
    let origin = Origin::of(&format!("http://{}", written.get_ref()));
    let Some(origin) = origin.filter(|_| !written.get_ref().contains(['/', '?', '#', '@', '*'])) else {
        return Err(written.fault(format!("{:?} is not a host: write one such as \"example.com\"", written.get_ref())));
    };
    let host = match origin.port() {
        80 => origin.host().to_owned(),
        port => format!("{}:{port}", origin.host()),
    };
    if let Some(http2) = site.upstream.http2.as_ref().filter(|http2| *http2.get_ref())
        && !settings.endpoints.iter().all(Endpoint::is_tls)
    {
        let message = "source = \"upstream\" fetches robots.txt in HTTP/1.1, which these upstreams do not speak: name a file, or leave \
                       http2 out";
        return Err(http2.fault(message));
    }
    let upstreams: Vec<String> = settings.endpoints.iter().map(Endpoint::to_string).collect();
    let asked = LiveRobots::upstream(&upstreams, &host);
    let _ = asked.map_err(|error| written.fault(error.to_string()))?;
    let server_name = settings.tls.server_name.clone();
    let remote = remote(robots, site.upstream.ca.as_ref(), folder)?;
    Ok(RobotsSource::Upstream { upstreams, host, server_name, remote })
}

fn url(robots: &RawRobots, span: Range<usize>, folder: &Path) -> Result<RobotsSource, Fault> {
    let Some(url) = &robots.url else {
        let message = "source = \"url\" needs url = \"https://…\"";
        return Err(Fault::new(span, message));
    };
    let _ = LiveRobots::url(url.get_ref()).map_err(|error| url.fault(error.to_string()))?;
    if let Some(ca) = robots.ca.as_ref().filter(|_| !url.get_ref().to_ascii_lowercase().starts_with("https:")) {
        return Err(ca.fault("this is for TLS, and the url does not begin with \"https://\""));
    }
    Ok(RobotsSource::Url { url: url.get_ref().clone(), remote: remote(robots, robots.ca.as_ref(), folder)? })
}

/// The certificate authorities of a file, read.
pub(super) fn trusted(ca: &Spanned<PathBuf>, folder: &Path) -> Result<Trust, Fault> {
    Trust::file(&folder.join(ca.get_ref())).map_err(|why| ca.fault(why))
}

/// The certificate authorities of a file, as PEM.
pub(super) fn authorities(ca: &Spanned<PathBuf>, folder: &Path) -> Result<Arc<[u8]>, Fault> {
    let path = folder.join(ca.get_ref());
    Trust::file(&path).map_err(|why| ca.fault(why))?;
    let cannot = |error| ca.fault(format!("{} cannot be read: {error}", path.display()));
    Ok(Arc::from(regular_file::read(&path).map_err(cannot)?))
}

fn remote(robots: &RawRobots, ca: Option<&Spanned<PathBuf>>, folder: &Path) -> Result<Remote, Fault> {
    let refresh = match &robots.refresh {
        None => Schedule::DEFAULT_EVERY,
        Some(refresh) if REFRESH.contains(&refresh.get_ref().0) => refresh.get_ref().0,
        Some(refresh) => {
            return Err(refresh.fault("refresh may be from \"1m\" to \"24h\""));
        }
    };
    let hold = robots.hold.as_ref().map_or(Schedule::DEFAULT_HOLD, |hold: &Spanned<Span>| hold.get_ref().0);
    let ca = ca.map(|ca| authorities(ca, folder)).transpose()?;
    Ok(Remote { refresh, hold, ca })
}

/// The first key that is written and has no effect for a source, its place, and what it goes with.
fn stray(robots: &RawRobots, source: SourceKind) -> Option<(&'static str, Range<usize>, &'static str)> {
    use SourceKind::{Directory, File, Inline, Upstream, Url};
    let (is_url, is_fetched) = ("source = \"url\"", "source = \"upstream\" or source = \"url\"");
    let is_file = "source = \"file\" or source = \"directory\"";
    let keys: [(_, _, &[SourceKind], _); 8] = [
        ("path", robots.path.as_ref().map(Spanned::span), &[File, Directory], is_file),
        ("fallback", robots.fallback.as_ref().map(Spanned::span), &[Directory], "source = \"directory\""),
        ("text", robots.text.as_ref().map(Spanned::span), &[Inline], "source = \"inline\""),
        ("url", robots.url.as_ref().map(Spanned::span), &[Url], is_url),
        ("ca", robots.ca.as_ref().map(Spanned::span), &[Url], is_url),
        ("host", robots.host.as_ref().map(Spanned::span), &[Upstream], "source = \"upstream\""),
        ("refresh", robots.refresh.as_ref().map(Spanned::span), &[Upstream, Url], is_fetched),
        ("hold", robots.hold.as_ref().map(Spanned::span), &[Upstream, Url], is_fetched),
    ];
    let is_stray = |with: &[SourceKind]| !with.contains(&source);
    keys.into_iter().find_map(|(key, span, with, of)| Some((key, span.filter(|_| is_stray(with))?, of)))
}

/// What is published at a URL, and kept in that folder of the state directory.
pub(super) fn published(
    file: &RawConfig,
    url: FetchUrl,
    ca: Option<&Spanned<PathBuf>>,
    kept_in: &str,
    folder: &Path,
) -> Result<PublishedSettings, Fault> {
    let ca = ca.map(|ca| authorities(ca, folder)).transpose()?;
    let saved_in = file.state_dir.as_ref().map(|state| folder.join(state.get_ref()).join(kept_in));
    Ok(PublishedSettings { url, ca, saved_in })
}

/// Parts of one site.
const MOST: usize = 16;

/// Characters of a name.
const MOST_NAME: usize = 80;

/// The folder of the state directory in which fetched parts are kept.
const FOLDER: &str = "fragments";

pub(super) fn resolve_appended(
    file: &RawConfig,
    site: &RawSite,
    folder: &Path,
    faults: &mut Faults,
) -> Option<Vec<AppendSettings>> {
    let written = &site.robots.append;
    if let Some(further) = written.get(MOST) {
        faults.push(further.fault(format!("a site has at most {MOST} parts to append: put some in one file")));
        return None;
    }
    let parts = faults.keep_all(written.iter().map(|part| resolve_part(file, part, folder)))?;
    for (at, part) in parts.iter().enumerate() {
        if parts[..at].iter().any(|before| before.source == part.source) {
            faults.push(written[at].fault(format!("{} is appended twice: leave one out", part.source)));
            return None;
        }
        if parts[..at].iter().any(|before| before.title == part.title) {
            let message = format!("another part is called {:?} too: give one of them a name", part.title);
            faults.push(written[at].fault(message));
            return None;
        }
    }
    Some(parts)
}

fn resolve_part(file: &RawConfig, part: &Spanned<RawAppend>, folder: &Path) -> Result<AppendSettings, Fault> {
    let RawAppend { path, url, name, ca } = part.get_ref();
    let source = match (path, url) {
        (Some(path), None) if path.get_ref().as_os_str().is_empty() => {
            return Err(path.fault("the path of the file to append is empty"));
        }
        (Some(path), None) => AppendSource::File(folder.join(path.get_ref())),
        (None, Some(written)) => {
            let url: FetchUrl = parsed(written)?;
            let is_secure = written.get_ref().to_ascii_lowercase().starts_with("https:");
            if let Some(ca) = ca.as_ref().filter(|_| !is_secure) {
                return Err(ca.fault("this is for TLS, and the url does not begin with \"https://\""));
            }
            AppendSource::Url(published(file, url, ca.as_ref(), FOLDER, folder)?)
        }
        (Some(_), Some(url)) => return Err(url.fault("a part has a path or a url, not both")),
        (None, None) => {
            return Err(part.fault("there is nothing to append: write path = \"…\" or url = \"https://…\""));
        }
    };
    if let (Some(ca), AppendSource::File(_)) = (ca, &source) {
        return Err(ca.fault("ca goes with a url"));
    }
    let title = match (name, &source) {
        (Some(name), _) => {
            let text = name.get_ref();
            let is_name = !text.trim().is_empty() && text.chars().count() <= MOST_NAME;
            if !is_name || text.chars().any(char::is_control) {
                let message = format!(
                    "{text:?} is no name: write up to {MOST_NAME} characters in one line, such as \"AI crawlers\""
                );
                return Err(name.fault(message));
            }
            text.clone()
        }
        // Readers of the robots.txt need not know the folder.
        (None, AppendSource::File(path)) => {
            path.file_name().map_or_else(|| "a file".to_owned(), |name| name.to_string_lossy().into_owned())
        }
        (None, AppendSource::Url(published)) => published.url.to_string(),
    };
    Ok(AppendSettings { title, source })
}
