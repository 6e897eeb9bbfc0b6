//! The state of one bucket in a process: the store's last answer, and the requests that were not reported to it yet.
//!
//! A state machine that is given the time, in microseconds of the process's own clock. A crawler that sends few
//! requests has each of them asked, so the number that pass is exact. One that is busy does not wait for the store: its
//! requests pass while the last answer leaves room for them, and they are reported to the store afterwards, ten at
//! once: one call in ten requests, none of which waits, and each replica is at most one batch ahead. They are reported
//! as of the first of them, because requests at other replicas came between. A process never knows of more than was
//! spent, so a request that it denies by itself, the store would deny too.
//!
//! **Tokens are not reserved, they are reported.** A replica that takes ten tokens in advance leaves others without
//! while it does not need them.

use super::bucket::{QuestionKind, SharedBucket, StoreAnswer, StoreQuestion};

/// The time in which a busy crawler sends a batch, and the longest for which none is reported, in microseconds.
const WINDOW: i64 = 10_000_000;

/// Replicas of which each may be ahead of the store by one batch. With more, a bucket that is overdrawn by all of them at once is
/// taken for another clock's, and is full again.
const REPLICAS: i64 = 16;

/// How long the store keeps a full bucket whose requests may be reported, in microseconds: without it, a report would be taken as of its
/// first request although others came after that.
const KEEP: i64 = WINDOW + 5_000_000;

/// How long a report may be without an answer, in microseconds. Longer than any question waits.
const ANSWER: i64 = 100_000;

/// One bucket, as this process knows it.
#[derive(Debug)]
pub(super) struct BucketLedger {
    bucket: SharedBucket,
    /// The TAT that the store said last, and when it was asked.
    tat: i64,
    asked: i64,
    unreported: Unreported,
    /// When a batch was reported to which there is no answer yet.
    reported: Option<i64>,
    busy: BusyWindow,
}

/// Requests that passed and were not reported to the store yet. They are reported as if all had come with the first: requests at other
/// replicas came in between, and each of them would be charged for the wait of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Unreported {
    count: i64,
    first: i64,
}

/// Requests in this window and the one before it.
#[derive(Debug)]
struct BusyWindow {
    began: i64,
    count: i64,
    before: i64,
}

/// The step for a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LedgerStep {
    Allow,
    /// It passes, and a batch is reported to the store.
    Report(StoreQuestion),
    Ask(StoreQuestion),
    /// The store would deny it: it may pass in so many microseconds.
    Deny {
        wait: i64,
    },
}

impl BucketLedger {
    pub(super) const fn new(now: i64, bucket: SharedBucket) -> Self {
        Self {
            bucket,
            tat: now,
            asked: now,
            unreported: Unreported { count: 0, first: 0 },
            reported: None,
            busy: BusyWindow { began: now, count: 0, before: 0 },
        }
    }

    /// A request. Crawlers that are busy are reported in batches of so many.
    pub(super) fn request(&mut self, now: i64, bucket: SharedBucket, batch: u32) -> LedgerStep {
        if bucket != self.bucket {
            // Another delay: the known state is about another bucket.
            *self = Self::new(now, bucket);
        }
        let denied = bucket.wait(self.spent().max(now) + bucket.interval - now);
        // An honest denial is over by then; what holds for longer is asked for again, because the store may know better meanwhile.
        let is_recent = now - self.asked < bucket.interval.max(WINDOW);
        if let Some(wait) = denied.filter(|_| is_recent) {
            return LedgerStep::Deny { wait };
        }
        let batch = i64::from(batch);
        let is_busy = self.busy.request(now) >= batch;
        // While a batch is on its way, it is not known what others have spent: another one would be ahead of the store as well.
        let is_reporting = self.reported.is_some_and(|reported| now - reported < ANSWER);
        if denied.is_some() || !is_reportable(bucket, batch) || !is_busy || is_reporting {
            return LedgerStep::Ask(StoreQuestion::one(bucket, horizon(bucket, batch), keep(bucket, batch)));
        }
        self.unreported.add(now);
        if self.unreported.count < batch { LedgerStep::Allow } else { LedgerStep::Report(self.report(now, batch)) }
    }

