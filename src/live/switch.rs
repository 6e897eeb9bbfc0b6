//! The kill switch of many sites.

use crate::live::Mutex;
use std::sync::{Arc, Weak};

use robots_core::keywords;

/// The kill switch of many sites, which is on at first and ends with the process; a [`StateDir`](super::StateDir) has one that does
/// not. Cheap to clone.
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
    /// Held for a moment only: a reader never waits for the disk.
    joined: Mutex<JoinedSites>,
    /// Held while the switch is turned and written down, so that the last write is the last turn.
    turning: Mutex<()>,
}

/// A site's part of a switch for many.
pub(super) trait Switched: Send + Sync {
    /// Sets how a switch for many stands, by the order in which the site joined it. Waits for nothing.
    fn set_shared_switch(&self, place: u8, enforcement: Enforcement);

    /// Records that the switch `of` something was turned, and why, where no operator did it.
    fn record_switch(&self, enforcement: Enforcement, of: &str, why: Option<&str>);
}

#[derive(Debug, Default)]
struct JoinedSites {
    enforcement: Enforcement,
    /// Why it stands so, where no operator turned it.
    why: Option<String>,
    sites: Vec<(u8, Weak<dyn Switched>)>,
}

impl KillSwitch {
    pub(super) fn standing(enforcement: Enforcement, why: Option<String>) -> Self {
        let joined = Mutex::new(JoinedSites { enforcement, why, sites: Vec::new() });
        Self(Arc::new(Switch { joined, turning: Mutex::default() }))
    }

    /// How it stands.
    pub fn enforcement(&self) -> Enforcement {
        self.0.joined.lock().enforcement
    }

    /// Turns enforcement off, or on again, for every site that has it, at once and for those opened later. A site's own
    /// switch stays as it is.
    pub fn set_enforcement(&self, enforcement: Enforcement) {
        self.set_enforcement_because(enforcement, None);
    }

    /// As [`KillSwitch::set_enforcement`], with why that is so where no operator decided it, for the history of the sites.
    pub fn set_enforcement_because(&self, enforcement: Enforcement, why: Option<String>) {
        self.turn(enforcement, why, || {});
    }

    /// Turns it and writes that down. Every site has it before it is written.
    pub(super) fn turn<R>(&self, enforcement: Enforcement, why: Option<String>, write: impl FnOnce() -> R) -> R {
        let turning = self.0.turning.lock();
        // Kept until no lock is held: the last handle of a site writes its state down.
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
        drop(turning);
        if before != enforcement {
            sites.iter().for_each(|site| site.record_switch(enforcement, "every site", why.as_deref()));
        }
        written
    }

    /// Sets a site to this switch, now and at every turn. It joins so many others before. Returns why the switch stands as it does,
    /// where no operator turned it.
    pub(super) fn join(&self, place: u8, site: &Arc<impl Switched + 'static>) -> Option<String> {
        let mut joined = self.0.joined.lock();
        if joined.sites.len() == joined.sites.capacity() {
            // Before it grows: at every site, ten thousand would be looked through ten thousand times.
            joined.sites.retain(|(_, other)| other.strong_count() > 0);
        }
        let weak = Arc::downgrade(site);
        joined.sites.push((place, weak));
        site.set_shared_switch(place, joined.enforcement);
        joined.why.clone()
    }
}

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

/// The switch of one site and those for many: off is whatever any of them turns off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) site: Enforcement,
    /// A bit for each of those for many that is off.
    pub(super) shared_off: u8,
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

    pub(super) const fn together(self) -> Enforcement {
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

    /// A site whose last handle is dropped while the switch is turned.
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
    fn a_site_that_is_dropped_while_the_switch_is_turned_is_dropped_without_its_lock() {
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
