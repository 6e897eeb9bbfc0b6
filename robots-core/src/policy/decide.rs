//! A policy, and how it decides: groups, exemptions, verdict, mode.

use std::num::NonZeroU32;
use std::time::SystemTime;

use super::decision::{Action, Decision, IdentityNeeded, IdentityRules, Impostors, Reason};
use super::facts::RequestFacts;
use super::grace::Grace;
use super::human_evidence::{Cookies, HumanEvidence, SuspectHuman};
use super::overrides::{Mode, Override, is_called};
use super::rate::{RateLimit, RateMode, RateRules};
use super::scope::Star;
use crate::agent::{Agent, Category, Identity, Network};
use crate::rules::{
    Access, Fallback, MatchBudget, PathForms, PathPattern, ProductToken, Reading, RequestPath, Rule, RuleSet,
    Selection, Verdict,
};

/// How requests that robots.txt disallows are handled. Immutable; build one with
/// [`Policy::builder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// Mode if no override applies.
    pub mode: Mode,
    pub(super) star: Star,
    pub(super) family: bool,
    pub(super) forms: PathForms,
    pub(super) exempt: Exemptions,
    pub(super) cookies: Cookies,
    pub(super) suspect_human: SuspectHuman,
    pub(super) identity: IdentityRules,
    /// Overrides, in their order; the last one that applies counts.
    pub overrides: Vec<Override>,
    pub(super) rate: RateRules,
}

impl Policy {
    /// Methods that the groups for `*` apply to by default.
    pub const DEFAULT_WILDCARD_METHODS: [&str; 2] = ["GET", "HEAD"];

    /// Categories of registered crawlers that the groups for `*` do not apply to by default.
    pub const DEFAULT_WILDCARD_EXEMPT: [Category; 5] =
        [Category::Infrastructure, Category::Monitoring, Category::Preview, Category::Feed, Category::UserFetch];

    /// Default number of requests of a rate-limited crawler that pass at once after a pause.
    pub const DEFAULT_BURST: NonZeroU32 = NonZeroU32::new(5).expect("above zero");

    /// Decides on a request.
    ///
    /// 1. Groups that name an agent apply to it for every method. Otherwise the groups of `*` apply
    ///    if [`Policy::holds_to_star`] is true and the method is either configured or not
    ///    registered. If no group applies, the request passes unchecked.
    /// 2. A request for `/robots.txt`, from an exempt address or from an exempt agent also passes
    ///    unchecked. So does a request whose path is exempt in all of its forms.
    /// 3. An allowed request passes. For a disallowed request the last override that applies
    ///    decides, or else the mode. The mode for an agent, from an override or from the site, also
    ///    limits what is done about its other requests.
    /// 4. If no override applies, [`Mode::Refuse`] only tags the crawlers of search engines that
    ///    people use ([`Agent::is_index_engine`]), with [`Reason::SearchEngine`]: a page that
    ///    answers them with 403 leaves the index.
    /// 5. An impostor does not get what is granted to the name of a crawler: exemptions of agents,
    ///    milder overrides, the tag of search engines ([`IdentityNeeded`]).
    ///    The policy may tag or refuse an impostor whatever the rules say
    ///    ([`Impostors`]), within the limits of the mode, with
    ///    [`Reason::Impostor`], unless its address, its path or a cookie is exempt.
    /// 6. If there are several agents, the strictest outcome counts, and the strictest [`RateLimit`] of
    ///    all.
    /// 7. An allowed request whose groups have a `Crawl-delay` has a [`RateLimit`] if the policy limits
    ///    it ([`PolicyBuilder::rate`](super::PolicyBuilder::rate)), within the limits of the mode,
    ///    or if an override does. The decision does not depend on it: whether the request exceeds
    ///    its crawl delay is determined where requests are counted, in the layer.
    pub fn decide<'r>(&self, rules: &'r RuleSet, agents: &[Agent], request: RequestFacts<'_>) -> Decision<'r> {
        self.decide_with_grace(rules, None, agents, request)
    }

