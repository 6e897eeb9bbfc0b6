//! Reading everything again, because somebody asked for it.

use std::sync::{Arc, PoisonError};

use super::robots::registry;
use super::sites::{Site, Sites};
use crate::admin::{RegistryReload, ReloadReport, SiteReload};

/// Files read at once: each has a thread, and there may be thousands.
const AT_ONCE: usize = 16;

/// There is no site of this name.
#[derive(Debug)]
pub(crate) struct UnknownSite(pub(crate) String);

impl Sites {
    /// Reads the registry and every robots.txt again, or that of one site alone, off the request path; and says what came
    /// of it. A registry with a fault changes nothing. What changes is logged by the listeners of the sites.
    pub(crate) async fn reload(self: &Arc<Self>, only: Option<&str>) -> Result<ReloadReport, UnknownSite> {
        let chosen: Vec<&Site> = self.iter().filter(|site| only.is_none_or(|name| *site.name == *name)).collect();
        if let (Some(name), true) = (only, chosen.is_empty()) {
            return Err(UnknownSite(name.to_owned()));
        }
        let only = only.map(str::to_owned);
        let this = Arc::clone(self);
        // Reads files and compiles every site's rules: not for the control thread. A panic in it has been told of by its
        // hook, and what was in force stays.
        let preparing = tokio::task::spawn_blocking(move || {
            let registry = if only.is_none() { this.reload_registry() } else { None };
            this.renew_gates(only.as_deref());
            registry
        });
        let registry = preparing.await.unwrap_or_default();
        let mut sites = Vec::with_capacity(chosen.len());
        for some in chosen.chunks(AT_ONCE) {
            let under_way: Vec<_> = some.iter().map(|site| (site, site.live.reload())).collect();
            for (site, reloading) in under_way {
                let reload = reloading.await;
                sites.push(SiteReload {
                    name: site.name.to_string(),
                    outcome: reload.outcome().kind().as_str().to_owned(),
                    hash: site.live.status().live().map(|hash| hash.to_string()),
                    message: reload.to_string(),
                });
            }
        }
        Ok(ReloadReport { registry, sites })
    }

    fn reload_registry(&self) -> Option<RegistryReload> {
        let path = self.registry_extra.as_ref()?;
        let (event, outcome, message) = match registry(Some(path)) {
            Ok(registry) => {
                let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
                self.iter().for_each(|site| site.live.set_registry(registry.clone()));
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
        let shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        for site in self.iter().filter(|site| only.is_none_or(|name| *site.name == *name)) {
            match site.demands.gate(&shared.registry) {
                Ok(gate) => site.live.set_gate(gate),
                Err(message) => self.log.say("gate", format!("{}: {message}; the demands before stay", site.name)),
            }
        }
    }
}
