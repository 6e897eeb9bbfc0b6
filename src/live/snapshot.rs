//! An immutable snapshot of a site.

use std::any::Any;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use robots_core::internals::Grace;
use robots_core::keywords;

use super::agent_cache::{AgentCache, AgentLookups, Budget, FoundAgents};
use super::clock::{self, Clock};
use super::grace::RulesInGrace;
use super::switch::{Enforcement, Switches};
use super::versions::VersionHash;
use crate::agent::{Agent, Agents, Recognizer, Registry};
use crate::check::{self, Report};
use crate::policy::{Crawlers, Decision, Override, Policy, RateMode, Reason, RequestFacts};
use crate::rate::{Quota, RateKey, SiteBuckets};
use crate::rules::{Access, Group, LinePlaces, ProductToken, Reading, RobotsTxt, RuleSet};

/// An immutable snapshot of one site: the file, its compiled rules, the crawler recogniser, and the
/// policy.
///
/// A request is judged with a single snapshot, and so with a single version of the file. While no
/// robots.txt is known, there is no [`Content`] and nothing is enforced.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Snapshot {
    /// The live version; `None` if there is none.
    pub content: Option<Arc<Content>>,
    /// The policy that decides what happens to requests.
    pub policy: Arc<Policy>,
    pub(super) grace: Option<Arc<Grace>>,
    pub(super) rules_in_grace: Arc<RulesInGrace>,
    /// Latest end of the grace period, in [`Clock::elapsed`] time. This value limits the grace
    /// period even if the system's clock is set back.
    pub(super) grace_over: Duration,
    pub(super) switches: Switches,
    pub(super) clock: Clock,
    /// Rate limit buckets, shared by all snapshots of a site, so a reload does not reset the
    /// limits.
    pub(super) buckets: SiteBuckets,
    /// Maximum age of `/robots.txt` in caches.
    pub max_age: Duration,
    /// How requests for `/robots.txt` are answered while no version is live.
    pub when_missing: WhenMissing,
    /// Whether other sites may have the same policy. In this case, an override or exemption that
    /// has no effect on this site's file is not reported.
    pub(crate) has_shared_policy: bool,
}

/// What to do if there is no usable robots.txt when the site is opened. After a version has gone
/// live, unusable content never replaces it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhenMissing {
    /// [`LiveBuilder::open`](crate::source::LiveBuilder::open) returns the error. This is the
    /// default.
    #[default]
    Fail,
    /// The site is opened without a robots.txt. Nothing is enforced, and requests for `/robots.txt`
    /// get 503 until a robots.txt is live.
    Unavailable,
    /// The site is opened without a robots.txt. Nothing is enforced, and requests for `/robots.txt`
    /// are forwarded to the application.
    Relay,
}

keywords!(WhenMissing, "a way to treat a missing robots.txt", {
    Fail = "fail",
    Unavailable = "unavailable",
    Relay = "relay",
});

/// A compiled version of a robots.txt, with its modification time.
#[derive(Debug)]
#[non_exhaustive]
pub struct Content {
    compiled: Arc<Compiled>,
    /// When the file was last changed. `None` for inline text, or if HTTP dates cannot express the
    /// time.
    pub modified: Option<SystemTime>,
    /// Where each line comes from: the source's file or an appended part. `None` if nothing is
    /// appended, or if the version was loaded from a state directory.
    pub places: Option<Arc<LinePlaces>>,
    /// The header fields of the layer's responses to requests for `/robots.txt`, computed only once
    /// per file.
    derived: OnceLock<Box<dyn Any + Send + Sync>>,
}

/// A compiled robots.txt. Sites share one `Compiled` if they have equal settings and the bytes of
/// their files are equal, even if the dates of the files differ.
#[derive(Debug)]
pub(super) struct Compiled {
    pub(super) robots: RobotsTxt,
    rules: RuleSet,
    recognizer: Recognizer,
    agents: AgentCache,
    pub(super) report: Arc<Report>,
    hash: VersionHash,
    body: Bytes,
}

impl Snapshot {
    /// Returns one line for each override or exemption of the policy that probably names the wrong
    /// crawlers:
    ///
    /// - an operator that has no crawlers in the registry;
    /// - a name that is neither in the registry nor in a group of the file;
    /// - a name that crawlers never send in requests (such as `Google-Extended`).
    ///
    /// The line suggests a similar name if there is one. The list is always empty for a file of a
    /// [`Directory`](crate::source::Directory), because the names may be meant for another file.
    pub fn misspelled_overrides(&self) -> Vec<String> {
        let Some(content) = self.content.as_ref().filter(|_| !self.has_shared_policy) else { return Vec::new() };
        let selected = self.policy.selected_crawlers();
        let misspelled = selected
            .filter_map(|(setting, crawlers)| Some(format!("the {setting} for {}", content.problem_with(&crawlers)?)));
        misspelled.collect()
    }

