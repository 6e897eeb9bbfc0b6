use super::super::simulation::{first_failure, simulate, steps};
use super::*;

/// Number of steps per seed.
const LENGTH: usize = 300;

/// Number of seeds in a usual run. With `ROBOTSD_LONG`, the simulation runs a million steps.
const USUAL: u64 = 150;

#[test]
fn the_served_pending_and_reported_versions_match_the_model() {
    let usual = if std::env::var_os("ROBOTSD_LONG").is_some() { 1_000_000 } else { USUAL * LENGTH as u64 };
    simulate::<Publishing<0>>(steps(usual), LENGTH).expect_none("publishing");
}

/// Runs sequences of steps that once revealed a bug, reduced to a minimum.
#[test]
fn step_sequences_that_once_revealed_a_bug_pass() {
    let settings =
        Settings { gate: ModelGate::Comparing, has_grace: true, has_state: true, has_faults: false, has_jumps: true };
    let (poll, reload, kept) = (Step::Poll, Step::Reload { is_settled: true }, Folder::Kept);
    let schedules: [&[Step]; 6] = [
        // A rolled-back version was allowed to go live again, but had to be accepted again after
        // the next start, because this change was not written.
        &[
            Step::Hold(Held::Text(0)),
            poll,
            Step::Hold(Held::Text(3)),
            reload,
            Step::RollBack,
            Step::Hold(Held::Text(7)),
            poll,
            Step::AcceptWaiting,
            Step::Reopen,
            Step::Hold(Held::Text(1)),
            Step::Restart { is_killed: false, folder: kept },
            Step::Hold(Held::Text(3)),
            poll,
        ],
        // A process took the directory back. It did not notice that the other process had removed
        // the bytes of a version, so this accepted version was lost.
        &[
            Step::Hold(Held::Text(SHUT)),
            poll,
            Step::Write,
            Step::Upgrade,
            Step::Hold(Held::Text(0)),
            poll,
            Step::Write,
            Step::TakeBack { is_killed: true },
            Step::Accept(SHUT),
            Step::Restart { is_killed: true, folder: kept },
        ],
        // Setting the clock back prolonged the grace period by the same time.
        &[Step::Hold(Held::Text(1)), poll, Step::Pass(-554_525_764), Step::Ask(7)],
        // A version was dated in the future. Every start restarted its grace period, because the
        // corrected date was not written.
        &[Step::Hold(Held::Text(4)), poll, Step::Pass(-29_437_526), Step::Reopen, Step::Pass(235_805), Step::Upgrade],
        &[
            Step::Hold(Held::Text(0)),
            reload,
            Step::Pass(-719_659_756),
            Step::Reopen,
            Step::Pass(231_198),
            Step::Upgrade,
        ],
        &[
            Step::Hold(Held::Text(0)),
            poll,
            Step::Pass(-719_659_756),
            Step::Restart { is_killed: false, folder: kept },
            Step::Write,
            Step::Pass(231_198),
            Step::Restart { is_killed: true, folder: kept },
        ],
    ];
    for steps in schedules {
        assert_eq!(first_failure::<Publishing<0>>(&settings, steps), None, "{steps:?}");
    }
}

/// Checks that the simulation soon finds a planted bug and reduces it to a short sequence of steps.
#[track_caller]
fn expect_found<const FAULT: usize>() {
    let outcome = simulate::<Publishing<FAULT>>(FOUND_WITHIN * LENGTH as u64, LENGTH);
    let failure = outcome.failure.unwrap_or_else(|| panic!("{:?} is not found", PLANTED[FAULT]));
    println!("{:?}: {failure}", PLANTED[FAULT]);
    assert!(failure.steps.len() <= SHORT, "{failure}");
}

/// Maximum number of seeds until each bug is found.
const FOUND_WITHIN: u64 = 300;

/// Maximum number of steps of a reduced sequence.
const SHORT: usize = 10;

#[test]
fn the_simulation_finds_a_rollback_that_does_not_hold_the_version() {
    expect_found::<1>();
}

#[test]
fn the_simulation_finds_a_kill_switch_that_is_forgotten_at_a_restart() {
    expect_found::<2>();
}

#[test]
fn the_simulation_finds_an_accept_call_that_takes_any_hash() {
    expect_found::<3>();
}

#[test]
fn the_simulation_finds_that_a_half_written_file_is_published() {
    expect_found::<4>();
}
