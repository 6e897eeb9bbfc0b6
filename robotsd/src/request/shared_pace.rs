//! Asks the store of rates about requests that are limited. Where it says nothing, the process counts by itself. A request that is
//! only observed waits for nothing.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tower_robots::layer::PacedRequest;
use tower_robots::policy::RateMode;

use crate::shared_rate::{BucketOwner, SharedBucket, SharedKey, SharedRate, SharedVerdict};

/// The store, and what tells the buckets of a site from those of others in it.
#[derive(Clone, Debug)]
pub(crate) struct PaceStore {
    pub(crate) store: SharedRate,
    pub(crate) site: Arc<str>,
    /// Whether each host has a robots.txt of its own.
    pub(crate) has_directory: bool,
}

impl PaceStore {
    /// How long a request has to wait; zero where it passes, and none where the store does not say.
    pub(super) async fn ask(&self, paced: &PacedRequest) -> Option<Duration> {
        // The folder may be another one at each process; the file is named for its host at all of them.
        let file = Path::new(&paced.origin).file_name().filter(|_| self.has_directory).unwrap_or_default();
        let owner = if paced.has_network { BucketOwner::Network } else { BucketOwner::Crawler };
        let key = SharedKey::new(owner, &[self.site.as_bytes(), file.as_encoded_bytes(), paced.key.as_bytes()]);
        let bucket = SharedBucket::new(paced.interval, paced.burst.get());
        let said = match paced.mode {
            RateMode::Refuse => self.store.spend(key, bucket).await,
            _ => self.store.note(key, bucket),
        };
        match said {
            SharedVerdict::Allow => Some(Duration::ZERO),
            SharedVerdict::Deny { wait } => Some(wait.max(Duration::from_micros(1))),
            SharedVerdict::Unknown => None,
        }
    }
}
