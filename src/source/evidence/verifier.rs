//! The [`Verifier`], which checks who sent a request.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use arc_swap::ArcSwap;
use foldhash::fast::RandomState;
use robots_core::internals::damerau_levenshtein;

use super::claim_paths::ClaimPaths;
use super::claimants::FirstSeen;
use super::lookups::Lookups;
use super::signature_results::SignatureResults;
use super::verification_plan::{CrawlerMethods, MethodTable, OperatorTable, VerificationPlan};
use super::verified_claims::{ClaimKey, EvidenceVersion, VerifiedClaims};
use super::{ClaimPath, ListCopy, SuspectPath};
use crate::agent::{Agent, Crawler, Identity, Network, Registry, UndecidedReason};
use crate::identity::{
    ClaimEvidence, DirectoryUrl, Identified, IdentityRequest, KeySet, ListEvidence, MessageHead, MethodOutcome,
    PublicAddress, RangeList, RangeSet, SignatureCheck, Signers,
};
use crate::live::Mutex;
use crate::source::fetch::{FetchUrl, FetcherTask, without_secrets};
use crate::source::follow::{CurrentCopy, DocumentStatus, FollowBuilder, FollowError, FollowedDocument, Following};

/// Keeps the evidence about crawlers up to date, and uses the evidence to verify or refute the
/// claims of requests.
///
/// Lists are fetched regularly. Key directories are fetched, and reverse DNS names are looked up,
/// when a request needs them. Fetches and lookups run on separate threads. No request waits for a
/// fetch or lookup: a request is checked with the evidence that is available.
///
/// Cloning is cheap; clones share the evidence. When the last clone is dropped, the threads stop.
#[derive(Clone)]
pub struct Verifier {
    pub(super) inner: Arc<Evidence>,
}

/// Time limit for the first fetches. After this time, missing evidence is reported even if these
/// fetches have not finished.
pub(super) const FIRST_FETCHES: Duration = Duration::from_secs(60);

/// Key in [`VerifierStatus::by_cause`] for the problem that neither lists nor host names can refute
/// claims.
pub(super) const NOTHING: &str = "nothing";

/// Key in [`VerifierStatus::by_cause`] for the problem that only host names, but not lists, can
/// refute claims.
pub(super) const NO_LIST: &str = "no list";

pub(super) struct Evidence {
    pub(super) began: Instant,
    pub(super) following: Following,
    pub(super) configured: Configured,
    pub(super) trusted_proxies: ArcSwap<RangeSet>,
    /// The lists that are fetched. The key is the URL with its query. When the registry is
    /// replaced, lists that are also in the new registry are kept. The lock is held during this
    /// replacement.
    pub(super) lists: Mutex<BTreeMap<String, FollowedDocument<RangeList>>>,
    pub(super) methods: ArcSwap<MethodTable>,
    pub(super) directories: ArcSwap<DirectoryTable>,
    pub(super) signers: ArcSwap<Signers>,
    pub(super) lookups: Option<Arc<Lookups>>,
    pub(super) paths: Arc<ClaimPaths>,
    pub(super) operators: Arc<OperatorTable>,
    pub(super) version: EvidenceVersion,
    pub(super) verified: VerifiedClaims,
    pub(super) first_seen: FirstSeen,
    pub(super) signatures: SignatureResults,
    /// Tasks that run until the last clone of the verifier is dropped.
    pub(super) _tasks: Vec<FetcherTask>,
}

#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Copies of published address lists, from files that the application has added
    /// ([`FollowBuilder::list_file`]). The key is the URL of the list with its query.
    pub(super) copies: HashMap<String, ListCopy>,
    pub(super) directories: Vec<DirectoryUrl>,
}

impl Configured {
    fn copies_without_effect<'u>(&self, urls: impl Iterator<Item = &'u String> + Clone) -> Vec<String> {
        let mut copies_without_effect: Vec<_> =
            self.copies.keys().filter(|url| !urls.clone().any(|known| known == *url)).collect();
        copies_without_effect.sort();
        let line = |url: &String| {
            let near = urls.clone().map(|known| (damerau_levenshtein(url, known), known)).min();
            let near = near.filter(|(distance, known)| *distance <= known.len() / 4);
            let meant =
                near.map_or_else(String::new, |(_, known)| format!(": did you mean {:?}?", without_secrets(known)));
            let url = without_secrets(url);
            format!(
                "the copy of the list {url:?} has no effect, because no crawler in the registry has this URL{meant}"
            )
        };
        copies_without_effect.into_iter().map(line).collect()
    }
}

