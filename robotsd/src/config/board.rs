//! The settings of the board of crawlers.

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
            "\"keep\" is {}: write a duration from \"2days\" to \"365days\"",
        ),
        keep_days: Spanned<u64> = unplaced(400),
        size: Size = Size(1 << 30),
    }
}

const DAY: u64 = 86_400;

/// Maximum of `keep_days`: almost eleven years.
const MAX_DAYS: u64 = 4000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardConfig {
    /// Whether every request for robots.txt reaches one of the processes that serve the sites.
    pub(crate) sees_all: bool,
    /// Number of processes that serve the sites, including this one.
    pub(crate) replicas: NonZeroUsize,
    /// How long hourly counts are kept. Afterwards, they are merged into daily counts.
    pub(crate) keep: Duration,
    /// How long daily counts are kept; at least [`keep`](Self::keep).
    pub(crate) keep_days: Duration,
    /// Maximum total size of the board's files, in bytes.
    pub(crate) size: u64,
}

pub(super) fn resolve(board: &RawBoard) -> Result<Option<BoardConfig>, Fault> {
    let keep = board.keep.get_ref().0;
    let days = *board.keep_days.get_ref();
    let keep_days = Duration::from_secs(days.saturating_mul(DAY));
    if days > MAX_DAYS || keep_days < keep {
        return Err(board.keep_days.fault(
            "\"keep_days\" must not be shorter than \"keep\", and not longer than 4000 days: write a number of days \
             such as 400",
        ));
    }
    let &RawBoard { enabled, sees_all, replicas, size: Size(size), .. } = board;
    Ok(enabled.then_some(BoardConfig { sees_all, replicas, keep, keep_days, size: size as u64 }))
}
