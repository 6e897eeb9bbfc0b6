//! The evidence about crawlers, as requests read it.

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
use crate::source::fetch::{FetchUrl, FetcherTask};
use crate::source::follow::{DocumentStatus, FollowBuilder, FollowError, FollowedDocument, Following, Held};

/// Keeps the evidence about crawlers fresh, and says what it shows about a request.
///
/// Lists are fetched, key directories are fetched once a request needs one, and names of addresses are looked up, all on
/// threads of its own. A request reads what is at hand and waits for nothing.
///
/// Cheap to clone; clones share the evidence. The last one that is dropped ends the work.
#[derive(Clone)]
pub struct Verifier {
    pub(super) inner: Arc<Evidence>,
}

/// How long the first fetches may take before what is missing is reported without them.
pub(super) const FIRST_FETCHES: Duration = Duration::from_secs(60);

/// The cause of the trouble that nothing can refute a claim.
pub(super) const NOTHING: &str = "nothing";

pub(super) struct Evidence {
    pub(super) began: Instant,
    pub(super) following: Following,
    pub(super) configured: Configured,
    pub(super) trusted_proxies: ArcSwap<RangeSet>,
    /// The lists by URL, which another registry takes over. Held while the registry changes.
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
    /// What is done until the last verifier is dropped.
    pub(super) _tasks: Vec<FetcherTask>,
}

/// The lists and directories that were configured beside the registry.
#[derive(Debug, Default)]
pub(super) struct Configured {
    /// Copies of lists, by URL.
    pub(super) copies: HashMap<String, ListCopy>,
    pub(super) directories: Vec<DirectoryUrl>,
}

impl Configured {
    /// The copies of lists that are none of these, a line each.
    fn unnamed<'u>(&self, urls: impl Iterator<Item = &'u String> + Clone) -> Vec<String> {
        let mut unnamed: Vec<_> = self.copies.keys().filter(|url| !urls.clone().any(|known| known == *url)).collect();
        unnamed.sort();
        let line = |url: &String| {
            let near = urls.clone().map(|known| (damerau_levenshtein(url, known), known)).min();
            let near = near.filter(|(distance, known)| *distance <= known.len() / 4);
            let meant = near.map_or_else(String::new, |(_, known)| format!(": did you mean {known:?}?"));
            format!("the copy of the list {url:?} has no effect, because no row of the registry names that list{meant}")
        };
        unnamed.into_iter().map(line).collect()
    }
}

pub(super) type DirectoryTable = HashMap<DirectoryUrl, FollowedDocument<KeySet>, RandomState>;

impl Verifier {
    /// Whether another registry can be followed. Nothing changes.
    ///
    /// # Errors
    ///
    /// If a row names a list, a host pattern or a directory that cannot be read.
    pub fn check(&self, registry: &Registry) -> Result<(), FollowError> {
        VerificationPlan::of(registry, &self.inner.configured.directories).map(|_| ())
    }

    /// Follows the lists, names and directories of another registry. Evidence that both have is kept.
    ///
    /// # Errors
    ///
    /// If a row names a list, a host pattern or a directory that cannot be read. Then everything stays as it was.
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

    /// The networks of the proxies that are trusted to name the client, in place of those before: for a configuration that
    /// is reloaded.
    pub fn set_trusted_proxies(&self, networks: impl IntoIterator<Item = Network>) {
        self.inner.trusted_proxies.store(Arc::new(networks.into_iter().collect()));
        self.inner.version.change();
    }

    /// The client's address, as a claim can be judged by it; `None` where it says nothing about the client, as
    /// [`PublicAddress::of`] has it. A trusted proxy's address does not: that proxy did not name the client.
    pub fn public_address(&self, address: Option<IpAddr>) -> Option<PublicAddress> {
        let proxies = self.inner.trusted_proxies.load();
        PublicAddress::of(address, |address| proxies.contains(address)).ok()
    }

    /// The sender of a request that came on this path, by the evidence that is at hand.
    ///
    /// Missing evidence is fetched or looked up, for later requests. If so many claims fail on a path that the path is in
    /// doubt, nothing is refuted by its address.
    pub fn identify<'a>(&self, request: &IdentityRequest<'a>, path: ClaimPath<'_>, now: SystemTime) -> Identified<'a> {
        let mut identified = request.identify(self, now);
        // All requests that claim no crawler of the registry, and are signed, are counted together: a client makes no names up.
        let crawler = identified.registered.unwrap_or_default();
        let paths = &self.inner.paths;
        let claims = paths.of_crawler(path, crawler);
        identified.identity = paths.judge(claims, identified.identity, request.address, now);
        identified
    }

