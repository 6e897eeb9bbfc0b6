//! The board: whether it is kept, the conclusions it may draw, and how long it remembers.

use std::num::NonZeroUsize;
use std::time::Duration;

use toml::Spanned;

use super::{Fault, Placed, Size, Span, bound, tables, unplaced};

tables! {
    RawBoard {
        enabled: bool = true,
        sees_all: bool,
        replicas: NonZeroUsize = NonZeroUsize::MIN,
        keep: Spanned<Span> = unplaced(Span::days(14)) => bound(
            Span::days(2)..=Span::days(365),
            "keep is from \"2days\" to \"365days\": write one such as \"14days\"",
        ),
        keep_days: Spanned<u64> = unplaced(400),
        size: Size = Size(1 << 30),
    }
}

/// Seconds.
const DAY: u64 = 86_400;

/// The most days that are kept: ten years and some.
const MOST_DAYS: u64 = 4000;

/// The settings of the board about crawlers.
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
    let days = *board.keep_days.get_ref();
    let keep_days = Duration::from_secs(days.saturating_mul(DAY));
    if days > MOST_DAYS || keep_days < keep {
        return Err(board
            .keep_days
            .fault("keep_days is a number of days, at least those of keep and at most 4000: write one such as 400"));
    }
    let &RawBoard { enabled, sees_all, replicas, size: Size(size), .. } = board;
    Ok(enabled.then_some(BoardConfig { sees_all, replicas, keep, keep_days, size: size as u64 }))
}
