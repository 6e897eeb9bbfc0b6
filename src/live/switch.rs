//! A kill switch that several sites share.

use crate::live::Mutex;
use std::sync::{Arc, Weak};

use robots_core::keywords;

/// A kill switch that several sites share. Initially, enforcement is on. The position is lost at a
/// restart, unless the switch belongs to a [`StateDir`](super::StateDir). Cloning is cheap.
///
/// ```
/// use tower_robots::live::{Enforcement, KillSwitch, LiveRobots};
///
/// let switch = KillSwitch::default();
/// let live = LiveRobots::text("User-agent: *\nDisallow: /\n").kill_switch(&switch).open()?;
/// switch.set_enforcement(Enforcement::Off); // for every site that has it, at once
/// assert_eq!(live.snapshot().enforcement(), Enforcement::Off);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct KillSwitch(Arc<Switch>);

#[derive(Debug, Default)]
struct Switch {
    /// The position of the switch, and the sites that use it. The mutex is never locked while the
    /// disk is accessed, so code that reads the position does not wait for the disk.
    joined: Mutex<JoinedSites>,
    /// This mutex is locked while the switch is changed and written, so that concurrent changes are
    /// written in order.
    change_lock: Mutex<()>,
}

pub(super) trait Switched: Send + Sync {
    /// Sets the position of a shared switch in this site. `place` is the index of this switch among
    /// the site's shared switches. Does not block.
    fn set_shared_switch(&self, place: u8, enforcement: Enforcement);

    /// Records a change of a switch in the site's history. `of` names the sites that the switch
    /// affects, for a message. `why` is the reason for the change, if a program made it.
    fn record_switch(&self, enforcement: Enforcement, of: &str, why: Option<&str>);
}

#[derive(Debug, Default)]
struct JoinedSites {
    enforcement: Enforcement,
    /// Why a program has set the position; `None` if an operator has set it.
    why: Option<String>,
    sites: Vec<(u8, Weak<dyn Switched>)>,
}

impl KillSwitch {
    pub(super) fn standing(enforcement: Enforcement, why: Option<String>) -> Self {
        let joined = Mutex::new(JoinedSites { enforcement, why, sites: Vec::new() });
        Self(Arc::new(Switch { joined, change_lock: Mutex::default() }))
    }

    /// Returns the position of the switch.
    pub fn enforcement(&self) -> Enforcement {
        self.0.joined.lock().enforcement
    }

    /// Immediately switches enforcement on or off for every open site that uses this switch. Sites
    /// that are opened later get the same position. The sites' own switches do not change.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.set_enforcement_because(enforcement, None);
    }

    /// Sets the position like [`KillSwitch::set_enforcement`], but for a change that a program
    /// makes instead of an operator. The reason `why` is added to the history of each site.
    pub fn set_enforcement_because(&self, enforcement: Enforcement, why: Option<String>) {
        self.change_position(enforcement, why, || {});
    }

    /// Changes the position of the switch in every site, and then calls `write`, which must save
    /// the position.
    pub(super) fn change_position<R>(
        &self,
        enforcement: Enforcement,
        why: Option<String>,
        write: impl FnOnce() -> R,
    ) -> R {
        let change_lock = self.0.change_lock.lock();
        // `sites` may contain the last reference to a site. Dropping this reference writes the
        // state of the site to disk, so `sites` is dropped only after both locks are released.
        let mut sites = Vec::new();
        let before = {
            let mut joined = self.0.joined.lock();
            joined.sites.retain(|(place, site)| {
                let site = site.upgrade().inspect(|site| site.set_shared_switch(*place, enforcement));
                let is_open = site.is_some();
                sites.extend(site);
                is_open
            });
            joined.why.clone_from(&why);
            std::mem::replace(&mut joined.enforcement, enforcement)
        };
        let written = write();
        drop(change_lock);
        if before != enforcement {
            sites.iter().for_each(|site| site.record_switch(enforcement, "every site", why.as_deref()));
        }
        written
    }

    /// Adds a site to this switch, and sets the current position in the site. Returns the reason
    /// for the switch's position; `None` if an operator has set it.
    pub(super) fn join(&self, place: u8, site: &Arc<impl Switched + 'static>) -> Option<String> {
        let mut joined = self.0.joined.lock();
        if joined.sites.len() == joined.sites.capacity() {
            // Dropped sites are removed only before the list grows, because the removal visits all
            // entries.
            joined.sites.retain(|(_, other)| other.strong_count() > 0);
        }
        let weak = Arc::downgrade(site);
        joined.sites.push((place, weak));
        site.set_shared_switch(place, joined.enforcement);
        joined.why.clone()
    }
}

/// The position of a kill switch: whether the rules are enforced.
///
/// If the position is `Off`, every request passes without being judged or recorded, regardless of
/// the policy. Requests for `/robots.txt` are still answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Enforcement {
    /// The policy decides how rules are enforced. This is the default.
    #[default]
    On,
    /// Every request passes without being judged.
    Off,
}

/// The positions of a site's own switch and of its shared switches.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) site: Enforcement,
    /// Bit mask of the shared switches that are off.
    pub(super) shared_off: u64,
}

keywords!(Enforcement, "a position of the kill switch", {
    On = "on",
    Off = "off",
});

impl Switches {
    pub(super) const fn set_shared(&mut self, place: u8, enforcement: Enforcement) {
        let bit = 1 << place;
        match enforcement {
            Enforcement::On => self.shared_off &= !bit,
            Enforcement::Off => self.shared_off |= bit,
        }
    }

    pub(super) const fn effective(self) -> Enforcement {
        match self {
            Self { site: Enforcement::On, shared_off: 0 } => Enforcement::On,
            _ => Enforcement::Off,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    struct Leaving {
        own: Mutex<Option<Arc<Self>>>,
        switch: KillSwitch,
        dropped: mpsc::Sender<Enforcement>,
    }

    impl Switched for Leaving {
        fn set_shared_switch(&self, _: u8, enforcement: Enforcement) {
            if enforcement == Enforcement::Off {
                drop(self.own.lock().take());
            }
        }

        fn record_switch(&self, _: Enforcement, _: &str, _: Option<&str>) {}
    }

    impl Drop for Leaving {
        fn drop(&mut self) {
            let _ = self.dropped.send(self.switch.enforcement());
        }
    }

    #[test]
    fn a_site_dropped_while_the_switch_is_set_is_dropped_without_the_lock_of_the_switch() {
        let switch = KillSwitch::default();
        let (dropped, receiver) = mpsc::channel();
        let site = Arc::new(Leaving { own: Mutex::default(), switch: switch.clone(), dropped });
        assert_eq!(switch.join(0, &site), None);
        *site.own.lock() = Some(site.clone());
        drop(site);
        let turning = switch.clone();
        std::thread::spawn(move || turning.set_enforcement(Enforcement::Off));
        let seen = receiver.recv_timeout(Duration::from_secs(60)).expect("the drop waits for no lock");
        assert_eq!(seen, Enforcement::Off);
    }
}
