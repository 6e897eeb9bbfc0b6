//! The interface between a site and its source, and the parts that are appended to the content of
//! the source before it is published.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::SystemTime;

use super::rejection::MAX_FILE;
use super::{Completion, Mutex, Rejection, RejectionKind, Version, VersionHash};
use crate::rules::{Fragment, RobotsTxt};

pub(crate) type Loaded = Result<Version, Rejection>;

#[derive(Debug)]
pub(crate) enum Candidate {
    /// The content of the source.
    Version(Version),
    /// The source has no usable content.
    Rejected(Rejection),
    /// The server has no robots.txt, and responded with this HTTP status code.
    Absent { status: u16 },
}

/// The source of a site's robots.txt. Until the source is dropped, it passes a [`Candidate`] to the
/// site whenever its content changes. The source holds only a weak reference to the site, because
/// the site owns the source.
pub(crate) trait Source: fmt::Debug + Send + Sync {
    /// Loads the current content. Blocks until the source has responded.
    fn load(&self) -> Loaded;

    /// Loads the content, passes it to the site, and fills `completion` with the result. Does not
    /// block.
    fn reload(&self, completion: Arc<Completion>);

    /// Returns the inline text, which a caller may replace; `None` if the source is not inline
    /// text.
    fn text(&self) -> Option<&Mutex<Version>> {
        None
    }

    /// Returns why the source is polled for changes; `None` if the file system reports changes.
    /// Does not block.
    fn watch_problem(&self) -> Option<String> {
        None
    }

    /// Returns the status of the fetches; `None` if the source does not fetch from a server. Does
    /// not block.
    fn fetch_status(&self) -> Option<FetchStatus> {
        None
    }
}

pub(crate) fn load_text(text: &[u8], origin: &Arc<str>) -> Loaded {
    if text.len() as u64 > MAX_FILE {
        return Err(Rejection::new(RejectionKind::TooLarge, origin));
    }
    Ok(Version::new(text, origin, None))
}

/// The status of the fetches of a site's robots.txt; part of [`Status`](super::Status).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FetchStatus {
    /// When a fetch last confirmed that the server still has the live version, or that the server
    /// has no robots.txt; `None` before the first such fetch since the site was opened.
    pub confirmed: Option<SystemTime>,
    /// When the fetches began to fail; `None` if the last fetch succeeded.
    pub failing_since: Option<SystemTime>,
    /// Number of consecutive fetches without a usable response.
    pub failures: u32,
    /// The time when the site stops enforcing the live version, unless its source has a robots.txt
    /// again by then. `None` if the source has a robots.txt.
    pub held_until: Option<SystemTime>,
    /// Time of the next fetch.
    pub next_fetch: SystemTime,
}

impl From<Loaded> for Candidate {
    fn from(loaded: Loaded) -> Self {
        loaded.map_or_else(Self::Rejected, Self::Version)
    }
}

pub(super) struct Appending {
    appendix: Appendix,
    last: Mutex<LastOffer>,
}

#[derive(Default)]
struct LastOffer {
    /// The content of the source, before the parts were appended.
    source: Option<Version>,
    appended: Option<VersionHash>,
}

impl Appending {
    pub(super) fn new(appendix: Appendix) -> Self {
        Self { appendix, last: Mutex::default() }
    }

