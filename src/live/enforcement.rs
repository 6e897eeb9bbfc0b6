//! The kill switch: of one site, and of many.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::handle::Shared;

/// Whether anything is enforced.
///
/// Off, every request passes unjudged and unrecorded, whatever the policy says; `/robots.txt` is served as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Enforcement {
    /// The policy decides. The default.
    #[default]
    On,
    /// Everything passes.
    Off,
}

/// The kill switch of many sites, which ends with the process; a [`StateDir`](super::StateDir) has one that does not.
/// Cheap to clone.
///
/// ```
/// use tower_robots::live::{Enforcement, KillSwitch, LiveRobots};
///
/// let switch = KillSwitch::new();
/// let live = LiveRobots::inline("User-agent: *\nDisallow: /\n").kill_switch(&switch).open()?;
/// switch.set_enforcement(Enforcement::Off); // for every site that has it, at once
/// assert_eq!(live.snapshot().enforcement(), Enforcement::Off);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Default)]
pub struct KillSwitch(Arc<Mutex<Joined>>);

#[derive(Default)]
struct Joined {
    enforcement: Enforcement,
    sites: Vec<Weak<Shared>>,
}

/// The switch of one site and the one of all sites: off is whatever either turns off.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Switches {
    pub(crate) site: Enforcement,
    pub(crate) all: Enforcement,
}

impl Enforcement {
    /// `on` or `off`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Switches {
    pub(super) fn both(self) -> Enforcement {
        match self {
            Self { site: Enforcement::On, all: Enforcement::On } => Enforcement::On,
            _ => Enforcement::Off,
        }
    }
}

impl KillSwitch {
    /// A switch that is on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn standing(enforcement: Enforcement) -> Self {
        Self(Arc::new(Mutex::new(Joined { enforcement, sites: Vec::new() })))
    }

    /// How it stands.
    #[must_use]
    pub fn enforcement(&self) -> Enforcement {
        self.joined().enforcement
    }

    /// Turns enforcement off, or on again, for every site that has it, at once and for those opened later. A site's own
    /// switch stays as it is.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.turn(enforcement, || {});
    }

    /// Turns it and writes that down, so that what is written last is what was set last.
    pub(super) fn turn<R>(&self, enforcement: Enforcement, write: impl FnOnce() -> R) -> R {
        let mut joined = self.joined();
        let before = std::mem::replace(&mut joined.enforcement, enforcement);
        joined.sites.retain(|site| site.upgrade().map(|site| site.set_switch_of_all(enforcement)).is_some());
        let written = write();
        let sites: Vec<_> = joined.sites.iter().filter_map(Weak::upgrade).collect();
        drop(joined);
        if before != enforcement {
            sites.iter().for_each(|site| site.remember_switch(enforcement, "every site"));
        }
        written
    }

    /// Tells a site how it stands, now and from now on.
    pub(crate) fn join(&self, site: &Arc<Shared>) {
        let mut joined = self.joined();
        if joined.sites.len() == joined.sites.capacity() {
            // Before it grows: at every site, ten thousand would be looked through ten thousand times.
            joined.sites.retain(|other| other.strong_count() > 0);
        }
        joined.sites.push(Arc::downgrade(site));
        site.set_switch_of_all(joined.enforcement);
    }

    fn joined(&self) -> MutexGuard<'_, Joined> {
        // Only whole values are put in, whatever panicked meanwhile.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KillSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KillSwitch").field(&self.enforcement()).finish()
    }
}
