//! The agents that groups are for, and those that no group is for.

use std::path::PathBuf;

use toml::Spanned;
use tower_robots::agent::Category;
use tower_robots::policy::{EmptyAgent, Policy, StarExceptions, StarScope, SuspectHuman};

use super::tables::unplaced_texts;
use super::{tables, words};

tables! {
    RawAgents {
        star_scope: StarScope,
        star_methods: Vec<Spanned<String>> = unplaced_texts(Policy::DEFAULT_STAR_METHODS),
        star_exempt: Vec<Category> = Policy::DEFAULT_STAR_EXEMPT.into(),
        star_exceptions: StarExceptions,
        star_empty: EmptyAgent,
        family: Family,
        ignore: Vec<Spanned<String>>,
        registry_extra: Option<Spanned<PathBuf>>,
        registry_url: Option<Spanned<String>>,
        registry_ca: Option<Spanned<PathBuf>>,
        registry_accept: Vec<Spanned<String>>,
        session_cookies: Vec<Spanned<String>>,
        suspect_human: SuspectHuman,
    }

    RawExempt {
        paths: Vec<Spanned<String>> = unplaced_texts(Policy::DEFAULT_EXEMPT_PATHS),
        cidrs: Vec<Spanned<String>>,
        cookies: Vec<Spanned<String>>,
    }
}

words! {
    /// Whether a crawler that no group names obeys the groups of its family.
    Family {
        #[default]
        Follow = "follow",
        Ignore = "ignore",
    }
}
