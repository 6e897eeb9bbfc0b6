//! Planted faults that the simulation must find.

use super::super::harness::{first_failure, simulate};
use super::{Fleet, LENGTH, SCHEDULES};

/// A fault that a test adds to the correct protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    None,
    /// Accepting a version overwrites the whole document with an earlier state.
    AcceptOverwritesDocument,
    /// A replica that reads an accepted version forgets that the site is off.
    AcceptEndsMark,
    /// Tombstones are not stored on disk.
    TombstonesForgotten,
    /// A replica adopts an accepted version even if its rev is lower than the current one.
    AnyAccept,
    /// A replica counts as synced if its state is current, even with another digest.
    SyncedWithoutDigest,
    /// Requests about notices restart the timer of the reader.
    NoticesRestartTimer,
    /// A document with a damaged field is ignored as a whole.
    DamageHidesDocument,
    /// A replica confirms an off switch although enforcement is still on.
    ConfirmedUnseen,
}

pub(super) const PLANTED: [Planted; 9] = [
    Planted::None,
    Planted::AcceptOverwritesDocument,
    Planted::AcceptEndsMark,
    Planted::TombstonesForgotten,
    Planted::AnyAccept,
    Planted::SyncedWithoutDigest,
    Planted::NoticesRestartTimer,
    Planted::DamageHidesDocument,
    Planted::ConfirmedUnseen,
];

/// Checks that the simulation finds the planted fault. The failure message must contain `why`.
fn found<const PLANT: usize>(why: &str) {
    let failure = simulate::<Fleet<PLANT>>(SCHEDULES * LENGTH as u64, LENGTH).failure;
    let failure = failure.unwrap_or_else(|| panic!("{:?} is not found", PLANTED[PLANT]));
    assert!(failure.why.contains(why) && failure.steps.len() <= 12, "{failure}");
    assert!(first_failure::<Fleet<0>>(&failure.settings, &failure.steps).is_none(), "{failure}");
    println!("{:?}: {failure}", PLANTED[PLANT]);
}

#[test]
fn the_simulation_finds_every_planted_fault() {
    found::<1>("from the document");
    found::<2>("which was not lifted");
    found::<3>("is off although it was shown that");
    found::<4>("was reset from");
    found::<5>("two synced replicas differ");
    found::<6>("is late");
    found::<7>("which was not lifted");
    found::<8>("confirms off switch");
}
