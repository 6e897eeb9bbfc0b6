//! The table `[identity]`, key by key, with every default.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use tower_robots::policy::{IdentityNeeded, Impostors};

use super::values::Span;

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawIdentity {
    pub(super) impostors: Impostors,
    pub(super) needed: IdentityNeeded,
    pub(super) wait: Spanned<Span>,
    pub(super) rdns: bool,
    pub(super) resolvers: Vec<Spanned<String>>,
    pub(super) directories: Vec<Spanned<String>>,
    #[serde(rename = "list")]
    pub(super) lists: Vec<RawListCopy>,
}

impl Default for RawIdentity {
    fn default() -> Self {
        Self {
            impostors: Impostors::default(),
            needed: IdentityNeeded::default(),
            wait: Spanned::new(0..0, Span::seconds(0)),
            rdns: true,
            resolvers: Vec::new(),
            directories: Vec::new(),
            lists: Vec::new(),
        }
    }
}

/// The operator's copy of a published list.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawListCopy {
    pub(super) url: Spanned<String>,
    pub(super) path: Spanned<PathBuf>,
}
