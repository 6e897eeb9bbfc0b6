//! Whether the store is called: a state machine that is given the time, for each part of the store that fails apart.
//!
//! Closed, it is called. Three calls in a row without an answer, or one broken connection, open it: no request calls it then, and a
//! probe is sent every second. The first that is answered closes it, so a store that is back is used within two seconds. One that
//! answers probes and fails under questions is held open for longer each time, up to half a minute.
//!
//! There is one for each of the parts that fail apart: of one server, the whole; of a cluster, sixteen runs of slots,
//! because the client that follows its slots does not say which node a key is at, and nodes mostly have runs. A node
//! that is out takes a few parts with it, and the others are asked on. A run that two nodes share goes with the one
//! that is out; that fails open.

use std::time::{Duration, Instant};

use super::bucket::{BucketOwner, SharedKey};
use crate::store::{StoreNodes, StoreSettings};

/// Questions in a row that may go unanswered.
const FAILURES: u32 = 3;

/// How often the store is probed while it is not called.
pub(super) const PROBE: Duration = Duration::from_secs(1);

/// The shortest and the longest time for which a store is not called that has failed again.
const HOLDS: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(30));

/// A store that answered for so long has recovered.
const RECOVERED: Duration = Duration::from_secs(10);

/// Whether requests ask the store.
#[derive(Debug)]
pub(super) struct StoreBreaker {
    state: BreakerState,
    /// For how long it is held open when it opens next.
    hold: Duration,
}

#[derive(Debug, PartialEq, Eq)]
enum BreakerState {
    Closed { since: Instant, failures: u32 },
    Open { until: Instant },
}

impl StoreBreaker {
    /// Open until a first probe is answered.
    pub(super) const fn new(now: Instant) -> Self {
        Self { state: BreakerState::Open { until: now }, hold: Duration::ZERO }
    }

    pub(super) const fn is_closed(&self) -> bool {
        matches!(self.state, BreakerState::Closed { .. })
    }

    /// The store answered a question.
    pub(super) const fn answered(&mut self) {
        if let BreakerState::Closed { failures, .. } = &mut self.state {
            *failures = 0;
        }
    }

    /// The store did not answer a question in time. Returns whether that opens the breaker.
    pub(super) fn unanswered(&mut self, now: Instant) -> bool {
        match &mut self.state {
            BreakerState::Closed { failures, .. } if *failures + 1 < FAILURES => {
                *failures += 1;
                false
            }
            _ => self.broken(now),
        }
    }

    /// The connection broke, or the store says that it cannot be used. Returns whether that opens the breaker.
    pub(super) fn broken(&mut self, now: Instant) -> bool {
        let BreakerState::Closed { since, .. } = self.state else { return false };
        if now.saturating_duration_since(since) >= RECOVERED {
            self.hold = Duration::ZERO;
        }
        self.state = BreakerState::Open { until: now + self.hold };
        self.hold = (self.hold * 2).clamp(HOLDS.0, HOLDS.1);
        true
    }

    /// A probe was answered. Returns whether that closes the breaker.
    pub(super) fn probed(&mut self, now: Instant) -> bool {
        match self.state {
            BreakerState::Open { until } if until <= now => {
                self.state = BreakerState::Closed { since: now, failures: 0 };
                true
            }
            _ => false,
        }
    }
}

/// Parts of a cluster.
const PARTS: usize = 16;

/// Slots of a cluster in each part, of 16,384.
const SLOTS: usize = 16_384 / PARTS;

/// Keys that are tried as the probe of a part. With a hash tag in the prefix all of them are in one slot.
const TRIES: u16 = 4096;

/// How many parts the store has.
pub(super) const fn part_count(nodes: StoreNodes) -> usize {
    match nodes {
        StoreNodes::One => 1,
        StoreNodes::Cluster => PARTS,
    }
}

/// The part that a key is in.
pub(super) fn part_of(key: SharedKey, settings: &StoreSettings) -> usize {
    match settings.nodes {
        StoreNodes::One => 0,
        StoreNodes::Cluster => slot(key.name(&settings.prefix).as_bytes()) / SLOTS,
    }
}

