//! The interface between a site and its source, and the parts that are appended to a source's text before it is
//! published.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::rejection::MAX_FILE;
use super::{Completion, Mutex, Rejection, RejectionKind, Version, VersionHash};
use crate::rules::{Fragment, RobotsTxt};

/// A source's content, or why it has none that can be used.
pub(crate) type Loaded = Result<Version, Rejection>;

/// A version that may become live.
#[derive(Debug)]
pub(crate) enum Candidate {
    /// The version that the source holds.
    Version(Version),
    /// The source holds nothing that can be used.
    Rejected(Rejection),
    /// The source says that it has no robots.txt, with this status.
    Absent { status: u16 },
}

/// The source of a site's bytes.
///
/// A source keeps its site up to date: it offers a [`Candidate`] when it holds something else, until it is dropped. The site
/// owns its source, so a source refers to its site weakly.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Loads what it holds now. Blocks for as long as the source does.
    fn load(&self) -> Loaded;

    /// Loads and offers because a caller waits for the result. Does not block.
    fn reload(&self, completion: Arc<Completion>);

    /// The text it holds, where a caller may hand in another; `None` where it comes from elsewhere.
    fn text(&self) -> Option<&Mutex<Version>> {
        None
    }

    /// Why changes are only found by polling. Does not block.
    fn watch_problem(&self) -> Option<String> {
        None
    }

    /// How fetching fares. Does not block.
    fn fetch_status(&self) -> Option<FetchStatus> {
        None
    }
}

/// A text that a caller hands in, within the bound of files.
pub(crate) fn load_text(text: &[u8], origin: &Arc<str>) -> Loaded {
    if text.len() as u64 > MAX_FILE {
        return Err(Rejection::new(RejectionKind::TooLarge, origin));
    }
    Ok(Version::new(text, origin, None))
}

/// How fetching a site's robots.txt fares; part of [`Status`](super::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchStatus {
    /// When the server last confirmed that it has what is live, or has none; `None` before the first confirmation since the
    /// start.
    pub confirmed: Option<SystemTime>,
    /// Since when fetches fail.
    pub failing_since: Option<SystemTime>,
    /// How many fetches in a row brought nothing that was taken.
    pub failures: u32,
    /// Until when the version that is live stays in force although it is missing at its source.
    pub held_until: Option<SystemTime>,
    /// When the next fetch is due.
    pub next_fetch: SystemTime,
}

impl From<Loaded> for Candidate {
    fn from(loaded: Loaded) -> Self {
        loaded.map_or_else(Self::Rejected, Self::Version)
    }
}

/// The parts of a site, and what its source held last.
pub(super) struct Appending {
    appendix: Appendix,
    last: Mutex<LastOffer>,
}

#[derive(Default)]
struct LastOffer {
    /// As the source had it.
    source: Option<Version>,
    /// The hash of the result.
    appended: Option<VersionHash>,
}

impl Appending {
    pub(super) fn new(appendix: Appendix) -> Self {
        Self { appendix, last: Mutex::default() }
    }

    /// The candidate with the parts. A text that is no robots.txt stays as it is, so that it is rejected for what it is.
    ///
    /// `before` is what the site serves, or served last. A part of it that is not at hand now is not dropped.
    pub(super) fn append(&self, candidate: Candidate, before: Option<&[u8]>) -> Candidate {
        let mut last = self.last.lock();
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
        let robots = RobotsTxt::from(version.bytes().clone());
        let own = before.map(|before| Fragment::without_parts(before, version.bytes()));
        if Rejection::of(&robots, own, &version.origin).is_some() {
            return Candidate::Version(version);
        }
        last.source = Some(version.clone());
        let parts = self.appendix.0.parts.lock().clone();
        let missing = parts.iter().find(|part| part.held.is_none()).map(|part| part.title.clone());
        let modified = parts.iter().filter_map(|part| part.held.as_ref()?.1).max();
        let fragments: Vec<_> = parts.into_iter().filter_map(|part| Some(part.held?.0)).collect();
        if let (Some(title), Some(before)) = (&missing, before) {
            // Under another name too: which of the missing parts it was, is not known.
            let is_held = |part: &[u8]| fragments.iter().any(|held| held.title.as_bytes() == part);
            let is_own = |part: &[u8]| Fragment::titles_in(version.bytes()).any(|own| own == part);
            if Fragment::titles_in(before).any(|part| !is_held(part) && !is_own(part)) {
                return Candidate::Rejected(Rejection::because(RejectionKind::NotAppended, &**title, &version.origin));
            }
        }
        let (appended, places) = robots.append(&fragments);
        if appended.len() as u64 > MAX_FILE {
            return Candidate::Rejected(Rejection::new(RejectionKind::TooLarge, &version.origin));
        }
        // Its date is that of the part that changed last; a file without one has none.
        let modified = version.modified.map(|date| modified.map_or(date, |modified| modified.max(date)));
        let mut whole = Version::new(appended, &version.origin, modified);
        whole.places = Some(places.into());
        last.appended = Some(whole.hash());
        Candidate::Version(whole)
    }

