//! Whether what a poll sees is new: where no event comes, a change is found by the stamp and by the contents.

use super::file_stamp::FileStamp;
use super::target::Fingerprint;

/// Every so many polls the contents are read whatever the file system says of them.
const WHOLE_LOOKS: u32 = 30;

/// What the polls of one watched thing have seen.
#[derive(Debug)]
pub(super) struct PolledChanges {
    looks: u32,
    stamp: Option<FileStamp>,
    /// What the last poll found, where it was new.
    seen: Option<Fingerprint>,
    /// What was taken without becoming what is known: a broken file, reported once.
    refused: Option<Fingerprint>,
}

impl PolledChanges {
    pub(super) const fn new(stamp: FileStamp) -> Self {
        Self { looks: 0, stamp: Some(stamp), seen: None, refused: None }
    }

    /// Whether the contents have to be read, now that the stamp is this.
    pub(super) fn has_to_be_read(&mut self, stamp: &FileStamp) -> bool {
        self.looks = self.looks.wrapping_add(1);
        if self.looks.is_multiple_of(WHOLE_LOOKS) {
            self.refused = None;
            return true;
        }
        self.seen.is_some() || self.stamp.as_ref() != Some(stamp)
    }

    /// Remembers what a poll found, and returns whether to take it: two polls have to agree on what is new.
    pub(super) fn saw(&mut self, fingerprint: Fingerprint, known: Option<Fingerprint>, stamp: FileStamp) -> bool {
        self.stamp = stamp.is_telling().then_some(stamp);
        if Some(fingerprint) == known || Some(fingerprint) == self.refused {
            self.seen = None;
            return false;
        }
        if self.seen.replace(fingerprint) != Some(fingerprint) {
            return false;
        }
        self.seen = None;
        true
    }

    /// It was taken, and this is known now: what is refused once is not offered again at every poll.
    pub(super) fn took(&mut self, fingerprint: Fingerprint, known: Option<Fingerprint>) {
        self.seen = None;
        self.refused = (known != Some(fingerprint)).then_some(fingerprint);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::{RejectionKind, VersionHash};

    fn fingerprint(text: &str) -> Fingerprint {
        Ok(VersionHash::of(text.as_bytes()))
    }

    #[test]
    fn polling_takes_what_is_the_same_twice_and_offers_what_was_refused_once() {
        let nowhere = FileStamp::of("/nowhere/at/all".as_ref());
        let mut changes = PolledChanges::new(nowhere.clone());
        assert!(!changes.has_to_be_read(&nowhere), "the stamp is what it was");
        let known = Some(Err(RejectionKind::Missing));
        assert!(!changes.saw(fingerprint("a"), known, nowhere.clone()));
        assert!(changes.has_to_be_read(&nowhere), "the second look");
        assert!(!changes.saw(fingerprint("b"), known, nowhere.clone()), "it changed between the looks");
        assert!(changes.saw(fingerprint("b"), known, nowhere.clone()));
        changes.took(fingerprint("b"), known);
        assert!(!changes.saw(fingerprint("b"), known, nowhere.clone()), "refused already");
        let mut reads = 0;
        for _ in 0..WHOLE_LOOKS {
            reads += u32::from(changes.has_to_be_read(&nowhere));
        }
        assert_eq!(reads, 1, "now and then whatever the stamp says");
    }
}