/// A key for each part, with which it is probed; none where no key is in that part.
pub(super) fn part_probes(settings: &StoreSettings) -> Vec<Option<SharedKey>> {
    let mut probes = vec![None; part_count(settings.nodes)];
    for number in 0..TRIES {
        let key = SharedKey::new(BucketOwner::Crawler, &[b"probe", &number.to_le_bytes()]);
        probes[part_of(key, settings)].get_or_insert(key);
        if probes.iter().all(Option::is_some) {
            break;
        }
    }
    probes
}

/// The slot of a key: the CRC-16 (XMODEM) of its hash tag, or of all of it, as the specification of Redis Cluster has it.
fn slot(name: &[u8]) -> usize {
    let tag = name.iter().position(|&octet| octet == b'{').and_then(|open| {
        let rest = &name[open + 1..];
        let end = rest.iter().position(|&octet| octet == b'}')?;
        Some(&rest[..end]).filter(|tag| !tag.is_empty())
    });
    let crc = crc16::State::<crc16::XMODEM>::calculate(tag.unwrap_or(name));
    usize::from(crc) % (PARTS * SLOTS)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::StoreUrl;

    fn closed(now: Instant) -> StoreBreaker {
        let mut breaker = StoreBreaker::new(now);
        assert!(!breaker.is_closed());
        assert!(breaker.probed(now) && breaker.is_closed());
        breaker
    }

    #[test]
    fn three_questions_in_a_row_open_it_and_an_answer_between_does_not() {
        let now = Instant::now();
        let mut breaker = closed(now);
        for _ in 0..10 {
            assert!(!breaker.unanswered(now) && !breaker.unanswered(now));
            breaker.answered();
        }
        assert!(!breaker.unanswered(now) && !breaker.unanswered(now) && breaker.is_closed());
        assert!(breaker.unanswered(now) && !breaker.is_closed());
        // A question that was under way then changes nothing.
        assert!(!breaker.unanswered(now) && !breaker.broken(now));
        breaker.answered();
        assert!(!breaker.is_closed());
    }

    #[test]
    fn a_broken_connection_opens_it_and_the_first_answered_probe_closes_it() {
        let now = Instant::now();
        let mut breaker = closed(now);
        assert!(breaker.broken(now) && !breaker.is_closed());
        assert!(breaker.probed(now + Duration::from_millis(1)) && breaker.is_closed());
    }

    #[test]
    fn what_fails_again_and_again_is_held_open_for_longer_and_never_for_more_than_half_a_minute() {
        let mut now = Instant::now();
        let mut breaker = closed(now);
        let mut held = Vec::new();
        for _ in 0..8 {
            assert!(breaker.broken(now));
            let opened = now;
            while !breaker.probed(now) {
                now += PROBE;
            }
            held.push((now - opened).as_secs());
        }
        assert_eq!(held, [0, 1, 2, 4, 8, 16, 30, 30]);
        // After ten seconds of answers it is as new.
        now += RECOVERED;
        assert!(breaker.broken(now) && breaker.probed(now));
    }

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(slot(b"123456789"), 0x31c3);
        assert_eq!(slot(b"foo"), 12_182);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_ne!(slot(b"foo{}{bar}"), slot(b"bar"));
    }

    #[test]
    fn each_part_has_a_probe_that_is_in_it() {
        let settings = StoreSettings::new(StoreUrl::new("redis://10.0.0.5").unwrap());
        assert_eq!(part_probes(&settings).len(), 1);
        let cluster = StoreSettings { nodes: StoreNodes::Cluster, ..settings };
        for (part, key) in part_probes(&cluster).into_iter().enumerate() {
            assert_eq!(part_of(key.unwrap(), &cluster), part);
        }
        // One slot for all: one part.
        let tagged = StoreSettings { prefix: "{rate}:".to_owned(), ..cluster };
        assert_eq!(part_probes(&tagged).into_iter().flatten().count(), 1);
    }
}