    /// Requests that were not reported to the store for long.
    pub(super) fn overdue(&mut self, now: i64, batch: u32) -> Option<StoreQuestion> {
        if now - self.unreported.first >= WINDOW { self.unreported(now, batch) } else { None }
    }

    /// Requests that were not reported to the store.
    pub(super) fn unreported(&mut self, now: i64, batch: u32) -> Option<StoreQuestion> {
        (self.unreported.count > 0).then(|| self.report(now, i64::from(batch)))
    }

    /// The store answered the call that was made at that time.
    pub(super) fn answered(&mut self, asked: i64, answer: StoreAnswer) {
        // Answers may overtake each other.
        if asked >= self.asked {
            (self.tat, self.asked) = (asked.saturating_add(answer.ahead), asked);
            self.reported = None;
        }
    }

    /// Whether nothing would be lost with it.
    pub(super) fn is_idle(&self, now: i64) -> bool {
        self.unreported.count == 0 && self.tat <= now && now - self.busy.began >= 2 * WINDOW
    }

    /// The TAT with the requests that were not reported to the store yet.
    fn spent(&self) -> i64 {
        self.unreported.after(self.tat, self.bucket.interval)
    }

    fn report(&mut self, now: i64, batch: i64) -> StoreQuestion {
        self.tat = self.spent();
        // Answers to calls from before do not know of these.
        self.asked = now;
        self.reported = Some(now);
        let Unreported { count, first } = std::mem::take(&mut self.unreported);
        let (bucket, earliest) = (self.bucket, first + count * self.bucket.interval - now);
        let (horizon, keep) = (horizon(bucket, batch), keep(bucket, batch));
        StoreQuestion { kind: QuestionKind::Report, count, earliest, bucket, horizon, keep }
    }
}

impl Unreported {
    const fn add(&mut self, now: i64) {
        if self.count == 0 {
            self.first = now;
        }
        self.count += 1;
    }

    fn after(&self, tat: i64, interval: i64) -> i64 {
        if self.count == 0 { tat } else { tat.max(self.first) + self.count * interval }
    }
}

