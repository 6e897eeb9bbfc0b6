//! A reload: its cause and its outcome.

use std::fmt;
use std::sync::Arc;

use super::gate::Pending;
use super::rejection::{Rejection, RejectionKind};
use super::version_hash::VersionHash;

/// One attempt to bring a new version live: its cause and its outcome.
#[derive(Clone, Debug)]
pub struct Reload {
    pub(crate) cause: Cause,
    pub(crate) origin: Arc<str>,
    pub(crate) outcome: ReloadOutcome,
    /// Where the version comes from that was brought back at the start.
    pub(crate) restored: Option<Arc<str>>,
}

/// The cause of a reload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Cause {
    /// The site was opened.
    Start,
    /// The file system reported a change.
    Event,
    /// Polling found a change.
    Poll,
    /// A caller requested it.
    Request,
    /// A caller handed in a text.
    Publish,
    /// A version that waited was accepted.
    Accept,
    /// An operator rolled back.
    Rollback,
    /// A part that is appended has changed.
    Append,
    /// An operator turned the kill switch; only history entries have this cause.
    Switch,
}

/// The outcome of a reload.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ReloadOutcome {
    /// A new version is live.
    #[non_exhaustive]
    Published {
        /// Its hash.
        hash: VersionHash,
    },
    /// The source still holds the version that is live.
    #[non_exhaustive]
    Unchanged {
        /// Its hash.
        hash: VersionHash,
    },
    /// There is no robots.txt at its source: nothing is enforced, and the application behind answers for it.
    #[non_exhaustive]
    Absent {
        /// The HTTP status of the answer.
        status: u16,
    },
    /// The source's content was not taken.
    #[non_exhaustive]
    Kept {
        /// Why.
        rejection: Rejection,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
    /// The source's content waits to be accepted.
    #[non_exhaustive]
    Gated {
        /// The version that waits, with the reasons.
        pending: Pending,
        /// The version that stays live, if there is one.
        live: Option<VersionHash>,
    },
}

/// The kind of an outcome, in one word.
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
    /// Enforcement was turned on; only history entries have this outcome.
    SwitchedOn,
    /// Enforcement was turned off; likewise.
    SwitchedOff,
}

impl ReloadOutcome {
    /// The kind, in one word.
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
            Self::Publish => "publish",
            Self::Accept => "accept",
            Self::Rollback => "rollback",
            Self::Append => "append",
            Self::Switch => "switch",
        }
    }
}

impl Cause {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        let reads = [Self::Start, Self::Event, Self::Poll, Self::Request, Self::Publish];
        let all = reads.into_iter().chain([Self::Accept, Self::Rollback, Self::Append, Self::Switch]);
        all.into_iter().find(|cause| cause.as_str() == name)
    }
}

impl Reload {
    pub(crate) fn new(cause: Cause, origin: &Arc<str>, outcome: ReloadOutcome) -> Self {
        Self { cause, origin: origin.clone(), outcome, restored: None }
    }

    /// The cause.
    #[must_use]
    pub const fn cause(&self) -> Cause {
        self.cause
    }

    /// Where the bytes come from: a path, `inline`, or a URL.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// A reload that a fault in this crate cut short.
    pub(crate) fn interrupted(cause: Cause, origin: &Arc<str>, live: Option<VersionHash>) -> Self {
        let rejection = Rejection::new(RejectionKind::Interrupted, origin);
        Self::new(cause, origin, ReloadOutcome::Kept { rejection, live })
    }

    /// The outcome.
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
