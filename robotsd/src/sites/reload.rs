//! Reads files again when a reload is requested: the registry, the files that gates read, the
//! appended lists, and every robots.txt.
//!
//! Files are read on blocking threads, one per site, so a hanging file system delays only the sites
//! whose files it contains. The response to the reload request waits at most [`PATIENCE`] for a
//! site whose files hang.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::OptionFuture;
use futures_util::{StreamExt as _, stream};
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;
use tower_robots::agent::Registry;

use super::appended_parts::FollowedRegistry;
use super::operator_changes::ChangeError;
use super::robots_opener::RobotsOpener;
use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_robots::LiveSite;
use crate::config::{RegistrySources, extended_registry};
use crate::date::rfc3339;
use crate::log::{LogEvent, LogLevel};
use crate::report::{ReloadOutcome, ReloadReport, SiteReload};

/// Maximum number of sites that are read at the same time. There may be thousands of sites, and
/// each read needs a thread.
const MAX_CONCURRENT_READS: usize = 16;

/// Maximum time that the response to a reload request waits for each step of reloading one site.
/// The wait for an earlier reload of the same site is part of the step. A fetch takes much less
/// time than this maximum.
const PATIENCE: Duration = Duration::from_secs(60);

impl Sites {
    /// Reads the registry and every robots.txt again, and reports the outcomes. If `only` names a
    /// site or one of its hosts, reads only the files of that site, not the registry. If the new
    /// registry has an error, the previous registry stays in force.
    pub(crate) async fn reload(self: &Arc<Self>, only: Option<&str>) -> Result<ReloadReport, ChangeError> {
        let chosen: Vec<usize> = match only {
            None => (0..self.iter().len()).collect(),
            Some(name) => {
                let is_meant = |site: &ServedSite| site.has_name(name) || site.live(name).is_some();
                vec![self.iter().position(is_meant).ok_or_else(|| ChangeError::Unknown(self.unknown(name)))?]
            }
        };
        let registry = if only.is_none() { self.fetch_registry().await } else { None };
        let of_sites = run_concurrently(chosen, |number| self.reload_site(number, only));
        Ok(ReloadReport { config: None, registry, sites: of_sites.await.into_iter().flatten().collect() })
    }

    async fn fetch_registry(self: &Arc<Self>) -> Option<ReloadOutcome> {
        let followed = self.opener().followed;
        let fetching = OptionFuture::from(followed.as_ref().map(FollowedRegistry::fetch_again));
        let why = timeout(PATIENCE, fetching).await.map_or_else(|_| Some(still_reading()), Option::flatten);
        let mut reload = Arc::clone(self).reload_registry().await?;
        if let Some(why) = why {
            reload.outcome = "kept".to_owned();
            reload.message = format!(
                "{outcome}; the version at the URL of the registry is not used: {why}",
                outcome = reload.message
            );
        }
        Some(reload)
    }

    /// Applies changes to the registry and to files that gates read. A changed gate may accept a
    /// pending version, so the robots.txt files with a pending version are read again.
    pub(crate) async fn follow(self: Arc<Self>, changed: BTreeSet<PathBuf>) {
        if self.registry.extra.as_ref().is_some_and(|path| changed.contains(path)) {
            Arc::clone(&self).reload_registry().await;
        }
        let reads = |site: &ServedSite| !site.gate.changed_files(&changed).is_empty();
        let reading: Vec<usize> =
            self.iter().enumerate().filter(|(_, site)| reads(site)).map(|(number, _)| number).collect();
        let (this, changed) = (&self, &changed);
        run_concurrently(reading, |number| async move {
            let renewed = this.run_blocking(number, |sites, site| sites.renew_gate(site)).await;
            if let (Some(true), Some(site)) = (renewed, this.iter().nth(number)) {
                for path in site.gate.changed_files(changed).into_iter().filter(|path| site.gate.has_read(path)) {
                    let message = format!(
                        "{site}: the gate uses the new content of {path}",
                        site = site.name,
                        path = path.display()
                    );
                    this.log.write_site_message(&site.name, LogLevel::Info, LogEvent::Gate, message);
                }
            }
        })
        .await;
        let mut waiting = Vec::new();
        for site in self.iter() {
            let live_sites =
                site.live_sites().into_iter().filter(|live| live.robots.status().pending.as_ref().is_some());
            waiting.extend(live_sites.map(|live| (live, site.robots.reload_order())));
        }
        run_concurrently(waiting, |(live, order)| reload_live(live, order)).await;
    }

