//! Planted faults that the simulation must find.

use super::super::harness::{first_failure, simulate};
use super::{Fleet, LENGTH, SCHEDULES};

/// A planted fault, next to which the protocol itself is correct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Planted {
    None,
    /// Accepting a version writes the whole document as it was read before.
    AcceptOverwritesDocument,
    /// A replica that takes an accept forgets that the site is off.
    AcceptEndsMark,
    /// Tombstones are not stored on disk.
    TombstonesForgotten,
    /// An accept is taken whatever its rev.
    AnyAccept,
    /// A replica counts as synced if its state is current, even with another digest.
    SyncedWithoutDigest,
    /// Requests about notices restart the timer of the reader.
    NoticesRestartTimer,
    /// A document with an unreadable field is not read at all.
    DamageHidesDocument,
    /// Off is confirmed even if the switch failed.
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

/// Checks that the simulation finds the planted fault, with a message that contains `why`.
fn found<const PLANT: usize>(why: &str) {
    let failure = simulate::<Fleet<PLANT>>(SCHEDULES * LENGTH as u64, LENGTH).failure;
    let failure = failure.unwrap_or_else(|| panic!("{:?} is not found", PLANTED[PLANT]));
    assert!(failure.why.contains(why) && failure.steps.len() <= 12, "{failure}");
    assert!(first_failure::<Fleet<0>>(&failure.settings, &failure.steps).is_none(), "{failure}");
    println!("{:?}: {failure}", PLANTED[PLANT]);
}

#[test]
fn faults_that_are_planted_are_found() {
    found::<1>("out of the document");
    found::<2>("which nobody lifted, and is not off");
    found::<3>("was lifted, and is off by it");
    found::<4>("the accept of");
    found::<5>("both are synced");
    found::<6>("is late");
    found::<7>("which nobody lifted, and is not off");
    found::<8>("confirms the mark");
}