impl BusyWindow {
    /// Counts a request. Returns how many came before it in this window, or in the one before, if those are more.
    const fn request(&mut self, now: i64) -> i64 {
        let age = now - self.began;
        if age >= WINDOW {
            self.before = if age < 2 * WINDOW { self.count } else { 0 };
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
        if self.before > self.count - 1 { self.before } else { self.count - 1 }
    }
}

/// Whether requests for a bucket may be reported in batches of so many.
const fn is_reportable(bucket: SharedBucket, batch: i64) -> bool {
    batch > 1 && batch * bucket.interval <= WINDOW
}

/// How far a TAT may be ahead of now, in microseconds.
const fn horizon(bucket: SharedBucket, batch: i64) -> i64 {
    let debt = if is_reportable(bucket, batch) { REPLICAS * batch * bucket.interval } else { 0 };
    bucket.limit() + debt
}

const fn keep(bucket: SharedBucket, batch: i64) -> i64 {
    if is_reportable(bucket, batch) { KEEP } else { 0 }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;

    const SECOND: i64 = 1_000_000;

    fn bucket(interval: i64, burst: u32) -> SharedBucket {
        SharedBucket::new(Duration::from_micros(interval.unsigned_abs()), burst)
    }

    /// The script, in Rust; its clock is the process's.
    #[derive(Debug, Default)]
    struct Store {
        tat: Option<i64>,
        calls: u32,
    }

    impl Store {
        fn run(&mut self, now: i64, question: StoreQuestion) -> StoreAnswer {
            self.calls += 1;
            let mut tat = now + question.earliest;
            let is_there = |stored: &i64| (now - question.keep..=now + question.horizon).contains(stored);
            if let Some(stored) = self.tat.filter(is_there) {
                tat = tat.max(stored + question.count * question.bucket.interval);
                if question.kind == QuestionKind::Ask && tat - now > question.bucket.limit() {
                    let wait = question.bucket.wait(tat - now);
                    return StoreAnswer { wait, ahead: stored - now };
                }
            }
            self.tat = Some(tat);
            StoreAnswer { wait: None, ahead: tat - now }
        }

        /// A request at a replica; whether it passes.
        fn request(&mut self, ledger: &mut BucketLedger, now: i64, bucket: SharedBucket, batch: u32) -> bool {
            match ledger.request(now, bucket, batch) {
                LedgerStep::Allow => true,
                LedgerStep::Deny { .. } => false,
                LedgerStep::Report(question) => {
                    ledger.answered(now, self.run(now, question));
                    true
                }
                LedgerStep::Ask(question) => {
                    let answer = self.run(now, question);
                    ledger.answered(now, answer);
                    answer.wait.is_none()
                }
            }
        }
    }

    #[test]
    fn a_crawler_that_is_not_busy_has_each_request_asked_and_a_denial_remembered() {
        let bucket = bucket(10 * SECOND, 2);
        let (mut store, mut ledger) = (Store::default(), BucketLedger::new(0, bucket));
        assert!(store.request(&mut ledger, 0, bucket, 10));
        assert!(store.request(&mut ledger, 1, bucket, 10));
        assert_eq!(store.calls, 2);
        for now in (2..10 * SECOND).step_by(250_000) {
            assert!(!store.request(&mut ledger, now, bucket, 10));
        }
        assert_eq!(store.calls, 2, "what the store would deny, it is not asked");
        assert_eq!(ledger.request(4 * SECOND, bucket, 10), LedgerStep::Deny { wait: 6 * SECOND });
        assert!(store.request(&mut ledger, 10 * SECOND, bucket, 10));
    }

    #[test]
    fn a_busy_crawler_is_reported_once_in_ten_requests_and_none_is_denied() {
        // Ten a second are allowed; it sends eight, of which each of four replicas gets two.
        let bucket = bucket(100_000, 5);
        let mut store = Store::default();
        let mut ledgers: Vec<_> = (0..4).map(|_| BucketLedger::new(0, bucket)).collect();
        for number in 0..8 * 600 {
            let replica = number % ledgers.len();
            let now = number as i64 * 125_000;
            assert!(store.request(&mut ledgers[replica], now, bucket, 10), "{number}");
        }
        // The store is called for the first ten at each replica.
        assert!(store.calls <= 4 * 10 + 480, "{}", store.calls);
    }

    #[test]
    fn what_is_left_of_a_batch_is_reported_in_time_and_as_of_its_own() {
        let bucket = bucket(100_000, 5);
        let mut store = Store::default();
        let mut ledger = BucketLedger::new(0, bucket);
        (0..13).for_each(|number| assert!(store.request(&mut ledger, number * 100_000, bucket, 10)));
        assert_eq!(ledger.overdue(2 * SECOND, 10), None);
        let report = ledger.overdue(12 * SECOND, 10).unwrap();
        assert_eq!((report.kind, report.count), (QuestionKind::Report, 3));
        // They were spent long ago: the bucket is full.
        assert!(report.earliest < 0);
        store.run(12 * SECOND, report);
        assert!(store.tat < Some(12 * SECOND));
        assert_eq!(ledger.overdue(30 * SECOND, 10), None);
        assert!(!ledger.is_idle(13 * SECOND) && ledger.is_idle(60 * SECOND));
    }

    #[test]
    fn an_answer_that_was_overtaken_changes_nothing() {
        let bucket = bucket(SECOND, 2);
        let mut ledger = BucketLedger::new(0, bucket);
        ledger.answered(20, StoreAnswer { wait: None, ahead: 2 * SECOND });
        ledger.answered(10, StoreAnswer { wait: None, ahead: SECOND });
        assert!(matches!(ledger.request(30, bucket, 1), LedgerStep::Deny { .. }));
        // Another delay is another bucket.
        let other = SharedBucket::new(Duration::from_millis(500), 2);
        assert!(matches!(ledger.request(30, other, 1), LedgerStep::Ask(_)));
    }

    #[test]
    fn a_value_of_something_else_holds_nobody_up_for_long() {
        let bucket = bucket(SECOND, 5);
        let mut ledger = BucketLedger::new(0, bucket);
        // As far ahead as all replicas together can be.
        let ahead = horizon(bucket, 10);
        assert!(ahead > 160 * SECOND);
        ledger.answered(0, StoreAnswer { wait: Some(SECOND), ahead });
        for now in [1, SECOND, 9 * SECOND] {
            assert_eq!(ledger.request(now, bucket, 10), LedgerStep::Deny { wait: SECOND }, "{now}");
        }
        assert!(matches!(ledger.request(10 * SECOND, bucket, 10), LedgerStep::Ask(_)));
        // Busy or not: it is not let through by what is known.
        (0..30).for_each(|now| assert!(matches!(ledger.request(10 * SECOND + now, bucket, 10), LedgerStep::Ask(_))));
    }

    #[test]
    fn while_a_batch_is_on_its_way_requests_are_asked() {
        let bucket = bucket(10_000, 100);
        let (mut store, mut ledger) = (Store::default(), BucketLedger::new(0, bucket));
        (0..19).for_each(|now| assert!(store.request(&mut ledger, now, bucket, 10)));
        let LedgerStep::Report(report) = ledger.request(19, bucket, 10) else { panic!("ten of them") };
        assert!(matches!(ledger.request(20, bucket, 10), LedgerStep::Ask(_)));
        ledger.answered(21, store.run(21, report));
        assert_eq!(ledger.request(22, bucket, 10), LedgerStep::Allow);
        // One that is never answered is not waited for.
        (23..31).for_each(|now| assert_eq!(ledger.request(now, bucket, 10), LedgerStep::Allow));
        assert!(matches!(ledger.request(31, bucket, 10), LedgerStep::Report(_)));
        assert!(matches!(ledger.request(32, bucket, 10), LedgerStep::Ask(_)));
        assert_eq!(ledger.request(31 + ANSWER, bucket, 10), LedgerStep::Allow);
    }

    proptest! {
        /// With a call for each request, what passes is what one bucket allows; in batches, at most a batch more at each replica.
        #[test]
        fn replicas_allow_what_one_bucket_does(
            gaps in prop::collection::vec((0i64..400_000, 0usize..3), 1..600),
            interval in 50_000i64..2_000_000,
            burst in 1u32..8,
            batch in prop::sample::select(vec![1u32, 4, 10]),
        ) {
            let bucket = bucket(interval, burst);
            let (mut shared, mut store) = (Store::default(), Store::default());
            let mut ledgers: Vec<_> = (0..3).map(|_| BucketLedger::new(0, bucket)).collect();
            let (mut now, mut passed, mut expected) = (0, 0i64, 0i64);
            for (gap, replica) in gaps {
                now += gap;
                passed += i64::from(store.request(&mut ledgers[replica], now, bucket, batch));
                let question = StoreQuestion::one(bucket, bucket.limit(), 0);
                expected += i64::from(shared.run(now, question).wait.is_none());
                if batch == 1 {
                    prop_assert_eq!(passed, expected);
                }
                let allowed = i64::from(burst) + now / interval;
                prop_assert!(passed <= allowed + 3 * i64::from(batch), "{} of {}", passed, allowed);
            }
        }
    }
}
