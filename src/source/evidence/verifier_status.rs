//! What evidence is at hand, for people, and what is missing, by its cause: one network that is down is one line, not one for
//! each list.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use super::claim_paths::SuspectPath;
use crate::identity::{KeySet, RangeList};
use crate::source::follow::{Document, DocumentOrigin, Published, PublishedStatus};

/// What evidence a [`Verifier`](super::Verifier) has at hand.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierStatus {
    /// The published lists, by URL.
    pub lists: Vec<EvidenceStatus>,
    /// The key directories, by URL.
    pub directories: Vec<EvidenceStatus>,
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

/// A published list, or a key directory.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EvidenceStatus {
    /// Where it is published.
    pub url: String,
    /// Where the one at hand is from; `None` if there is none.
    pub origin: Option<DocumentOrigin>,
    /// How many prefixes or keys it has; `None` if it is not at hand. A directory is fetched once a request needs it.
    pub entries: Option<usize>,
    /// When its operator made it, as a list says itself.
    pub created: Option<String>,
    /// When its server last said that it is right. Without that a list verifies, and refutes no claim.
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

impl EvidenceStatus {
    fn of<D: Document>(
        published: &Published<D>,
        entries: impl FnOnce(&D) -> usize,
        created: impl FnOnce(&D) -> Option<String>,
    ) -> Self {
        let PublishedStatus { url, origin, confirmed, trouble, .. } = published.status();
        let document = published.current();
        let (entries, created) = (document.as_deref().map(entries), document.as_deref().and_then(created));
        Self { url, origin, entries, created, confirmed, trouble }
    }

    pub(super) fn of_list(published: &Published<RangeList>) -> Self {
        Self::of(published, |list| list.prefixes, |list| list.created.as_deref().map(str::to_owned))
    }

    pub(super) fn of_directory(published: &Published<KeySet>) -> Self {
        Self::of(published, KeySet::len, |_| None)
    }
}

impl VerifierStatus {
    /// What is wrong with the evidence, a line for each cause with the number of lists and directories that have it and one of them; and
    /// that nothing can refute a claim at all, where that is so.
    pub fn troubles(&self) -> Vec<String> {
        self.by_cause().into_values().collect()
    }

    /// The same by cause: the text up to its details.
    pub(super) fn by_cause(&self) -> BTreeMap<String, String> {
        let lists = self.lists.iter().filter_map(|list| Some((&list.url, list.trouble.as_deref()?, true)));
        let directories = self.directories.iter().filter_map(|one| Some((&one.url, one.trouble.as_deref()?, false)));
        let mut causes: BTreeMap<&str, ([usize; 2], &str, &str)> = BTreeMap::new();
        for (url, trouble, is_list) in lists.chain(directories) {
            let cause = trouble.split_once(": ").map_or(trouble, |(cause, _)| cause);
            let (counts, ..) = causes.entry(cause).or_insert(([0; 2], url, trouble));
            counts[usize::from(!is_list)] += 1;
        }
        let line = |(cause, ([lists, directories], url, trouble)): (&str, ([usize; 2], &str, &str))| {
            let lists = counted(lists, self.lists.len(), "published list", "published lists");
            let directories = counted(directories, self.directories.len(), "key directory", "key directories");
            let of: Vec<_> = [lists, directories].into_iter().flatten().collect();
            (
                cause.to_owned(),
                format!("{} cannot be fetched, so they refute no claim, such as {url}: {trouble}", of.join(" and ")),
            )
        };
        let mut causes: BTreeMap<_, _> = causes.into_iter().map(line).collect();
        for url in &self.unnamed_lists {
            causes.insert(url.to_string(), url.to_string());
        }
        if !causes.is_empty() && self.lookups.is_none() && self.lists.iter().all(|list| list.confirmed.is_none()) {
            let text = "nothing can refute a claim: no list was confirmed by its server, and no names are looked up, so impostors pass";
            causes.insert("nothing".to_owned(), text.to_owned());
        }
        causes
    }
}

/// `41 of 43 published lists`.
fn counted(count: usize, of: usize, one: &str, several: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} of {of} {}", if of == 1 { one } else { several }))
}
