//! Gathers evidence for verifying the senders of requests, if the config has `[identity]`.

use std::net::SocketAddr;
use std::sync::Arc;

use http::Extensions;
use http::uri::Scheme;
use parking_lot::Mutex;
use tower_robots::agent::Registry;
use tower_robots::layer::{RobotsLayer, SenderCheck};
use tower_robots::policy::Impostors;
use tower_robots::source::evidence::Verifier;

use super::log_events::{self, SiteName};
use crate::config::{Config, IdentityConfig};
use crate::date::rfc3339;
use crate::http_common::ClientRequest;
use crate::log::{Log, LogEvent};
use crate::report::{DirectoryReport, IdentityReport, ListReport, SuspectReport};

/// Folder with lists and keys in the state directory.
pub(crate) const EVIDENCE_FOLDER: &str = "evidence";

#[derive(Clone, Debug)]
pub(super) struct SenderEvidence {
    verifier: Verifier,
    pub(super) settings: IdentityConfig,
}

impl SenderEvidence {
    /// Starts to gather evidence. If the config has no `[identity]`, returns `None`, fetches no
    /// lists and resolves no names.
    pub(super) fn start(config: &Config, registry: &Arc<Registry>, log: &Log) -> Result<Option<Self>, String> {
        let Some(settings) = &config.identity else { return Ok(None) };
        let failed = |error: &dyn std::fmt::Display| format!("[identity]: {error}");
        let mut builder = Verifier::builder(registry)
            .resolvers(&settings.resolvers)
            .trusted_proxies(&settings.trusted_proxies)
            .require_components(&settings.require_components)
            .on_event(log_events::problem_observer(log.clone(), LogEvent::Identity));
        if !settings.rdns {
            builder = builder.without_names();
        }
        let state = config.state_dir.iter();
        builder = state.fold(builder, |builder, state| builder.saved_in(state.join(EVIDENCE_FOLDER)));
        for directory in &settings.directories {
            builder = builder.directory(directory).map_err(|error| failed(&error))?;
        }
        for list in &settings.lists {
            builder = builder.list_file(&list.url, &list.path).map_err(|error| failed(&error))?;
        }
        let verifier = builder.start().map_err(|error| failed(&error))?;
        Ok(Some(Self { verifier, settings: settings.clone() }))
    }

    /// Returns the evidence for a new config. If the sources have not changed, returns the previous
    /// evidence. The new registry and settings take effect only after [`apply`](Self::apply),
    /// because the config may still be rejected.
    pub(super) fn renewed(
        before: Option<&Self>,
        config: &Config,
        registry: &Arc<Registry>,
        log: &Log,
    ) -> Result<Option<Self>, String> {
        match (before, &config.identity) {
            (Some(before), Some(settings)) if before.has_sources_of(settings) => {
                before.verifier.check(registry).map_err(|error| format!("[identity]: {error}"))?;
                Ok(Some(Self { verifier: before.verifier.clone(), settings: settings.clone() }))
            }
            _ => Self::start(config, registry, log),
        }
    }

    /// Describes each address list in `config` that differs from the lists in use.
    pub(super) fn changed_lists(&self, config: &Config) -> Vec<String> {
        let lists = config.identity.iter().flat_map(|settings| &settings.lists);
        let changed = lists.filter(|list| !self.settings.lists.contains(list));
        changed.map(|list| format!("the address list {} has changed", list.path.display())).collect()
    }

    pub(super) fn apply(&self, registry: &Registry) {
        // The result is ignored, because the registry was already checked.
        let _ = self.verifier.follow(registry);
        self.verifier.set_trusted_proxies(&self.settings.trusted_proxies);
    }

    /// Switches to the lists, host names and key directories of another registry.
    ///
    /// # Errors
    ///
    /// Returns an error if a value in the registry is invalid. If there is an error, the previous
    /// evidence stays in use.
    pub(super) fn follow(&self, registry: &Registry) -> Result<(), String> {
        self.verifier.follow(registry).map_err(|error| error.to_string())
    }

    pub(super) fn checked(&self, layer: RobotsLayer, site: &SiteName) -> RobotsLayer {
        let names = ListenerNames::default();
        let plain_http = |extensions: &Extensions| ClientRequest::of(extensions)?.is_plain_http.then_some(Scheme::HTTP);
        let check = SenderCheck::new(&self.verifier).site(site.clone()).scheme_from(plain_http);
        layer.verifier(check.listener_from(move |extensions| names.of(ClientRequest::peer_of(extensions)?.listener?)))
    }

    /// Returns a problem if the config tags or refuses impostors, but the evidence can never show
    /// that a sender is an impostor. Problems with individual lists are in the
    /// [report](Self::report).
    pub(super) fn problem(&self) -> Option<String> {
        let status = self.verifier.status();
        let is_ineffective = status.can_refute == Some(false) && self.settings.impostors != Impostors::Observe;
        status.ineffective_reason().filter(|_| is_ineffective)
    }

    pub(super) fn report(&self) -> IdentityReport {
        let status = self.verifier.status();
        let problems = status.problems();
        let now = self.verifier.now();
        let lists = status.lists.into_iter().map(|list| ListReport {
            url: list.url,
            origin: list.origin.map(str::to_owned),
            prefixes: list.entries.unwrap_or_default(),
            created: list.created,
            confirmed: list.confirmed.map(rfc3339),
            age_seconds: list.confirmed.and_then(|at| now.duration_since(at).ok()).map(|age| age.as_secs()),
            problem: list.problem.map(|problem| problem.to_string()),
        });
        let directories = status.directories.into_iter().map(|directory| DirectoryReport {
            url: directory.url,
            keys: directory.entries,
            confirmed: directory.confirmed.map(rfc3339),
            problem: directory.problem.map(|problem| problem.to_string()),
        });
        let suspects = status.suspects.into_iter().map(|suspect| SuspectReport {
            site: suspect.site,
            listener: suspect.listener,
            crawler: suspect.crawler,
            method: suspect.method.as_str().to_owned(),
            networks: suspect.networks.iter().map(ToString::to_string).collect(),
            last_verified: suspect.last_verified.map(rfc3339),
        });
        IdentityReport {
            lists: lists.collect(),
            directories: directories.collect(),
            names_known: status.known_names.unwrap_or_default(),
            names_waiting: status.waiting_names,
            suspects: suspects.collect(),
            problems,
            paths_problem: status.paths_problem.map(|problem| problem.to_string()),
        }
    }

    /// Reports whether `settings` contains the same sources of evidence as the settings in use.
    /// Settings that concern only the use of evidence may differ.
    fn has_sources_of(&self, settings: &IdentityConfig) -> bool {
        let IdentityConfig { impostors, wait, trusted_proxies, .. } = self.settings.clone();
        self.settings == IdentityConfig { impostors, wait, trusted_proxies, ..settings.clone() }
    }
}

/// Cache of the addresses of listeners as strings. Each worker has its own cache, so that workers
/// do not wait for each other.
#[derive(Debug, Default)]
struct ListenerNames(Mutex<Vec<(SocketAddr, Arc<str>)>>);

impl ListenerNames {
    fn of(&self, listener: SocketAddr) -> Option<Arc<str>> {
        let mut names = self.0.lock();
        if let Some((_, name)) = names.iter().find(|(address, _)| *address == listener) {
            return Some(name.clone());
        }
        let name: Arc<str> = listener.to_string().into();
        names.push((listener, name.clone()));
        Some(name)
    }
}