    /// Decides like [`Policy::decide`], except that a rule in grace is only observed. Each agent is
    /// judged by itself: of two agents, one in grace must not let the other pass.
    #[doc(hidden)]
    pub fn decide_with_grace<'r>(
        &self,
        rules: &'r RuleSet,
        grace: Option<&Grace>,
        agents: &[Agent],
        request: RequestFacts<'_>,
    ) -> Decision<'r> {
        let request = &request;
        let work = &mut MatchBudget::new();
        let decide = |mode: Mode, work: &mut MatchBudget| match agents {
            // Almost every request has one agent.
            [agent] => self.decide_for(mode, rules, grace, agent, request, work),
            _ => agents
                .iter()
                .enumerate()
                .map(|(index, agent)| self.decide_for(mode, rules, grace, agent, request, work).for_agent(index))
                .reduce(Decision::stricter)
                .unwrap_or(Decision::unjudged(Reason::NoGroup)),
        };
        if self.mode == Mode::Refuse {
            return decide(Mode::Refuse, work);
        }
        let decision = decide(self.mode, work);
        if !self.depends_on_mode(&decision, request.identity) {
            return decision;
        }
        // Uses the rest of the work budget, so that it cannot change the decision itself.
        decision.with_refusing(&decide(Mode::Refuse, work))
    }

    /// Reports whether a decision may differ under another mode.
    fn depends_on_mode(&self, decision: &Decision<'_>, identity: Identity) -> bool {
        let is_disallowed = || decision.verdict.is_some_and(|verdict| verdict.access() == Access::Disallow);
        decision.rate_limit.is_some() || is_disallowed() || matches!(identity, Identity::Refuted(_))
    }

    /// Evaluates the evidence for a person behind a request that is disallowed, rate-limited or an
    /// impostor's. An exempt cookie lets the request pass. Other signs are recorded, and let it
    /// pass if the policy exempts people. Any other decision stays as it is.
    #[doc(hidden)]
    pub fn weigh<'r>(&self, decision: Decision<'r>, evidence: &HumanEvidence<'_>) -> Decision<'r> {
        let is_disallowed = decision.verdict.is_some_and(|verdict| verdict.access() == Access::Disallow);
        if !is_disallowed && !matches!(decision.reason, Reason::Impostor | Reason::Limited | Reason::LimitObserved) {
            return decision;
        }
        if evidence.is_exempt(&self.cookies) {
            return decision.passed(Reason::Exempt);
        }
        let decision = Decision { signs: evidence.signs(&self.cookies), ..decision };
        match self.suspect_human {
            SuspectHuman::Exempt if decision.signs.any() => decision.passed(Reason::SuspectHuman),
            SuspectHuman::Exempt | SuspectHuman::Record => decision,
        }
    }

    /// Reports whether a request with this evidence would pass, as that of a person or an exempt
    /// tool, even if it exceeded its crawl delay. Such a request takes nothing from a bucket.
    #[doc(hidden)]
    pub fn spares<'e>(&self, evidence: impl FnOnce() -> HumanEvidence<'e>) -> bool {
        let spares_people = self.suspect_human == SuspectHuman::Exempt;
        if self.cookies.exempt.is_empty() && !spares_people {
            return false;
        }
        let evidence = evidence();
        evidence.is_exempt(&self.cookies) || (spares_people && evidence.signs(&self.cookies).any())
    }

    /// Reports whether the groups for `*` apply to an agent that no group names, for the methods
    /// that they cover.
    #[doc(hidden)]
    pub fn holds_to_star(&self, agent: &Agent) -> bool {
        self.star.holds(agent)
    }

    /// Returns the action, at the time `now`, for requests of an agent that a rule with this
    /// pattern disallows, and the reason. `None` stands for a rule whose pattern has no override.
    /// Exempt paths and addresses are not considered, nor whether the rule's group applies to the
    /// agent ([`Policy::holds_to_star`]).
    #[doc(hidden)]
    pub fn action_for_rule(&self, agent: &Agent, pattern: Option<&[u8]>, now: SystemTime) -> (Action, Reason) {
        if self.exempt.cover_agent(agent) {
            return (Action::Pass, Reason::Exempt);
        }
        let holds = |over: &Override| over.until.is_none_or(|end| now < end);
        let handling = self.handling(self.mode, agent, Identity::Unclaimed, pattern, holds);
        (handling.action(), handling.reason)
    }

    /// Returns the override that decided on a request that was disallowed by a rule with this
    /// pattern and handled for this reason, at the time `now`. `None` if the mode of the site or
    /// something else decided.
    #[doc(hidden)]
    pub fn override_for(
        &self,
        agent: &Agent,
        identity: Identity,
        pattern: Option<&[u8]>,
        reason: Reason,
        now: SystemTime,
    ) -> Option<&Override> {
        let holds = |over: &Override| over.until.is_none_or(|end| now < end);
        let handling = self.handling(self.mode, agent, identity, pattern, holds);
        handling.over.filter(|_| handling.reason == reason)
    }

    /// Returns the path of a request, in the forms that this policy judges.
    pub fn path<'t>(&self, target: &'t [u8]) -> RequestPath<'t> {
        RequestPath::with_forms(target, self.forms)
    }

    /// Returns the path of a request as a reading compares it; the reference parser uses only one
    /// form.
    #[doc(hidden)]
    pub fn path_read_as<'t>(&self, reading: Reading, target: &'t [u8]) -> RequestPath<'t> {
        reading.path_with(target, self.forms)
    }

    /// Returns the crawlers that overrides and exemptions name, each with the kind of entry that
    /// names it.
    #[doc(hidden)]
    pub fn named_crawlers(&self) -> impl Iterator<Item = (&'static str, &ProductToken)> {
        let modes = self.overrides.iter().filter_map(Override::agent_name).map(|name| ("override", name));
        let rates = self.rate.overrides.iter().filter_map(Override::agent_name).map(|name| ("rate override", name));
        modes.chain(rates).chain(self.exempt.agents.iter().map(|name| ("exemption", name)))
    }

    /// Returns the overrides that have ended by now, each with its end.
    #[doc(hidden)]
    pub fn ended_overrides(&self, now: SystemTime) -> impl Iterator<Item = (String, SystemTime)> {
        let modes = self.overrides.iter().map(|over| (format!("override for {over}"), over.until));
        let rates = self.rate.overrides.iter().map(|over| (format!("rate override for {over}"), over.until));
        modes.chain(rates).filter_map(move |(over, end)| Some((over, end.filter(|end| *end <= now)?)))
    }

    /// Returns the number of requests that pass at once after a pause.
    #[doc(hidden)]
    pub const fn rate_burst(&self) -> NonZeroU32 {
        self.rate.burst
    }

    /// Reports whether the check of a crawler's claim can change how its request is handled: if
    /// impostors are tagged or refused, or if what is granted to a name needs evidence.
    #[doc(hidden)]
    pub fn heeds_claims(&self, agents: &[Agent]) -> bool {
        (self.identity.impostors != Impostors::Observe || self.grants_by_evidence())
            && agents.iter().any(|agent| agent.class().is_crawler())
    }

    /// Whether something is granted to the name of a crawler, and only with evidence.
    fn grants_by_evidence(&self) -> bool {
        let has_grants =
            || !(self.exempt.agents.is_empty() && self.overrides.is_empty() && self.rate.overrides.is_empty());
        self.identity.needed != IdentityNeeded::Claimed && has_grants()
    }

    /// Whether networks are exempt, by the address of a client.
    #[doc(hidden)]
    pub const fn exempts_networks(&self) -> bool {
        !self.exempt.networks.is_empty()
    }

    /// The rules that are not in force while no client has an address, one clause for each.
    #[doc(hidden)]
    pub fn rules_by_address(&self) -> Vec<&'static str> {
        let limits = self.rate.mode != RateMode::Off || !self.rate.overrides.is_empty();
        let rules = [
            (self.exempts_networks(), "no network is exempt"),
            (limits, "all clients that claim to be one crawler share its delay"),
            (self.identity.impostors != Impostors::Observe, "impostors pass"),
            (self.grants_by_evidence(), "overrides and exemptions that need an identity do not apply"),
        ];
        rules.into_iter().filter_map(|(is_set, rule)| is_set.then_some(rule)).collect()
    }

    /// Reports whether a group of these rules applies to an agent, for the methods that the groups
    /// for `*` cover.
    #[doc(hidden)]
    pub fn has_group(&self, rules: &RuleSet, agent: &Agent) -> bool {
        let fallback = if self.star.holds(agent) { Fallback::Star } else { Fallback::Nothing };
        rules.select(self.tokens_of(agent), fallback).applies()
    }

    /// Returns the agent that a decision is about: the one that the decision names, or else the
    /// first crawler. For an exempt request, this may be another agent with a group, even though
    /// there is no verdict.
    #[doc(hidden)]
    pub fn subject<'a>(&self, rules: &RuleSet, agents: &'a [Agent], decision: &Decision<'_>) -> Option<&'a Agent> {
        if decision.verdict.is_some() || decision.reason.is_reported() {
            return agents.get(decision.agent);
        }
        let crawler = agents.iter().find(|agent| agent.class().is_crawler());
        if crawler.is_none() && decision.reason == Reason::Exempt {
            return agents.iter().find(|agent| self.has_group(rules, agent));
        }
        crawler
    }

    /// Reports whether neither the policy nor these rules concern any of these agents, whatever
    /// they request: none is a crawler, none is subject to `*`, and no group names one. Every
    /// decision is then [`Reason::NoGroup`], and checking this costs less than deciding.
    #[doc(hidden)]
    pub fn passes_over(&self, rules: &RuleSet, agents: &[Agent]) -> bool {
        agents.iter().all(|agent| {
            let is_named = || rules.select(self.tokens_of(agent), Fallback::Nothing).applies();
            !agent.class().is_crawler() && !self.star.holds(agent) && (agent.tokens().is_empty() || !is_named())
        })
    }

    /// Returns the tokens whose groups apply to an agent.
    fn tokens_of<'a>(&self, agent: &'a Agent) -> &'a [ProductToken] {
        if self.family { agent.tokens() } else { &agent.tokens()[..agent.tokens().len().min(1)] }
    }

    /// Decides on the request of one agent; `mode` applies if no override does.
    pub(super) fn decide_for<'r>(
        &self,
        mode: Mode,
        rules: &'r RuleSet,
        grace: Option<&Grace>,
        agent: &Agent,
        request: &RequestFacts<'_>,
        work: &mut MatchBudget,
    ) -> Decision<'r> {
        let tokens = self.tokens_of(agent);
        let fallback = || match self.star.holds(agent) && self.star.covers_method(request.method) {
            true => Fallback::Star,
            false => Fallback::Nothing,
        };
        // If a group names the agent, `*` is not considered.
        let named = rules.select(tokens, Fallback::Nothing);
        let selection = if named.applies() { named } else { rules.select(&[], fallback()) };
        let identity = request.identity;
        let impostor = self.identity.handling(agent, identity);
        if !selection.applies() && impostor.is_none() {
            return Decision::unjudged(Reason::NoGroup);
        }
        let is_exempt_agent = || self.exempt.cover_agent(agent) && self.identity.believe(identity);
        if is_exempt_agent() || self.exempt.cover_address(request.address()) {
            return Decision::unjudged(Reason::Exempt);
        }
        let path = request.path(self.forms);
        if self.exempt.cover_path(path) {
            return Decision::unjudged(Reason::Exempt);
        }
        let bound = || self.handling(mode, agent, identity, None, |over| over.holds(request)).mode;
        let impostor = impostor.map(|impostor| impostor.min(bound()));
        if !selection.applies() {
            return Decision::unjudged(Reason::NoGroup).of_impostor(impostor);
        }
        let verdict = selection.verdict_within(path, work);
        match verdict.access() {
            Access::Allow => {
                let is_believed = self.identity.believe(identity);
                let rate_limit = self.rate.rate_limit(bound, agent, selection, verdict, request, is_believed);
                let mut grace_end = None;
                let rate_limit = rate_limit.map(|rate_limit| {
                    let Some((grace, now)) = grace.zip(request.now()) else { return rate_limit };
                    match grace.due_interval(now, rate_limit.interval, |rules| rules.select(tokens, fallback())) {
                        Some(interval) => RateLimit { interval, ..rate_limit },
                        None => {
                            grace_end = Some(grace.end());
                            RateLimit { mode: rate_limit.mode.min(RateMode::Observe), ..rate_limit }
                        }
                    }
                });
                let allowed =
                    Decision { grace_end, rate_limit, ..Decision::judged(Action::Pass, Reason::Allowed, verdict) };
                allowed.of_impostor(impostor)
            }
            Access::Disallow => {
                let (handling, verdict) = self.strictest(mode, agent, selection, verdict, request, work);
                let young = |grace: &&Grace| {
                    let now = request.now();
                    now.is_some_and(|now| grace.covers(now, path, |rules| rules.select(tokens, fallback()), work))
                };
                let action = handling.action();
                if action > Action::Pass
                    && let Some(grace) = grace.filter(young)
                {
                    return Decision::in_grace(grace.end(), action, verdict).of_impostor(impostor);
                }
                Decision::judged(action, handling.reason, verdict).of_impostor(impostor)
            }
        }
    }

    /// Returns how a disallowed request is handled, and the verdict that leads to it. An override
    /// for a pattern covers one rule, but each form of a path may match another rule:
    /// `/old/../private/` is more than a path below `/old/`.
    fn strictest<'r>(
        &self,
        mode: Mode,
        agent: &Agent,
        selection: Selection<'r>,
        verdict: Verdict<'r>,
        request: &RequestFacts<'_>,
        work: &mut MatchBudget,
    ) -> (Handling<'_>, Verdict<'r>) {
        let of = |verdict: &Verdict<'_>| {
            let pattern = verdict.rule().map(Rule::pattern);
            self.handling(mode, agent, request.identity, pattern, |over| over.holds(request))
        };
        let handling = of(&verdict);
        if handling.mode == Mode::Refuse || !self.overrides.iter().any(|over| over.rule_pattern().is_some()) {
            return (handling, verdict);
        }
        let each = selection.disallowing(request.path(self.forms).forms(), work);
        let rank = |handling: Handling<'_>| (handling.action(), handling.reason);
        let handled = each.map(|verdict| (of(&verdict), verdict));
        handled.fold(
            (handling, verdict),
            |strictest, next| if rank(next.0) > rank(strictest.0) { next } else { strictest },
        )
    }

    /// Returns how requests of an agent are handled that a rule with this pattern disallows.
    /// Without a rule, returns the limit for its other requests. `mode` applies if no override
    /// does.
    fn handling(
        &self,
        mode: Mode,
        agent: &Agent,
        identity: Identity,
        rule: Option<&[u8]>,
        holds: impl Fn(&Override) -> bool,
    ) -> Handling<'_> {
        let is_believed = self.identity.believe(identity);
        // The strictest entry for a name that is not believed: an impostor must not be able to
        // choose a mild one.
        let mut claimed: Option<Handling<'_>> = None;
        for over in self.overrides.iter().rev().filter(|over| over.fits(agent, rule) && holds(over)) {
            let handling = Handling { over: Some(over), ..Handling::of(over.mode) };
            if is_believed || over.rule_pattern().is_some() {
                return handling.or_stricter(claimed);
            }
            claimed = Some(handling.or_stricter(claimed));
        }
        let is_spared = agent.is_index_engine() && !matches!(identity, Identity::Refuted(_));
        let handling = match mode {
            Mode::Refuse if is_spared => Handling { reason: Reason::SearchEngine, ..Handling::of(Mode::Tag) },
            mode => Handling::of(mode),
        };
        handling.or_stricter(claimed)
    }
}

