//! The numbered off switches of a schedule, and a record of what each replica has read.

use std::collections::BTreeMap;

use super::super::super::document::{Document, EVERY_SITE};

/// Number of off switches: five IDs, each for three scopes.
pub(super) const MARKS: u8 = 15;
pub(super) const SCOPES: [&str; 3] = [EVERY_SITE, "a", "b"];

/// The off switches, tombstones and accepted versions that a replica has read. Bit N represents off
/// switch N.
#[derive(Clone, Debug, Default)]
pub(super) struct Shown {
    pub(super) epoch: Option<String>,
    pub(super) marks: u16,
    pub(super) lifted: u16,
    /// Rev and ID of the newest accepted version of each site.
    pub(super) accepts: BTreeMap<String, (u64, String)>,
}

pub(super) fn id(mark: u8) -> String {
    format!("m{}", usize::from(mark) / SCOPES.len())
}

pub(super) fn scope(mark: u8) -> &'static str {
    SCOPES[usize::from(mark) % SCOPES.len()]
}

/// Returns the bits of the off switches with these names.
pub(super) fn bits<V>(names: &BTreeMap<String, V>) -> u16 {
    let bit = |name: &str| 1 << (0..MARKS).find(|mark| format!("{}:{}", scope(*mark), id(*mark)) == name).unwrap();
    names.keys().fold(0, |bits, name| bits | bit(name))
}

/// Returns a site that is in the scope of an off switch.
pub(super) fn site_of(mark: u8) -> &'static str {
    if scope(mark) == EVERY_SITE { "any" } else { scope(mark) }
}

pub(super) fn marks(bits: u16) -> impl Iterator<Item = u8> {
    (0..MARKS).filter(move |mark| bits & 1 << mark != 0)
}

impl Shown {
    pub(super) fn off(&mut self, mark: u8) {
        self.marks |= 1 << mark;
    }

    pub(super) fn lift(&mut self, mark: u8) {
        self.lifted |= 1 << mark;
    }

    pub(super) fn document(&mut self, read: &Document) {
        if !read.epoch.is_empty() {
            self.epoch.get_or_insert_with(|| read.epoch.clone());
        }
        if self.epoch.as_ref().is_some_and(|epoch| read.epoch.is_empty() || *epoch == read.epoch) {
            self.marks |= bits(&read.marks);
            self.lifted |= bits(&read.lifted);
        }
    }

    /// Returns the off switches that must be in force on the replica.
    pub(super) const fn held(&self) -> u16 {
        self.marks & !self.lifted
    }
}
