//! Whether anything is enforced.

use std::fmt;

/// Whether anything is enforced.
///
/// Off, every request passes unjudged and unrecorded, whatever the policy says; `/robots.txt` is served as before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "lowercase"))]
pub enum Enforcement {
    /// The policy decides. The default.
    #[default]
    On,
    /// Everything passes.
    Off,
}

/// The switch of one site and the one of all sites: off is whatever either turns off.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Switches {
    pub(super) site: Enforcement,
    pub(super) all: Enforcement,
}

impl Enforcement {
    /// `on` or `off`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::On => "on",
            Self::Off => "off",
        }
    }
}

impl fmt::Display for Enforcement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Switches {
    pub(super) fn both(self) -> Enforcement {
        match self {
            Self { site: Enforcement::On, all: Enforcement::On } => Enforcement::On,
            _ => Enforcement::Off,
        }
    }
}
