//! Starts a [`Verifier`], and reports missing evidence.

use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::time::{Instant, sleep};

use super::claim_paths::SavedPaths;
use super::claimants::FirstSeen;
use super::dns_resolver::{DnsResolver, PACE, TIMEOUT};
use super::documents::ListCopy;
use super::lookups::Lookups;
use super::signature_results::SignatureResults;
use super::verified_claims::{EvidenceVersion, VerifiedClaims};
use super::verifier::{Configured, Evidence, FIRST_FETCHES, NO_LIST, NOTHING, Verifier};
use crate::agent::{Network, Registry};
use crate::identity::{DirectoryUrl, RequiredComponent};
use crate::live::{Clock, Mutex, ProblemEvent, ProblemListener};
use crate::source::fetch::{FetchUrl, FetcherTask};
use crate::source::follow::{FollowBuilder, FollowError};

/// Settings of a [`Verifier`].
#[expect(missing_debug_implementations, reason = "the builder of these settings implements `Debug`")]
pub struct VerifierSettings {
    registry: Arc<Registry>,
    configured: Configured,
    resolvers: Vec<SocketAddr>,
    looks_names_up: bool,
    /// Two times: the minimum between two DNS queries, and the limit for a response.
    question_times: (Duration, Duration),
    trusted_proxies: Vec<Network>,
    required: Vec<RequiredComponent>,
    listeners: Vec<ProblemListener>,
}

impl Verifier {
    /// Returns a builder for a verifier of the crawlers in a registry. The verifier fetches nothing
    /// before [`start`](FollowBuilder::start) is called.
    pub fn builder(registry: &Arc<Registry>) -> FollowBuilder<VerifierSettings> {
        let settings = VerifierSettings {
            registry: registry.clone(),
            configured: Configured::default(),
            resolvers: Vec::new(),
            looks_names_up: true,
            question_times: (PACE, TIMEOUT),
            trusted_proxies: Vec::new(),
            required: Vec::new(),
            listeners: Vec::new(),
        };
        FollowBuilder::new(settings, Clock::coarse())
    }
}

impl FollowBuilder<VerifierSettings> {
    /// Adds a file with a copy of the list at a URL, for use without network access. The copy can
    /// verify claims, but claims are refuted only by a list that was fetched. A second call adds
    /// another file.
    ///
    /// # Errors
    ///
    /// Returns an error if the URL is invalid, or the file cannot be read.
    pub fn list_file(mut self, url: &str, path: impl AsRef<Path>) -> Result<Self, FollowError> {
        let url: FetchUrl = url.parse().map_err(|error| FollowError::new(format!("list {url:?}: {error}")))?;
        self.followed.configured.copies.insert(url.unredacted(), ListCopy::of_file(path.as_ref())?);
        Ok(self)
    }

    /// Adds a key directory that is not in the registry. Signatures with the keys in this directory
    /// are accepted. A second call adds another directory.
    ///
    /// # Errors
    ///
    /// Returns an error if `url` is not an `https` URL.
    pub fn directory(mut self, url: &str) -> Result<Self, FollowError> {
        let directory = DirectoryUrl::parse(url);
        let directory = directory.map_err(|error| FollowError::new(format!("directory {url:?}: {error}")))?;
        self.followed.configured.directories.push(directory);
        Ok(self)
    }

    /// Sets the components that a signature must cover in addition to the authority. A signature
    /// that does not cover a required component neither verifies nor refutes a claim. By default,
    /// only the authority is required. A signature that covers only the authority is valid for
    /// every path of the site, so anyone who intercepts such a signature can use it until it
    /// expires. A second call adds components.
    pub fn require_components(mut self, components: impl AsRef<[RequiredComponent]>) -> Self {
        self.followed.required.extend_from_slice(components.as_ref());
        self
    }

    /// Sets the DNS resolvers to use instead of the system's. A second call adds resolvers.
    pub fn resolvers(mut self, servers: impl AsRef<[SocketAddr]>) -> Self {
        self.followed.resolvers.extend(servers.as_ref());
        self
    }

    /// Disables lookups of reverse DNS names, so that no resolver learns which addresses claim to
    /// be crawlers.
    pub const fn without_names(mut self) -> Self {
        self.followed.looks_names_up = false;
        self
    }

    #[cfg(test)]
    pub(crate) const fn question_times(mut self, pace: Duration, timeout: Duration) -> Self {
        self.followed.question_times = (pace, timeout);
        self
    }

    /// Sets the networks of the proxies that are trusted to forward the client's address. If the
    /// client's address seems to be in one of these networks, a proxy did not forward the real
    /// address, so the claim is not checked by address
    /// ([`public_address`](Verifier::public_address)). Default: none. A second call adds networks.
    pub fn trusted_proxies(mut self, networks: impl AsRef<[Network]>) -> Self {
        self.followed.trusted_proxies.extend(networks.as_ref());
        self
    }