    /// The last robots.txt that the source held.
    pub(super) fn source(&self) -> Option<Version> {
        self.last.lock().source.clone()
    }

    /// The hash of what the source held when this went live; `None` if it is from elsewhere, or from before.
    pub(super) fn source_of(&self, live: VersionHash) -> Option<VersionHash> {
        let last = self.last.lock();
        last.source.as_ref().filter(|_| last.appended == Some(live)).map(Version::hash)
    }
}

/// Parts that others keep, such as a list of AI crawlers, for one site or many.
///
/// A site that is opened with [`LiveBuilder::append`](crate::source::LiveBuilder::append) appends them to whatever its source holds, as
/// [`RobotsTxt::append`](crate::rules::RobotsTxt::append) does; the result is checked, gated, remembered and rolled back like any
/// other version. A part that is replaced makes a new version of every site. The caller decides where the parts are read from.
///
/// While a part was never at hand, a site whose version has it keeps that version; any other serves its file without the part.
///
/// Cheap to clone; clones are the same.
///
/// ```
/// use tower_robots::internals::Appendix;
/// use tower_robots::live::LiveRobots;
/// use tower_robots::rules::Fragment;
///
/// let appendix = Appendix::new(["ai.txt"]);
/// let live = LiveRobots::text("User-agent: *\nDisallow: /private/\n").append(&appendix).open()?;
/// assert_eq!(appendix.missing(), ["ai.txt"]);
/// appendix.set(0, Fragment::parse("ai.txt", "User-agent: GPTBot\nDisallow: /\n").unwrap(), None);
/// let body = live.snapshot().content.as_ref().map(|content| content.body().clone());
/// assert!(body.is_some_and(|body| body.ends_with(b"User-agent: GPTBot\nDisallow: /\n")));
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone, Debug)]
pub struct Appendix(Arc<AppendixState>);

/// A site's source that appends the parts.
pub(super) trait AppendsParts: Send + Sync {
    /// Appends parts that have changed to what its source held last.
    fn append_again(&self);
}

#[derive(Debug)]
struct AppendixState {
    parts: Mutex<Vec<AppendixPart>>,
    sites: Mutex<Vec<Weak<dyn AppendsParts>>>,
}

#[derive(Clone, Debug)]
struct AppendixPart {
    title: Arc<str>,
    held: Option<(Fragment, Option<SystemTime>)>,
}

impl Appendix {
    /// Parts with these titles, in the order in which they are appended. None is at hand yet.
    pub fn new<T: Into<Arc<str>>>(titles: impl IntoIterator<Item = T>) -> Self {
        let parts = titles.into_iter().map(|title| AppendixPart { title: title.into(), held: None }).collect();
        Self(Arc::new(AppendixState { parts: Mutex::new(parts), sites: Mutex::default() }))
    }

    /// Replaces a part, by its place from 0, and has every site append it. `modified` is when it was changed, as far as that
    /// is known. A part of the same octets changes nothing, and so does a place that there is none of.
    ///
    /// It blocks until the sites have compiled the result.
    pub fn set(&self, part: usize, fragment: Fragment, modified: Option<SystemTime>) {
        {
            let mut parts = self.0.parts.lock();
            let Some(part) = parts.get_mut(part) else { return };
            let before = part.held.as_ref().map(|(before, _)| (&before.title, before.robots.bytes()));
            if before == Some((&fragment.title, fragment.robots.bytes())) {
                return;
            }
            part.held = Some((fragment, modified));
        }
        let sites: Vec<_> = {
            let mut sites = self.0.sites.lock();
            sites.retain(|site| site.strong_count() > 0);
            sites.iter().filter_map(Weak::upgrade).collect()
        };
        sites.iter().for_each(|site| site.append_again());
    }

    /// The titles of the parts that were never at hand.
    pub fn missing(&self) -> Vec<String> {
        self.0.parts.lock().iter().filter(|part| part.held.is_none()).map(|part| part.title.to_string()).collect()
    }

    pub(super) fn join(&self, site: Weak<dyn AppendsParts>) {
        let mut sites = self.0.sites.lock();
        // The hosts of a directory come and go.
        sites.retain(|site| site.strong_count() > 0);
        sites.push(site);
    }
}

/// The event that a write must outlive.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// The process: a source can be read again, and ten thousand files that change at once must not wait for the disk.
    Process,
    /// The machine: decisions of an operator, and versions that wait for one.
    Machine,
}