    /// The same for a request without a signature, from its address as the server has it. The crawlers that come again and again
    /// are verified by what was found within the minute.
    pub fn identify_unsigned(
        &self,
        agents: &[Agent],
        address: Option<IpAddr>,
        path: ClaimPath<'_>,
        now: SystemTime,
    ) -> Identity {
        let evidence = &*self.inner;
        let ([agent], Some(client)) = (agents, address) else {
            // Of several agents the strictest counts, so that one alone says nothing.
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

    /// The operators whose keys are in each directory.
    pub fn signers(&self) -> Arc<Signers> {
        self.inner.signers.load_full()
    }

    /// Whether names of the sender's address are being looked up, and would say more than is known. It counts no claim.
    pub(crate) fn is_awaited(&self, request: &IdentityRequest<'_>, now: SystemTime) -> bool {
        request.identify(self, now).identity == Identity::Undecided(UndecidedReason::Pending)
    }

    /// The time by which requests are judged.
    pub fn now(&self) -> SystemTime {
        self.inner.following.clock.now()
    }

    /// Has every list fetched again as soon as that may be: an hour after the last time.
    pub fn refresh(&self) {
        self.inner.lists.lock().values().for_each(|list| list.want());
    }

    /// Completes when names have been looked up after the call; never where none are looked up.
    pub(crate) async fn looked_up(&self) {
        match &self.inner.lookups {
            Some(lookups) => lookups.ended.notified().await,
            None => std::future::pending().await,
        }
    }

    /// The evidence at hand.
    pub fn status(&self) -> VerifierStatus {
        let evidence = &*self.inner;
        let (lists, unnamed_lists): (Vec<_>, _) = {
            let lists = evidence.lists.lock();
            (lists.values().map(FollowedDocument::status).collect(), evidence.configured.unnamed(lists.keys()))
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
            paths_trouble: evidence.paths.trouble.lock().clone(),
        }
    }

    /// Whether every list was requested once, successfully or not.
    pub(super) fn has_asked(&self) -> bool {
        self.inner.lists.lock().values().all(|list| list.was_asked())
    }
}

/// Evidence that is missing is requested, and the claim is undecided.
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
        directory.want_if_stale(now);
        let keys = directory.current().ok_or(UndecidedReason::DirectoryUnavailable)?;
        if !keys.thumbprints().any(|thumbprint| thumbprint == keyid) {
            directory.want();
        }
        Ok(keys)
    }

    /// A valid signature is checked once, and so many fail from one address in a second.
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
        let text = url.to_string();
        // A saved copy counts before these: the order of `ListCopy::all`.
        let copy = self.configured.copies.get(&text).cloned().or_else(|| ListCopy::embedded(&text));
        let copy = copy.map(|copy| Held::new(copy.list, copy.origin, copy.confirmed));
        FollowedDocument::start(FollowBuilder::of(url, self.version.clone()).followed, copy, &self.following).0
    }

    fn range(&self, lists: &[FollowedDocument<RangeList>], address: PublicAddress, now: SystemTime) -> MethodOutcome {
        let examine = |first_seen: Option<SystemTime>| {
            ListEvidence::combine(lists.iter().map(|list| {
                list.with_held(|held| {
                    let Some(held) = held else { return MethodOutcome::Undecided(UndecidedReason::NotLoaded) };
                    let evidence = ListEvidence { set: &held.document.set, confirmed: held.confirmed };
                    evidence.outcome(address, first_seen, now)
                })
            }))
        };
        let outcome = examine(None);
        match outcome {
            MethodOutcome::Verified => outcome,
            // A fresh list refutes whenever the address was first seen.
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
                    lists.iter().for_each(|list| list.want());
                }
                outcome
            }
        }
    }
}

robots_core::debug_as!(|it| Verifier { status: it.status() });