    /// Returns the candidate with the parts appended. Nothing is appended to content that is not a
    /// robots.txt; the site later rejects such content.
    ///
    /// `before` is the content that the site serves, or served last. If `before` contains an
    /// appended part that this process has not loaded yet, the candidate is rejected, because
    /// publishing it would remove that part.
    pub(super) fn append(&self, candidate: Candidate, before: Option<&[u8]>) -> Candidate {
        let mut last = self.last.lock();
        let version = match candidate {
            Candidate::Version(version) => version,
            // The stored content is removed only if the source has no robots.txt any more. A source
            // that cannot be read may still contain the stored content.
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
            // Every part in `before` must be loaded, or be in the source's own content. The check
            // covers all titles in `before`, not only the titles of parts that are not loaded yet,
            // because a part may have been appended under another title.
            let is_held = |part: &[u8]| fragments.iter().any(|held| held.title.as_bytes() == part);
            let is_own = |part: &[u8]| Fragment::titles_in(version.bytes()).any(|own| own == part);
            if Fragment::titles_in(before).any(|part| !is_held(part) && !is_own(part)) {
                return Candidate::Rejected(Rejection::with_reason(
                    RejectionKind::NotAppended,
                    &**title,
                    &version.origin,
                ));
            }
        }
        let (appended, places) = robots.append(&fragments);
        if appended.len() as u64 > MAX_FILE {
            return Candidate::Rejected(Rejection::new(RejectionKind::TooLarge, &version.origin));
        }
        let modified = version.modified.map(|date| modified.map_or(date, |modified| modified.max(date)));
        let mut whole = Version::new(appended, &version.origin, modified);
        whole.places = Some(places.into());
        last.appended = Some(whole.hash());
        Candidate::Version(whole)
    }

    pub(super) fn source(&self) -> Option<Version> {
        self.last.lock().source.clone()
    }

    /// Returns the hash of the source's last content if the live version `live` was created from
    /// this content.
    pub(super) fn source_of(&self, live: VersionHash) -> Option<VersionHash> {
        let last = self.last.lock();
        last.source.as_ref().filter(|_| last.appended == Some(live)).map(Version::hash)
    }
}

/// Parts of a robots.txt that are maintained separately, such as a list of AI crawlers. One or more
/// sites can append them.
///
/// A site that is opened with [`LiveBuilder::append`](crate::source::LiveBuilder::append) appends
/// the parts to its source's content, as [`RobotsTxt::append`](crate::rules::RobotsTxt::append)
/// does. The content with the parts is treated like any other version: it is checked, examined by
/// the gate and saved, and it can be rolled back. Replacing a part creates a new version for every
/// site that appends the parts. The application loads the parts and passes them to
/// [`Appendix::set`].
///
/// After a restart, a site whose live version contains a part keeps this version until the part is
/// set for the first time. Meanwhile, other sites serve their files without the part.
///
/// Cloning is cheap; clones share the parts.
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

pub(super) trait AppendsParts: Send + Sync {
    /// Appends the parts again to the last content of the source, because one of the parts has
    /// changed.
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
    /// Creates parts with these titles, in this order. [`Appendix::set`] sets the content of each
    /// part.
    pub fn new<T: Into<Arc<str>>>(titles: impl IntoIterator<Item = T>) -> Self {
        let parts = titles.into_iter().map(|title| AppendixPart { title: title.into(), held: None }).collect();
        Self(Arc::new(AppendixState { parts: Mutex::new(parts), sites: Mutex::default() }))
    }

    /// Replaces the part with the index `part`, and publishes a new version for every site that
    /// appends the parts. `modified` is the time when the part was changed, if known. Does nothing
    /// if the bytes are the same as before, or if there is no part with this index.
    ///
    /// Blocks until the new versions are compiled.
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

    /// Returns the titles of the parts whose content has not been set yet.
    pub fn missing(&self) -> Vec<String> {
        self.0.parts.lock().iter().filter(|part| part.held.is_none()).map(|part| part.title.to_string()).collect()
    }

    pub(super) fn join(&self, site: Weak<dyn AppendsParts>) {
        let mut sites = self.0.sites.lock();
        // Dropped sites are removed, because sites of a directory may be opened and dropped often.
        sites.retain(|site| site.strong_count() > 0);
        sites.push(site);
    }
}

/// How durably a change must be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Durability {
    /// The change survives the end of the process. A version from a source needs only this
    /// durability, because the source can be read again.
    Process,
    /// The change survives a crash of the machine. Operators' decisions and pending versions need
    /// this durability.
    Machine,
}