pub(super) type DirectoryTable = HashMap<DirectoryUrl, FollowedDocument<KeySet>, RandomState>;

impl Verifier {
    /// Checks whether [`follow`](Self::follow) would accept a registry. Changes nothing.
    ///
    /// # Errors
    ///
    /// Returns an error if [`follow`](Self::follow) would reject the registry.
    pub fn check(&self, registry: &Registry) -> Result<(), FollowError> {
        VerificationPlan::of(registry, &self.inner.configured.directories).map(|_| ())
    }

    /// Replaces the registry, and uses the lists, reverse DNS names and key directories in the new
    /// registry. Evidence that both registries use is kept.
    ///
    /// # Errors
    ///
    /// Returns an error if the registry contains an invalid URL of a list or directory, or an
    /// invalid host pattern. In case of an error, the previous registry and evidence stay in use.
    pub fn follow(&self, registry: &Registry) -> Result<(), FollowError> {
        let evidence = &*self.inner;
        let mut known = evidence.lists.lock();
        let plan = VerificationPlan::of(registry, &evidence.configured.directories)?;
        let follow_list = |(text, url)| {
            let list = known.get(&text).cloned().unwrap_or_else(|| evidence.follow_list(url));
            (text, list)
        };
        let lists: BTreeMap<_, _> = plan.lists.into_iter().map(follow_list).collect();
        let mut methods = MethodTable::default();
        for row in plan.rows {
            let names = (!row.patterns.is_empty()).then(|| evidence.operators.names_of(row.patterns));
            let lists = row.lists.iter().map(|text| lists[text].clone()).collect();
            methods.insert(row.name, CrawlerMethods { lists, names });
        }
        let before = evidence.directories.load();
        let follow_keys = |(directory, url)| {
            let start = || FollowedDocument::start(FollowBuilder::of(url, ()).followed, None, &evidence.following).0;
            let keys = before.get(&directory).cloned().unwrap_or_else(start);
            (directory, keys)
        };
        evidence.directories.store(Arc::new(plan.directories.into_iter().map(follow_keys).collect()));
        evidence.methods.store(Arc::new(methods));
        evidence.signers.store(Arc::new(Signers::of(registry)));
        evidence.version.change();
        *known = lists;
        Ok(())
    }

    /// Replaces the networks of the trusted proxies ([`FollowBuilder::trusted_proxies`]), for
    /// example when the configuration is reloaded.
    pub fn set_trusted_proxies(&self, networks: impl AsRef<[Network]>) {
        self.inner.trusted_proxies.store(Arc::new(networks.as_ref().iter().copied().collect()));
        self.inner.version.change();
    }

    /// Returns the client's address, for checking who sent a request. `None` if the address does
    /// not identify the client ([`PublicAddress::of`]), for example because it is the address of a
    /// trusted proxy that did not forward the client's address.
    pub fn public_address(&self, address: Option<IpAddr>) -> Option<PublicAddress> {
        let proxies = self.inner.trusted_proxies.load();
        PublicAddress::of(address, |address| proxies.contains(address)).ok()
    }

    /// Identifies the sender of a request with the current evidence. `path` is the site and the
    /// listener that received the request.
    ///
    /// Missing evidence is fetched or looked up for later requests. If `path` is suspect (see
    /// [`SuspectPath`]), failed checks do not refute a claim.
    pub fn identify<'a>(&self, request: &IdentityRequest<'a>, path: ClaimPath<'_>, now: SystemTime) -> Identified<'a> {
        let mut identified = request.identify(self, now);
        // On each path, all signed requests that do not name a registered crawler share the circuit
        // breaker of the empty crawler name, so that clients cannot create breakers by inventing
        // names.
        let crawler = identified.registered.unwrap_or_default();
        let paths = &self.inner.paths;
        let claims = paths.of_crawler(path, crawler);
        identified.identity = paths.judge(claims, identified.identity, request.address, now);
        identified
    }

