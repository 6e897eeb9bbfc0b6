//! The source of a site's robots.txt: the keys that each kind of source requires or accepts.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use tower_robots::internals::Origin;
use tower_robots::internals::Schedule;
use tower_robots::live::LiveRobots;
use tower_robots::source::Directory;

use super::append::RawAppend;
use super::backend::{Backend, RawBackend};
use super::hooks::RawHook;
use crate::authorities::Authorities;
use crate::config::published::authorities;
use crate::config::{Fault, Placed, Span, bound, tables, unplaced, words};
use crate::upstream::Endpoint;

tables! {
    RawRobots {
        source: Option<Spanned<SourceKind>>,
        path: Option<Spanned<PathBuf>>,
        fallback: Option<Spanned<String>>,
        text: Option<Spanned<String>>,
        url: Option<Spanned<String>>,
        ca: Option<Spanned<PathBuf>>,
        host: Option<Spanned<String>>,
        refresh: Option<Spanned<Span>> => bound(Span::seconds(60)..=Span::days(1), "\"refresh\" is {}: write a duration from \"1m\" to \"24h\""),
        hold: Option<Spanned<Span>>,
        max_age: Spanned<Span> = unplaced(Span(LiveRobots::DEFAULT_MAX_AGE)) => bound(
            Span::NONE..=Span(LiveRobots::MAX_AGE_LIMIT),
            "\"max_age\" is {}: write at most \"24h\", because crawlers may not keep a robots.txt for longer",
        ),
        on_missing: OnMissing,
        expectations: Option<Spanned<PathBuf>>,
        /// File in version control that new versions are compared with.
        baseline: Option<Spanned<PathBuf>>,
        /// File with pages that must stay allowed, instead of `urls` in `[gate]`.
        urls: Option<Spanned<PathBuf>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        append: Vec<Spanned<RawAppend>>,
        #[serde(skip_serializing_if = "Vec::is_empty")]
        on_publish: Vec<Spanned<RawHook>>,
    }
}

