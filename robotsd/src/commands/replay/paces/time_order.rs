//! The entries of logs, in the order of their times.
//!
//! Servers log a request when it ends, some with the time at which it began, and several workers write to one log. So a line may
//! be a little earlier than the one before it. One that is much earlier is a download that took long; where only such lines
//! follow, or an input begins with one, another log has begun.

use std::collections::BTreeMap;

/// Lines that are up to so many seconds too late come in their place.
const LATE: i64 = 60;

/// So many lines that are later still, and none between them that is not, are of another log.
const OTHER_LOG: usize = 64;

/// The most items that wait for earlier ones.
const WAITING: usize = 1 << 16;

/// Items that wait until no earlier one is expected.
#[derive(Debug)]
pub(super) struct TimeOrder<T> {
    waiting: BTreeMap<i64, Vec<T>>,
    count: usize,
    /// The latest time of this log.
    latest: Option<i64>,
    /// Those that are too late to be put in their place.
    late: Vec<(i64, T)>,
    /// Whether the next item is the first of an input.
    begins_input: bool,
}

/// The next entry.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum InOrder<T> {
    /// An item, in the order of times.
    Item(i64, T),
    /// The items after this are of another log: times begin anew.
    OtherLog,
}

impl<T> Default for TimeOrder<T> {
    fn default() -> Self {
        Self { waiting: BTreeMap::new(), count: 0, latest: None, late: Vec::new(), begins_input: false }
    }
}

impl<T> TimeOrder<T> {
    /// The next item is the first of another input: of the same log, if it is no earlier than the last ones, else of another.
    pub(super) const fn begin_input(&mut self) {
        self.begins_input = true;
    }

    /// Adds the next item of the log, and passes on those that nothing earlier is expected for.
    pub(super) fn add(&mut self, time: i64, item: T, take: &mut impl FnMut(InOrder<T>)) {
        if std::mem::take(&mut self.begins_input)
            && self.latest.is_some_and(|latest| time < latest.saturating_sub(LATE))
        {
            self.finish(take);
            take(InOrder::OtherLog);
        }
        let latest = *self.latest.get_or_insert(time);
        let earliest = latest.saturating_sub(LATE);
        if time < earliest {
            self.late.push((time, item));
            if self.late.len() >= OTHER_LOG {
                self.begin_other(take);
            }
            return;
        }
        for (_, item) in std::mem::take(&mut self.late) {
            self.wait(earliest, item);
        }
        self.wait(time, item);
        self.latest = Some(latest.max(time));
        self.pass_on(Some(latest.max(time).saturating_sub(LATE)), take);
    }

    /// Passes on the rest.
    pub(super) fn finish(&mut self, take: &mut impl FnMut(InOrder<T>)) {
        if !self.late.is_empty() {
            self.begin_other(take);
        }
        self.late.drain(..).for_each(|(time, item)| take(InOrder::Item(time, item)));
        self.pass_on(None, take);
        self.latest = None;
    }

    fn wait(&mut self, time: i64, item: T) {
        self.waiting.entry(time).or_default().push(item);
        self.count += 1;
    }

    fn begin_other(&mut self, take: &mut impl FnMut(InOrder<T>)) {
        self.pass_on(None, take);
        take(InOrder::OtherLog);
        self.latest = None;
        for (time, item) in std::mem::take(&mut self.late) {
            self.add(time, item, take);
        }
    }

    /// Passes on what is earlier than this, and what there is no room for; all where no more is expected.
    fn pass_on(&mut self, earliest: Option<i64>, take: &mut impl FnMut(InOrder<T>)) {
        while let Some(first) = self.waiting.first_entry() {
            let time = *first.key();
            if earliest.is_some_and(|earliest| time >= earliest) && self.count <= WAITING {
                return;
            }
            let items = first.remove();
            self.count -= items.len();
            items.into_iter().for_each(|item| take(InOrder::Item(time, item)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The times in the order in which they are passed on, with `None` where another log begins.
    fn ordered(times: impl IntoIterator<Item = i64>) -> Vec<Option<i64>> {
        let (mut order, mut passed) = (TimeOrder::default(), Vec::new());
        let mut take = |next| match next {
            InOrder::Item(_, time) => passed.push(Some(time)),
            InOrder::OtherLog => passed.push(None),
        };
        times.into_iter().for_each(|time| order.add(time, time, &mut take));
        order.finish(&mut take);
        passed
    }

    #[test]
    fn lines_that_are_a_little_late_come_in_their_place() {
        assert_eq!(ordered([100, 102, 101, 42, 170, 160, 110]), [42, 100, 101, 102, 110, 160, 170].map(Some));
    }

    #[test]
    fn a_line_that_is_much_too_late_ends_nothing() {
        assert_eq!(ordered([1_000, 500, 1_001]), [500, 1_000, 1_001].map(Some));
    }

    #[test]
    fn another_log_begins_where_times_stay_behind() {
        let (first, second) = ((1_000..1_100_i64), (100..200_i64));
        let mut want: Vec<_> = first.clone().map(Some).collect();
        want.push(None);
        want.extend(second.clone().map(Some));
        assert_eq!(ordered(first.clone().chain(second.clone())), want);
        // So short that its end shows it.
        assert_eq!(ordered(first.chain([5, 6])).split_off(100), [None, Some(5), Some(6)]);
    }

    #[test]
    fn an_input_that_begins_before_the_last_one_ended_is_another_log() {
        let (mut order, mut passed) = (TimeOrder::default(), Vec::new());
        for input in [vec![1_000, 1_100, 1_200], vec![1_001, 1_101, 1_201], vec![1_201, 1_300], vec![500], vec![400]] {
            order.begin_input();
            for time in input {
                order.add(time, time, &mut |next| passed.push(next));
            }
        }
        order.finish(&mut |next| passed.push(next));
        let mut logs = vec![Vec::new()];
        for next in passed {
            match next {
                InOrder::Item(_, time) => logs.last_mut().expect("a log").push(time),
                InOrder::OtherLog => logs.push(Vec::new()),
            }
        }
        let want = [vec![1_000, 1_100, 1_200], vec![1_001, 1_101, 1_201, 1_201, 1_300], vec![500], vec![400]];
        assert_eq!(logs, want);
    }

    #[test]
    fn what_waits_is_bounded() {
        let (mut order, mut passed) = (TimeOrder::default(), 0);
        for number in 0..3 * WAITING {
            order.add((number % 2) as i64, (), &mut |_| passed += 1);
            assert!(order.count <= WAITING);
        }
        order.finish(&mut |_| passed += 1);
        assert_eq!(passed, 3 * WAITING);
    }

    #[test]
    fn times_at_the_ends_are_times() {
        let mut times = ordered([i64::MIN, i64::MAX, 0, i64::MIN]);
        times.retain(Option::is_some);
        assert_eq!(times.len(), 4);
    }
}
