//! The settings for verifying crawlers: `[identity]`.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use toml::Spanned;
use tower_robots::identity::{DirectoryUrl, RangeList, RequiredComponent};
use tower_robots::live::VersionHash;
use tower_robots::parts::VerifyLayer;
use tower_robots::policy::{IdentityNeeded, Impostors, Network};
use tower_robots::rules::ValueError;

use super::{Fault, Faults, Placed, Span, bound, tables, unplaced};
use crate::files;

tables! {
    RawIdentity {
        impostors: Spanned<Impostors> = unplaced(Impostors::default()),
        needed: IdentityNeeded,
        wait: Spanned<Span> = unplaced(Span(Duration::ZERO)) => bound(
            Span::NONE..=Span(VerifyLayer::MAX_WAIT),
            format!("\"wait\" is {{}}: write at most {}, because it delays requests", Span(VerifyLayer::MAX_WAIT)),
        ),
        rdns: bool = true,
        resolvers: Vec<Spanned<String>>,
        directories: Vec<Spanned<String>>,
        require_components: Vec<Spanned<String>>,
        list: Vec<RawListCopy>,
    }

    /// The operator's own copy of a published address list.
    RawListCopy {
        url: Spanned<String>,
        path: Spanned<PathBuf>,
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IdentityConfig {
    /// The action for impostors. A site never acts more strictly than its mode.
    pub(crate) impostors: Impostors,
    /// Maximum time that a request waits for the reverse DNS look-up of its client address.
    pub(crate) wait: Duration,
    pub(crate) rdns: bool,
    /// DNS resolvers. If the list is empty, the system's resolvers are used.
    pub(crate) resolvers: Vec<SocketAddr>,
    /// URLs of key directories, in addition to the key directories in the registry.
    pub(crate) directories: Vec<String>,
    pub(crate) require_components: Vec<RequiredComponent>,
    pub(crate) lists: Vec<OwnList>,
    /// The trusted proxies of all listeners, whose addresses do not identify clients.
    pub(crate) trusted_proxies: Vec<Network>,
}

/// The operator's own copy of a published address list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct OwnList {
    pub(crate) url: String,
    pub(crate) path: PathBuf,
    /// Hash of the file's content, so that a reload notices a changed file.
    hash: VersionHash,
}

const DNS_PORT: u16 = 53;

pub(super) fn resolve(
    file: &RawIdentity,
    trusted_proxies: Vec<Network>,
    folder: &Path,
    faults: &mut Faults,
) -> Option<IdentityConfig> {
    let resolvers = faults.keep_all(file.resolvers.iter().map(resolver));
    let directories = faults.keep_all(file.directories.iter().map(directory));
    let components = file.require_components.iter();
    let components =
        components.map(|text| text.get_ref().parse().map_err(|error: ValueError| text.fault(error.to_string())));
    let require_components = faults.keep_all(components);
    let lists = faults.keep_all(file.list.iter().map(|list| list_copy(list, folder)));
    Some(IdentityConfig {
        impostors: *file.impostors.get_ref(),
        wait: file.wait.get_ref().0,
        rdns: file.rdns,
        resolvers: resolvers?,
        directories: directories?,
        require_components: require_components?,
        lists: lists?,
        trusted_proxies,
    })
}

fn resolver(text: &Spanned<String>) -> Result<SocketAddr, Fault> {
    let written = text.get_ref();
    resolver_address(written).ok_or_else(|| {
        let message = format!(
            "{written:?} is not the address of a resolver: write one such as \"192.0.2.53\" or \"[2001:db8::53]:53\""
        );
        text.fault(message)
    })
}

/// Parses the address of a resolver, with or without a port.
pub(crate) fn resolver_address(text: &str) -> Option<SocketAddr> {
    let without_port = text.parse::<IpAddr>().map(|address| SocketAddr::new(address, DNS_PORT));
    without_port.ok().or_else(|| text.parse().ok())
}

fn directory(url: &Spanned<String>) -> Result<String, Fault> {
    let parsed = DirectoryUrl::parse(url.get_ref());
    parsed.map(|_| url.get_ref().clone()).map_err(|error| url.fault(error.to_string()))
}

/// Reads a local copy of a list while the config is resolved, so that errors in the copy are
/// reported as errors of the config. The server reads the file again when it starts to verify
/// crawlers.
fn list_copy(list: &RawListCopy, folder: &Path) -> Result<OwnList, Fault> {
    let url = list.url.get_ref();
    if !url.starts_with("https://") {
        let message = format!(
            "{url:?} is not the URL of a published list of addresses: write the \"https://\" URL that the registry \
             contains (`robotsd agents NAME --format json` shows it)"
        );
        return Err(list.url.fault(message));
    }
    let path = folder.join(list.path.get_ref());
    let shown = path.display();
    let bytes = files::read(&path).map_err(|error| list.path.fault(format!("{shown}: {error}")))?;
    match RangeList::parse(&bytes) {
        Ok(_) => Ok(OwnList { url: url.clone(), path, hash: VersionHash::of(&bytes) }),
        Err(error) => {
            let colon = if error.position.is_some() { ":" } else { ": " };
            Err(list.path.fault(format!("{shown}{colon}{error}")))
        }
    }
}
