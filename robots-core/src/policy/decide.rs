//! A policy, and how it decides: groups, exemptions, verdict, mode.

use std::num::NonZeroU32;
use std::time::SystemTime;

use super::decision::{Action, Decision, IdentityNeeded, IdentityRules, Impostors, Reason};
use super::facts::RequestFacts;
use super::grace::Grace;
use super::human_evidence::{Cookies, HumanEvidence, SuspectHuman};
use super::overrides::{Mode, Override, is_called};
use super::rate::{Pace, RateMode, RateRules};
use super::scope::Star;
use crate::agent::{Agent, Category, Identity, Network};
use crate::rules::{
    Access, Fallback, MatchBudget, PathForms, PathPattern, ProductToken, Reading, RequestPath, Rule, RuleSet,
    Selection, Verdict,
};

/// How requests that robots.txt disallows are handled. Immutable; build one with [`Policy::builder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// The mode where no override fits.
    pub mode: Mode,
    pub(super) star: Star,
    pub(super) family: bool,
    pub(super) forms: PathForms,
    pub(super) exempt: Exemptions,
    pub(super) cookies: Cookies,
    pub(super) suspect_human: SuspectHuman,
    pub(super) identity: IdentityRules,
    /// The overrides, in their order: the last one that fits counts.
    pub overrides: Vec<Override>,
    pub(super) rate: RateRules,
}

impl Policy {
    /// The methods that the groups for `*` hold for by default.
    pub const DEFAULT_STAR_METHODS: [&str; 2] = ["GET", "HEAD"];

    /// The categories of registered crawlers that the groups for `*` are not for by default.
    pub const DEFAULT_STAR_EXEMPT: [Category; 5] =
        [Category::Infrastructure, Category::Monitoring, Category::Preview, Category::Feed, Category::UserFetch];

    /// The requests of a limited crawler that pass at once after a pause, by default.
    pub const DEFAULT_BURST: NonZeroU32 = NonZeroU32::new(5).expect("above zero");

    /// Decides about a request.
    ///
    /// 1. The groups that name an agent apply to it for every method, else those of `*` if
    ///    [`Policy::holds_to_star`] says so and the method is one of the configured ones or of none that is registered;
    ///    where there is no such group, it passes unjudged.
    /// 2. So does a request for `/robots.txt`, one from an exempt address, one whose path is exempt in every form it can
    ///    be read in, and that of an exempt agent.
    /// 3. An allowed request passes; for a disallowed one the last override that fits decides, else the mode. The mode that holds
    ///    for an agent, its own by an override or that of the site, is also the most that is done about any other request of it.
    /// 4. If no override fits, [`Mode::Refuse`] tags the crawlers of search engines that people use
    ///    ([`Agent::is_index_engine`]) with [`Reason::SearchEngine`]: a page that answers 403 to them leaves the index.
    /// 5. An impostor does not get what is granted to the name of a crawler: exemptions of agents, milder overrides, the tag of
    ///    search engines ([`IdentityNeeded`](super::IdentityNeeded)). The policy may tag or refuse one whatever the rules say
    ///    ([`Impostors`](super::Impostors)), as far as the mode lets it, with [`Reason::Impostor`], unless its address, its path or
    ///    a cookie is exempt.
    /// 6. Of several agents the one with the strictest outcome counts, and the strictest [`Pace`] of all.
    /// 7. An allowed request whose groups have a `Crawl-delay` has a [`Pace`] where it is limited
    ///    ([`PolicyBuilder::rate`](super::PolicyBuilder::rate)), as far as the mode lets it, or where an override says so. The
    ///    decision does not depend on it: whether the request comes too soon is known where requests are counted, in the layer.
    pub fn decide<'r>(&self, rules: &'r RuleSet, agents: &[Agent], request: RequestFacts<'_>) -> Decision<'r> {
        self.decide_with_grace(rules, None, agents, request)
    }

