//! Checks addresses by their reverse DNS names. Stores the results, and the addresses whose lookups
//! have not finished.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use tokio::sync::Notify;

use super::claimants::Generations;
use super::dns_resolver::DnsResolver;
use super::lookup_queue::LookupQueue;
use super::verified_claims::{EvidenceVersion, second};
use crate::agent::{Network, UndecidedReason};
use crate::identity::{DnsAnswer, MethodOutcome, NamePattern, PublicAddress, RdnsCheck};
use crate::live::{Clock, Mutex};

/// How long the result for a verified address is stored at least. The result is stored longer if
/// its DNS records are valid longer.
const MIN_VERIFIED_TTL: Duration = Duration::from_secs(60 * 60);
/// How long the result for a verified address is stored at most.
const MAX_VERIFIED_TTL: Duration = Duration::from_secs(24 * 60 * 60);
/// How long the result of a failed check is stored.
const FAILED_TTL: Duration = Duration::from_secs(60 * 60);
/// How long an undecided result is stored.
const UNDECIDED_TTL: Duration = Duration::from_secs(60);

/// How long a lookup may be pending before the same address can be looked up again.
const MAX_PENDING: Duration = Duration::from_secs(60);

/// How long after its last response the resolver counts as reachable, even if later queries fail.
const ANSWER_VALIDITY: Duration = Duration::from_secs(60 * 60);

/// Minimum time between two test lookups for one operator, in seconds. A test lookup repeats the
/// lookup of a verified address, to find out whether the resolver answers.
const PROOF_PAUSE: u64 = 60;

/// Patterns for the reverse DNS names of one operator's addresses, and whether the resolver answers
/// queries about these names.
#[derive(Debug, Default)]
pub(super) struct OperatorNames {
    /// Number that represents the operator in cache keys.
    number: u32,
    pub(super) patterns: Arc<[NamePattern]>,
    /// When an address was last verified by these names, in seconds since 1970; 0 if never.
    last_verified: AtomicU64,
    proof: Mutex<Option<PublicAddress>>,
    /// When the address in `proof` was last added to the lookup queue, in seconds since 1970.
    proof_asked: AtomicU64,
}

#[derive(Debug)]
pub(super) struct Lookups {
    pub(super) known: KnownNames,
    pub(super) queue: Arc<LookupQueue<Lookup>>,
    pub(super) ended: Notify,
    /// When the resolver last answered a query, in seconds since 1970; 0 if never.
    answered: AtomicU64,
    /// When a query last failed, in seconds since 1970; 0 if never.
    failed: AtomicU64,
    clock: Clock,
    version: EvidenceVersion,
}

#[derive(Debug)]
pub(super) struct Lookup {
    address: PublicAddress,
    names: Arc<OperatorNames>,
}

impl OperatorNames {
    /// Creates an entry for an operator. `proof` is an address that an earlier process verified by
    /// the operator's names, and that this process has not looked up yet.
    pub(super) fn new(number: u32, patterns: Arc<[NamePattern]>, proof: Option<PublicAddress>) -> Self {
        Self { number, patterns, proof: Mutex::new(proof), ..Self::default() }
    }

    pub(super) fn proof(&self) -> Option<PublicAddress> {
        *self.proof.lock()
    }

    fn last_verified(&self) -> Option<SystemTime> {
        match self.last_verified.load(Ordering::Relaxed) {
            0 => None,
            seconds => Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)),
        }
    }

    fn verified(&self, address: PublicAddress, now: SystemTime) {
        self.last_verified.store(second(now), Ordering::Relaxed);
        *self.proof.lock() = Some(address);
    }

    fn proof_due(&self, now: SystemTime) -> Option<PublicAddress> {
        let (now, asked) = (second(now), self.proof_asked.load(Ordering::Relaxed));
        if asked <= now && now - asked < PROOF_PAUSE {
            return None;
        }
        let proof = self.proof();
        let is_first = self.proof_asked.compare_exchange(asked, now, Ordering::Relaxed, Ordering::Relaxed).is_ok();
        proof.filter(|_| is_first)
    }
}

impl Lookups {
    pub(super) fn new(clock: Clock, version: EvidenceVersion) -> Arc<Self> {
        let (known, queue, ended) = (KnownNames::default(), LookupQueue::new(), Notify::new());
        let (answered, failed) = Default::default();
        Arc::new(Self { known, queue, ended, answered, failed, clock, version })
    }