    /// Returns one line for each setting of the policy that has no effect on this file:
    ///
    /// - an override for a rule that is not in the file;
    /// - an override for an exempt crawler, or an override that a later one replaces;
    /// - a rate override for crawlers without a crawl delay;
    /// - a rate mode, if no group has a crawl delay.
    ///
    /// If the policy limits rates, a crawl delay above the first group is also reported, because it
    /// limits no request. The list is always empty for a file of a
    /// [`Directory`](crate::source::Directory).
    pub fn settings_without_effect(&self) -> Vec<String> {
        let Some(content) = self.content.as_ref().filter(|_| !self.has_shared_policy) else { return Vec::new() };
        let rules =
            || content.robots().groups().flat_map(Group::rules).filter(|rule| rule.access() == Access::Disallow);
        let is_idle =
            |over: &&Override| over.rule_pattern().is_some() && !rules().any(|rule| over.is_for_rule(rule.pattern()));
        let idle = self.policy.overrides.iter().filter(is_idle);
        let idle = idle.map(|over| {
            format!(
                "the override for {over} has no effect, because no Disallow line of the robots.txt has this pattern"
            )
        });
        let unlimited = self.policy.rate_overrides(self.clock.now()).filter_map(|over| {
            Some(format!("the rate override for {over} {why}", why = self.reason_without_limit(content, over)?))
        });
        let replaced = self.overrides_without_effect(content);
        idle.chain(replaced).chain(unlimited).chain(self.problem_with_delays(content)).collect()
    }

    /// Returns one line for each override that has no effect, because its crawler is exempt or
    /// because a later override with another mode replaces it.
    fn overrides_without_effect(&self, content: &Content) -> impl Iterator<Item = String> {
        let overrides = &self.policy.overrides;
        overrides.iter().enumerate().filter_map(move |(place, over)| {
            let agents = content.known_agents(over.agent_name()?)?;
            let is_exempt =
                |agent: &Agent| self.policy.action_for_rule(agent, None, self.clock.now()).1 == Reason::Exempt;
            if agents.iter().all(is_exempt) && !self.policy.heeds_claims(&agents) {
                return Some(format!(
                    "the override for {over} has no effect, because this crawler is exempt: remove the exemption or \
                     the override, or exempt the crawler only if its identity is verified"
                ));
            }
            let covers =
                |later: &&Override| later.until.is_none() && agents.iter().all(|agent| later.fits(agent, None));
            let later = overrides[place + 1..].iter().rev().find(covers)?;
            // If identities matter (`heeds_claims`) and the earlier override is stricter, it still
            // applies to impostors.
            let is_replaced = over.mode < later.mode || over.mode > later.mode && !self.policy.heeds_claims(&agents);
            is_replaced.then(|| {
                format!(
                    "the override for {over} has no effect, because the later override for {later} also applies to \
                     this crawler: write the override for the single crawler last, or remove it"
                )
            })
        })
    }

