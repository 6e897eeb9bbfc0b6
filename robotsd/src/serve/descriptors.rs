//! The number of connections that the process has file descriptors for.
//!
//! A process without free descriptors cannot accept connections, connect to an upstream or read a
//! robots.txt. The maximum number of connections therefore never exceeds what the limit of open
//! files allows, whatever the config contains.

use crate::admin;
use crate::config::{self, Config};

/// Descriptors per connection: client and upstream, or client and file.
const A_CONNECTION: u64 = 2;

/// Descriptors kept free for reading robots.txt files and the registry again, and for name lookups.
const SPARE: u64 = 32;

/// Idle connections to upstreams count for at most one part in this many of the free descriptors,
/// because they are rarely all open at once.
const IDLE_SHARE: u64 = 8;

/// Minimum number of connections. A process with fewer does not start.
const MIN_CONNECTIONS: u64 = 4;

/// The file descriptors of the process: the limit, and how many are in use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// The limit of open files; `None` if it is unknown.
    limit: Option<u64>,
    /// Number of open descriptors after sites and listeners are opened.
    used: u64,
}

/// The maximum number of connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionBound {
    pub(super) connections: usize,
    /// The reason, for the log.
    pub(super) reason: String,
    /// Whether that is less than the configured number.
    pub(super) is_short: bool,
}

/// Raises the limit of open files as far as the system allows.
pub(super) fn raise() -> Result<(), String> {
    rlimit::increase_nofile_limit(u64::MAX)
        .map(drop)
        .map_err(|error| format!("the limit of open files cannot be raised: {error}"))
}

impl Descriptors {
    /// Counts the descriptors that are open now.
    pub(super) fn count() -> Self {
        let limit = rlimit::Resource::NOFILE.get_soft().ok();
        let open = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
        Self { limit, used: open.map_or(0, |open| open.count() as u64) }
    }

    /// Returns the connections of a config, as far as there are descriptors for them.
    pub(super) fn bound(self, config: &Config) -> Result<ConnectionBound, String> {
        let is_proxied = |site: &&config::SiteConfig| matches!(site.backend, Some(config::Backend::Upstreams(..)));
        let proxied = config.sites.iter().filter(is_proxied).count();
        let idle = proxied.saturating_mul(config.upstream.idle_connections);
        // The connections of the admin interface must be available whatever clients do.
        let further = config.admin.as_ref().map_or(0, |admin| admin.listeners.len());
        let admin = admin::most_connections(1 + further) as u64;
        self.connections(config.connections, config.edge.connections, idle, admin)
    }

    /// Returns the configured number of connections, or `usual`, as far as there are descriptors
    /// for them. In addition, `idle` connections to upstreams and `admin` connections of the admin
    /// interface may be open.
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
            reason: format!("at most {connections} connections{reason}"),
            is_short: configured.is_some_and(|configured| connections < configured),
        };
        let Some(limit) = self.limit else { return Ok(bound(wanted, String::new())) };
        let left = limit.saturating_sub(self.used).saturating_sub(SPARE.saturating_add(admin));
        let idle = (idle as u64).min(left / IDLE_SHARE);
        let fit = (left - idle) / A_CONNECTION;
        let open_files = format!("the limit of open files is {limit}, and {} are in use", self.used);
        if fit < MIN_CONNECTIONS {
            return Err(format!("{open_files}: that leaves none for connections; raise it (LimitNOFILE=, ulimit -n)"));
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
        let admin = admin::most_connections(1) as u64;
        let bound = Descriptors { limit: Some(limit), used: 36 }.connections(configured, 16_384, idle, admin)?;
        assert!(bound.reason.starts_with(&format!("at most {} connections", bound.connections)));
        Ok((bound.connections, bound.is_short))
    }

    #[test]
    fn connections_never_take_more_descriptors_than_there_are() {
        // Used, spare and idle ones first, then two per connection.
        assert_eq!(bound(1_048_576, None, 128), Ok((16_384, false)));
        assert_eq!(bound(1124, None, 128), Ok((437, false)));
        assert_eq!(bound(1124, None, 1_000_000), Ok((437, false)));
        assert_eq!(bound(1124, None, 0), Ok((500, false)));
        assert_eq!(bound(1124, Some(500), 0), Ok((500, false)));
        assert_eq!(bound(1124, Some(501), 0), Ok((500, true)));
        assert_eq!(bound(u64::MAX, Some(1_000_000), 0), Ok((1_000_000, false)));
    }

    #[test]
    fn every_further_listener_of_the_admin_interface_has_descriptors() {
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
    fn too_few_to_serve_are_said() {
        for limit in [0, 50, 100, 131] {
            let message = bound(limit, None, 10).unwrap_err();
            assert!(message.starts_with(&format!("the limit of open files is {limit}, and 36")), "{message}");
        }
        assert_eq!(bound(132, None, 0), Ok((4, false)));
    }
}
