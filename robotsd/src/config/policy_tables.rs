//! The tables `[agents]`, `[exempt]`, `[check]` and `[gate]`, key by key, with every default.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use toml::Spanned;
use tower_robots::agent::Category;
use tower_robots::policy::{EmptyAgent, Policy, StarExceptions, StarScope, SuspectHuman};

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawAgents {
    pub(super) star_scope: StarScope,
    pub(super) star_methods: Vec<Spanned<String>>,
    pub(super) star_exempt: Vec<Category>,
    pub(super) star_exceptions: StarExceptions,
    pub(super) star_empty: EmptyAgent,
    pub(super) family: Family,
    pub(super) ignore: Vec<Spanned<String>>,
    pub(super) registry_extra: Option<Spanned<PathBuf>>,
    pub(super) registry_url: Option<Spanned<String>>,
    pub(super) registry_ca: Option<Spanned<PathBuf>>,
    pub(super) registry_accept: Vec<Spanned<String>>,
    pub(super) session_cookies: Vec<Spanned<String>>,
    pub(super) suspect_human: SuspectHuman,
}

impl Default for RawAgents {
    fn default() -> Self {
        Self {
            star_scope: StarScope::default(),
            star_methods: unplaced(Policy::DEFAULT_STAR_METHODS),
            star_exempt: Policy::DEFAULT_STAR_EXEMPT.into(),
            star_exceptions: StarExceptions::default(),
            star_empty: EmptyAgent::default(),
            family: Family::default(),
            ignore: Vec::new(),
            registry_extra: None,
            registry_url: None,
            registry_ca: None,
            registry_accept: Vec::new(),
            session_cookies: Vec::new(),
            suspect_human: SuspectHuman::default(),
        }
    }
}

/// Whether a crawler that no group names obeys the groups of its family.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Family {
    #[default]
    Follow,
    Ignore,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawExempt {
    pub(super) paths: Vec<Spanned<String>>,
    pub(super) cidrs: Vec<Spanned<String>>,
    pub(super) cookies: Vec<Spanned<String>>,
}

impl Default for RawExempt {
    fn default() -> Self {
        Self { paths: unplaced(Policy::DEFAULT_EXEMPT_PATHS), cidrs: Vec::new(), cookies: Vec::new() }
    }
}

/// A default has no place in the file.
fn unplaced<const N: usize>(texts: [&str; N]) -> Vec<Spanned<String>> {
    texts.into_iter().map(|text| Spanned::new(0..0, text.to_owned())).collect()
}

/// Lints by code: findings that are errors, and lints that are off.
#[derive(Debug, Default, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawCheck {
    pub(super) deny: Vec<Spanned<String>>,
    pub(super) allow: Vec<Spanned<String>>,
}

/// Conditions for a version to go live by itself.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawGate {
    pub(super) mode: GateMode,
    pub(super) refuse_findings: RefuseFindings,
    /// Whether the pages of a site's own sitemaps count.
    pub(super) sitemaps: bool,
    /// A list of pages that count, of every site.
    pub(super) urls: Option<Spanned<PathBuf>>,
    pub(super) must_allow: Vec<RawMustAllow>,
    pub(super) accept: Vec<Spanned<String>>,
}

impl Default for RawGate {
    fn default() -> Self {
        Self {
            mode: GateMode::default(),
            refuse_findings: RefuseFindings::default(),
            sitemaps: true,
            urls: None,
            must_allow: Vec::new(),
            accept: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum GateMode {
    #[default]
    On,
    Off,
}

/// The lowest severity of findings that hold a version back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RefuseFindings {
    #[default]
    None,
    Error,
    Warning,
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawMustAllow {
    pub(super) agents: Spanned<Vec<String>>,
    pub(super) paths: Spanned<Vec<String>>,
}