    fn reason_without_limit(&self, content: &Content, over: &Override<RateMode>) -> Option<&'static str> {
        if over.is_for_unnamed_engines() {
            return Some(
                "does not limit search engines that people use: to limit a search engine, add a rate override with \
                 its name, and add a group with its name and a Crawl-delay to robots.txt",
            );
        }
        // An override with an unknown name is skipped here: the name may be misspelled, or belong
        // to a group in a later version.
        let agents = content.known_agents(over.agent_name()?)?;
        let agent = agents.first();
        let selection = self.policy.selection(content.rules(), agent);
        if selection.crawl_delay().is_none() {
            return Some(
                "has no effect, because no Crawl-delay applies to this crawler: add a group with its name and a \
                 Crawl-delay to robots.txt",
            );
        }
        let is_spared = agent.is_index_engine() && selection.is_star() && over.mode == RateMode::Refuse;
        is_spared.then_some(
            "only records requests, because the Crawl-delay of \"*\" does not limit search engines: add a group with \
             its name and a Crawl-delay to robots.txt",
        )
    }

    /// Returns a one-line message if a crawl delay is above the first group, or if no group has a
    /// crawl delay. Otherwise `None`; always `None` if the policy does not limit rates.
    fn problem_with_delays(&self, content: &Content) -> Option<String> {
        let mode = self.policy.rate_mode().within(self.policy.mode);
        if mode == RateMode::Off {
            return None;
        }
        if let Some(line) = content.robots().delay_before_groups() {
            return Some(format!(
                "the Crawl-delay in line {line} does not limit any request, because it is above the first group: move \
                 it into a group"
            ));
        }
        (!content.rules().has_crawl_delay()).then(|| {
            format!(
                "the rate mode \"{mode}\" does not limit any request, because no group of the robots.txt has a \
                 Crawl-delay: add a Crawl-delay to a group"
            )
        })
    }

    /// Returns one line for each override of the policy that has no effect because it has ended
    /// ([`Override::until`]).
    pub fn ended_overrides(&self) -> Vec<String> {
        let line = |(over, end): (String, _)| {
            format!("the {over} ended {end} and no longer has any effect", end = clock::format_time(end))
        };
        self.policy.ended_overrides(self.clock.now()).map(line).collect()
    }

    /// Returns whether the rules are enforced. If the result is `Off`, every request passes without
    /// being judged. Requests for `/robots.txt` are still answered.
    pub fn enforcement(&self) -> Enforcement {
        self.switches.effective()
    }

    /// Returns the end of the grace period, during which new restrictions are observed but not
    /// enforced; `None` if no grace period is running.
    pub fn grace_end(&self) -> Option<SystemTime> {
        let (end, now) = (self.running_grace()?.end(), self.clock.now());
        let rest = self.grace_over.saturating_sub(self.clock.elapsed());
        (now < end).then(|| now.checked_add(rest).map_or(end, |latest| end.min(latest)))
    }

    /// Returns the number of rules that were in their grace period when the version went live,
    /// because they disallow paths that were allowed before. Returns 0 if no grace period is
    /// running.
    pub fn grace_rules(&self) -> usize {
        self.running_grace().map_or(0, |_| self.rules_in_grace.count)
    }

    /// Returns the number of rules in their grace period, but only on the first call for a version;
    /// later calls return `None`. Call this function when a request passes because of a grace
    /// period.
    pub(crate) fn first_in_grace(&self) -> Option<usize> {
        self.rules_in_grace.report_once().then_some(self.rules_in_grace.count)
    }

    fn running_grace(&self) -> Option<&Grace> {
        self.grace.as_deref().filter(|_| self.clock.elapsed() < self.grace_over)
    }

    pub(crate) fn names(&self, token: &ProductToken) -> bool {
        self.content.as_ref().is_some_and(|content| content.rules().names(token))
    }

    /// Takes a token from the rate limit bucket with this key. If the bucket is empty, returns the
    /// time to wait.
    pub(crate) fn take(&self, key: &RateKey<'_>, quota: Quota) -> Result<(), Duration> {
        self.buckets.take(key, quota, self.clock.elapsed())
    }

    /// Checks a rate limit bucket like [`Snapshot::take`], but does not take a token.
    pub(crate) fn look(&self, key: &RateKey<'_>, quota: Quota) -> Result<(), Duration> {
        self.buckets.look(key, quota, self.clock.elapsed())
    }

    /// Counts a request that was refused because of a rate limit, and returns the number of
    /// requests that were refused before.
    pub(crate) fn count_rate_limit_refusal(&self) -> u32 {
        self.buckets.refused()
    }

    /// Judges a request. `agents` must come from [`Content::agents`]. Does not count the request
    /// against rate limits; the caller has to check [`Decision::rate_limit`].
    pub fn decide<'s: 'f, 'f>(&'s self, agents: &[Agent], mut request: RequestFacts<'f>) -> Decision<'s> {
        match &self.content {
            None => Decision::unjudged(Reason::NothingKnown),
            Some(_) if self.enforcement() == Enforcement::Off => Decision::unjudged(Reason::KillSwitch),
            Some(content) => {
                request.clock = Some(self.clock.as_fn());
                self.policy.decide_with_grace(content.rules(), self.running_grace(), agents, request)
            }
        }
    }
}

impl Compiled {
    pub(super) fn new(
        robots: RobotsTxt,
        hash: VersionHash,
        reading: Reading,
        registry: &Arc<Registry>,
        options: &check::Options,
        budget: Arc<Budget>,
    ) -> Self {
        let rules = robots.compile_with(reading, |name| registry.stands_for(name.value()));
        Self {
            recognizer: Recognizer::new(registry.clone(), &robots),
            agents: AgentCache::new(budget),
            report: check::check(&robots, options).into(),
            hash,
            body: Bytes::from_owner(robots.bytes().clone()),
            robots,
            rules,
        }
    }
}

