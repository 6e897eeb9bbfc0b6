//! Determines how many connections the process can have with its file descriptors.
//!
//! A process without free descriptors cannot accept connections, connect to an upstream or read a
//! robots.txt. So the limit of open files also limits the number of connections, even if the config
//! allows more.

use crate::admin;
use crate::config::{self, Config};

/// Number of descriptors per connection: one for the client, and one for the upstream or file.
const DESCRIPTORS_PER_CONNECTION: u64 = 2;

/// Number of descriptors that are kept free for name lookups, and for reading the registry and
/// robots.txt files again.
const SPARE: u64 = 32;

/// At most `1 / IDLE_SHARE` of the free descriptors is reserved for idle upstream connections,
/// because these connections are rarely all open at the same time.
const IDLE_SHARE: u64 = 8;

/// Minimum number of connections. If fewer connections are possible, the process does not start.
const MIN_CONNECTIONS: u64 = 4;

#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// Limit of open files; `None` if it is unknown.
    limit: Option<u64>,
    /// Number of descriptors in use after the sites and listeners were opened.
    used: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionBound {
    pub(super) connections: usize,
    pub(super) reason: String,
    pub(super) is_reduced: bool,
}

pub(super) fn raise() -> Result<(), String> {
    rlimit::increase_nofile_limit(u64::MAX)
        .map(drop)
        .map_err(|error| format!("the limit of open files cannot be raised: {error}"))
}

impl Descriptors {
    pub(super) fn count() -> Self {
        let limit = rlimit::Resource::NOFILE.get_soft().ok();
        let open = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
        Self { limit, used: open.map_or(0, |open| open.count() as u64) }
    }

    pub(super) fn bound(self, config: &Config) -> Result<ConnectionBound, String> {
        let is_proxied = |site: &&config::SiteConfig| matches!(site.backend, Some(config::Backend::Upstreams(..)));
        let proxied = config.sites.iter().filter(is_proxied).count();
        let idle = proxied.saturating_mul(config.upstream.idle_connections);
        // Descriptors are reserved for the admin interface. Otherwise, clients of the sites could
        // use all descriptors, and the admin interface could not accept connections.
        let further = config.admin.as_ref().map_or(0, |admin| admin.listeners.len());
        let admin = admin::max_admin_connections(1 + further) as u64;
        self.connections(config.connections, config.edge.connections, idle, admin)
    }

    /// Returns the configured number of connections, or `usual` if none is configured. Returns a
    /// smaller number if there are not enough descriptors. Descriptors for `idle` upstream
    /// connections and for `admin` connections to the admin interface are reserved.
    fn connections(
        self,
        configured: Option<usize>,
        usual: usize,
        idle: usize,
        admin: u64,
    ) -> Result<ConnectionBound, String> {
        let wanted = configured.unwrap_or(usual);
        let bound = |connections, reason: String| ConnectionBound {
            connections,
            reason: format!("at most {connections} connections are accepted{reason}"),
            is_reduced: configured.is_some_and(|configured| connections < configured),
        };
        let Some(limit) = self.limit else { return Ok(bound(wanted, String::new())) };
        let left = limit.saturating_sub(self.used).saturating_sub(SPARE.saturating_add(admin));
        let idle = (idle as u64).min(left / IDLE_SHARE);
        let fit = (left - idle) / DESCRIPTORS_PER_CONNECTION;
        let open_files =
            format!("the limit of open files is {limit}, and {used} files are already open", used = self.used);
        if fit < MIN_CONNECTIONS {
            return Err(format!(
                "{open_files}, so robotsd could accept no connections: raise the limit (LimitNOFILE=, ulimit -n)"
            ));
        }
        let fit = usize::try_from(fit).unwrap_or(usize::MAX);
        Ok(match configured {
            _ if wanted <= fit => bound(wanted, format!("; {open_files}")),
            Some(configured) => bound(fit, format!(", not {configured} as configured: {open_files}")),
            None => bound(fit, format!(": {open_files}")),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bound(limit: u64, configured: Option<usize>, idle: usize) -> Result<(usize, bool), String> {
        let admin = admin::max_admin_connections(1) as u64;
        let bound = Descriptors { limit: Some(limit), used: 36 }.connections(configured, 16_384, idle, admin)?;
        assert!(bound.reason.starts_with(&format!("at most {} connections", bound.connections)));
        Ok((bound.connections, bound.is_reduced))
    }

    #[test]
    fn the_connection_limit_fits_the_remaining_file_descriptors() {
        // Used, spare and idle descriptors are subtracted. Each connection needs two of the
        // remaining descriptors.
        assert_eq!(bound(1_048_576, None, 128), Ok((16_384, false)));
        assert_eq!(bound(1124, None, 128), Ok((437, false)));
        assert_eq!(bound(1124, None, 1_000_000), Ok((437, false)));
        assert_eq!(bound(1124, None, 0), Ok((500, false)));
        assert_eq!(bound(1124, Some(500), 0), Ok((500, false)));
        assert_eq!(bound(1124, Some(501), 0), Ok((500, true)));
        assert_eq!(bound(u64::MAX, Some(1_000_000), 0), Ok((1_000_000, false)));
    }

    #[test]
    fn an_additional_admin_listener_reserves_file_descriptors() {
        let bound = |text: &str| {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("robotsd.toml");
            std::fs::write(&path, text).unwrap();
            let config = Config::load(&path).unwrap();
            Descriptors { limit: Some(1124), used: 36 }.bound(&config).unwrap().connections
        };
        let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";
        let further = "[[admin.listener]]\naddress = \"127.0.0.1:9146\"\n";
        assert_eq!(bound(config) - bound(&format!("{config}{further}")), 12);
    }

    #[test]
    fn a_file_limit_that_is_too_low_to_serve_is_an_error() {
        for limit in [0, 50, 100, 131] {
            let message = bound(limit, None, 10).unwrap_err();
            assert!(message.starts_with(&format!("the limit of open files is {limit}, and 36")), "{message}");
        }
        assert_eq!(bound(132, None, 0), Ok((4, false)));
    }
}
