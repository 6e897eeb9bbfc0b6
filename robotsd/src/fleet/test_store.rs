//! A fake store. It executes writes in the same way as the script `write.lua`.

use super::document::{Accept, Damage, Document, MAX_NUMBER, OffSwitch, Repair, Stamp, Write, WriteAnswer, WriteCall};

/// The fake store; `None` if it contains no document.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PlayedStore(pub(crate) Option<Document>);

impl PlayedStore {
    pub(crate) fn write(&mut self, WriteCall { epoch, floor, tag, write }: &WriteCall) -> WriteAnswer {
        let mut document = self.0.clone().unwrap_or_default();
        let is_known = !document.epoch.is_empty();
        if is_known && document.epoch != *epoch {
            return WriteAnswer::Foreign(document.epoch);
        }
        let is_counted = !document.damaged.contains_key(&b"rev"[..]);
        let is_repaired = matches!(write, Write::Repair(repairs) if document.repair(repairs));
        if matches!(write, Write::Begin | Write::Repair(_)) && is_known && is_counted && !is_repaired {
            return WriteAnswer::NotNeeded;
        }
        let revs = document.accepts.values().map(|accept| accept.stamp.rev);
        let rev = if is_counted { document.rev } else { revs.max().unwrap_or_default() };
        document.rev = (rev.max(*floor) + 1).min(MAX_NUMBER);
        (document.epoch, document.tag) = (epoch.clone(), tag.clone());
        document.damaged.retain(|field, _| !["epoch", "rev", "tag"].map(str::as_bytes).contains(&&**field));
        let at = |stamp: &Stamp| Stamp { rev: document.rev, ..stamp.clone() };
        match write {
            Write::Begin | Write::Repair(_) => {}
            Write::OffSwitch(mark)
                if document.marks.contains_key(&mark.name()) || document.lifted.contains_key(&mark.name()) =>
            {
                return WriteAnswer::NotNeeded;
            }
            Write::OffSwitch(mark) => {
                let mark = OffSwitch { stamp: at(&mark.stamp), ..mark.clone() };
                document.marks.insert(mark.name(), mark);
            }
            Write::Lift(name, _) if document.lifted.contains_key(name) => return WriteAnswer::NotNeeded,
            Write::Lift(name, stamp) => {
                let stamp = at(stamp);
                document.lifted.insert(name.clone(), stamp);
                document.remove_lifted();
            }
            Write::Accept(site, accept, expected) => {
                let damage = document.damaged.remove(format!("accept:{site}").as_bytes());
                let held = document.accepts.get(site);
                let rev = held.map_or(0, |held| held.stamp.rev);
                if rev != *expected && damage.is_none() {
                    let is_own = held.is_some_and(|held| held.id == accept.id);
                    return if is_own { WriteAnswer::Written(rev) } else { WriteAnswer::Conflict(rev) };
                }
                let accept = Accept { stamp: at(&accept.stamp), ..accept.clone() };
                document.accepts.insert(site.clone(), accept);
            }
        }
        let rev = document.rev;
        self.0 = Some(document);
        WriteAnswer::Written(rev)
    }

    /// Replaces the value of a field with a damaged one, if the field exists.
    pub(crate) fn damage(&mut self, field: &str, value: &[u8]) {
        let Some(document) = &mut self.0 else { return };
        let is_there = match field.split_once(':') {
            None if field == "epoch" => {
                document.epoch.clear();
                true
            }
            None if field == "rev" => {
                document.rev = 0;
                true
            }
            Some(("off", name)) => document.marks.get_mut(name).map(|mark| mark.stamp = Stamp::default()).is_some(),
            Some(("lifted", name)) => document.lifted.get_mut(name).map(|stamp| *stamp = Stamp::default()).is_some(),
            Some(("accept", site)) => document.accepts.remove(site).is_some(),
            _ => false,
        };
        if is_there {
            let damage = Damage { value: Some(value.to_owned()), why: String::new() };
            document.damaged.insert(field.as_bytes().to_owned(), damage);
        }
    }
}

impl Document {
    /// Applies repairs. Returns whether any field was repaired.
    fn repair(&mut self, repairs: &[Repair]) -> bool {
        let mut is_repaired = false;
        for Repair { field, from, to } in repairs {
            if self.damaged.get(field).and_then(|damage| damage.value.as_ref()) != Some(from) {
                continue;
            }
            is_repaired = true;
            self.damaged.remove(field);
            let Some(to) = to else { continue };
            let stamp: Stamp = serde_json::from_slice(to).unwrap();
            match str::from_utf8(field).unwrap().split_once(':') {
                Some(("off", name)) => self.marks.get_mut(name).unwrap().stamp = stamp,
                Some(("lifted", name)) => *self.lifted.get_mut(name).unwrap() = stamp,
                _ => unreachable!("no other field is given a value"),
            }
        }
        is_repaired
    }
}
