//! What a site's source holds becomes what the site publishes: with the parts that are appended.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::appendix::{Appendix, HeldParts};
use super::rejection::{MAX_FILE, Rejection, RejectionKind};
use super::source::Candidate;
use super::version::Version;
use super::version_hash::VersionHash;
use crate::rules::{RobotsTxt, appended_titles};

/// The parts of a site, and what its source held last.
pub(super) struct Appending {
    appendix: Appendix,
    last: Mutex<LastOffer>,
}

#[derive(Default)]
struct LastOffer {
    /// As the source had it.
    source: Option<Version>,
    /// The hash of what came of it.
    appended: Option<VersionHash>,
}

impl Appending {
    pub(super) fn new(appendix: Appendix) -> Self {
        Self { appendix, last: Mutex::default() }
    }

    /// The candidate with the parts. What is no robots.txt stays as it is, so that it is rejected for what it is.
    ///
    /// `before` is what the site serves, or served last. A part of it that is not at hand now is not dropped.
    pub(super) fn append(&self, candidate: Candidate, before: Option<&[u8]>) -> Candidate {
        let mut last = self.last();
        let version = match candidate {
            Candidate::Version(version) => version,
            // It is there no more; a source that failed may still hold what it held.
            Candidate::Absent { .. } => {
                last.source = None;
                return candidate;
            }
            Candidate::Rejected(_) => return candidate,
        };
        last.appended = None;
        let robots = RobotsTxt::parse(version.bytes().clone());
        if Rejection::of(&robots, version.origin()).is_some() {
            return Candidate::Version(version);
        }
        last.source = Some(version.clone());
        let HeldParts { fragments, missing, modified } = self.appendix.held();
        if let (Some(title), Some(before)) = (&missing, before) {
            // Under another name too: which of the missing parts it was, is not known.
            let is_held = |part: &[u8]| fragments.iter().any(|held| held.title().as_bytes() == part);
            let is_own = |part: &[u8]| appended_titles(version.bytes()).any(|own| own == part);
            if appended_titles(before).any(|part| !is_held(part) && !is_own(part)) {
                return Candidate::Rejected(Rejection::not_appended(title, version.origin()));
            }
        }
        let appended = robots.append(&fragments);
        if appended.bytes().len() as u64 > MAX_FILE {
            return Candidate::Rejected(Rejection::new(RejectionKind::TooLarge, version.origin()));
        }
        // Its date is that of the part that changed last; a file without one has none.
        let modified = version.modified().map(|date| modified.map_or(date, |modified| modified.max(date)));
        let appended =
            Version::new(appended.bytes().clone(), version.origin(), modified).with_places(appended.places());
        last.appended = Some(appended.hash());
        Candidate::Version(appended)
    }

    /// What the source held last that was a robots.txt.
    pub(super) fn source(&self) -> Option<Version> {
        self.last().source.clone()
    }

    /// The hash of what the source held when this went live; `None` if it is from elsewhere, or from before.
    pub(super) fn source_of(&self, live: VersionHash) -> Option<VersionHash> {
        let last = self.last();
        last.source.as_ref().filter(|_| last.appended == Some(live)).map(Version::hash)
    }

    fn last(&self) -> MutexGuard<'_, LastOffer> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
