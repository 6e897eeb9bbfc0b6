//! The backend of a site: its upstreams, or a folder of static files.

use std::net::SocketAddr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::Spanned;

use crate::config::published::authorities;
use crate::config::{Fault, Faults, ListenerKind, Placed, RawListener, Span, tables, unplaced, words};
use crate::upstream::{Endpoint, HealthPolicy, HttpVersions, OriginsSettings, TlsSettings, check_server_name};

tables! {
    /// Settings of all upstreams of a site.
    RawUpstream {
        max_fails: u32 = HealthPolicy::default().max_fails,
        fail_window: Span = Span(HealthPolicy::default().fail_window),
        eject: Spanned<Span> = unplaced(Span(HealthPolicy::default().eject)),
        eject_max: Span = Span(HealthPolicy::default().eject_max),
        http2: Option<Spanned<bool>>,
        ca: Option<Spanned<PathBuf>>,
        server_name: Option<Spanned<String>>,
    }
}

words! {
    /// The response to requests for static files and folders whose names begin with a dot.
    Dotfiles {
        /// Responds with 404, except below `/.well-known/`.
        #[default]
        Hide = "hide",
        Serve = "serve",
    }
}

pub(super) struct RawBackend<'s> {
    pub(super) name: &'s Spanned<String>,
    pub(super) upstreams: Option<&'s [Spanned<String>]>,
    pub(super) upstream: &'s RawUpstream,
    pub(super) root: Option<&'s Spanned<PathBuf>>,
    pub(super) dotfiles: Option<&'s Spanned<Dotfiles>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Backend {
    Upstreams(OriginsSettings),
    Files(StaticFiles),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StaticFiles {
    pub(crate) root: PathBuf,
    pub(crate) dotfiles: Dotfiles,
}

pub(super) fn resolve(
    site: &RawBackend<'_>,
    listeners: &[RawListener],
    span: Range<usize>,
    folder: &Path,
) -> Result<Option<Backend>, Fault> {
    if let (Some(dotfiles), None) = (site.dotfiles, site.root) {
        return Err(dotfiles.fault("\"dotfiles\" requires \"root\", because it is for static files"));
    }
    match (site.upstreams, site.root) {
        (Some([]), None) => Err(Fault::new(
            span,
            "\"upstreams\" is empty: write at least one server, such as \"http://127.0.0.1:3000\"",
        )),
        (Some(upstreams), None) => {
            origins(upstreams, site.upstream, folder).map(|upstreams| Some(Backend::Upstreams(upstreams)))
        }
        (None, Some(root)) => {
            let path = folder.join(root.get_ref());
            if !path.is_dir() {
                let message = format!(
                    "{path:?} is not a folder: write the path of the folder with the static files",
                    path = path.display().to_string()
                );
                return Err(root.fault(message));
            }
            let dotfiles = site.dotfiles.map_or_else(Dotfiles::default, |dotfiles| *dotfiles.get_ref());
            Ok(Some(Backend::Files(StaticFiles { root: path, dotfiles })))
        }
        (Some(_), Some(root)) => {
            Err(root.fault("a site cannot have both \"upstreams\" and \"root\": remove one of the two keys"))
        }
        (None, None) if listeners.iter().all(|listener| listener.kind == ListenerKind::Decision) => Ok(None),
        (None, None) => {
            let message = format!(
                "the site {site:?} has no backend to forward requests to: write \"upstreams\" (servers) or \"root\" \
                 (a folder of static files)",
                site = site.name.get_ref()
            );
            Err(site.name.fault(message))
        }
    }
}

fn origins(upstreams: &[Spanned<String>], settings: &RawUpstream, folder: &Path) -> Result<OriginsSettings, Fault> {
    let endpoint = |url: &Spanned<String>| Endpoint::parse(url.get_ref(), folder).map_err(|why| url.fault(why));
    let endpoints = upstreams.iter().map(endpoint).collect::<Result<Vec<_>, _>>()?;
    let is_tls = endpoints.iter().any(Endpoint::is_tls);
    for span in [settings.ca.as_ref().map(Spanned::span), settings.server_name.as_ref().map(Spanned::span)] {
        if let (Some(span), false) = (span, is_tls) {
            return Err(Fault::new(span, "this key requires an upstream that begins with \"https://\""));
        }
    }
    let versions = match settings.http2.as_ref().map(Spanned::get_ref) {
        Some(true) => HttpVersions::Http2,
        Some(false) => HttpVersions::Http1,
        None => HttpVersions::Negotiated,
    };
    let trust = settings.ca.as_ref().map(|ca| authorities(ca, folder)).transpose()?;
    if let Some(name) = &settings.server_name {
        check_server_name(name.get_ref()).map_err(|why| name.fault(why))?;
    }
    // `eject` is checked last, because the function returns at the first error, and an error in
    // `eject` would hide other problems with the upstreams.
    if settings.eject.get_ref().0.is_zero() {
        return Err(settings.eject.fault("\"eject\" is zero: write max_fails = 0 to never eject an upstream"));
    }
    Ok(OriginsSettings {
        endpoints,
        versions,
        health: HealthPolicy {
            max_fails: settings.max_fails,
            fail_window: settings.fail_window.0,
            eject: settings.eject.get_ref().0,
            eject_max: settings.eject_max.0,
        },
        tls: TlsSettings { trust, server_name: settings.server_name.as_ref().map(|name| name.get_ref().clone()) },
    })
}

/// Adds an error for each unusable upstream of a site:
///
/// - a URL that cannot be parsed;
/// - a URL of a listener of the same process, because each request would be forwarded in a loop
///   until no connections are left;
/// - a URL of an admin listener that trusts this process as its proxy, because a client could then
///   send requests as an admin user.
pub(super) fn check_upstreams(
    upstreams: &[Spanned<String>],
    listeners: &[RawListener],
    proxy_trusting_admin: &[SocketAddr],
    folder: &Path,
    faults: &mut Faults,
) {
    for url in upstreams {
        // All upstreams are checked here, because resolving a site stops at the first error.
        let endpoint = Endpoint::parse(url.get_ref(), folder).map_err(|why| url.fault(why));
        let Some(endpoint) = faults.keep(endpoint) else { continue };
        let is_listener = |address: &SocketAddr| endpoint.is_listener(*address);
        if let Some(address) = listeners.iter().map(|listener| *listener.address.get_ref()).find(is_listener) {
            let message = format!(
                "the upstream {url:?} is the listener {address} of this config, so requests would loop: write the \
                 address of the origin server",
                url = url.get_ref()
            );
            faults.push(url.fault(message));
        }
        if let Some(address) = proxy_trusting_admin.iter().copied().find(is_listener) {
            let message = format!(
                "the upstream {url:?} is the address {address} of the admin interface, which trusts this machine as \
                 a proxy. Every client of the site could act as any [[admin.user]]: write the address of the origin \
                 server instead",
                url = url.get_ref()
            );
            faults.push(url.fault(message));
        }
    }
}
