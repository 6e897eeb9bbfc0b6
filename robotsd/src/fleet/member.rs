//! A replica as a member of its fleet: what it knows of the document, and what it does with the one that it reads.
//!
//! It is a value without clock, files, store and randomness: ids, tags and times are arguments. Its owner reads the document and calls
//! [`seen`](Member::seen) (`None` where the store has none), sends what that returns as calls ([`call`](Member::call) with a new tag) to the
//! store, and keeps the member as JSON: [`Member`] is all that a restart needs, and one that starts without it is `Member::default()`.
//! [`turn_off`](Member::turn_off) and [`lift`](Member::lift) count at once, whether the store takes their writes or not; an
//! [`accept`](Member::accept) counts once it is read back. A write that got no answer may be sent again.
//!
//! - A mark that it holds keeps it off until it is lifted: here, or by a tombstone that it reads. Marks and tombstones that the store
//!   has lost are written back.
//! - An accept is taken only from a higher rev than the one it has. Anything else is not applied, named, and left to a person
//!   ([`restore`](Member::restore)).
//! - It takes nothing from a document of another epoch. One that never saw a document enforces nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::{Accept, Document, EVERY_SITE, Mark, Stamp, Write, WriteCall, digest, id_of, mark_name};
use crate::report::is_of;

/// What a replica knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// Of the first document that it saw.
    epoch: Option<String>,
    /// The highest rev that it has seen.
    rev: u64,
    /// Those that count, its own that are in no store too; by their names, as those that were lifted.
    marks: BTreeMap<String, Mark>,
    lifted: BTreeMap<String, Stamp>,
    accepts: BTreeMap<String, Accept>,
    /// The ids of those whose version was live here, by their sites: what is live later lacks nothing.
    reached: BTreeMap<String, String>,
}

/// How the document that was read last stands to what a replica knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Standing {
    /// None was read yet, or there is none and never was.
    #[default]
    Unknown,
    Current,
    /// Entries of the document are older than those that the replica has, or gone.
    WentBack(Vec<String>),
    /// It is of another epoch.
    Foreign(String),
    /// It cannot be understood.
    Rejected(String),
}

/// What comes of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) standing: Standing,
    /// What has changed for this replica, for the log.
    pub(crate) changes: Vec<String>,
    /// What the store has lost.
    pub(crate) write_back: Vec<Write>,
}

impl Member {
    /// Whether it ever saw a document.
    pub(crate) const fn is_known(&self) -> bool {
        self.epoch.is_some()
    }

    pub(crate) fn epoch(&self) -> Option<&str> {
        self.epoch.as_deref()
    }

    /// Whether nothing is enforced at all.
    pub(crate) fn is_every_site_off(&self) -> bool {
        !self.is_known() || self.marks.values().any(|mark| mark.scope == EVERY_SITE)
    }

    /// Whether a site is off by a mark of its own.
    pub(crate) fn is_marked(&self, site: &str) -> bool {
        self.marks.values().any(|mark| is_of(&mark.scope, site))
    }

    /// The marks that count, by their names.
    pub(crate) const fn marks(&self) -> &BTreeMap<String, Mark> {
        &self.marks
    }

    /// The id of the mark that was lifted last.
    pub(crate) fn lifted_last(&self) -> Option<&str> {
        self.lifted.iter().max_by_key(|(_, stamp)| stamp.at).map(|(name, _)| id_of(name))
    }

    /// The versions that may go live, by their sites.
    pub(crate) const fn accepts(&self) -> &BTreeMap<String, Accept> {
        &self.accepts
    }

    /// The accepts whose versions were never live here.
    pub(crate) fn lacking(&self) -> impl Iterator<Item = (&str, &Accept)> {
        let is_reached = |site: &String, accept: &Accept| self.reached.get(site) == Some(&accept.id);
        let lacking = self.accepts.iter().filter(move |(site, accept)| !is_reached(site, accept));
        lacking.map(|(site, accept)| (&**site, accept))
    }

    /// A version is live here, which meets an accept of it.
    pub(crate) fn serves(&mut self, site: &str, hash: &str) {
        let met = self.accepts.get(site).filter(|accept| accept.is_of(hash)).map(|accept| accept.id.clone());
        self.reached.extend(met.map(|id| (site.to_owned(), id)));
    }

    /// The same for replicas that have the same marks and accepts, and for their document.
    pub(crate) fn digest(&self) -> String {
        digest(&self.marks, &self.accepts)
    }

    /// A write as it is sent to the store; none before a document was seen.
    pub(crate) fn call(&self, write: Write, tag: &str) -> Option<WriteCall> {
        let epoch = self.epoch.clone()?;
        Some(WriteCall { epoch, floor: self.rev, tag: tag.to_owned(), write })
    }