impl Content {
    /// Returns the agents that a configured name selects; `None` if no crawler in the registry and
    /// no group has the name.
    fn known_agents(&self, name: &ProductToken) -> Option<Agents> {
        let (_, agents) = self.compiled.recognizer.resolve(&name.to_string());
        (agents.first().is_registered() || self.rules().names(name)).then_some(agents)
    }

    /// Returns what is wrong with a setting for these crawlers, for example `"gptbott" has no
    /// effect, because …`; `None` if the setting is correct.
    pub(crate) fn problem_with(&self, crawlers: &Crawlers) -> Option<String> {
        let registry = self.compiled.recognizer.registry();
        match crawlers {
            Crawlers::Agent(token) => {
                let name = token.to_string();
                let effect = self.problem_with_name(token, &name, registry)?;
                Some(format!("\"{name}\" {effect}"))
            }
            Crawlers::Operator(operator) if !registry.has_operator(operator) => {
                let similar = registry.similar_operator(operator);
                let help = similar.map(|similar| format!(": did you mean {similar:?}?")).unwrap_or_default();
                Some(format!(
                    "operator {operator:?} has no effect, because no crawler in the registry has this operator{help}"
                ))
            }
            _ => None,
        }
    }

    fn problem_with_name(&self, token: &ProductToken, name: &str, registry: &Registry) -> Option<String> {
        if registry.has_operator(name) && self.known_agents(token).is_none() {
            let effect = "only affects requests that contain exactly this name, because it is the name of an \
                          operator, not of a crawler: name each of its crawlers, or add an override for the operator";
            return Some(effect.to_owned());
        }
        if let Some(meant) = registry.meant(name, self.robots()) {
            let why = "has no effect, because no crawler and no group has this name";
            return Some(format!("{why}: did you mean {meant}?"));
        }
        if registry.crawler(name).is_some_and(|crawler| crawler.is_control) {
            return Some("has no effect, because this name never occurs in requests".to_owned());
        }
        if self.known_agents(token).is_some() {
            return None;
        }
        let effect = "only affects requests that contain exactly this name, because no crawler in the registry and no \
                      group has this name: check the spelling, or add a group with this name";
        Some(effect.to_owned())
    }

    /// Creates the content. `modified` must not be in the future, because caches would use a file
    /// with such a date for too long (RFC 9110, section 8.8.2.1).
    pub(super) fn new(compiled: Arc<Compiled>, modified: Option<SystemTime>, places: Option<Arc<LinePlaces>>) -> Self {
        let modified = modified.filter(|modified| clock::http(*modified).is_some());
        Self { compiled, modified, places, derived: OnceLock::new() }
    }

    /// Returns the parsed robots.txt.
    pub fn robots(&self) -> &RobotsTxt {
        &self.compiled.robots
    }

    /// Returns the compiled rules.
    pub fn rules(&self) -> &RuleSet {
        &self.compiled.rules
    }

    /// Recognises the agents of one `User-Agent` field line. Pass an empty line if the request has
    /// no `User-Agent`.
    pub fn agents(&self, field: &[u8]) -> Agents {
        Agents::clone(&self.cached_agents(field, None))
    }

    /// Calls `read` with the agents of one `User-Agent` field line, without incrementing their
    /// reference count.
    pub fn with_agents<R>(&self, field: &[u8], read: impl FnOnce(&Agents) -> R) -> R {
        read(&self.cached_agents(field, None))
    }

    /// Recognises the agents of one `User-Agent` field line. Do not store the result, because it
    /// may hold an `arc_swap` guard, which should be dropped soon.
    pub(crate) fn cached_agents(&self, field: &[u8], lookups: Option<&AgentLookups>) -> FoundAgents<'_> {
        self.compiled.agents.get(field, lookups, |field| self.compiled.recognizer.agents(field))
    }

    /// Returns the check report.
    pub fn report(&self) -> &Arc<Report> {
        &self.compiled.report
    }

    /// Returns the hash of this version.
    pub fn hash(&self) -> VersionHash {
        self.compiled.hash
    }

    /// Returns the bytes to serve.
    pub fn body(&self) -> &Bytes {
        &self.compiled.body
    }

    /// Returns a value that the caller derives from this version. The first call creates the value
    /// with `make`, and later calls return the same value. `None` if the first call created a value
    /// of another type.
    pub(crate) fn derived<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.derived.get_or_init(|| Box::new(make())).downcast_ref()
    }
}
