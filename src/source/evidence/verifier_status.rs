//! What evidence is at hand, for people.

use std::sync::Arc;
use std::time::SystemTime;

use super::claim_paths::SuspectPath;
use crate::identity::{KeySet, RangeList};
use crate::source::follow::{DocumentOrigin, Published, PublishedStatus};

/// What evidence a [`Verifier`](super::Verifier) has at hand.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierStatus {
    /// The published lists, by URL.
    pub lists: Vec<ListStatus>,
    /// The key directories, by URL.
    pub directories: Vec<DirectoryStatus>,
    /// Copies of lists that no row of the registry names, a line each with the URL that is probably meant: they verify nothing.
    pub unnamed_lists: Vec<String>,
    /// The names of addresses; `None` where none are looked up.
    pub lookups: Option<LookupStatus>,
    /// How many results of signatures of requests are kept: at most 5,120.
    pub known_signatures: usize,
    /// The paths on which claims fail and are not refuted, because no crawler has shown that its address comes through.
    pub suspects: Vec<SuspectPath>,
    /// Why what is known of paths will not outlive this process, or why what an earlier one knew is lost: until a crawler is
    /// verified on a path, nothing is refuted there.
    pub paths_trouble: Option<Arc<str>>,
}

/// A published list.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ListStatus {
    /// Where it is published.
    pub url: String,
    /// Where the list at hand is from; `None` if there is none.
    pub origin: Option<DocumentOrigin>,
    /// How many prefixes it has.
    pub prefixes: usize,
    /// When its operator made it, as it says itself.
    pub created: Option<String>,
    /// When its server last said that it is right. Without that it verifies, and refutes no claim.
    pub confirmed: Option<SystemTime>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// A key directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectoryStatus {
    /// Where it is.
    pub url: String,
    /// How many keys it has; `None` if it was not fetched, because no request needed it or because that failed.
    pub keys: Option<usize>,
    /// When it was last fetched.
    pub confirmed: Option<SystemTime>,
    /// Why the last fetch brought nothing.
    pub trouble: Option<Arc<str>>,
}

/// The names of addresses.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub struct LookupStatus {
    /// How many outcomes are kept: at most 65,536.
    pub known: usize,
    /// How many addresses wait to be looked up: at most 256.
    pub waiting: usize,
}

impl ListStatus {
    pub(super) fn of(published: &Published<RangeList>) -> Self {
        let PublishedStatus { url, origin, confirmed, trouble, .. } = published.status();
        let list = published.current();
        let created = list.as_ref().and_then(|list| list.created.as_deref()).map(str::to_owned);
        Self { url, origin, prefixes: list.map_or(0, |list| list.prefixes), created, confirmed, trouble }
    }
}

impl DirectoryStatus {
    pub(super) fn of(published: &Published<KeySet>) -> Self {
        let PublishedStatus { url, confirmed, trouble, .. } = published.status();
        Self { url, keys: published.current().map(|keys| keys.len()), confirmed, trouble }
    }
}
