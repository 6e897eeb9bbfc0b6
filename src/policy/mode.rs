//! The mode: what the layer does with disallowed requests.

use std::fmt;

/// How a request that robots.txt disallows is handled; the later ones are stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Mode {
    /// It passes, and nothing is recorded.
    Off,
    /// It is recorded and passes unchanged. The default.
    #[default]
    Observe,
    /// It passes with a field for the application behind.
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
