//! Whether anything is enforced.

use crate::rules::keywords;

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

keywords!(Enforcement, "a position of the kill switch", {
    On = "on",
    Off = "off",
});

impl Switches {
    pub(super) fn both(self) -> Enforcement {
        match self {
            Self { site: Enforcement::On, all: Enforcement::On } => Enforcement::On,
            _ => Enforcement::Off,
        }
    }
}