    /// As [`Policy::decide`]; a rule in grace is only observed. Each agent is judged by itself: of two
    /// agents, one in grace must not let the other pass.
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
            // One agent is what nearly every request has.
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
        // With what is left of the work, which must not make the decision itself another one.
        decision.with_refusing(&decide(Mode::Refuse, work))
    }

    /// Whether a decision may be another one under another mode.
    fn depends_on_mode(&self, decision: &Decision<'_>, identity: Identity) -> bool {
        let is_disallowed = || decision.verdict.is_some_and(|verdict| verdict.access() == Access::Disallow);
        decision.pace.is_some() || is_disallowed() || matches!(identity, Identity::Refuted(_))
    }

    /// Weighs the evidence of a person behind a request that is disallowed, limited or an impostor's: an exempt cookie lets it pass; other signs are
    /// recorded, and let it pass where the policy says so. Any other decision stays as it is.
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

    /// Whether a request with this evidence would pass as that of a person or of an exempt tool if it came too soon: it takes
    /// nothing then.
    #[doc(hidden)]
    pub fn spares<'e>(&self, evidence: impl FnOnce() -> HumanEvidence<'e>) -> bool {
        let spares_people = self.suspect_human == SuspectHuman::Exempt;
        if self.cookies.exempt.is_empty() && !spares_people {
            return false;
        }
        let evidence = evidence();
        evidence.is_exempt(&self.cookies) || (spares_people && evidence.signs(&self.cookies).any())
    }

    /// Whether the groups for `*` apply to this agent, where no group names it, for methods they hold for.
    pub fn holds_to_star(&self, agent: &Agent) -> bool {
        self.star.holds(agent)
    }

    /// The action at a time for requests of an agent that a rule with this pattern disallows, and the reason for it; `None`
    /// stands for a rule whose pattern no override is for. Exempt paths and addresses are not considered, nor whether the rule's group is for the
    /// agent ([`Policy::holds_to_star`]).
    pub fn action_for_rule(&self, agent: &Agent, pattern: Option<&[u8]>, now: SystemTime) -> (Action, Reason) {
        if self.exempt.cover_agent(agent) {
            return (Action::Pass, Reason::Exempt);
        }
        let holds = |over: &Override| over.until.is_none_or(|end| now < end);
        let handling = self.handling(self.mode, agent, Identity::Unclaimed, pattern, holds);
        (handling.action(), handling.reason)
    }

    /// The override by which a decision was made about a request of an agent, at a time: that its rule with this pattern disallows it,
    /// and that this is the reason. `None` where the mode of the site or something else decided.
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

    /// The path of a request, in the forms this policy judges.
    pub fn path<'t>(&self, target: &'t [u8]) -> RequestPath<'t> {
        RequestPath::with_forms(target, self.forms)
    }

    /// The same as a reading compares it: the reference parser knows one form.
    #[doc(hidden)]
    pub fn path_read_as<'t>(&self, reading: Reading, target: &'t [u8]) -> RequestPath<'t> {
        reading.path_with(target, self.forms)
    }

    /// The crawlers that overrides and exemptions name, each with the word for its place.
    #[doc(hidden)]
    pub fn named_crawlers(&self) -> impl Iterator<Item = (&'static str, &ProductToken)> {
        let modes = self.overrides.iter().filter_map(Override::agent_name).map(|name| ("override", name));
        let rates = self.rate.overrides.iter().filter_map(Override::agent_name).map(|name| ("rate override", name));
        modes.chain(rates).chain(self.exempt.agents.iter().map(|name| ("exemption", name)))
    }

    /// The overrides that have ended by now, each with its end.
    #[doc(hidden)]
    pub fn ended_overrides(&self, now: SystemTime) -> impl Iterator<Item = (String, SystemTime)> {
        let modes = self.overrides.iter().map(|over| (format!("override for {over}"), over.until));
        let rates = self.rate.overrides.iter().map(|over| (format!("rate override for {over}"), over.until));
        modes.chain(rates).filter_map(move |(over, end)| Some((over, end.filter(|end| *end <= now)?)))
    }

    /// How many requests pass at once after a pause.
    pub const fn rate_burst(&self) -> NonZeroU32 {
        self.rate.burst
    }

    /// Whether a crawler's request is handled by the result of checking its claim: impostors are tagged or refused, or what is granted to
    /// a name needs evidence.
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

    /// Whether a group of these rules is for an agent, for the methods that the groups for `*` hold for.
    #[doc(hidden)]
    pub fn has_group(&self, rules: &RuleSet, agent: &Agent) -> bool {
        let fallback = if self.star.holds(agent) { Fallback::Star } else { Fallback::Nothing };
        rules.select(self.tokens_of(agent), fallback).applies()
    }

    /// The agent that a decision about a request of these agents is about: the one it names, else the first crawler. If the
    /// request is exempt there may be a group for another agent, though no verdict says so.
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

    /// Whether nothing of a policy or of these rules is for any of these agents, whatever they request and any client sends it: none is a
    /// crawler, none is held to `*`, and no group names one. Each decision is [`Reason::NoGroup`] then, and to know that costs less
    /// than to make it.
    #[doc(hidden)]
    pub fn passes_over(&self, rules: &RuleSet, agents: &[Agent]) -> bool {
        agents.iter().all(|agent| {
            let is_named = || rules.select(self.tokens_of(agent), Fallback::Nothing).applies();
            !agent.class().is_crawler() && !self.star.holds(agent) && (agent.tokens().is_empty() || !is_named())
        })
    }

    /// The tokens whose groups apply to an agent.
    fn tokens_of<'a>(&self, agent: &'a Agent) -> &'a [ProductToken] {
        if self.family { agent.tokens() } else { &agent.tokens()[..agent.tokens().len().min(1)] }
    }

    /// The decision about one agent, where this is the mode if no override fits.
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
        // Where a group names the agent, `*` is not considered.
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
                let pace = self.rate.pace(bound, agent, selection, verdict, request, is_believed);
                let mut grace_end = None;
                let pace = pace.map(|pace| {
                    let Some((grace, now)) = grace.zip(request.now()) else { return pace };
                    match grace.due_interval(now, pace.interval, |rules| rules.select(tokens, fallback())) {
                        Some(interval) => Pace { interval, ..pace },
                        None => {
                            grace_end = Some(grace.end());
                            Pace { mode: pace.mode.min(RateMode::Observe), ..pace }
                        }
                    }
                });
                let allowed = Decision { grace_end, pace, ..Decision::judged(Action::Pass, Reason::Allowed, verdict) };
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

    /// How a disallowed request is handled, and the verdict it is for. An override for a pattern covers one rule, and a path
    /// can meet another rule in each of its forms: `/old/../private/` is more than a path below `/old/`.
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

    /// How requests of an agent are handled that a rule with this pattern disallows; without one, the mode that bounds what is done
    /// about its other requests. `mode` is the one where no override fits.
    fn handling(
        &self,
        mode: Mode,
        agent: &Agent,
        identity: Identity,
        rule: Option<&[u8]>,
        holds: impl Fn(&Override) -> bool,
    ) -> Handling<'_> {
        let is_believed = self.identity.believe(identity);
        // The strictest of the entries that are for a name which is not believed: an impostor must not choose a mild one.
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
    /// The override that says so.
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

/// Paths, addresses and agents whose requests pass unjudged.
#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    pub(super) patterns: Vec<PathPattern>,
    pub(super) networks: Vec<Network>,
    pub(super) agents: Vec<ProductToken>,
}

impl Exemptions {
    /// Every form has to be exempt: `/.well-known/..%2fprivate/x` is `/private/x` to some servers.
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
