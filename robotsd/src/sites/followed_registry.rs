//! The registry that is published at a URL, as the sites follow it.

use std::sync::Arc;

use tokio::sync::Notify;
use tower_robots::agent::Registry;
use tower_robots::live::VersionHash;
use tower_robots::source::evidence::{PublishedRegistry, PublishedRegistryEvent};
use tower_robots::source::fetch::{Fetcher, FetcherBuilder};

use crate::config::{PublishedRegistrySettings, read_published};
use crate::date::rfc3339;
use crate::log::{Log, LogEvent};
use crate::report::{PublishedRegistryReport, WaitingRegistryReport};

/// A published registry that is followed. Cheap to clone; the last clone that is dropped ends it.
#[derive(Clone, Debug)]
pub(super) struct FollowedRegistry(PublishedRegistry);

impl FollowedRegistry {
    /// Starts to follow a registry. Each change notifies, and everything else is logged.
    ///
    /// # Errors
    ///
    /// If the system gives no thread.
    pub(super) fn start(
        settings: &PublishedRegistrySettings,
        accept: &[VersionHash],
        fetcher: impl FnOnce() -> std::io::Result<Fetcher>,
        changed: Arc<Notify>,
        log: &Log,
    ) -> Result<Self, String> {
        let fetcher = match &settings.ca {
            Some(ca) => Fetcher::builder().trust_only(ca).and_then(FetcherBuilder::start),
            None => fetcher(),
        };
        let failed = |error| format!("{}: the registry cannot be fetched: {error}", settings.url);
        let (of, to) = (settings.url.clone(), log.clone());
        let reading = settings.url.clone();
        let builder = PublishedRegistry::builder(settings.url.clone(), move |text| read_published(&reading, text))
            .fetcher(&fetcher.map_err(failed)?)
            .accept(accept.iter().copied())
            .on_event(move |event| match event {
                PublishedRegistryEvent::Changed(_) => changed.notify_one(),
                PublishedRegistryEvent::Waiting(waiting) => {
                    let how = how_to_accept(&waiting.hash);
                    to.say(LogEvent::RegistryGated, format!("{of}: {waiting}; the one before stays in force; {how}"));
                }
                PublishedRegistryEvent::Failed(_) => to.say(LogEvent::RegistryRejected, format!("{of}: {event}")),
                _ => to.say(LogEvent::Registry, format!("{of}: {event}")),
            });
        let builder = match &settings.saved_in {
            Some(folder) => builder.saved_in(folder),
            None => builder,
        };
        let (registry, trouble) = builder.start().map_err(failed)?;
        if let Some(trouble) = trouble {
            log.say(LogEvent::RegistryRejected, format!("{}: what was saved cannot be used: {trouble}", settings.url));
        }
        Ok(Self(registry))
    }

    /// The registry at hand; the built-in one until there is one.
    pub(super) fn registry(&self) -> Arc<Registry> {
        self.0.registry().unwrap_or_else(|| Registry::builtin().clone())
    }

    /// Replaces the versions that are used whatever they change.
    pub(super) fn accept(&self, hashes: &[VersionHash]) {
        self.0.accept(hashes.iter().copied());
    }

    pub(super) fn report(&self) -> PublishedRegistryReport {
        let status = self.0.status();
        PublishedRegistryReport {
            url: status.url,
            origin: status.origin.map(|origin| origin.as_str().to_owned()),
            hash: status.hash.map(|hash| hash.to_string()),
            confirmed: status.confirmed.map(rfc3339),
            waiting: status.waiting.map(|waiting| WaitingRegistryReport {
                hash: waiting.hash.to_string(),
                why: format!("{waiting}; {}", how_to_accept(&waiting.hash)),
            }),
            trouble: status.trouble.map(|trouble| trouble.as_ref().to_owned()),
        }
    }
}

fn how_to_accept(hash: &VersionHash) -> String {
    format!("to use it, write registry_accept = [\"{hash}\"] in [agents]")
}