    /// Identifies the sender of a request without a signature. `address` is the apparent address of
    /// the client. A crawler that was verified at this address in the current minute is not checked
    /// again.
    pub fn identify_unsigned(
        &self,
        agents: &[Agent],
        address: Option<IpAddr>,
        path: ClaimPath<'_>,
        now: SystemTime,
    ) -> Identity {
        let evidence = &*self.inner;
        let ([agent], Some(client)) = (agents, address) else {
            // A stored claim is used only if the request has an address and a single agent. Several
            // agents must all be checked, because the strictest result counts.
            return self.identify(&IdentityRequest::new(agents, self.public_address(address)), path, now).identity;
        };
        let paths = &evidence.paths;
        let claims = paths.of_crawler(path, agent.registered().map_or("", |crawler| &crawler.name));
        let key = ClaimKey::new(claims.key, client, now, evidence.version.current());
        if let Some(method) = evidence.verified.find(&key) {
            return Identity::Verified(method);
        }
        let request = IdentityRequest::new(agents, self.public_address(address));
        let found = request.identify(self, now).identity;
        let identity = paths.judge(claims, found, request.address, now);
        if let Identity::Verified(method) = identity {
            evidence.verified.note(&key, method);
        }
        identity
    }

    /// Returns the key directories and the operators that use them.
    pub fn signers(&self) -> Arc<Signers> {
        self.inner.signers.load_full()
    }

    /// Reports whether a lookup of the sender's address is still pending and may change the result.
    /// Does not count the result in a circuit breaker.
    pub(crate) fn is_awaited(&self, request: &IdentityRequest<'_>, now: SystemTime) -> bool {
        request.identify(self, now).is_rdns_pending
    }

    /// Returns the current time of the verifier's clock.
    pub fn now(&self) -> SystemTime {
        self.inner.following.clock.now()
    }

    /// Requests a new fetch of every list. Each list is nevertheless fetched at most once an hour.
    pub fn refresh(&self) {
        self.inner.lists.lock().values().for_each(|list| list.request_copy());
    }

    /// Waits until the next lookup ends. Never completes if lookups are disabled.
    pub(crate) async fn lookup_ended(&self) {
        match &self.inner.lookups {
            Some(lookups) => lookups.ended.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Returns the status of the evidence.
    pub fn status(&self) -> VerifierStatus {
        let evidence = &*self.inner;
        let (lists, unnamed_lists): (Vec<_>, _) = {
            let lists = evidence.lists.lock();
            (
                lists.values().map(FollowedDocument::status).collect(),
                evidence.configured.copies_without_effect(lists.keys()),
            )
        };
        let lookups = evidence.lookups.as_ref();
        let now = evidence.following.clock.now();
        let is_confirmed = |list: &DocumentStatus| list.confirmed.is_some_and(|at| ListEvidence::is_fresh(at, now));
        let are_names_answered = lookups.and_then(|lookups| lookups.is_answered());
        let is_list_fresh = lists.iter().any(is_confirmed);
        let can_refute = is_list_fresh || are_names_answered == Some(true);
        let has_tried = !lists.is_empty() && self.has_asked();
        let is_settled = has_tried || evidence.began.elapsed() > FIRST_FETCHES;
        let directories = evidence.directories.load();
        let mut directories: Vec<_> = directories.values().map(FollowedDocument::status).collect();
        directories.sort_by(|left, right| left.url.cmp(&right.url));
        VerifierStatus {
            is_list_fresh: (is_list_fresh || is_settled && !lists.is_empty()).then_some(is_list_fresh),
            lists,
            directories,
            unnamed_lists,
            can_refute: (can_refute || is_settled).then_some(can_refute),
            are_names_answered,
            known_names: lookups.map(|lookups| lookups.known.len()),
            waiting_names: lookups.map_or(0, |lookups| lookups.queue.waiting()),
            known_signatures: evidence.signatures.known(),
            suspects: evidence.paths.suspects(now),
            paths_problem: evidence.paths.problem.lock().clone(),
        }
    }

    /// Reports whether every list was requested at least once, successfully or not.
    pub(super) fn has_asked(&self) -> bool {
        self.inner.lists.lock().values().all(|list| list.was_requested())
    }
}

impl ClaimEvidence for Verifier {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let methods = self.inner.methods.load();
        let of_crawler = methods.get(crawler.name.as_str()).filter(|methods| !methods.lists.is_empty())?;
        Some(self.inner.range(&of_crawler.lists, address, now))
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let methods = self.inner.methods.load();
        let names = methods.get(crawler.name.as_str())?.names.as_ref()?;
        Some(self.inner.lookups.as_ref()?.outcome(address, names, now))
    }

    fn keys(&self, directory: &DirectoryUrl, keyid: &str, now: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        let directories = self.inner.directories.load();
        let directory = directories.get(directory).ok_or(UndecidedReason::DirectoryNotConfigured)?;
        directory.request_if_stale(now);
        let keys = directory.current().ok_or(UndecidedReason::DirectoryUnavailable)?;
        if !keys.thumbprints().any(|thumbprint| thumbprint == keyid) {
            directory.request_copy();
        }
        Ok(keys)
    }

    /// Checks each valid signature only once, and limits the number of failing checks per client
    /// and second.
    fn signatures(
        &self,
        message: &MessageHead<'_>,
        address: Option<PublicAddress>,
        now: SystemTime,
    ) -> Option<Arc<[SignatureCheck]>> {
        let keys = |directory: &DirectoryUrl, keyid: &str| self.keys(directory, keyid, now);
        self.inner.signatures.check(message, address, now, keys)
    }
}

impl Evidence {
    fn follow_list(&self, url: FetchUrl) -> FollowedDocument<RangeList> {
        let text = url.unredacted();
        // `FollowedDocument::start` prefers a saved copy to `copy`. `ListCopy::all` must use the
        // same order of preference: saved, configured, embedded.
        let copy = self.configured.copies.get(&text).cloned().or_else(|| ListCopy::embedded(&text));
        let copy = copy.map(|copy| CurrentCopy::new(copy.list, copy.origin, copy.confirmed));
        FollowedDocument::start(FollowBuilder::of(url, self.version.clone()).followed, copy, &self.following).0
    }

