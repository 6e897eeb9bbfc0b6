//! Counts the visitors that services referred, per service and hour, and stores nothing else about
//! visitors.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use tower_robots::agent::Referrer;

use super::recorder::{MAX_NAME_LENGTH, cut};
use super::row::{Second, day_of};

/// Maximum number of counts in a day's file: enough for 512 services in every hour, which is more
/// than the registry contains.
const MAX_COUNTS: usize = 24 * 512;

/// Number of visitors per service and hour.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "Vec<HourCount>", into = "Vec<HourCount>")]
pub(crate) struct SentVisitors(BTreeMap<(Second, Service), u64>);

/// A service, with the operator and host that the registry contained when the visitor was counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(crate) struct Service {
    pub(crate) operator: String,
    pub(crate) host: String,
}

/// An entry of [`SentVisitors`] as written to the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct HourCount {
    hour: Second,
    #[serde(flatten)]
    service: Service,
    visitors: u64,
}

impl SentVisitors {
    pub(super) fn add(&mut self, hour: Second, service: Service, visitors: u64) {
        let sum = self.0.entry((hour, service)).or_default();
        *sum = sum.saturating_add(visitors);
    }

    pub(super) fn merge(&mut self, other: &Self) {
        other.0.iter().for_each(|((hour, service), visitors)| self.add(*hour, service.clone(), *visitors));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn by_day(self) -> BTreeMap<Second, Self> {
        let mut days: BTreeMap<Second, Self> = BTreeMap::new();
        for ((hour, service), visitors) in self.0 {
            days.entry(day_of(hour)).or_default().add(hour, service, visitors);
        }
        days
    }

    /// Reports whether the counts are valid in the file for `day`. Invalid counts show that the
    /// file is damaged.
    pub(super) fn is_valid(&self, day: Second) -> bool {
        let is_name = |name: &str| name.len() <= MAX_NAME_LENGTH;
        let is_valid = |(hour, service): &(Second, Service)| {
            day_of(*hour) == day && is_name(&service.operator) && is_name(&service.host)
        };
        self.0.len() <= MAX_COUNTS && self.0.keys().all(is_valid)
    }

    pub(super) fn in_hours(&self, is_wanted: impl Fn(Second) -> bool) -> impl Iterator<Item = (&Service, u64)> {
        let wanted = self.0.iter().filter(move |((hour, _), _)| is_wanted(*hour));
        wanted.map(|((_, service), visitors)| (service, *visitors))
    }
}

impl From<Vec<HourCount>> for SentVisitors {
    fn from(counts: Vec<HourCount>) -> Self {
        let mut all = Self::default();
        counts.into_iter().for_each(|HourCount { hour, service, visitors }| all.add(hour, service, visitors));
        all
    }
}

impl From<SentVisitors> for Vec<HourCount> {
    fn from(all: SentVisitors) -> Self {
        all.0.into_iter().map(|((hour, service), visitors)| HourCount { hour, service, visitors }).collect()
    }
}

impl From<&Referrer> for Service {
    fn from(referrer: &Referrer) -> Self {
        // Names above the maximum length are cut, because they would make the day's file count as
        // damaged.
        Self { operator: cut(&referrer.operator).to_owned(), host: cut(&referrer.host).to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visitor_counts_survive_serialisation_and_are_grouped_by_day() {
        let mut all = SentVisitors::default();
        let service = |host: &str| Service { operator: "O".into(), host: host.into() };
        all.add(86_400, service("a.test"), 2);
        all.add(86_400, service("a.test"), 1);
        all.add(3_600, service("b.test"), 4);
        let written = serde_json::to_string(&all).unwrap();
        assert_eq!(serde_json::from_str::<SentVisitors>(&written).unwrap(), all);
        let days = all.clone().by_day();
        assert_eq!(days.keys().copied().collect::<Vec<_>>(), [0, 86_400]);
        assert!(days[&0].is_valid(0) && !days[&0].is_valid(86_400) && !all.is_valid(0));
        assert_eq!(all.in_hours(|hour| hour > 4_000).map(|(_, visitors)| visitors).collect::<Vec<_>>(), [3]);
    }

    /// A custom registry may contain names of any length. Long names must not make the file count
    /// as damaged.
    #[test]
    fn a_long_name_does_not_make_a_file_count_as_damaged() {
        let name = "ö".repeat(100);
        let mut all = SentVisitors::default();
        let mut referrer = Referrer::default();
        (referrer.operator, referrer.host) = (name.clone(), name);
        all.add(0, Service::from(&referrer), 1);
        assert!(all.is_valid(0));
        assert_eq!(all.in_hours(|_| true).next().unwrap().0.operator.len(), 128);
    }
}
