//! Tells the hooks of a site what goes live.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tower_robots::live::{Cause, Reload, ReloadOutcome, Snapshot};

use super::site_robots::LiveSite;
use crate::publish_hook::{PublishHooks, PublishedVersion};

/// What is live where there is no robots.txt any more.
const NONE: &str = "none";

/// The hooks of all sites, for what is opened with one config.
#[derive(Clone, Debug)]
pub(super) struct PublishListener {
    pub(super) hooks: PublishHooks,
    /// Whether what was opened is served: until then nothing is announced, and nothing ever where the config is dropped.
    is_serving: Arc<AtomicBool>,
}

impl PublishListener {
    pub(super) fn new(hooks: PublishHooks) -> Self {
        Self { hooks, is_serving: Arc::default() }
    }

    /// For what is opened with another config.
    pub(super) fn of_next_config(&self) -> Self {
        Self::new(self.hooks.clone())
    }

    /// Listens to the reloads of a robots.txt. `name` is its own: `SITE`, or `SITE/HOST`.
    pub(super) fn listen(&self, site: &str, name: &str) -> impl Fn(&Reload, &Snapshot) + Send + Sync + 'static {
        let (own, site, name) = (self.clone(), site.to_owned(), name.to_owned());
        move |reload, snapshot| {
            let version = || own.version(&site, &name, snapshot);
            match (reload.cause(), reload.outcome()) {
                // What is live may be what was live before a restart, whatever came of the source. A folder opens files later.
                (Cause::Start, _) if own.is_serving.load(Ordering::Acquire) && snapshot.content().is_some() => {
                    own.hooks.serves(&version());
                }
                (Cause::Start, _) => {}
                (_, ReloadOutcome::Published { .. } | ReloadOutcome::Absent { .. }) => own.hooks.published(&version()),
                _ => {}
            }
        }
    }

    /// What was opened is served from now on. It reads the state directory.
    pub(super) fn serves(&self, lives: impl Iterator<Item = (String, LiveSite)>) {
        self.is_serving.store(true, Ordering::Release);
        for (site, live) in lives {
            let snapshot = live.robots.snapshot();
            if snapshot.content().is_some() {
                self.hooks.serves(&self.version(&site, &live.name, &snapshot));
            }
        }
    }

    fn version(&self, site: &str, name: &str, snapshot: &Snapshot) -> PublishedVersion {
        let hosts = match name.strip_prefix(site).and_then(|rest| rest.strip_prefix('/')) {
            Some(host) if host.contains('*') => Vec::new(),
            Some(host) => vec![host.to_owned()],
            None => self.hooks.hosts(site),
        };
        let version = snapshot.content().map_or_else(|| NONE.to_owned(), |content| content.hash().to_string());
        PublishedVersion { site: site.to_owned(), name: name.to_owned(), hosts, version }
    }
}
