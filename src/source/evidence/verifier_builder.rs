//! Starting a [`Verifier`].

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::claim_paths::{ClaimPaths, SavedPaths};
use super::dns_resolver::DnsResolver;
use super::document::{SavedDocuments, VerifierError};
use super::followed::Following;
use super::list_copies::ListCopy;
use super::lookups::Lookups;
use super::missing_evidence::{self, EvidenceEvent, EvidenceListener};
use super::verification_plan::OperatorTable;
use super::verified_claims::EvidenceVersion;
use super::verifier::{Configured, Learned, Verifier};
use crate::agent::{Network, Registry};
use crate::identity::{DirectoryUrl, RangeSet};
use crate::live::Clock;
use crate::source::fetch::{FetchUrl, Fetcher};

/// Starts a [`Verifier`].
#[must_use]
pub struct VerifierBuilder {
    registry: Arc<Registry>,
    fetcher: Option<Fetcher>,
    folder: Option<PathBuf>,
    configured: Configured,
    resolvers: Vec<SocketAddr>,
    looks_names_up: bool,
    trusted_proxies: RangeSet,
    clock: Clock,
    listeners: Vec<EvidenceListener>,
}

impl Verifier {
    /// The evidence for the crawlers of a registry. Nothing is fetched before [`start`](VerifierBuilder::start).
    pub fn builder(registry: &Arc<Registry>) -> VerifierBuilder {
        VerifierBuilder::new(registry.clone())
    }
}

impl VerifierBuilder {
    fn new(registry: Arc<Registry>) -> Self {
        Self {
            registry,
            fetcher: None,
            folder: None,
            configured: Configured::default(),
            resolvers: Vec::new(),
            looks_names_up: true,
            trusted_proxies: RangeSet::default(),
            clock: Clock::coarse(),
            listeners: Vec::new(),
        }
    }

    /// The fetcher to fetch with. Default: one of its own.
    pub fn fetcher(mut self, fetcher: &Fetcher) -> Self {
        self.fetcher = Some(fetcher.clone());
        self
    }

    /// The folder in which lists, keys and the paths on which crawlers were verified are saved for the next start. Default: none.
    pub fn saved_in(mut self, folder: impl Into<PathBuf>) -> Self {
        self.folder = Some(folder.into());
        self
    }

    /// A file with a copy of the list at a URL, for a start without a network. It verifies, and refutes no claim until the
    /// list itself is fetched.
    ///
    /// # Errors
    ///
    /// If the URL or the file cannot be read.
    pub fn list_file(mut self, url: &str, path: impl AsRef<Path>) -> Result<Self, VerifierError> {
        let url: FetchUrl = url.parse().map_err(|error| VerifierError::new(format!("list {url:?}: {error}")))?;
        self.configured.copies.insert(url.to_string(), ListCopy::of_file(path.as_ref())?);
        Ok(self)
    }

    /// A key directory whose signatures verify, besides those that rows of the registry name.
    ///
    /// # Errors
    ///
    /// If it is no `https` URL.
    pub fn directory(mut self, url: &str) -> Result<Self, VerifierError> {
        let directory = DirectoryUrl::parse(url);
        let directory = directory.map_err(|error| VerifierError::new(format!("directory {url:?}: {error}")))?;
        self.configured.directories.push(directory);
        Ok(self)
    }

    /// The resolvers to ask, in place of the system's.
    pub fn resolvers(mut self, servers: impl IntoIterator<Item = SocketAddr>) -> Self {
        self.resolvers = servers.into_iter().collect();
        self
    }

    /// Looks no names up, so no resolver learns which addresses claim to be crawlers.
    pub const fn without_names(mut self) -> Self {
        self.looks_names_up = false;
        self
    }

    /// The networks of the proxies that are trusted to name the client: a request that has the address of one is judged by no
    /// address ([`public_address`](Verifier::public_address)). Default: none.
    pub fn trusted_proxies(mut self, networks: impl IntoIterator<Item = Network>) -> Self {
        self.trusted_proxies = networks.into_iter().collect();
        self
    }

    /// Calls back where evidence is missing, once for each cause, and once nothing is missing any more. It runs on the fetcher's thread and
    /// must not block. With the feature `tracing` both are events of the target `tower_robots::evidence` too. Panics are caught.
    pub fn on_event(mut self, listener: impl Fn(&EvidenceEvent) + Send + Sync + 'static) -> Self {
        self.listeners.push(Box::new(listener));
        self
    }

    /// The time, for tests. Default: the system's; it may be some milliseconds behind, where reading it costs less then.
    pub fn clock(mut self, clock: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        self.clock = Clock::new(clock);
        self
    }

    /// Starts to fetch, on a thread of its own.
    ///
    /// # Errors
    ///
    /// If a row of the registry names a list, a host pattern or a directory that cannot be read, if the resolvers of the
    /// system cannot be found, or if the system gives no thread.
    pub fn start(self) -> Result<Verifier, VerifierError> {
        let failed = |what: &str, error: &dyn fmt::Display| VerifierError::new(format!("{what}: {error}"));
        let fetcher = match self.fetcher {
            Some(fetcher) => fetcher,
            None => Fetcher::new().map_err(|error| failed("no thread to fetch on", &error))?,
        };
        let version = EvidenceVersion::default();
        let lookups = if self.looks_names_up {
            // Its sockets belong to the fetcher's thread.
            let _inside = fetcher.handle().enter();
            let resolver =
                DnsResolver::new(&self.resolvers).map_err(|error| failed("no resolver for names", &error))?;
            let lookups = Lookups::new(self.clock.clone(), version.clone());
            fetcher.handle().spawn(Lookups::run(Arc::downgrade(&lookups), Arc::new(resolver)));
            Some(lookups)
        } else {
            None
        };
        let (paths, operators) = match &self.folder {
            Some(folder) => {
                let (saved, now) = (SavedPaths::in_folder(folder), self.clock.now());
                let paths = Arc::new(ClaimPaths::default());
                let proofs = match saved.load(now) {
                    Ok(learned) => {
                        paths.restore(learned.paths, now);
                        learned.proofs
                    }
                    Err(trouble) => {
                        paths.not_saved(trouble);
                        Vec::new()
                    }
                };
                let operators = Arc::new(OperatorTable::new(proofs));
                let keep = saved.keep(Arc::downgrade(&paths), Arc::downgrade(&operators), self.clock.clone());
                fetcher.handle().spawn(keep);
                (paths, operators)
            }
            None => Default::default(),
        };
        let saved = self.folder.map(SavedDocuments::new);
        let following = Following { fetcher: fetcher.clone(), clock: self.clock, saved };
        let learned = Learned { lookups, paths, operators, version };
        let verifier = Verifier::new(following, learned, self.trusted_proxies, self.configured, &self.registry)?;
        fetcher.handle().spawn(missing_evidence::report(verifier.downgrade(), self.listeners));
        Ok(verifier)
    }
}

impl fmt::Debug for VerifierBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifierBuilder").field("configured", &self.configured).finish_non_exhaustive()
    }
}
