//! The kill switch of many sites.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use super::enforcement::Enforcement;

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
pub struct KillSwitch(Arc<Switch>);

#[derive(Default)]
struct Switch {
    /// Held for a moment only: a reader never waits for the disk.
    joined: Mutex<JoinedSites>,
    /// Held while the switch is turned and written down, so that the last write is the last turn.
    turning: Mutex<()>,
}

/// What a switch of many turns.
pub(super) trait Switched: Send + Sync {
    /// Sets how the switch of all sites stands. Waits for nothing.
    fn set_switch_of_all(&self, enforcement: Enforcement);

    /// Records that the switch `of` something was turned.
    fn record_switch(&self, enforcement: Enforcement, of: &str);
}

#[derive(Default)]
struct JoinedSites {
    enforcement: Enforcement,
    sites: Vec<Weak<dyn Switched>>,
}

impl KillSwitch {
    /// A switch that is on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    pub(super) fn standing(enforcement: Enforcement) -> Self {
        let joined = Mutex::new(JoinedSites { enforcement, sites: Vec::new() });
        Self(Arc::new(Switch { joined, turning: Mutex::default() }))
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

    /// Turns it and writes that down. Every site has it before it is written.
    pub(super) fn turn<R>(&self, enforcement: Enforcement, write: impl FnOnce() -> R) -> R {
        let turning = self.0.turning.lock().unwrap_or_else(PoisonError::into_inner);
        // Kept until no lock is held: the last handle of a site writes its state down.
        let mut sites = Vec::new();
        let before = {
            let mut joined = self.joined();
            joined.sites.retain(|site| {
                let site = site.upgrade().inspect(|site| site.set_switch_of_all(enforcement));
                let is_open = site.is_some();
                sites.extend(site);
                is_open
            });
            std::mem::replace(&mut joined.enforcement, enforcement)
        };
        let written = write();
        drop(turning);
        if before != enforcement {
            sites.iter().for_each(|site| site.record_switch(enforcement, "every site"));
        }
        written
    }

    /// Sets a site to this switch, now and at every turn.
    pub(super) fn join(&self, site: &Arc<impl Switched + 'static>) {
        let mut joined = self.joined();
        if joined.sites.len() == joined.sites.capacity() {
            // Before it grows: at every site, ten thousand would be looked through ten thousand times.
            joined.sites.retain(|other| other.strong_count() > 0);
        }
        let weak = Arc::downgrade(site);
        joined.sites.push(weak);
        site.set_switch_of_all(joined.enforcement);
    }

    fn joined(&self) -> MutexGuard<'_, JoinedSites> {
        // Only whole values are put in, whatever panicked meanwhile.
        self.0.joined.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for KillSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("KillSwitch").field(&self.enforcement()).finish()
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
        fn set_switch_of_all(&self, enforcement: Enforcement) {
            if enforcement == Enforcement::Off {
                drop(self.own.lock().unwrap_or_else(PoisonError::into_inner).take());
            }
        }

        fn record_switch(&self, _: Enforcement, _: &str) {}
    }

    impl Drop for Leaving {
        fn drop(&mut self) {
            let _ = self.dropped.send(self.switch.enforcement());
        }
    }

    #[test]
    fn a_site_that_is_dropped_while_the_switch_is_turned_is_dropped_without_its_lock() {
        let switch = KillSwitch::new();
        let (dropped, receiver) = mpsc::channel();
        let site = Arc::new(Leaving { own: Mutex::default(), switch: switch.clone(), dropped });
        switch.join(&site);
        *site.own.lock().unwrap_or_else(PoisonError::into_inner) = Some(site.clone());
        drop(site);
        let turning = switch.clone();
        std::thread::spawn(move || turning.set_enforcement(Enforcement::Off));
        let seen = receiver.recv_timeout(Duration::from_secs(20)).expect("the drop waits for no lock");
        assert_eq!(seen, Enforcement::Off);
    }
}