    /// Returns whether the reverse DNS names of an address belong to this operator. If no result is
    /// stored, adds the address to the lookup queue.
    pub(super) fn outcome(&self, address: PublicAddress, names: &Arc<OperatorNames>, now: SystemTime) -> MethodOutcome {
        let key = (address, names.number);
        let known = self.known.get(&key).filter(|known| holds(known.until, now));
        let (outcome, was_proven) = match known {
            Some(Known { outcome: Some(outcome), was_proven, .. }) => (outcome, was_proven),
            Some(Known { outcome: None, .. }) => return MethodOutcome::Undecided(UndecidedReason::Pending),
            None => return self.look_up(address, names, now),
        };
        let meant = RdnsCheck::through(outcome, names.last_verified(), now);
        if meant == outcome && !was_proven {
            // The lookup is repeated, because the resolver works now, but may have been broken
            // during the failed lookup. During an outage, a resolver may answer every query with
            // NXDOMAIN.
            return self.look_up(address, names, now);
        }
        if meant != outcome {
            // No address of this operator was verified within the last hour, so the resolver may no
            // longer answer queries about the operator's names. To find out, the address that was
            // verified last is looked up again.
            if let Some(proof) = names.proof_due(now) {
                self.enqueue(proof, names);
            }
        }
        meant
    }

    fn look_up(&self, address: PublicAddress, names: &Arc<OperatorNames>, now: SystemTime) -> MethodOutcome {
        let key = (address, names.number);
        let was_verified = self.known.get(&key).is_some_and(|known| known.was_verified);
        // The entry is stored before the address is added to the queue, so that another request
        // from this address does not add it again.
        self.known.insert(key, Known::pending(now + MAX_PENDING, was_verified));
        let has_room = self.enqueue(address, names);
        MethodOutcome::Undecided(if has_room { UndecidedReason::Pending } else { UndecidedReason::Busy })
    }

    /// Adds an address to the queue. If the queue is full, drops the new address or another one.
    /// Reports whether the new address is in the queue.
    fn enqueue(&self, address: PublicAddress, names: &Arc<OperatorNames>) -> bool {
        let Some(left_out) = self.queue.push(address, Lookup { address, names: names.clone() }) else { return true };
        let key = (left_out.address, left_out.names.number);
        match self.known.get(&key) {
            // The entry of the dropped address stays, because `was_verified` is needed when the
            // address is looked up later.
            Some(Known { outcome: None, was_verified: true, .. }) => {
                self.known.insert(key, Known::pending(SystemTime::UNIX_EPOCH, true));
            }
            Some(Known { outcome: None, .. }) => self.known.remove(&key),
            _ => {}
        }
        key != (address, names.number)
    }

    /// Runs the queued lookups. Never returns. If the future is dropped, the waiting addresses are
    /// not looked up.
    pub(super) async fn run(self: Arc<Self>, resolver: DnsResolver) {
        let resolver = Arc::new(resolver);
        loop {
            let (lookup, in_flight) = self.queue.next().await;
            let (lookups, resolver) = (self.clone(), resolver.clone());
            tokio::spawn(async move {
                let check = RdnsCheck::new(lookup.address, lookup.names.patterns.clone());
                let (outcome, holds) = resolver.check(check, |_, answer| lookups.note(answer)).await;
                lookups.conclude(&lookup, outcome, holds);
                drop(in_flight);
            });
        }
    }

    fn note(&self, answer: &DnsAnswer) {
        let is_failure = matches!(answer, DnsAnswer::Failure | DnsAnswer::Timeout | DnsAnswer::Truncated);
        let last = if is_failure { &self.failed } else { &self.answered };
        last.store(second(self.clock.now()), Ordering::Relaxed);
    }

    /// Reports whether the resolver answers queries; `None` if no query was sent. Failures within
    /// [`ANSWER_VALIDITY`] after the last answer are ignored, because a single response may be
    /// lost.
    pub(super) fn is_answered(&self) -> Option<bool> {
        let [answered, failed] = [&self.answered, &self.failed].map(|at| at.load(Ordering::Relaxed));
        let answers = || answered > 0 && failed.saturating_sub(answered) <= ANSWER_VALIDITY.as_secs();
        (answered.max(failed) > 0).then(answers)
    }

