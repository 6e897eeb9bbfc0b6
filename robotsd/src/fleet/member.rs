//! A member: what a replica knows about the document of its fleet. This module defines how reading
//! a document changes a member.
//!
//! The methods of [`Member`] have no side effects, and get IDs, tags and times as arguments. The
//! owner of a member reads the document and calls [`seen`](Member::seen) (with `None` if the store
//! has no document). The owner then converts each returned write with [`call`](Member::call) and a
//! new tag, sends the results to the store, and saves the member as JSON. If the store does not
//! respond, the owner may send a write again. After a restart, the owner uses the saved member, or
//! `Member::default()` if no member was saved. [`turn_off`](Member::turn_off) and
//! [`lift`](Member::lift) change the member immediately, even if the store never receives their
//! writes. [`accept`](Member::accept) only returns a write: the member changes when it reads the
//! accepted version in the document.
//!
//! - An off switch that the member knows stays in force until it is lifted on this replica, or
//!   until the document contains a tombstone for it. If the store loses an off switch or a
//!   tombstone, the member writes it back. The ID of a lifted off switch cannot be used again:
//!   [`turn_off`](Member::turn_off) then returns an error and turns nothing off.
//! - In a damaged document, all off switches and tombstones take effect, and so does every other
//!   field that can be parsed. If a field cannot be parsed, the member keeps its own value of the
//!   entry.
//! - An accepted version is replaced only by a version with a higher rev. If the entry in the
//!   document is older than the member's own entry, or is missing, the member keeps its own entry
//!   and reports the problem. To write the member's entries to the store, the operator can use
//!   [`restore`](Member::restore).
//! - The member ignores documents whose epoch differs from the epoch of its first document. Until a
//!   member has read a document, nothing is enforced.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::{Accept, Document, EVERY_SITE, OffSwitch, Stamp, Write, WriteCall, digest, rev};
use crate::report::is_of;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// Epoch of the first document that the replica read; `None` if it has not read a document.
    epoch: Option<String>,
    /// Highest rev in the documents that the replica has read.
    #[serde(deserialize_with = "rev")]
    rev: u64,
    /// Off switches in force, by name, including those that are not in the store yet.
    marks: BTreeMap<String, OffSwitch>,
    lifted: BTreeMap<String, Stamp>,
    accepts: BTreeMap<String, Accept>,
    /// For each site, the ID of the accepted entry whose version has been live on this replica.
    /// This entry counts as fulfilled, even if another version goes live later.
    reached: BTreeMap<String, String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum DocumentState {
    /// No document has been read yet.
    #[default]
    Unknown,
    Current,
    /// Some of the replica's entries are missing from the document, or the document contains older
    /// entries instead. Contains descriptions of these entries.
    WentBack(Vec<String>),
    /// The document has this epoch, which is not the epoch of the fleet.
    Foreign(String),
    /// A later version of robotsd wrote the document, so it cannot be read. Contains the error.
    Rejected(String),
    /// The document has damaged fields. Contains descriptions of these fields, followed by
    /// descriptions of missing or older entries as in [`WentBack`](Self::WentBack).
    Damaged(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ReadOutcome {
    pub(crate) document_state: DocumentState,
    pub(crate) changes: Vec<String>,
    pub(crate) write_back: Vec<Write>,
}

impl Member {
    pub(crate) const fn is_known(&self) -> bool {
        self.epoch.is_some()
    }

    pub(crate) fn epoch(&self) -> Option<&str> {
        self.epoch.as_deref()
    }

    /// Reports whether nothing is enforced on any site, because an off switch for all sites is in
    /// force or no document was ever read.
    pub(crate) fn is_every_site_off(&self) -> bool {
        !self.is_known() || self.marks.values().any(|mark| mark.scope == EVERY_SITE)
    }

    pub(crate) fn is_site_off(&self, site: &str) -> bool {
        self.marks.values().any(|mark| is_of(&mark.scope, site))
    }

    pub(crate) const fn marks(&self) -> &BTreeMap<String, OffSwitch> {
        &self.marks
    }

    /// Returns the ID of the off switch that was lifted last.
    pub(crate) fn last_lifted_id(&self) -> Option<&str> {
        let (name, _) = self.lifted.iter().max_by_key(|(_, stamp)| stamp.at)?;
        name.rsplit(':').next()
    }

    pub(crate) const fn accepts(&self) -> &BTreeMap<String, Accept> {
        &self.accepts
    }

    /// Returns the accepted versions that have never been live on this replica.
    pub(crate) fn unfulfilled_accepts(&self) -> impl Iterator<Item = (&str, &Accept)> {
        let is_reached = |site: &String, accept: &Accept| self.reached.get(site) == Some(&accept.id);
        let unfulfilled_accepts = self.accepts.iter().filter(move |(site, accept)| !is_reached(site, accept));
        unfulfilled_accepts.map(|(site, accept)| (&**site, accept))
    }

    /// Records that a version is live on this replica. If the fleet has accepted this version for
    /// the site, its entry counts as fulfilled from now on.
    pub(crate) fn serves(&mut self, site: &str, hash: &str) {
        let met = self.accepts.get(site).filter(|accept| accept.is_for_hash(hash)).map(|accept| accept.id.clone());
        self.reached.extend(met.map(|id| (site.to_owned(), id)));
    }

    /// Returns a digest of the off switches and accepted versions. The digest is used to compare
    /// replicas with each other and with the document.
    pub(crate) fn digest(&self) -> String {
        digest(&self.marks, &self.accepts)
    }

    /// Converts a write to arguments of the store's script; `None` if no document was read yet.
    pub(crate) fn call(&self, write: Write, tag: &str) -> Option<WriteCall> {
        let epoch = self.epoch.clone()?;
        Some(WriteCall { epoch, floor: self.rev, tag: tag.to_owned(), write })
    }

    /// Applies a document that was read from the store; `None` means that the store has no
    /// document.
    pub(crate) fn seen(&mut self, document: Option<&Document>) -> ReadOutcome {
        let mut seen = ReadOutcome::default();
        let none = Document::default();
        let read = match document {
            None if !self.is_known() => return seen,
            None => &none,
            // Without a valid epoch, this may be the document of another fleet. A replica that has
            // never read a document therefore ignores this document.
            Some(document) if document.epoch.is_empty() && !self.is_known() => {
                seen.document_state = DocumentState::Damaged(document.damages().collect());
                return seen;
            }
            Some(document) if document.epoch.is_empty() => document,
            Some(document) if self.epoch.as_ref().is_some_and(|epoch| *epoch != document.epoch) => {
                seen.document_state = DocumentState::Foreign(document.epoch.clone());
                return seen;
            }
            Some(document) => document,
        };
        if let Some(document) = document
            && !self.is_known()
        {
            self.epoch = Some(document.epoch.clone());
            // Entries from before this replica joined the fleet are treated as fulfilled, because
            // other replicas may already serve later versions.
            self.reached = document.accepts.iter().map(|(site, accept)| (site.clone(), accept.id.clone())).collect();
            seen.changes
                .push(format!("this replica has read the fleet's document (epoch {epoch})", epoch = document.epoch));
        }
        self.rev = self.rev.max(read.rev);
        for (name, stamp) in &read.lifted {
            self.lifted.entry(name.clone()).or_insert_with(|| stamp.clone());
            let lifted = self.marks.remove(name);
            seen.changes.extend(lifted.map(|mark| change_message("on", &mark, stamp)));
        }
        for (name, mark) in read.marks.iter().filter(|(name, _)| !self.lifted.contains_key(*name)) {
            match self.marks.get_mut(name) {
                // The field is damaged. The replica keeps its own entry, which records who turned
                // enforcement off.
                Some(_) if read.damaged.contains_key(format!("off:{name}").as_bytes()) => {}
                Some(own) => own.clone_from(mark),
                None => {
                    self.marks.insert(name.clone(), mark.clone());
                    seen.changes.push(change_message("off", mark, &mark.stamp));
                }
            }
        }
        let gone =
            if read.epoch.is_empty() && document.is_some() { Vec::new() } else { self.adopt_accepts(read, &mut seen) };
        let whole = document.is_none().then(|| "the whole document".to_owned());
        let gone: Vec<_> = whole.into_iter().chain(gone).collect();
        seen.write_back = self.lost(read);
        seen.document_state = match (read.damaged.is_empty(), gone.is_empty()) {
            (true, true) => DocumentState::Current,
            (true, false) => DocumentState::WentBack(gone),
            (false, _) => {
                let gone = gone.iter().map(|entry| format!("this entry is older or missing in the store: {entry}"));
                DocumentState::Damaged(read.damages().chain(gone).collect())
            }
        };
        seen
    }

    /// Adopts the accepted versions in the document that are newer than the replica's accepted
    /// versions. Returns descriptions of the entries that are older in the document or missing from
    /// it. Damaged entries are not described.
    fn adopt_accepts(&mut self, read: &Document, seen: &mut ReadOutcome) -> Vec<String> {
        let mut gone = Vec::new();
        for (site, accept) in &read.accepts {
            match self.accepts.get(site) {
                Some(own) if own.stamp.rev == accept.stamp.rev && own.id == accept.id => {}
                Some(own) if own.stamp.rev >= accept.stamp.rev => gone.push(site),
                _ => {
                    let Accept { hash, stamp, .. } = accept;
                    seen.changes.push(format!(
                        "{user} accepted version {hash} of site {site:?} for the fleet",
                        user = stamp.by
                    ));
                    self.accepts.insert(site.clone(), accept.clone());
                }
            }
        }
        let is_gone = |site: &&String| {
            !read.accepts.contains_key(*site) && !read.damaged.contains_key(format!("accept:{site}").as_bytes())
        };
        gone.extend(self.accepts.keys().filter(is_gone));
        gone.into_iter().map(|site| format!("accept of site {site:?}")).collect()
    }

    fn lost(&self, document: &Document) -> Vec<Write> {
        let is_lost = |name: &String| !document.marks.contains_key(name) && !document.lifted.contains_key(name);
        let marks = self.marks.iter().filter(|(name, _)| is_lost(name));
        let marks = marks.map(|(_, mark)| Write::OffSwitch(mark.clone()));
        let lifted = self.lifted.iter().filter(|(name, _)| !document.lifted.contains_key(*name));
        let lifted = lifted.map(|(name, stamp)| Write::Lift(name.clone(), stamp.clone()));
        marks.chain(lifted).collect()
    }

    /// Turns enforcement off for a scope on this replica, and returns the write for the store.
    ///
    /// # Errors
    ///
    /// Returns an error, and turns nothing off, if the off switch was lifted before, for example
    /// because the request was delayed.
    pub(crate) fn turn_off(&mut self, id: &str, scope: &str, stamp: Stamp) -> Result<Write, String> {
        let mark = OffSwitch { scope: scope.to_owned(), id: id.to_owned(), stamp };
        if let Some(Stamp { by, .. }) = self.lifted.get(&mark.name()) {
            return Err(format!(
                "{by} has already removed the off switch {id}, so its id cannot be used again: choose a new id"
            ));
        }
        self.marks.entry(mark.name()).or_insert_with(|| mark.clone());
        Ok(Write::OffSwitch(mark))
    }

    /// Lifts the off switch with this name, and returns the write for the store. Works even if the
    /// replica does not know the off switch.
    pub(crate) fn lift(&mut self, name: &str, stamp: Stamp) -> Write {
        self.marks.remove(name);
        self.lifted.entry(name.to_owned()).or_insert_with(|| stamp.clone());
        Write::Lift(name.to_owned(), stamp)
    }

    /// Returns the write that accepts a version. The store executes this write only if the site's
    /// entry in the store is still the entry that this replica knows.
    pub(crate) fn accept(&self, site: &str, id: &str, hash: &str, stamp: Stamp) -> Write {
        let accept = Accept { id: id.to_owned(), hash: hash.to_owned(), stamp };
        Write::Accept(site.to_owned(), accept, rev_of(&self.accepts, site))
    }

    /// Returns the writes for the entries that are missing from the document. The entries get new
    /// revs, because replicas adopt only entries with a higher rev.
    pub(crate) fn restore(&self, document: Option<&Document>) -> Vec<Write> {
        let none = Document::default();
        let read = document.unwrap_or(&none);
        let is_back = |site: &str, own: &Accept| {
            read.accepts.get(site).is_some_and(|accept| accept.stamp.rev > own.stamp.rev || accept == own)
        };
        let accepts = self.accepts.iter().filter(|(site, own)| !is_back(site, own));
        let accepts = accepts.map(|(site, own)| Write::Accept(site.clone(), own.clone(), rev_of(&read.accepts, site)));
        [Write::Begin].into_iter().chain(self.lost(read)).chain(accepts).collect()
    }
}

/// Returns the rev of a site's accepted version, or 0 if the site has no accepted version.
fn rev_of(accepts: &BTreeMap<String, Accept>, site: &str) -> u64 {
    accepts.get(site).map_or(0, |accept| accept.stamp.rev)
}

fn change_message(to: &str, OffSwitch { scope, id, .. }: &OffSwitch, Stamp { by, why, .. }: &Stamp) -> String {
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("the fleet switched enforcement of {scope} {to} (off switch {id}, by {by}){why}", scope = of(scope))
}

fn of(scope: &str) -> String {
    if scope == EVERY_SITE { "every site".to_owned() } else { format!("site {scope:?}") }
}