    /// Reads the document, or that there is none.
    pub(crate) fn seen(&mut self, document: Option<&Document>) -> Seen {
        let mut seen = Seen::default();
        let none = Document::default();
        let read = match document {
            None if !self.is_known() => return seen,
            None => &none,
            Some(document) if self.epoch.as_ref().is_some_and(|epoch| *epoch != document.epoch) => {
                seen.standing = Standing::Foreign(document.epoch.clone());
                return seen;
            }
            Some(document) => document,
        };
        if let Some(document) = document
            && !self.is_known()
        {
            self.epoch = Some(document.epoch.clone());
            // Those of before its time are permissions: the others may be further by now.
            self.reached = document.accepts.iter().map(|(site, accept)| (site.clone(), accept.id.clone())).collect();
            seen.changes.push(format!("the document of the fleet is known: epoch {}", document.epoch));
        }
        self.rev = self.rev.max(read.rev);
        for (name, stamp) in &read.lifted {
            let lifted = self.marks.remove(name);
            self.lifted.entry(name.clone()).or_insert_with(|| stamp.clone());
            seen.changes.extend(lifted.map(|mark| changed("on", &mark.scope, name, stamp)));
        }
        for (name, mark) in read.marks.iter().filter(|(name, _)| !self.lifted.contains_key(*name)) {
            if self.marks.insert(name.clone(), mark.clone()).is_none() {
                seen.changes.push(changed("off", &mark.scope, name, &mark.stamp));
            }
        }
        let mut gone = Vec::new();
        for (site, accept) in &read.accepts {
            match self.accepts.get(site) {
                Some(own) if own.stamp.rev == accept.stamp.rev && own.id == accept.id => {}
                Some(own) if own.stamp.rev >= accept.stamp.rev => gone.push(format!("accept of site {site:?}")),
                _ => {
                    let Accept { hash, stamp, .. } = accept;
                    seen.changes.push(format!("version {hash} of site {site:?} is accepted by {}", stamp.by));
                    self.accepts.insert(site.clone(), accept.clone());
                }
            }
        }
        let lacks = |site: &&String| !read.accepts.contains_key(*site);
        gone.extend(self.accepts.keys().filter(lacks).map(|site| format!("accept of site {site:?}")));
        if document.is_none() {
            gone.insert(0, "the whole document".to_owned());
        }
        seen.write_back = self.lost(read);
        seen.standing = if gone.is_empty() { Standing::Current } else { Standing::WentBack(gone) };
        seen
    }

    /// The marks and tombstones that the store does not have.
    fn lost(&self, document: &Document) -> Vec<Write> {
        let is_lost = |name: &String| !document.marks.contains_key(name) && !document.lifted.contains_key(name);
        let marks = self.marks.iter().filter(|(name, _)| is_lost(name));
        let marks = marks.map(|(name, mark)| Write::Mark(name.clone(), mark.clone()));
        let lifted = self.lifted.iter().filter(|(name, _)| !document.lifted.contains_key(*name));
        let lifted = lifted.map(|(name, stamp)| Write::Lift(name.clone(), stamp.clone()));
        marks.chain(lifted).collect()
    }

    /// Turns a scope off, here and now. Nothing if the mark is lifted already: a call that comes late.
    pub(crate) fn turn_off(&mut self, id: &str, scope: &str, stamp: Stamp) -> Option<Write> {
        let name = mark_name(scope, id);
        if self.lifted.contains_key(&name) {
            return None;
        }
        let mark = Mark { scope: scope.to_owned(), stamp };
        self.marks.entry(name.clone()).or_insert_with(|| mark.clone());
        Some(Write::Mark(name, mark))
    }

    /// Lifts the mark of a name, whether it is known here or not.
    pub(crate) fn lift(&mut self, name: &str, stamp: Stamp) -> Write {
        self.marks.remove(name);
        self.lifted.entry(name.to_owned()).or_insert_with(|| stamp.clone());
        Write::Lift(name.to_owned(), stamp)
    }

    /// Accepts a version in place of the one that is accepted here; the store refuses it if it has another by now.
    pub(crate) fn accept(&self, site: &str, id: &str, hash: &str, stamp: Stamp) -> Write {
        let accept = Accept { id: id.to_owned(), hash: hash.to_owned(), stamp };
        Write::Accept(site.to_owned(), accept, rev_of(&self.accepts, site))
    }

    /// What brings the entries of this replica back that the document does not have. They get new revs, so every replica takes them.
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

/// The rev of a site's accept, 0 where there is none.
fn rev_of(accepts: &BTreeMap<String, Accept>, site: &str) -> u64 {
    accepts.get(site).map_or(0, |accept| accept.stamp.rev)
}

fn changed(to: &str, scope: &str, name: &str, Stamp { by, why, .. }: &Stamp) -> String {
    let of = if scope == EVERY_SITE { "every site".to_owned() } else { format!("site {scope:?}") };
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("the fleet turned enforcement of {of} {to} (mark {}, by {by}){why}", id_of(name))
}