/// How a disallowed request is handled, apart from grace.
#[derive(Clone, Copy)]
struct Handling<'p> {
    mode: Mode,
    reason: Reason,
    /// The override that decided.
    over: Option<&'p Override>,
}

impl Handling<'_> {
    fn or_stricter(self, other: Option<Self>) -> Self {
        other.filter(|other| other.action() > self.action()).unwrap_or(self)
    }

    const fn action(self) -> Action {
        self.mode.action()
    }

    const fn of(mode: Mode) -> Self {
        let reason = match mode {
            Mode::Off => Reason::Off,
            Mode::Observe => Reason::Observed,
            Mode::Tag | Mode::Refuse => Reason::Disallowed,
        };
        Self { mode, reason, over: None }
    }
}

/// Paths, addresses and agents whose requests pass unchecked.
#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    pub(super) patterns: Vec<PathPattern>,
    pub(super) networks: Vec<Network>,
    pub(super) agents: Vec<ProductToken>,
}

impl Exemptions {
    /// Every form must be exempt: `/.well-known/..%2fprivate/x` is `/private/x` to some servers.
    pub(super) fn cover_path(&self, path: &RequestPath<'_>) -> bool {
        path.is_robots_txt() || path.forms().all(|(_, form)| self.patterns.iter().any(|pattern| pattern.matches(form)))
    }

    pub(super) fn cover_address(&self, address: Option<std::net::IpAddr>) -> bool {
        address.is_some_and(|address| self.networks.iter().any(|network| network.contains(address)))
    }

    pub(super) fn cover_agent(&self, agent: &Agent) -> bool {
        self.agents.iter().any(|name| is_called(agent, name))
    }
}
