//! How many connections the process has descriptors for.
//!
//! A process that runs out of them cannot accept, cannot connect to an upstream and cannot read a robots.txt. So the
//! bound on connections never exceeds what the limit of open files allows, whatever the config says.

use crate::admin;
use crate::config::{self, Config};

/// Client and upstream, or client and file.
const A_CONNECTION: u64 = 2;

/// For robots.txt and registry being read again and for name lookups.
const SPARE: u64 = 32;

/// Idle connections to upstreams are counted up to this share of what is left: seldom are all of them open at once.
const IDLE_SHARE: u64 = 8;

/// Fewer than this is not serving.
const LEAST: u64 = 4;

/// The descriptors that the process may have, and has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Descriptors {
    /// The limit of open files; none where there is none that is known.
    limit: Option<u64>,
    /// Those that are open, once sites and listeners are.
    used: u64,
}

/// How many connections there may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ConnectionBound {
    pub(super) connections: usize,
    /// The reason in the log.
    pub(super) reason: String,
    /// Whether that is fewer than configured.
    pub(super) is_short: bool,
}

/// Asks for as many descriptors as the system lets this process have.
pub(super) fn raise() -> Result<(), String> {
    rlimit::increase_nofile_limit(u64::MAX)
        .map(drop)
        .map_err(|error| format!("the limit of open files cannot be raised: {error}"))
}

impl Descriptors {
    /// Counts what is open now.
    pub(super) fn count() -> Self {
        let limit = rlimit::Resource::NOFILE.get_soft().ok();
        let open = std::fs::read_dir("/proc/self/fd").or_else(|_| std::fs::read_dir("/dev/fd"));
        Self { limit, used: open.map_or(0, |open| open.count() as u64) }
    }

    /// The connections of a config, as far as there are descriptors for them.
    pub(super) fn bound(self, config: &Config) -> Result<ConnectionBound, String> {
        let is_proxied = |site: &&config::SiteConfig| matches!(site.backend, Some(config::Backend::Upstreams(..)));
        let proxied = config.sites.iter().filter(is_proxied).count();
        let idle = proxied.saturating_mul(config.upstream.idle_connections);
        // Those of the admin interface are to be had whatever clients do.
        let further = config.admin.as_ref().map_or(0, |admin| admin.listeners.len());
        let admin = admin::most_connections(1 + further) as u64;
        self.connections(config.connections, config.edge.connections, idle, admin)
    }

    /// The connections configured, or `usual` ones, as far as there are descriptors for them; `idle` ones to
    /// upstreams and `admin` ones of the admin interface may be open besides.
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
        let open_files = format!("the limit of open files is {limit}, of which {} are in use", self.used);
        if fit < LEAST {
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
        // Used, spare and idle ones first, then two a connection.
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
            assert!(message.starts_with(&format!("the limit of open files is {limit}, of which 36")), "{message}");
        }
        assert_eq!(bound(132, None, 0), Ok((4, false)));
    }
}
