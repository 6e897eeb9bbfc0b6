//! A robots.txt given as text.

use std::sync::{Arc, Weak};

use super::builder::{LiveBuilder, SiteSource, sealed};
use crate::live::{Completion, LiveRobots, Loaded, Rejection, Site, Source, Version};

/// A robots.txt given as text; see [`LiveRobots::inline`].
#[derive(Debug)]
pub struct InlineSource {
    text: Arc<[u8]>,
}

impl LiveRobots {
    /// A robots.txt given as text.
    pub fn inline(text: impl AsRef<[u8]>) -> LiveBuilder<InlineSource> {
        LiveBuilder::new(InlineSource { text: text.as_ref().into() })
    }
}

/// The text of a site that is open.
#[derive(Debug)]
struct InlineText {
    version: Version,
    site: Weak<Site>,
}

impl SiteSource for InlineSource {}

impl sealed::Opens for InlineSource {
    fn open(builder: LiveBuilder<Self>) -> Result<LiveRobots, Rejection> {
        let origin = "inline".into();
        let LiveBuilder { source, settings } = builder;
        let version = Version::new(source.text, &origin, None);
        let site = Site::new(settings, &origin, |site| Arc::new(InlineText { version, site }));
        site.start()?;
        Ok(LiveRobots::of(site))
    }
}

impl Source for InlineText {
    fn load(&self) -> Loaded {
        Ok(self.version.clone())
    }

    fn reload(&self, completion: Arc<Completion>) {
        if let Some(site) = self.site.upgrade() {
            Site::reload_apart(site, completion, |site| site.reload(|_| true));
        }
    }
}
