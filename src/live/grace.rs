//! The grace period of a site. When a new version disallows paths, requests for these paths are at
//! first observed but not refused.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use robots_core::internals::Grace;

use super::versions::{AcceptedVersion, AcceptedVersions, Version, VersionHash};
use crate::rules::RuleSet;

#[derive(Default)]
pub(super) struct GracePeriod {
    pub(super) length: Duration,
    pub(super) running: Option<Arc<Grace>>,
    pub(super) rules_in_grace: Arc<RulesInGrace>,
    /// The compiled rules of earlier versions, for comparison with the current version.
    pub(super) earlier: Vec<(VersionHash, Arc<RuleSet>)>,
}

/// Number of rules that were in their grace period when their version went live.
#[derive(Debug, Default)]
pub(super) struct RulesInGrace {
    pub(super) count: usize,
    is_reported: AtomicBool,
}

impl RulesInGrace {
    /// Returns `true` on the first call, and `false` on later calls.
    pub(super) fn report_once(&self) -> bool {
        !self.is_reported.swap(true, Ordering::Relaxed)
    }
}

impl GracePeriod {
    pub(super) fn new(length: Duration) -> Self {
        Self { length, ..Self::default() }
    }

    /// Discards the compiled rules of earlier versions after the settings have changed, because
    /// rules that were compiled with different settings cannot be compared.
    pub(super) fn forget_rules(&mut self) {
        self.earlier.clear();
    }

    /// Returns the remaining time of the current grace period.
    pub(super) fn rest(&self, now: SystemTime) -> Duration {
        let end = self.running.as_ref().map_or(now, |grace| grace.end());
        end.duration_since(now).unwrap_or_default().min(self.length)
    }

    /// Starts or continues the grace period of the version that was accepted last, unless that
    /// grace period has already ended.
    pub(super) fn run(
        &mut self,
        versions: &AcceptedVersions,
        now: SystemTime,
        compile: impl Fn(&Version) -> Arc<RuleSet>,
    ) {
        let earlier = std::mem::take(&mut self.earlier);
        self.running = None;
        let Some(current) = versions.current().filter(|_| self.length > Duration::ZERO) else { return };
        let mut grace = Grace::new(self.length, current.since);
        if grace.end() <= now {
            return;
        }
        for AcceptedVersion { version, since, .. } in versions.iter().filter(|version| version.since < current.since) {
            let known = earlier.iter().find(|(known, _)| *known == version.hash());
            let rules = known.map_or_else(|| compile(version), |(_, rules)| rules.clone());
            self.earlier.push((version.hash(), rules.clone()));
            grace.add(*since, rules);
        }
        self.running = Some(grace.into());
    }

    /// Stores the number of `rules` that are in their grace period.
    pub(super) fn count(&mut self, rules: &RuleSet, now: SystemTime) {
        let count = self.running.as_ref().map_or(0, |grace| grace.count_rules(now, rules));
        self.rules_in_grace = Arc::new(RulesInGrace { count, ..RulesInGrace::default() });
    }
}
