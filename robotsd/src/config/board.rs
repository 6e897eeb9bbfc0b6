//! The board: whether it is kept, what it may conclude, and how long it remembers.

use std::num::NonZeroUsize;
use std::time::Duration;

use super::error::{Fault, Placed};
use super::tables::{OnOff, RawBoard};
use super::values::Size;

/// Seconds.
const DAY: u64 = 86_400;

/// The shortest time that rows are kept: a day has to be whole.
const SHORTEST: Duration = Duration::from_secs(2 * DAY);

/// The longest time for which hours are kept, as long as any time in the config.
const LONGEST: Duration = Duration::from_secs(365 * DAY);

/// The most days that are kept: ten years and some.
const MOST_DAYS: u64 = 4000;

/// What is kept about crawlers, and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardConfig {
    /// Every read of robots.txt reaches this process or its replicas.
    pub(crate) sees_all: bool,
    /// Processes that serve the sites, this one included.
    pub(crate) replicas: NonZeroUsize,
    /// How long hours are kept; then they are made days.
    pub(crate) keep: Duration,
    /// How long days are kept, at least as long as hours.
    pub(crate) keep_days: Duration,
    /// Octets of all its files.
    pub(crate) size: u64,
}

/// `None` where it is off.
pub(super) fn resolve(board: &RawBoard) -> Result<Option<BoardConfig>, Fault> {
    let keep = board.keep.get_ref().0;
    if !(SHORTEST..=LONGEST).contains(&keep) {
        return Err(board.keep.fault("keep is from \"2days\" to \"365days\": write one such as \"14days\""));
    }
    let days = *board.keep_days.get_ref();
    let keep_days = Duration::from_secs(days.saturating_mul(DAY));
    if days > MOST_DAYS || keep_days < keep {
        return Err(board
            .keep_days
            .fault("keep_days is a number of days, at least those of keep and at most 4000: write one such as 400"));
    }
    let &RawBoard { mode, sees_all, replicas, size: Size(size), .. } = board;
    Ok((mode == OnOff::On).then_some(BoardConfig { sees_all, replicas, keep, keep_days, size: size as u64 }))
}
