//! A robots.txt given as text.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use super::builder::{LiveBuilder, SiteSource, sealed};
use crate::live::{Completion, LiveRobots, Loaded, Rejection, Site, Source, Version, load_text};

/// A robots.txt given as text; see [`LiveRobots::inline`].
#[derive(Debug)]
pub struct InlineSource {
    text: Arc<[u8]>,
}

impl LiveRobots {
    /// A robots.txt given as text; [`LiveRobots::publish`] replaces it.
    pub fn inline(text: impl AsRef<[u8]>) -> LiveBuilder<InlineSource> {
        LiveBuilder::new(InlineSource { text: text.as_ref().into() })
    }
}

/// The text of a site that is open.
#[derive(Debug)]
struct InlineText {
    /// Held for a moment only.
    version: Mutex<Version>,
    site: Weak<Site>,
}

impl SiteSource for InlineSource {}

impl sealed::Opens for InlineSource {
    fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection> {
        let origin = "inline".into();
        let LiveBuilder { source, settings } = builder;
        let version = Mutex::new(load_text(&source.text, &origin)?);
        let site = Site::new(settings, &origin, |site| Arc::new(InlineText { version, site }));
        site.start()?;
        Ok(LiveRobots::of(site))
    }
}

impl Source for InlineText {
    fn load(&self) -> Loaded {
        Ok(self.version.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    fn text(&self) -> Option<&Mutex<Version>> {
        Some(&self.version)
    }

    fn reload(&self, completion: Arc<Completion>) {
        if let Some(site) = self.site.upgrade() {
            Site::reload_apart(site, completion, |site| site.reload(|_| true));
        }
    }
}
