//! The store, played: it makes of a write what the script makes of it.

use super::document::{Accept, Document, Mark, Stamp, Write, WriteAnswer, WriteCall};

/// The document that a store has.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlayedStore(pub(crate) Option<Document>);

impl PlayedStore {
    pub(crate) fn write(&mut self, WriteCall { epoch, floor, tag, write }: &WriteCall) -> WriteAnswer {
        let before = self.0.clone();
        let mut document = match before {
            Some(document) if document.epoch != *epoch => return WriteAnswer::Foreign(document.epoch),
            Some(document) => document,
            None => Document { epoch: epoch.clone(), ..Document::default() },
        };
        document.rev = document.rev.max(*floor) + 1;
        document.tag.clone_from(tag);
        let at = |stamp: &Stamp| Stamp { rev: document.rev, ..stamp.clone() };
        match write {
            Write::Begin if self.0.is_some() => return WriteAnswer::Kept,
            Write::Begin => {}
            Write::Mark(name, _) if document.marks.contains_key(name) || document.lifted.contains_key(name) => {
                return WriteAnswer::Kept;
            }
            Write::Mark(name, Mark { scope, stamp }) => {
                let stamp = at(stamp);
                document.marks.insert(name.clone(), Mark { scope: scope.clone(), stamp });
            }
            Write::Lift(name, _) if document.lifted.contains_key(name) => return WriteAnswer::Kept,
            Write::Lift(name, stamp) => {
                let stamp = at(stamp);
                document.marks.remove(name);
                document.lifted.insert(name.clone(), stamp);
            }
            Write::Accept(site, accept, expected) => {
                let rev = document.accepts.get(site).map_or(0, |accept| accept.stamp.rev);
                if rev != *expected {
                    return WriteAnswer::Conflict(rev);
                }
                let accept = Accept { stamp: at(&accept.stamp), ..accept.clone() };
                document.accepts.insert(site.clone(), accept);
            }
        }
        let rev = document.rev;
        self.0 = Some(document);
        WriteAnswer::Written(rev)
    }
}
