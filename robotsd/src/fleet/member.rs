//! A replica as a member of its fleet: what it knows of the document, and what it does with the one that it reads.
//!
//! It is a value without clock, files, store and randomness: ids, tags and times are arguments. Its owner reads the document and calls
//! [`seen`](Member::seen) (`None` where the store has none), sends what that returns as calls ([`call`](Member::call) with a new tag) to the
//! store, and keeps the member as JSON: [`Member`] is all that a restart needs, and one that starts without it is `Member::default()`.
//! [`turn_off`](Member::turn_off) and [`lift`](Member::lift) count at once, whether the store takes their writes or not; an
//! [`accept`](Member::accept) counts once it is read back. A write that got no answer may be sent again.
//!
//! - A mark that it holds keeps it off until it is lifted: here, or by a tombstone that it reads. Marks and tombstones that the store
//!   has lost are written back. An id that was used before turns nothing off, and that is an error.
//! - Of a damaged document, marks and tombstones count, and every other field that can be read; what cannot be read keeps its value here.
//! - An accept is taken only from a higher rev than the one it has. Anything else is not applied, named, and left to a person
//!   ([`restore`](Member::restore)).
//! - It takes nothing from a document of another epoch. One that never saw a document enforces nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::document::{Accept, Document, EVERY_SITE, Mark, Stamp, Write, WriteCall, digest, rev};
use crate::report::is_of;

/// What a replica knows.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Member {
    /// Of the first document that it saw.
    epoch: Option<String>,
    /// The highest rev that it has seen.
    #[serde(deserialize_with = "rev")]
    rev: u64,
    /// Those that count, its own that are in no store too, by their names.
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
    /// It is of a later version.
    Rejected(String),
    /// Fields of it cannot be read; then entries that went back.
    Damaged(Vec<String>),
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
        let (name, _) = self.lifted.iter().max_by_key(|(_, stamp)| stamp.at)?;
        name.rsplit(':').next()
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
            // Whose document it is cannot be read: what is known of this fleet is safe to compare with, and the rest is not taken.
            Some(document) if document.epoch.is_empty() && !self.is_known() => {
                seen.standing = Standing::Damaged(document.damages().collect());
                return seen;
            }
            Some(document) if document.epoch.is_empty() => document,
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
            self.lifted.entry(name.clone()).or_insert_with(|| stamp.clone());
            let lifted = self.marks.remove(name);
            seen.changes.extend(lifted.map(|mark| changed("on", &mark, stamp)));
        }
        for (name, mark) in read.marks.iter().filter(|(name, _)| !self.lifted.contains_key(*name)) {
            match self.marks.get_mut(name) {
                // Who wrote it is known here still.
                Some(_) if read.damaged.contains_key(format!("off:{name}").as_bytes()) => {}
                Some(own) => own.clone_from(mark),
                None => {
                    self.marks.insert(name.clone(), mark.clone());
                    seen.changes.push(changed("off", mark, &mark.stamp));
                }
            }
        }
        let gone =
            if read.epoch.is_empty() && document.is_some() { Vec::new() } else { self.take_accepts(read, &mut seen) };
        let whole = document.is_none().then(|| "the whole document".to_owned());
        let gone: Vec<_> = whole.into_iter().chain(gone).collect();
        seen.write_back = self.lost(read);
        seen.standing = match (read.damaged.is_empty(), gone.is_empty()) {
            (true, true) => Standing::Current,
            (true, false) => Standing::WentBack(gone),
            (false, _) => {
                let gone = gone.iter().map(|entry| format!("the store has gone back: {entry}"));
                Standing::Damaged(read.damages().chain(gone).collect())
            }
        };
        seen
    }

    /// Takes the accepts that are newer than its own. Returns those that are older, or gone; one that cannot be read is neither.
    fn take_accepts(&mut self, read: &Document, seen: &mut Seen) -> Vec<String> {
        let mut gone = Vec::new();
        for (site, accept) in &read.accepts {
            match self.accepts.get(site) {
                Some(own) if own.stamp.rev == accept.stamp.rev && own.id == accept.id => {}
                Some(own) if own.stamp.rev >= accept.stamp.rev => gone.push(site),
                _ => {
                    let Accept { hash, stamp, .. } = accept;
                    seen.changes.push(format!("version {hash} of site {site:?} is accepted by {}", stamp.by));
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

    /// The marks and tombstones that the store does not have.
    fn lost(&self, document: &Document) -> Vec<Write> {
        let is_lost = |name: &String| !document.marks.contains_key(name) && !document.lifted.contains_key(name);
        let marks = self.marks.iter().filter(|(name, _)| is_lost(name));
        let marks = marks.map(|(_, mark)| Write::Mark(mark.clone()));
        let lifted = self.lifted.iter().filter(|(name, _)| !document.lifted.contains_key(*name));
        let lifted = lifted.map(|(name, stamp)| Write::Lift(name.clone(), stamp.clone()));
        marks.chain(lifted).collect()
    }

    /// Turns a scope off, here and now.
    ///
    /// # Errors
    ///
    /// The mark was lifted before, for example because a call comes late: nothing is turned off.
    pub(crate) fn turn_off(&mut self, id: &str, scope: &str, stamp: Stamp) -> Result<Write, String> {
        let mark = Mark { scope: scope.to_owned(), id: id.to_owned(), stamp };
        if let Some(Stamp { by, .. }) = self.lifted.get(&mark.name()) {
            return Err(format!("the mark {id} was lifted before, by {by}, so it turns nothing off: choose a new id"));
        }
        self.marks.entry(mark.name()).or_insert_with(|| mark.clone());
        Ok(Write::Mark(mark))
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

fn changed(to: &str, Mark { scope, id, .. }: &Mark, Stamp { by, why, .. }: &Stamp) -> String {
    let why = why.as_ref().map(|why| format!(": {why}")).unwrap_or_default();
    format!("the fleet turned enforcement of {} {to} (mark {id}, by {by}){why}", of(scope))
}

/// A scope, for people.
fn of(scope: &str) -> String {
    if scope == EVERY_SITE { "every site".to_owned() } else { format!("site {scope:?}") }
}