    /// Reads all files of a site again: the files that its gate reads, the appended parts, and
    /// every robots.txt. If `only` is the name of a single robots.txt, no other robots.txt is read.
    async fn reload_site(self: &Arc<Self>, number: usize, only: Option<&str>) -> Vec<SiteReload> {
        let prepared = self.run_blocking(number, |sites, site| {
            site.gate.pages.request_read();
            sites.renew_gate(site);
            if let Some(parts) = &site.robots.parts {
                parts.read_again();
            }
            site.robots.rescan();
        });
        let is_prepared = prepared.await.is_some();
        let Some(site) = self.iter().nth(number) else { return Vec::new() };
        if !is_prepared {
            let message =
                format!("the files and lists of the site are {still_reading}", still_reading = still_reading());
            let (name, outcome) = (site.name.to_string(), "kept".to_owned());
            return vec![SiteReload { name, outcome, message, ..SiteReload::default() }];
        }
        let is_meant = |live: &LiveSite| only.is_none_or(|name| site.has_name(name) || live.name == name);
        let live_sites = site.live_sites().into_iter().filter(is_meant);
        let mut reloads = run_concurrently(live_sites, |live| reload_live(live, site.robots.reload_order())).await;
        // All hosts of a site share the parts, so the parts appear only once in the report.
        if let (Some(first), Some(parts)) = (reloads.first_mut(), &site.robots.parts) {
            first.append = parts.report();
        }
        reloads
    }

    /// Reads the additional registry again, and applies it together with the published registry.
    /// Returns `None` if the config names neither registry.
    pub(crate) async fn reload_registry(self: Arc<Self>) -> Option<ReloadOutcome> {
        let RegistrySources { extra, published } = self.registry.clone();
        if extra.is_none() && published.is_none() {
            return None;
        }
        // The lock is held until the registry is applied, so that the registry that was read last
        // is also applied last.
        let RobotsOpener { registry_order: order, followed, .. } = self.opener();
        let loading = async {
            let order = order.lock_owned().await;
            let load = move || {
                let base = followed.as_ref().map_or_else(|| Registry::builtin().clone(), FollowedRegistry::registry);
                extended_registry(&base, extra.as_deref()).map(|registry| (registry, order))
            };
            let loaded = spawn_blocking(load).await;
            loaded.map_err(|error| error.to_string())?.map_err(|error| error.to_string())
        };
        let loaded = timeout(PATIENCE, loading).await.unwrap_or_else(|_| Err(still_reading()));
        let loaded = loaded.and_then(|(registry, order)| match &self.evidence {
            Some(evidence) => evidence.follow(&registry).map(|()| (registry, order)),
            None => Ok((registry, order)),
        });
        let sources = &self.registry;
        let (event, outcome, message) = match loaded {
            Ok((registry, _order)) => {
                // A new config may have replaced these sites in the meantime, so the registry is
                // also applied to the sites that replaced them.
                let mut next = Some(Arc::clone(&self));
                while let Some(sites) = next {
                    sites.set_registry(&registry);
                    *sites.registry_problem.lock() = None;
                    sites.renew_registry(&registry).await;
                    next = sites.successor_with_registry();
                }
                (LogEvent::Registry, "published", format!("{sources}: this registry is used now"))
            }
            Err(message) => {
                let message = format!("{message}; the previous registry stays in use");
                let mut next = Some(Arc::clone(&self));
                while let Some(sites) = next {
                    *sites.registry_problem.lock() = Some(message.clone());
                    next = sites.successor_with_registry();
                }
                (LogEvent::RegistryRejected, "kept", message)
            }
        };
        self.log.write_message(event, message.clone());
        Some(ReloadOutcome { outcome: outcome.to_owned(), message })
    }