    fn conclude(&self, lookup: &Lookup, outcome: MethodOutcome, holds: Duration) {
        let now = self.clock.now();
        let kept = match outcome {
            MethodOutcome::Verified => {
                lookup.names.verified(lookup.address, now);
                holds.clamp(MIN_VERIFIED_TTL, MAX_VERIFIED_TTL)
            }
            MethodOutcome::Failed(_) => FAILED_TTL,
            MethodOutcome::Undecided(_) => UNDECIDED_TTL,
        };
        let key = (lookup.address, lookup.names.number);
        let was_verified = self.known.get(&key).is_some_and(|known| known.was_verified);
        let is_verified = outcome == MethodOutcome::Verified;
        let was_proven = RdnsCheck::through(outcome, lookup.names.last_verified(), now) == outcome;
        let known = Known { outcome: Some(outcome), until: now + kept, was_verified: is_verified, was_proven };
        self.known.insert(key, known);
        if was_verified && !is_verified {
            self.version.change();
        }
        self.ended.notify_waiters();
    }
}

/// Reports whether a result that expires at `until` is still valid. Returns `false` if `until` is
/// too far in the future, because this happens only if the clock was set back.
fn holds(until: SystemTime, now: SystemTime) -> bool {
    until.duration_since(now).is_ok_and(|rest| rest <= MAX_VERIFIED_TTL)
}

/// Maximum number of stored results for verified addresses.
const MAX_VERIFIED: usize = 32_768;
/// Maximum number of stored results for all other addresses.
const MAX_UNVERIFIED: usize = 32_768;

const PARTS: usize = 256;

type NameKey = (PublicAddress, u32);

/// The results of checks by reverse DNS names. The results for verified addresses are stored
/// separately. Only operators can assign the reverse DNS names that verify an address, so other
/// clients cannot displace verified addresses. The results for all other addresses are divided into
/// 256 shards by network (/24 or /48), so even very many addresses of one network displace only
/// addresses in one shard.
#[derive(Debug)]
pub(super) struct KnownNames {
    verified: Generations<NameKey, Known>,
    others: Generations<NameKey, Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// The result of the lookup; `None` until the lookup has finished.
    outcome: Option<MethodOutcome>,
    until: SystemTime,
    /// Whether the last finished lookup verified the address. The value is kept while the address
    /// is looked up again.
    was_verified: bool,
    /// Whether the result is reliable: `false` if the check failed, and the resolver was not known
    /// to work at that time.
    was_proven: bool,
}

impl Known {
    const fn pending(until: SystemTime, was_verified: bool) -> Self {
        Self { outcome: None, until, was_verified, was_proven: false }
    }
}

impl Default for KnownNames {
    fn default() -> Self {
        let by_network = Generations::in_parts(MAX_UNVERIFIED, PARTS, |hasher, (address, _): &NameKey| {
            hasher.hash_one(Network::around(address.get(), 24, 48))
        });
        Self { verified: Generations::new(MAX_VERIFIED), others: by_network }
    }
}

impl KnownNames {
    fn get(&self, key: &NameKey) -> Option<Known> {
        self.verified.get(key).or_else(|| self.others.get(key))
    }

    fn insert(&self, key: NameKey, known: Known) {
        let (into, other) =
            if known.was_verified { (&self.verified, &self.others) } else { (&self.others, &self.verified) };
        other.remove(&key);
        into.insert(key, known);
    }

    fn remove(&self, key: &NameKey) {
        self.verified.remove(key);
        self.others.remove(key);
    }

