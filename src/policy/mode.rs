//! The mode: what the layer does with disallowed requests.

use crate::rules::keywords;

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

keywords!(Mode, "a mode", {
    Off = "off",
    Observe = "observe",
    Tag = "tag",
    Refuse = "refuse",
});
