//! The builder for a document that is fetched regularly.

use std::io;
use std::path::PathBuf;
use std::time::SystemTime;

use super::published::DocumentSettings;
use super::{Document, DocumentEvent, FollowError, FollowedDocument, Following, SavedDocuments};
use crate::live::{Clock, VersionHashPrefix};
use crate::rules::Fragment;
use crate::source::fetch::{FetchUrl, Fetcher};

/// Configures how documents are kept up to date: a single [`FollowedDocument`], or all documents of
/// a `Verifier`.
#[must_use]
pub struct FollowBuilder<F> {
    pub(in crate::source) followed: F,
    fetcher: Option<Fetcher>,
    folder: Option<PathBuf>,
    clock: Clock,
}

impl<F> FollowBuilder<F> {
    pub(in crate::source) fn new(followed: F, clock: Clock) -> Self {
        Self { followed, fetcher: None, folder: None, clock }
    }

    /// Sets the fetcher. Default: a new fetcher. A second call replaces the first.
    pub fn fetcher(self, fetcher: &Fetcher) -> Self {
        Self { fetcher: Some(fetcher.clone()), ..self }
    }

    /// Sets a folder for saving the last fetched version. The next process uses the saved version
    /// until its first fetch. A `Verifier` also saves when each crawler was last verified on each
    /// site and listening socket. Default: none. A second call replaces the first.
    pub fn saved_in(self, folder: impl Into<PathBuf>) -> Self {
        Self { folder: Some(folder.into()), ..self }
    }

    /// Sets the clock, for tests. Default: the system's clock. If the system has a clock that is
    /// cheaper to read but lags by some milliseconds, a `Verifier` uses that clock. A second call
    /// replaces the first.
    pub fn clock(self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self { clock: Clock::new(clock), ..self }
    }

    pub(in crate::source) fn into_parts(self) -> io::Result<(F, Following)> {
        let fetcher = self.fetcher.map_or_else(Fetcher::new, Ok)?;
        Ok((self.followed, Following { fetcher, clock: self.clock, saved: self.folder.map(SavedDocuments::new) }))
    }
}

impl FollowedDocument<Fragment> {
    /// Returns a builder for a fragment that is fetched from a URL and kept up to date, such as a
    /// list of AI crawlers. `title` is the name of the fragment in the comments of the served
    /// robots.txt. A fetched file without rules for crawlers is rejected.
    pub fn builder(url: FetchUrl, title: &str) -> FollowBuilder<DocumentSettings<Fragment>> {
        FollowBuilder::of(url, title.into())
    }
}

impl<D: Document> FollowBuilder<DocumentSettings<D>> {
    pub(in crate::source) fn of(url: FetchUrl, reading: D::Reading) -> Self {
        let followed = DocumentSettings { url, reading, accepted: Vec::new(), on_event: Box::new(|_| {}) };
        Self::new(followed, Clock::default())
    }

    /// Accepts these versions in advance, so that they are used even if their changes are drastic.
    /// Default: none. A second call adds versions.
    pub fn accept(mut self, hashes: impl IntoIterator<Item: Into<VersionHashPrefix>>) -> Self {
        self.followed.accepted.extend(hashes.into_iter().map(Into::into));
        self
    }

    /// Sets a callback for changes of the document and for failed fetches. The callback runs on a
    /// thread of the fetcher and may block. A second call replaces the first.
    pub fn on_event(mut self, listener: impl Fn(&DocumentEvent<D>) + Send + Sync + 'static) -> Self {
        self.followed.on_event = Box::new(listener);
        self
    }

    /// Returns the version that another process has saved in the folder, if any. Does not fetch the
    /// document.
    ///
    /// # Errors
    ///
    /// Returns an error if the saved copy cannot be read.
    pub fn saved(self) -> Result<Option<D>, FollowError> {
        let Some(folder) = self.folder else { return Ok(None) };
        let saved = SavedDocuments::new(folder).read(&self.followed.url)?;
        let read = |bytes: &[u8]| D::read(&self.followed.reading, bytes).map_err(FollowError::new);
        saved.map(|saved| read(&saved.bytes)).transpose()
    }

    /// Starts the task that keeps the document up to date. If the saved copy cannot be used, also
    /// returns the reason.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL of a registry is not an `https` URL, or if the system cannot
    /// start a thread.
    pub fn start(self) -> Result<(FollowedDocument<D>, Option<FollowError>), FollowError> {
        let url = &self.followed.url;
        if D::ONLY_HTTPS && !url.is_https() {
            let noun = D::NOUN;
            return Err(FollowError::new(format!("{url} is fetched without TLS: write the https URL of the {noun}")));
        }
        let (followed, following) = self.into_parts().map_err(|error| FollowError::new(error.to_string()))?;
        Ok(FollowedDocument::start(followed, None, &following))
    }
}

robots_core::debug_as!(|it| [F] FollowBuilder::<F> { folder: it.folder });