/// The evidence that a [`Verifier`] has at hand.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct VerifierStatus {
    /// The published lists, by URL.
    pub lists: Vec<DocumentStatus>,
    /// The key directories, by URL. One is fetched once a request needs it.
    pub directories: Vec<DocumentStatus>,
    /// Copies of lists that no row of the registry names, a line each with the URL that is probably meant: they verify nothing.
    pub unnamed_lists: Vec<String>,
    /// Whether there is evidence that can refute a claim: a list that its server confirmed within a day, or a resolver that answers. `None`
    /// until the lists were requested, for at most a minute.
    pub can_refute: Option<bool>,
    /// Whether a list was confirmed by its server within a day. `None` until the lists were requested, for at most a minute, and if there
    /// are no lists.
    pub is_list_fresh: Option<bool>,
    /// Whether a resolver answers questions about names: it has, and no question an hour later or more was in vain. `None` if none was asked.
    pub are_names_answered: Option<bool>,
    /// How many outcomes of look-ups of names are kept, at most 65,536; `None` where none are looked up.
    pub known_names: Option<usize>,
    /// How many addresses wait to be looked up: at most 256.
    pub waiting_names: usize,
    /// How many results of signatures of requests are kept: at most 5,120.
    pub known_signatures: usize,
    /// The paths on which claims fail and are not refuted, because no crawler has shown that its address comes through.
    pub suspects: Vec<SuspectPath>,
    /// Why what is known of paths will not outlive this process, or why what an earlier one knew is lost: until a crawler is
    /// verified on a path, nothing is refuted there.
    pub paths_trouble: Option<Arc<str>>,
}

impl VerifierStatus {
    /// The faults of the evidence, a line for each cause with the number of lists and directories that have it and one of them; and that
    /// nothing can refute a claim at all, if that is so.
    pub fn troubles(&self) -> Vec<String> {
        self.by_cause().into_values().collect()
    }

    /// Why impostors pass, whatever the policy does with them: nothing can refute a claim at all, or none of the lists can, so that a
    /// crawler without host names is never refuted. `None` if claims can be refuted, and until the lists were requested, for at most a
    /// minute.
    pub fn ineffective_reason(&self) -> Option<String> {
        let of_lists = || {
            let unconfirmed = "no list was confirmed by its server within a day, so the lists refute no claim, and impostors of crawlers \
                               without host names pass";
            (self.is_list_fresh == Some(false)).then(|| unconfirmed.to_owned())
        };
        self.by_cause().remove(NOTHING).or_else(of_lists)
    }

    /// The same by cause, the text up to its details: one network that is down is one line, not one for each list.
    pub(super) fn by_cause(&self) -> BTreeMap<String, String> {
        let lists = self.lists.iter().filter_map(|list| Some((&list.url, list.trouble.as_deref()?, true)));
        let directories = self.directories.iter().filter_map(|one| Some((&one.url, one.trouble.as_deref()?, false)));
        let mut causes: BTreeMap<&str, ([usize; 2], &str, &str)> = BTreeMap::new();
        for (url, trouble, is_list) in lists.chain(directories) {
            let cause = trouble.split_once(": ").map_or(trouble, |(cause, _)| cause);
            let (counts, ..) = causes.entry(cause).or_insert(([0; 2], url, trouble));
            counts[usize::from(!is_list)] += 1;
        }
        let line = |(cause, ([lists, directories], url, trouble)): (&str, ([usize; 2], &str, &str))| {
            let lists = counted(lists, self.lists.len(), "published list", "published lists");
            let directories = counted(directories, self.directories.len(), "key directory", "key directories");
            let of: Vec<_> = [lists, directories].into_iter().flatten().collect();
            (
                cause.to_owned(),
                format!("{} cannot be fetched, so they refute no claim, such as {url}: {trouble}", of.join(" and ")),
            )
        };
        let mut causes: BTreeMap<_, _> = causes.into_iter().map(line).collect();
        for url in &self.unnamed_lists {
            causes.insert(url.to_string(), url.to_string());
        }
        let of_names = match self.known_names {
            None => "no names are looked up",
            Some(_) => "no resolver of names has answered within an hour",
        };
        if self.can_refute == Some(false) {
            let of_lists = "nothing can refute a claim: no list was confirmed by its server within a day";
            causes.insert(NOTHING.to_owned(), format!("{of_lists}, and {of_names}, so impostors pass"));
        } else if self.are_names_answered == Some(false) {
            causes.insert(of_names.to_owned(), format!("{of_names}, so the names of addresses refute no claim"));
        }
        causes
    }
}

/// `41 of 43 published lists`.
fn counted(count: usize, of: usize, one: &str, several: &str) -> Option<String> {
    (count > 0).then(|| format!("{count} of {of} {}", if of == 1 { one } else { several }))
}