    fn range(&self, lists: &[FollowedDocument<RangeList>], address: PublicAddress, now: SystemTime) -> MethodOutcome {
        let examine = |first_seen: Option<SystemTime>| {
            ListEvidence::combine(lists.iter().map(|list| {
                list.with_current_copy(|held| {
                    let Some(held) = held else { return MethodOutcome::Undecided(UndecidedReason::NotLoaded) };
                    let evidence = ListEvidence { set: &held.document.set, confirmed: held.confirmed };
                    evidence.outcome(address, first_seen, now)
                })
            }))
        };
        let outcome = examine(None);
        match outcome {
            MethodOutcome::Verified => outcome,
            // The claim is refuted by a recently fetched list that does not contain the address.
            // Such a list refutes even the first claim from an address.
            MethodOutcome::Failed(_) => {
                self.first_seen.note(address, now);
                outcome
            }
            MethodOutcome::Undecided(_) => {
                let outcome = match self.first_seen.time(address, now) {
                    Some(first_seen) => examine(Some(first_seen)),
                    None => outcome,
                };
                if matches!(outcome, MethodOutcome::Undecided(_)) {
                    lists.iter().for_each(|list| list.request_copy());
                }
                outcome
            }
        }
    }
}

robots_core::debug_as!(|it| Verifier { status: it.status() });

/// The status of the evidence of a [`Verifier`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierStatus {
    /// Published lists, sorted by URL.
    pub lists: Vec<DocumentStatus>,
    /// Key directories, sorted by URL. A directory is fetched when a request needs it.
    pub directories: Vec<DocumentStatus>,
    /// Messages about configured copies of lists that have no effect, because the registry does not
    /// contain their URLs. Each message suggests the URL that was probably meant.
    pub unnamed_lists: Vec<String>,
    /// Whether claims can be refuted. Refuting a claim requires a list that its server has
    /// confirmed within a day, or a DNS resolver that answers. `None` instead of `false` in the
    /// first minute after the start, while at least one list has not been requested yet.
    pub can_refute: Option<bool>,
    /// Whether at least one list was confirmed by its server within a day. `None` if there are no
    /// lists. `None` instead of `false` in the first minute after the start, while at least one
    /// list has not been requested yet.
    pub is_list_fresh: Option<bool>,
    /// Whether the DNS resolver answers. The value becomes `true` when the resolver answers a
    /// query, and `false` when a query fails more than an hour after the last response. `None` if
    /// no query was sent.
    pub are_names_answered: Option<bool>,
    /// Number of stored lookup results, at most 65,536; `None` if lookups are disabled.
    pub known_names: Option<usize>,
    /// Number of addresses that are waiting for a lookup, at most 256.
    pub waiting_names: usize,
    /// Number of stored results of checking signatures, at most 5,120.
    pub known_signatures: usize,
    /// The suspect claim paths. Proxies on these paths may change addresses or signatures, so
    /// failed checks there do not refute claims.
    pub suspects: Vec<SuspectPath>,
    /// Why the times when each crawler was last verified on each claim path cannot be saved, or
    /// could not be loaded. Without these times, a new process refutes claims on a path only after
    /// it has verified a crawler there.
    pub paths_problem: Option<Arc<str>>,
}

