//! Decides whether the first version of a site may go live on a new replica. On a new replica,
//! there is no earlier version that the gate could compare with the first version. The first
//! version may therefore go live if the fleet has accepted it, or if a running replica serves it.
//! If the fleet does not know the site, the gate ignores the fleet.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use redis::cmd;
use tokio::runtime::Builder;
use tokio::task::LocalSet;
use tokio::time::timeout;
use tower_robots::live::{Gate, VersionHashPrefix};

use super::handle::Fleet;
use super::link::{LinkError, StoreLink};
use super::reader::DocumentReader;
use crate::render::short_hash;
use crate::report::is_of;

/// Maximum time that a replica without stored state waits for the store at its start. If the store
/// does not respond within this time, robots.txt files go live, but nothing is enforced.
const CONTACT: Duration = Duration::from_secs(3);

impl Fleet {
    /// Reads the document and the heartbeats. Must be called before the sites are opened. Does
    /// nothing if this replica already knows the document. Blocks.
    pub(crate) fn read_at_start(self: &Arc<Self>) {
        if self.member.lock().is_known() {
            return;
        }
        let fleet = Arc::clone(self);
        let contact = move || {
            let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return };
            let contact = contact(fleet);
            // Errors are ignored here, because problems with the store are reported after the
            // start.
            let _ = runtime.block_on(LocalSet::new().run_until(async { timeout(CONTACT, contact).await }));
            runtime.shutdown_background();
        };
        // Another thread is needed, because a runtime cannot be started inside another runtime.
        let _ = thread::spawn(contact).join();
    }

    /// Returns the gate of a site. If the fleet knows versions of the site, the gate accepts a
    /// first version on this replica only if it is one of them.
    pub(crate) fn gate(&self, site: &str, gate: Gate) -> Gate {
        let known = self.known_versions(site);
        if known.is_empty() {
            return gate;
        }
        let shown = known.iter().map(|hash| short_hash(hash)).collect::<Vec<_>>().join(", ");
        let hashes = known.iter().filter_map(|hash| hash.parse::<VersionHashPrefix>().ok());
        gate.allow_first_versions(
            hashes,
            format!(
                "this replica has no earlier version of the site, and the version differs from those that the fleet \
                 accepted or serves: {shown}"
            ),
        )
    }

    fn known_versions(&self, site: &str) -> BTreeSet<String> {
        let (member, store) = (self.member.lock(), self.store.lock());
        let accepted = member.accepts().iter().filter(|(name, _)| is_of(site, name)).map(|(_, accept)| &accept.hash);
        let others = store.replicas.iter().filter(|(name, _)| **name != self.settings.replica).map(|(_, beat)| beat);
        let sites = others.filter(|beat| !beat.is_missing(store.now)).flat_map(|beat| beat.sites.iter());
        let served =
            sites.filter(|(name, hash)| is_of(site, name) && !hash.is_empty()).map(|(_, hash)| hash.to_owned());
        accepted.cloned().chain(served).collect()
    }
}

async fn contact(fleet: Arc<Fleet>) -> Result<(), String> {
    DocumentReader::new(Arc::clone(&fleet), None).read().await?;
    let mut link = StoreLink::new(&fleet.settings.store);
    let key = link.key("replicas");
    let replicas = link.read(&key, cmd("HGETALL").arg(&key)).await.map_err(LinkError::text)?;
    let (now, _): (u64, u64) = link.read(&key, &cmd("TIME")).await.map_err(LinkError::text)?;
    fleet.store_heartbeats(now, replicas);
    Ok(())
}
