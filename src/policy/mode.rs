//! How strictly disallowed requests are dealt with.

use std::fmt;

/// What is done about a request that robots.txt disallows; the later, the stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Mode {
    /// Nothing, and nothing is recorded.
    Off,
    /// It is recorded and passes unchanged. The default.
    #[default]
    Observe,
    /// It passes with a mark for the application behind.
    Tag,
    /// It is answered with a refusal.
    Refuse,
}

impl Mode {
    /// The mode's name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Observe => "observe",
            Self::Tag => "tag",
            Self::Refuse => "refuse",
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