impl VerifierStatus {
    /// Returns the problems with the evidence, one line per cause. A line contains the number of
    /// affected lists and directories, and the URL of one of these documents as an example. If no
    /// claim can be refuted, one line reports this problem.
    pub fn problems(&self) -> Vec<String> {
        self.by_cause().into_values().collect()
    }

    /// Returns the reason why impostors pass under every policy. Either no evidence can refute
    /// claims, or only reverse DNS names can, which most crawlers do not have. `None` if neither
    /// reason is known to apply.
    pub fn ineffective_reason(&self) -> Option<String> {
        let mut problems = self.by_cause();
        problems.remove(NOTHING).or_else(|| problems.remove(NO_LIST))
    }

    /// Returns one problem for each effect (not fetched, or not saved) and cause. The cause is the
    /// beginning of a document's error message, up to the first colon. So if the network is down,
    /// there is one problem for all lists together.
    pub(super) fn by_cause(&self) -> BTreeMap<String, String> {
        const NOT_FETCHED: &str = "cannot be fetched, so they cannot be used to recognise impostors";
        const NOT_SAVED: &str = "could not be saved for the next start";
        let documents = self.lists.iter().map(|list| (0, list)).chain(self.directories.iter().map(|one| (1, one)));
        let problems = documents.flat_map(|(kind, document)| {
            let problems = [(NOT_FETCHED, &document.problem), (NOT_SAVED, &document.save_problem)];
            problems.map(|(effect, problem)| Some((kind, &document.url, effect, problem.as_deref()?)))
        });
        let mut causes: BTreeMap<(&str, &str), ([usize; 2], &str, &str)> = BTreeMap::new();
        for (kind, url, effect, problem) in problems.flatten() {
            let cause = problem.split_once(": ").map_or(problem, |(cause, _)| cause);
            let (counts, ..) = causes.entry((effect, cause)).or_insert(([0; 2], url, problem));
            counts[kind] += 1;
        }
        let line =
            |((effect, cause), ([lists, directories], url, problem)): ((&str, &str), ([usize; 2], &str, &str))| {
                let lists = count_phrase(lists, self.lists.len(), "published list", "published lists");
                let directories = count_phrase(directories, self.directories.len(), "key directory", "key directories");
                let of: Vec<_> = [lists, directories].into_iter().flatten().collect();
                (
                    format!("{effect}: {cause}"),
                    format!("{lists} {effect}; for example {url}: {problem}", lists = of.join(" and ")),
                )
            };
        let mut causes: BTreeMap<_, _> = causes.into_iter().map(line).collect();
        for url in &self.unnamed_lists {
            causes.insert(url.to_string(), url.to_string());
        }
        let of_names = match self.known_names {
            None => "no host names are looked up",
            Some(_) => "no DNS resolver has answered for an hour",
        };
        if self.can_refute == Some(false) {
            let of_lists = "impostors pass unrecognised: no published list was confirmed by its server \
                            within a day";
            causes.insert(NOTHING.to_owned(), format!("{of_lists}, and {of_names}"));
        } else if self.is_list_fresh == Some(false) {
            let unconfirmed = "no published list was confirmed by its server within a day, so impostors can be \
                               recognised only by their host names: for crawlers without host names never, and for \
                               other crawlers only after a request of the same operator was verified";
            causes.insert(NO_LIST.to_owned(), unconfirmed.to_owned());
        } else if self.are_names_answered == Some(false) {
            causes.insert(
                of_names.to_owned(),
                format!("{of_names}, so impostors cannot be recognised by their host names"),
            );
        }
        causes
    }
}

/// Formats a count, as in `41 of 43 published lists`; `None` if the count is 0.
fn count_phrase(count: usize, of: usize, one: &str, several: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} of {of} {}", if of == 1 { one } else { several }))
}