    pub(super) fn len(&self) -> usize {
        self.verified.len() + self.others.len()
    }
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv6Addr};
    use std::task::{Context, Poll, Waker};

    use super::*;
    use crate::agent::Refutation;

    #[test]
    fn the_evidence_version_changes_when_a_verified_name_fails() {
        let version = EvidenceVersion::default();
        let lookups = Lookups::new(Clock::default(), version.clone());
        let address = PublicAddress::of("8.8.8.8".parse().ok(), |_| false).expect("a public address");
        let names = Arc::new(OperatorNames::new(0, Arc::default(), None));
        let conclude = |outcome: MethodOutcome| {
            lookups.conclude(&Lookup { address, names: names.clone() }, outcome, Duration::ZERO);
            version.current()
        };
        let failed = MethodOutcome::Failed(Refutation::NoName);
        assert_eq!([failed, MethodOutcome::Verified, MethodOutcome::Verified].map(conclude), [0; 3]);
        assert_eq!([failed, failed].map(conclude), [1; 2]);
    }

    /// When the result for an address has expired, the address is looked up again: immediately, or
    /// later if the queue is full.
    #[test]
    fn the_evidence_version_changes_when_an_expired_verified_name_fails_a_new_lookup() {
        let version = EvidenceVersion::default();
        let clock = Clock::default();
        let lookups = Lookups::new(clock.clone(), version.clone());
        let address = PublicAddress::of("8.8.8.8".parse().ok(), |_| false).expect("a public address");
        let names = Arc::new(OperatorNames::new(0, Arc::default(), None));
        let failed = MethodOutcome::Failed(Refutation::NoName);
        let pending = MethodOutcome::Undecided(UndecidedReason::Pending);
        let now = clock.now();
        assert_eq!(lookups.outcome(address, &names, now), pending);
        let lookup = next(&lookups).expect("it is looked up");
        lookups.conclude(&lookup, MethodOutcome::Verified, Duration::ZERO);
        assert_eq!(lookups.outcome(address, &names, now), MethodOutcome::Verified);
        let later = now + MIN_VERIFIED_TTL * 2;
        while lookups.enqueue(address, &names) {}
        assert_eq!(lookups.outcome(address, &names, later), MethodOutcome::Undecided(UndecidedReason::Busy));
        while next(&lookups).is_some() {}
        assert_eq!(lookups.outcome(address, &names, later), pending);
        let lookup = next(&lookups).expect("it is looked up again");
        assert_eq!(version.current(), 0);
        lookups.conclude(&lookup, failed, Duration::ZERO);
        assert_eq!(version.current(), 1);
        lookups.conclude(&lookup, failed, Duration::ZERO);
        assert_eq!(version.current(), 1);
    }

    /// During an outage, a resolver may answer every query with NXDOMAIN. An NXDOMAIN answer from
    /// the outage must not refute claims after the resolver works again.
    #[test]
    fn a_failed_lookup_from_an_outage_is_repeated_when_the_resolver_works_again() {
        let clock = Clock::default();
        let lookups = Lookups::new(clock.clone(), EvidenceVersion::default());
        let [client, proof] = ["8.8.8.8", "8.8.4.4"]
            .map(|address| PublicAddress::of(address.parse().ok(), |_| false).expect("a public address"));
        let names = Arc::new(OperatorNames::new(0, Arc::default(), Some(proof)));
        let failed = MethodOutcome::Failed(Refutation::NoName);
        let undecided = MethodOutcome::Undecided;
        let outcome = || lookups.outcome(client, &names, clock.now());

        assert_eq!(outcome(), undecided(UndecidedReason::Pending));
        lookups.conclude(&next(&lookups).expect("a lookup"), failed, Duration::ZERO);
        assert_eq!(outcome(), undecided(UndecidedReason::UnprovenResolver));
        let proving = next(&lookups).expect("a lookup of the verified address");
        assert_eq!(proving.address, proof);
        lookups.conclude(&proving, MethodOutcome::Verified, Duration::ZERO);

        assert_eq!(outcome(), undecided(UndecidedReason::Pending));
        lookups.conclude(&next(&lookups).expect("a second lookup"), failed, Duration::ZERO);
        assert_eq!([outcome(), outcome()], [failed; 2]);
        assert!(next(&lookups).is_none());
    }

    /// Returns the next waiting lookup if it may start immediately. The returned lookup already
    /// counts as finished.
    fn next(lookups: &Lookups) -> Option<Lookup> {
        let mut next = std::pin::pin!(lookups.queue.next());
        match next.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready((lookup, _)) => Some(lookup),
            Poll::Pending => None,
        }
    }

    fn key(address: IpAddr) -> NameKey {
        (PublicAddress::of(Some(address), |_| false).expect("a public address"), 0)
    }

    /// Simulates an hour with 50 lookups per second, all for one /48.
    #[test]
    fn a_flood_from_one_network_displaces_no_verified_names_and_few_others() {
        let names = KnownNames::default();
        let failed = MethodOutcome::Failed(Refutation::NoName);
        let outcome = |outcome, was_verified| Known {
            outcome: Some(outcome),
            until: SystemTime::now(),
            was_verified,
            was_proven: true,
        };
        let address = |class: u8, number: u32| key(IpAddr::from([class, (number >> 8) as u8, number as u8, 1]));
        for number in 0..1_000 {
            names.insert(address(8, number), outcome(MethodOutcome::Verified, true));
            names.insert(address(9, number), outcome(failed, false));
        }
        for number in 0..180_000_u128 {
            let flood = u128::from(0x2600_0001_0002_u64) << 80 | (number % 65_536) << 64 | number;
            names.insert(key(Ipv6Addr::from_bits(flood).into()), outcome(failed, false));
        }
        let kept = |class: u8| (0..1_000).filter(|number| names.get(&address(class, *number)).is_some()).count();
        assert_eq!(kept(8), 1_000);
        // About 4 of the 1,000 networks are in the same shard as this network.
        assert!(kept(9) > 970, "{}", kept(9));
        assert!(names.len() <= 2_000 + MAX_UNVERIFIED / PARTS, "{}", names.len());
    }
}