words! {
    SourceKind {
        #[default]
        File = "file",
        Directory = "directory",
        Inline = "inline",
        Upstream = "upstream",
        Url = "url",
    }

    OnMissing {
        #[default]
        Unavailable = "503",
        Upstream = "upstream",
        Fail = "fail",
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RobotsSource {
    File(PathBuf),
    Inline(String),
    /// A folder with one file per host.
    Directory {
        path: PathBuf,
        /// Name of the file that is used for hosts without their own file.
        fallback: String,
    },
    Upstream {
        upstreams: Vec<String>,
        host: String,
        /// Host name that the certificates of the upstreams must contain, instead of the hosts in
        /// the upstreams' URLs.
        server_name: Option<String>,
        remote: Remote,
    },
    Url {
        url: String,
        remote: Remote,
    },
}

impl RobotsSource {
    /// Returns the path or URL of the robots.txt. `None` if the robots.txt is a string in the
    /// config, or if each host has its own file.
    pub(crate) fn place(&self) -> Option<String> {
        match self {
            // The path is made absolute, because it may be relative to the working directory of
            // robotsd.
            Self::File(path) => Some(std::path::absolute(path).unwrap_or_else(|_| path.clone()).display().to_string()),
            Self::Url { url, .. } => Some(url.clone()),
            Self::Inline(_) | Self::Directory { .. } | Self::Upstream { .. } => None,
        }
    }

    /// Returns the value of the key `source`.
    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::File(_) => "file",
            Self::Inline(_) => "inline",
            Self::Directory { .. } => "directory",
            Self::Upstream { .. } => "upstream",
            Self::Url { .. } => "url",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Remote {
    /// Fetch interval if the response has no max-age.
    pub(crate) refresh: Duration,
    /// How long the robots.txt must be missing before it counts as removed.
    pub(crate) hold: Duration,
    pub(crate) ca: Option<Authorities>,
}

pub(super) fn resolve(
    robots: &RawRobots,
    site: &RawBackend<'_>,
    hosts: &[Spanned<String>],
    backend: Option<&Backend>,
    folder: &Path,
) -> Result<RobotsSource, Fault> {
    let source = match (&robots.source, &robots.text, &robots.url) {
        (Some(source), _, _) => *source.get_ref(),
        (None, Some(_), _) => SourceKind::Inline,
        (None, None, Some(_)) => SourceKind::Url,
        (None, None, None) => SourceKind::File,
    };
    if let Some((key, span, required_source)) = stray(robots, source) {
        return Err(Fault::new(span, format!("{key:?} requires {required_source}")));
    }
    let span = robots.source.as_ref().map_or(0..0, Spanned::span);
    match source {
        SourceKind::File => match (&robots.path, backend) {
            (Some(path), _) if path.get_ref().as_os_str().is_empty() => {
                Err(path.fault("the path is empty: write the path of the robots.txt"))
            }
            (Some(path), _) => Ok(RobotsSource::File(folder.join(path.get_ref()))),
            (None, Some(Backend::Files(files))) => Ok(RobotsSource::File(files.root.join("robots.txt"))),
            (None, Some(Backend::Upstreams(_)) | None) => {
                let message = format!(
                    "the site {site:?} has no robots.txt: write path = \"…\" in [site.robots], or source = \
                     \"upstream\" to fetch the file from the upstreams",
                    site = site.name.get_ref()
                );
                Err(site.name.fault(message))
            }
        },
        SourceKind::Inline => match &robots.text {
            Some(text) if text.get_ref().trim().is_empty() => Err(text
                .fault("\"text\" is empty: write a comment such as \"# nothing is restricted\" to restrict nothing")),
            Some(text) => Ok(RobotsSource::Inline(text.get_ref().clone())),
            None => Err(Fault::new(span, "source = \"inline\" requires text = \"…\" with the robots.txt itself")),
        },
        SourceKind::Directory => directory(robots, span, folder),
        SourceKind::Upstream => upstream(robots, site, hosts, backend, span, folder),
        SourceKind::Url => url(robots, span, folder),
    }
}

fn directory(robots: &RawRobots, span: Range<usize>, folder: &Path) -> Result<RobotsSource, Fault> {
    let Some(path) = &robots.path else {
        let message = "source = \"directory\" requires path = \"…\" with the folder of the files";
        return Err(Fault::new(span, message));
    };
    let shown = folder.join(path.get_ref());
    if !shown.is_dir() {
        let message = format!(
            "{path:?} is not a folder: write the path of a folder that contains a robots.txt for each host, such as \
             example.com.txt",
            path = shown.display().to_string()
        );
        return Err(path.fault(message));
    }
    let fallback = match &robots.fallback {
        None => Directory::DEFAULT_FALLBACK.to_owned(),
        Some(name) if name.get_ref().is_empty() || name.get_ref().contains('/') => {
            return Err(name.fault(format!(
                "{name:?} is not the name of a file in the folder: write one such as \"default.txt\"",
                name = name.get_ref()
            )));
        }
        Some(name) => name.get_ref().clone(),
    };
    Ok(RobotsSource::Directory { path: shown, fallback })
}

fn upstream(
    robots: &RawRobots,
    site: &RawBackend<'_>,
    hosts: &[Spanned<String>],
    backend: Option<&Backend>,
    span: Range<usize>,
    folder: &Path,
) -> Result<RobotsSource, Fault> {
    let Some(Backend::Upstreams(settings)) = backend else {
        return Err(Fault::new(span, "source = \"upstream\" requires \"upstreams\", which the site does not have"));
    };
    let concrete = || hosts.iter().find(|host| !host.get_ref().contains('*'));
    let Some(written) = robots.host.as_ref().or_else(concrete) else {
        let message = "source = \"upstream\" needs a host for its requests: write host = \"example.com\" in \
            [site.robots], or a host without \"*\" in \"hosts\"";
        return Err(Fault::new(span, message));
    };
    let origin = Origin::of(&format!("http://{}", written.get_ref()));
    let Some(origin) = origin.filter(|_| !written.get_ref().contains(['/', '?', '#', '@', '*'])) else {
        return Err(written
            .fault(format!("{host:?} is not a host: write one such as \"example.com\"", host = written.get_ref())));
    };
    let host = match origin.port {
        80 => origin.host,
        port => format!("{}:{port}", origin.host),
    };
    if let Some(http2) = site.upstream.http2.as_ref().filter(|http2| *http2.get_ref())
        && !settings.endpoints.iter().all(Endpoint::is_tls)
    {
        let message = "source = \"upstream\" fetches robots.txt with HTTP/1.1, but http2 = true uses only HTTP/2: \
            remove \"http2\", or read robots.txt from a file with path = \"…\"";
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
        let message = "source = \"url\" requires url = \"https://…\"";
        return Err(Fault::new(span, message));
    };
    let _ = LiveRobots::url(url.get_ref()).map_err(|error| url.fault(error.to_string()))?;
    if let Some(ca) = robots.ca.as_ref().filter(|_| !url.get_ref().to_ascii_lowercase().starts_with("https:")) {
        return Err(ca.fault("\"ca\" requires a url that begins with \"https://\""));
    }
    Ok(RobotsSource::Url { url: url.get_ref().clone(), remote: remote(robots, robots.ca.as_ref(), folder)? })
}

fn remote(robots: &RawRobots, ca: Option<&Spanned<PathBuf>>, folder: &Path) -> Result<Remote, Fault> {
    let time = |written: &Option<Spanned<Span>>, usual| written.as_ref().map_or(usual, |time| time.get_ref().0);
    let usual = Schedule::default();
    let (refresh, hold) = (time(&robots.refresh, usual.every), time(&robots.hold, usual.hold));
    let ca = ca.map(|ca| authorities(ca, folder)).transpose()?;
    Ok(Remote { refresh, hold, ca })
}

/// Returns the first key that has no effect with this source, its position, and the sources that
/// accept the key.
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
