//! The settings of a site.

use std::sync::Arc;
use std::time::Duration;

use super::appendix::Appendix;
use super::clock::Clock;
use super::compile_cache::CompileCache;
use super::gate::Gate;
use super::kill_switch::KillSwitch;
use super::notices::ReloadListener;
use super::snapshot::WhenMissing;
use super::state::StateDir;
use crate::agent::Registry;
use crate::check;
use crate::policy::Policy;
use crate::rules::Reading;

/// How long others may cache `/robots.txt` unless a setting says otherwise.
pub const DEFAULT_MAX_AGE: Duration = Duration::from_secs(3600);

/// How long others may cache `/robots.txt` at most (RFC 9309, section 2.4).
pub const LONGEST_MAX_AGE: Duration = Duration::from_secs(24 * 3600);

/// The settings of a site, whatever its source. Their defaults are written here and nowhere else.
pub(crate) struct SiteSettings {
    pub(crate) policy: Policy,
    pub(crate) registry: Arc<Registry>,
    pub(crate) check: check::Options,
    pub(crate) gate: Gate,
    pub(crate) reading: Reading,
    pub(crate) max_age: Duration,
    pub(crate) grace: Duration,
    pub(crate) when_missing: WhenMissing,
    pub(crate) listeners: Vec<ReloadListener>,
    /// Where the site remembers what it accepted, and under which name.
    pub(crate) state: Option<(StateDir, String)>,
    pub(crate) switch: Option<KillSwitch>,
    pub(crate) compile_cache: CompileCache,
    /// The name under which its crawlers are counted.
    pub(crate) counted_as: Option<String>,
    pub(crate) clock: Clock,
    /// What is appended to every version of the source.
    pub(crate) appendix: Option<Appendix>,
}

impl Default for SiteSettings {
    fn default() -> Self {
        Self {
            policy: Policy::default(),
            registry: Registry::builtin().clone(),
            check: check::Options::default(),
            gate: Gate::open(),
            reading: Reading::default(),
            max_age: DEFAULT_MAX_AGE,
            grace: Duration::ZERO,
            when_missing: WhenMissing::default(),
            listeners: Vec::new(),
            state: None,
            switch: None,
            compile_cache: CompileCache::new(),
            counted_as: None,
            clock: Clock::default(),
            appendix: None,
        }
    }
}