    /// Adds a callback for missing evidence. The callback is called when a new cause of
    /// [`problems`](super::VerifierStatus::problems) appears, when claims can be refuted again, and
    /// when no problem is left. The callback runs on the fetcher's thread and must not block. With
    /// the feature `tracing`, these events are also logged with the target
    /// `tower_robots::evidence`. Panics are caught. A second call adds a callback.
    pub fn on_event(mut self, listener: impl Fn(&ProblemEvent<'_>) + Send + Sync + 'static) -> Self {
        self.followed.listeners.push(Box::new(listener));
        self
    }

    /// Starts to fetch evidence on a separate thread.
    ///
    /// # Errors
    ///
    /// Returns an error if a row of the registry contains an invalid URL of a list or directory, or
    /// an invalid host pattern; if the system's resolvers cannot be determined; or if the system
    /// cannot start a thread.
    pub fn start(self) -> Result<Verifier, FollowError> {
        let failed = |what: &str, error: &dyn fmt::Display| FollowError::new(format!("{what}: {error}"));
        let (settings, following) =
            self.into_parts().map_err(|error| failed("cannot start a thread for fetches", &error))?;
        let (clock, fetcher, mut tasks) = (&following.clock, &following.fetcher, Vec::new());
        let version = EvidenceVersion::default();
        let lookups = if settings.looks_names_up {
            // The resolver's sockets belong to the fetcher's thread.
            let _inside = fetcher.handle.enter();
            let (pace, timeout) = settings.question_times;
            let resolver = DnsResolver::new(&settings.resolvers, pace, timeout);
            let resolver = resolver.map_err(|error| failed("cannot create a DNS resolver", &error))?;
            let lookups = Lookups::new(clock.clone(), version.clone());
            tasks.push(FetcherTask::start(fetcher.clone(), lookups.clone().run(resolver)));
            Some(lookups)
        } else {
            None
        };
        let (paths, operators) = match &following.saved {
            Some(folder) => {
                let saved = SavedPaths::in_folder(folder.path());
                let (paths, operators) = saved.restore(clock.now());
                let keep = saved.keep(paths.clone(), operators.clone(), clock.clone());
                tasks.push(FetcherTask::start(fetcher.clone(), keep));
                (paths, operators)
            }
            None => Default::default(),
        };
        let inner = Arc::new(Evidence {
            began: Instant::now().into_std(),
            configured: settings.configured,
            trusted_proxies: ArcSwap::from_pointee(settings.trusted_proxies.into_iter().collect()),
            lists: Mutex::default(),
            methods: ArcSwap::default(),
            directories: ArcSwap::default(),
            signers: ArcSwap::default(),
            lookups,
            paths,
            operators,
            version,
            verified: VerifiedClaims::default(),
            first_seen: FirstSeen::default(),
            signatures: SignatureResults::requiring(settings.required),
            _tasks: tasks,
            following,
        });
        let verifier = Verifier { inner };
        verifier.follow(&settings.registry)?;
        let report = report(Arc::downgrade(&verifier.inner), settings.listeners);
        verifier.inner.following.fetcher.handle.spawn(report);
        Ok(verifier)
    }
}

/// Interval between checks for missing evidence, until [`FIRST_FETCHES`] ends.
const SOON: Duration = Duration::from_millis(if cfg!(test) { 10 } else { 500 });
/// Interval between checks for missing evidence, after [`FIRST_FETCHES`].
const LATER: Duration = Duration::from_secs(if cfg!(test) { 1 } else { 60 });

/// Calls the callbacks of `on_event`, and logs the same events. Ends when the evidence is dropped.
async fn report(evidence: Weak<Evidence>, listeners: Vec<ProblemListener>) {
    let began = Instant::now();
    let mut reported: BTreeMap<String, String> = BTreeMap::new();
    loop {
        {
            let Some(inner) = evidence.upgrade() else { return };
            let verifier = Verifier { inner };
            if verifier.has_asked() || began.elapsed() > FIRST_FETCHES {
                let found = verifier.status().by_cause();
                for (_, problem) in found.iter().filter(|(cause, _)| !reported.contains_key(*cause)) {
                    notify(&listeners, &ProblemEvent { site: None, text: problem, is_over: false });
                }
                if reported.contains_key(NOTHING) && !found.contains_key(NOTHING) && !found.is_empty() {
                    let text = if found.contains_key(NO_LIST) {
                        "a DNS resolver answers again"
                    } else {
                        "impostors can be recognised again: a server has confirmed its list"
                    };
                    notify(&listeners, &ProblemEvent { site: None, text, is_over: true });
                }
                if found.is_empty() && !reported.is_empty() {
                    let text = "all published lists and key directories are loaded again, and impostors can be \
                                recognised";
                    notify(&listeners, &ProblemEvent { site: None, text, is_over: true });
                }
                reported = found;
            }
        }
        sleep(if began.elapsed() > FIRST_FETCHES { LATER } else { SOON }).await;
    }
}

fn notify(listeners: &[ProblemListener], event: &ProblemEvent<'_>) {
    #[cfg(feature = "tracing")]
    match event.is_over {
        false => tracing::warn!(target: "tower_robots::evidence", "{event}"),
        true => tracing::info!(target: "tower_robots::evidence", "{event}"),
    }
    event.notify(listeners);
}
