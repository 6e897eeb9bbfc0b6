//! The host that a request is for. A robots.txt has no host in it: it holds for the one that serves it.

use std::fmt;

use crate::commands::arguments::site::SelectedSite;
use crate::quoted_list::QuotedList;
use crate::render::printable;
use crate::target_url::TargetUrl;

/// The host that an answer holds for.
#[derive(Debug)]
pub(super) enum AssumedHost<'a> {
    /// The URL names it.
    OfUrl(&'a [u8]),
    /// The URL names it, and the site of the config does not serve it.
    Foreign { host: &'a [u8], site: &'a str, hosts: &'a [String] },
    /// A path names none: it is the host of the site.
    OfSite { host: &'a str, site: &'a str },
    /// A path names none, and there is no config, or its site has several hosts: the answer is the same for each.
    Any,
}

impl<'a> AssumedHost<'a> {
    pub(super) fn of(url: &TargetUrl<'a>, site: &'a SelectedSite) -> Self {
        let (name, hosts) = site.hosts().unwrap_or_default();
        match (url.host(), hosts) {
            (Some(host), _) if site.serves(url.is_https(), host) => Self::OfUrl(host),
            (Some(host), _) => Self::Foreign { host, site: name, hosts },
            (None, [host]) if !host.contains('*') => Self::OfSite { host, site: name },
            (None, _) => Self::Any,
        }
    }

    /// Its name, where it has one.
    pub(super) fn name(&self) -> Option<String> {
        match self {
            Self::OfUrl(host) | Self::Foreign { host, .. } => Some(printable(host)),
            Self::OfSite { host, .. } => Some((*host).to_owned()),
            Self::Any => None,
        }
    }
}

impl fmt::Display for AssumedHost<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OfUrl(host) => write!(f, "{}, as the URL says", printable(host)),
            Self::Foreign { host, site, hosts } => write!(
                f,
                "{}, as the URL says; the site {site:?} serves {}, so another robots.txt may hold there",
                printable(host),
                QuotedList::of(hosts.iter())
            ),
            Self::OfSite { host, site } => write!(f, "{host}, the host of the site {site:?}"),
            Self::Any => f.write_str("any that serves this robots.txt"),
        }
    }
}