    async fn renew_registry(self: &Arc<Self>, registry: &Arc<Registry>) {
        run_concurrently(0..self.iter().len(), |number| {
            let registry = registry.clone();
            self.run_blocking(number, move |_, site| site.set_registry(&registry))
        })
        .await;
    }

    /// Runs `work` for a site on a blocking thread, after earlier work for the site has ended. If
    /// the files of a site hang, repeated reloads therefore block only one thread. If the work
    /// takes longer than [`PATIENCE`], returns `None`, and the work continues in the background.
    async fn run_blocking<R: Send + 'static>(
        self: &Arc<Self>,
        number: usize,
        work: impl FnOnce(&Self, &ServedSite) -> R + Send + 'static,
    ) -> Option<R> {
        let order = Arc::clone(&self.iter().nth(number)?.robots.order);
        let this = Arc::clone(self);
        let working = async {
            let order = order.lock_owned().await;
            let work = move || {
                let _order = order;
                this.iter().nth(number).map(|site| work(&this, site))
            };
            // The error is ignored, because the panic hook has reported the panic.
            spawn_blocking(work).await.ok().flatten()
        };
        timeout(PATIENCE, working).await.ok().flatten()
    }

    /// Reads the files of a site's gate again, and applies the new gate. Returns whether the
    /// expectations could be used.
    fn renew_gate(&self, site: &ServedSite) -> bool {
        let gate = site.gate.gate(&self.opener().registry);
        let gate = gate.inspect_err(|why| site.gate.reject_expectations(why));
        gate.map(|gate| site.robots.set_gate(&gate)).is_ok()
    }
}

fn still_reading() -> String {
    format!("still being read after {seconds} s", seconds = PATIENCE.as_secs())
}

/// Reads a robots.txt again. If `order` is given, first waits for this lock, which an earlier read
/// may hold.
async fn reload_live(live: LiveSite, order: Option<Arc<Mutex<()>>>) -> SiteReload {
    let robots = live.robots.clone();
    // The read is a separate task, so that it continues even if the caller stops waiting.
    let reading = tokio::spawn(async move {
        let _order = OptionFuture::from(order.map(Mutex::lock_owned)).await;
        robots.reload().await
    });
    let reload = timeout(PATIENCE, reading).await;
    let status = live.robots.status();
    let hash = status.live.map(|hash| hash.to_string());
    let (grace_end, grace_rules) = (status.grace_end.map(rfc3339), status.grace_rules);
    let (outcome, message) = match reload {
        Ok(Ok(reload)) => (reload.outcome.kind().as_str(), reload.to_string()),
        Ok(Err(_)) | Err(_) => ("kept", still_reading() + ": see the log for the outcome"),
    };
    let (name, outcome) = (live.name, outcome.to_owned());
    SiteReload { name, grace_end, grace_rules, outcome, hash, message, append: Vec::new() }
}

/// Runs `work` for all items, at most [`MAX_CONCURRENT_READS`] at a time. The results have the
/// order of the items, however long each item takes.
fn run_concurrently<T, F: Future>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> F,
) -> impl Future<Output = Vec<F::Output>> {
    let numbered = |(number, working): (usize, F)| async move { (number, working.await) };
    let working: Vec<_> = items.into_iter().map(work).enumerate().map(numbered).collect();
    async {
        let mut results: Vec<_> = stream::iter(working).buffer_unordered(MAX_CONCURRENT_READS).collect().await;
        results.sort_unstable_by_key(|(number, _)| *number);
        results.into_iter().map(|(_, result)| result).collect()
    }
}
