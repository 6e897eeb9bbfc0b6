//! Reading everything again, because somebody asked for it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError};

use super::site_robots::LiveSite;
use super::sites::{ServedSite, Sites};
use crate::admin::{RegistryReload, ReloadReport, SiteReload};
use crate::config::load_registry;

/// Files read at once: each has a thread, and there may be thousands.
const AT_ONCE: usize = 16;

/// There is no site of this name.
#[derive(Debug)]
pub(crate) struct UnknownSite(pub(crate) String);

impl Sites {
    /// Reads the registry and every robots.txt again, or that of one site alone, off the request path; and says what came
    /// of it. A registry with a fault changes nothing. What changes is logged by the listeners of the sites.
    pub(crate) async fn reload(self: &Arc<Self>, only: Option<&str>) -> Result<ReloadReport, UnknownSite> {
        let is_known = |name: &str| self.iter().any(|site| site.is_called(name)) || self.live(name).is_some();
        if let Some(name) = only.filter(|name| !is_known(name)) {
            return Err(UnknownSite(name.to_owned()));
        }
        let (this, name) = (Arc::clone(self), only.map(str::to_owned));
        // Reads files and compiles every site's rules: not for the control thread. A panic in it has been told of by its
        // hook, and what was in force stays.
        let preparing = tokio::task::spawn_blocking(move || {
            let registry = if name.is_none() { this.reload_registry() } else { None };
            this.renew_gates(name.as_deref());
            let is_meant = |site: &&ServedSite| name.as_deref().is_none_or(|name| site.is_called(name));
            this.iter().filter(is_meant).for_each(|site| site.robots.rescan());
            registry
        });
        let registry = preparing.await.unwrap_or_default();
        let chosen: Vec<LiveSite> = match only {
            None => self.lives().collect(),
            Some(name) => match self.iter().find(|site| site.is_called(name)) {
                Some(site) => site.lives(),
                None => self.live(name).into_iter().collect(),
            },
        };
        let mut sites = Vec::with_capacity(chosen.len());
        for some in chosen.chunks(AT_ONCE) {
            let under_way: Vec<_> = some.iter().map(|live| (live, live.robots.reload())).collect();
            for (live, reloading) in under_way {
                let reload = reloading.await;
                sites.push(SiteReload {
                    name: live.name.clone(),
                    outcome: reload.outcome().kind().as_str().to_owned(),
                    hash: live.robots.status().live().map(|hash| hash.to_string()),
                    message: reload.to_string(),
                });
            }
        }
        Ok(ReloadReport { config: None, registry, sites })
    }

    /// Takes up what has changed in the registry or in what is expected. What waits for what is expected is looked at
    /// again.
    pub(super) async fn follow(self: Arc<Self>, changed: BTreeSet<PathBuf>) {
        let this = Arc::clone(&self);
        let renewing = tokio::task::spawn_blocking(move || {
            if this.registry_extra.as_ref().is_some_and(|path| changed.contains(path)) {
                this.reload_registry();
            }
            let is_meant =
                |site: &&ServedSite| site.demands.expectations.as_ref().is_some_and(|path| changed.contains(path));
            for site in this.iter().filter(is_meant) {
                if this.renew_gate(site) {
                    let path = site.demands.expectations.as_deref().unwrap_or(Path::new(""));
                    this.log.say("gate", format!("{}: what {} expects is in force", site.name, path.display()));
                }
            }
        });
        // What went wrong in it has been told by the panic's hook, and what was in force stays.
        let _ = renewing.await;
        for live in self.lives().filter(|live| live.robots.status().pending().is_some()) {
            let _ = live.robots.reload().await;
        }
    }

    fn reload_registry(&self) -> Option<RegistryReload> {
        let path = self.registry_extra.as_ref()?;
        let (event, outcome, message) = match load_registry(Some(path)) {
            Ok(registry) => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                self.iter().for_each(|site| site.robots.set_registry(&registry));
                shared.registry = registry;
                ("registry", "published", format!("{}: is in force", path.display()))
            }
            Err(message) => ("registry-rejected", "kept", format!("{message}; the one before stays in force")),
        };
        self.log.say(event, message.clone());
        Some(RegistryReload { outcome: outcome.to_owned(), message })
    }

    /// Expectations are files too.
    fn renew_gates(&self, only: Option<&str>) {
        for site in self.iter().filter(|site| only.is_none_or(|name| site.is_called(name) || site.has(name))) {
            self.renew_gate(site);
        }
    }

    /// Whether what is expected could be used.
    fn renew_gate(&self, site: &ServedSite) -> bool {
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        match site.demands.gate(&shared.registry) {
            Ok(gate) => {
                site.robots.set_gate(&gate);
                true
            }
            Err(message) => {
                self.log.say("gate", format!("{}: {message}; the demands before stay", site.name));
                false
            }
        }
    }
}
