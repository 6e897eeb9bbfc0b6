//! What a reload came to.

use std::fmt;
use std::sync::Arc;

use super::gate::Pending;
use super::rejection::{Rejection, RejectionKind};
use super::version_hash::VersionHash;

/// One attempt to bring a new version live: what set it off and what came of it.
#[derive(Clone, Debug)]
pub struct Reload {
    pub(crate) cause: Cause,
    pub(crate) origin: Arc<str>,
    pub(crate) outcome: ReloadOutcome,
    /// What is known of the version that is live, where it was brought back at the start.
    pub(crate) restored: Option<Arc<str>>,
}

/// What set a reload off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Cause {
    /// The site was opened.
    Start,
    /// The file system told of a change.
    Event,
    /// A change was found by looking.
    Poll,
    /// Someone asked for it.
    Request,
    /// A version that waited was accepted.
    Accept,
    /// Someone asked for the version before.
    Rollback,
    /// Someone turned the kill switch; a cause of entries of the history alone.
    Switch,
}

/// What came of a reload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReloadOutcome {
    /// A new version is live.
    #[non_exhaustive]
    Published {
        /// Its hash.
        hash: VersionHash,
    },
    /// The version that was live still is what the source holds.
    #[non_exhaustive]
    Unchanged {
        /// Its hash.
        hash: VersionHash,
    },
    /// There is no robots.txt at its source: nothing is enforced, and the application behind answers for it.
    #[non_exhaustive]
    Absent {
        /// The status that says so.
        status: u16,
    },
    /// What the source holds was not taken.
    #[non_exhaustive]
    Kept {
        /// Why.
        rejection: Rejection,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
    /// What the source holds waits to be accepted.
    #[non_exhaustive]
    Gated {
        /// It, and why.
        pending: Pending,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
}

/// What came of a reload, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum ReloadOutcomeKind {
    /// [`ReloadOutcome::Published`].
    Published,
    /// [`ReloadOutcome::Unchanged`].
    Unchanged,
    /// [`ReloadOutcome::Absent`].
    Absent,
    /// [`ReloadOutcome::Kept`].
    Kept,
    /// [`ReloadOutcome::Gated`].
    Gated,
    /// Enforcement was turned on; an outcome of entries of the history alone.
    SwitchedOn,
    /// Enforcement was turned off; likewise.
    SwitchedOff,
}

impl ReloadOutcome {
    /// What came of it, in one word.
    #[must_use]
    pub const fn kind(&self) -> ReloadOutcomeKind {
        match self {
            Self::Published { .. } => ReloadOutcomeKind::Published,
            Self::Unchanged { .. } => ReloadOutcomeKind::Unchanged,
            Self::Absent { .. } => ReloadOutcomeKind::Absent,
            Self::Kept { .. } => ReloadOutcomeKind::Kept,
            Self::Gated { .. } => ReloadOutcomeKind::Gated,
        }
    }

    /// The version it is about: live now, or waiting.
    #[must_use]
    pub fn hash(&self) -> Option<VersionHash> {
        match self {
            Self::Published { hash } | Self::Unchanged { hash } => Some(*hash),
            Self::Absent { .. } | Self::Kept { .. } => None,
            Self::Gated { pending, .. } => Some(pending.hash()),
        }
    }
}

impl ReloadOutcomeKind {
    /// The outcome's name in kebab-case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Published => "published",
            Self::Unchanged => "unchanged",
            Self::Absent => "absent",
            Self::Kept => "kept",
            Self::Gated => "gated",
            Self::SwitchedOn => "switched-on",
            Self::SwitchedOff => "switched-off",
        }
    }

    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let reloads = [Self::Published, Self::Unchanged, Self::Absent, Self::Kept, Self::Gated];
        let all = reloads.into_iter().chain([Self::SwitchedOn, Self::SwitchedOff]);
        all.into_iter().find(|kind| kind.as_str() == name)
    }
}

impl Cause {
    /// The cause's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Event => "event",
            Self::Poll => "poll",
            Self::Request => "request",
            Self::Accept => "accept",
            Self::Rollback => "rollback",
            Self::Switch => "switch",
        }
    }
}

impl Cause {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let all = [Self::Start, Self::Event, Self::Poll, Self::Request, Self::Accept, Self::Rollback, Self::Switch];
        all.into_iter().find(|cause| cause.as_str() == name)
    }
}

impl Reload {
    pub(crate) fn new(cause: Cause, origin: &Arc<str>, outcome: ReloadOutcome) -> Self {
        Self { cause, origin: origin.clone(), outcome, restored: None }
    }

    /// What set it off.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Where the bytes come from: a path, `inline`, or a URL.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// One that a fault of ours cut short.
    pub(crate) fn interrupted(cause: Cause, origin: &Arc<str>, live: Option<VersionHash>) -> Self {
        let rejection = Rejection::new(RejectionKind::Interrupted, origin);
        Self::new(cause, origin, ReloadOutcome::Kept { rejection, live })
    }

    /// What came of it.
    #[must_use]
    pub const fn outcome(&self) -> &ReloadOutcome {
        &self.outcome
    }
}

impl fmt::Display for Reload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.outcome {
            ReloadOutcome::Published { hash } => write!(f, "{}: version {} is live", self.origin, hash.short()),
            ReloadOutcome::Unchanged { hash } => write!(f, "{}: version {} is live already", self.origin, hash.short()),
            ReloadOutcome::Absent { status } => {
                write!(f, "{}: the answer is {status}: there is no robots.txt, so nothing is enforced", self.origin)
            }
            ReloadOutcome::Kept { rejection, live: Some(hash) } => {
                write!(f, "{rejection}; version {} stays live", hash.short())
            }
            ReloadOutcome::Kept { rejection, live: None } => {
                write!(f, "{rejection}; nothing is live, so nothing is enforced")
            }
            ReloadOutcome::Gated { pending, live } => {
                write!(f, "{}: version {} waits to be accepted: {pending}; ", self.origin, pending.hash())?;
                match live {
                    Some(hash) => write!(f, "version {} stays live", hash.short()),
                    None => f.write_str("nothing is live, so nothing is enforced"),
                }
            }
        }?;
        match &self.restored {
            Some(restored) => write!(f, "; {restored}"),
            None => Ok(()),
        }
    }
}
