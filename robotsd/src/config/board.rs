//! The board: whether it is kept, what it may conclude, and how long it remembers.

use std::num::NonZeroUsize;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::error::Fault;
use super::values::{Size, Span};

/// The shortest time that rows are kept: a day has to be whole.
const SHORTEST: Duration = Duration::from_secs(2 * 86_400);

/// Days of hourly rows that a process can be asked to keep.
const LONGEST: Duration = Duration::from_secs(400 * 86_400);

/// What is kept about crawlers, and shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoardConfig {
    /// Every read of robots.txt reaches this process or its replicas.
    pub(crate) sees_all: bool,
    /// Processes that serve the sites, this one included.
    pub(crate) replicas: NonZeroUsize,
    pub(crate) keep: Duration,
    /// Octets of all its files.
    pub(crate) size: u64,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawBoard {
    mode: BoardMode,
    sees_all: bool,
    replicas: NonZeroUsize,
    keep: Spanned<Span>,
    size: Size,
}

/// Whether there is a board.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
enum BoardMode {
    #[default]
    On,
    Off,
}

impl Default for RawBoard {
    fn default() -> Self {
        Self {
            mode: BoardMode::default(),
            sees_all: false,
            replicas: NonZeroUsize::MIN,
            keep: Spanned::new(0..0, Span::seconds(14 * 86_400)),
            size: Size(1 << 30),
        }
    }
}

/// `None` where it is off.
pub(super) fn resolve(board: &RawBoard) -> Result<Option<BoardConfig>, Fault> {
    let keep = board.keep.get_ref().0;
    if !(SHORTEST..=LONGEST).contains(&keep) {
        return Err(Fault::new(
            board.keep.span(),
            "keep is from \"2days\" to \"400days\": write one such as \"14days\"",
        ));
    }
    let &RawBoard { mode, sees_all, replicas, size: Size(size), .. } = board;
    Ok((mode == BoardMode::On).then_some(BoardConfig { sees_all, replicas, keep, size: size as u64 }))
}
