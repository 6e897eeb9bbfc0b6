//! The policy and its decision on a request. The decision depends on the groups for the agent, the
//! exemptions, the verdict of the rules and the mode.

use std::borrow::Cow;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::SystemTime;

use super::decision::{Action, Decision, IdentityNeeded, IdentityRules, Impostors, Reason};
use super::facts::RequestFacts;
use super::grace::Grace;
use super::human_evidence::{Cookies, HumanEvidence, SuspectHuman};
use super::overrides::{Crawlers, Mode, Override, has_crawler_name};
use super::rate::{RateLimit, RateMode, RateRules};
use super::scope::Star;
use crate::agent::{Agent, Category, Identity, Network};
use crate::rules::{
    Access, Fallback, MatchBudget, PathForms, PathPattern, ProductToken, Reading, RequestPath, Rule, RuleSet,
    Selection, Verdict,
};

/// The operator's settings for requests that robots.txt disallows. A policy is immutable. Create a
/// policy with [`Policy::builder`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Policy {
    /// Mode that applies if no override applies.
    pub mode: Mode,
    pub(super) star: Star,
    pub(super) family: bool,
    pub(super) forms: PathForms,
    pub(super) exempt: Exemptions,
    pub(super) cookies: Cookies,
    pub(super) suspect_human: SuspectHuman,
    pub(super) identity: IdentityRules,
    /// Overrides, in order of addition. The last override that applies decides.
    pub overrides: Vec<Override>,
    pub(super) rate: RateRules,
}

impl Policy {
    /// Methods that the groups for `*` apply to by default.
    pub const DEFAULT_WILDCARD_METHODS: [&str; 2] = ["GET", "HEAD"];

    /// Categories of crawlers that the groups for `*` do not apply to by default.
    pub const DEFAULT_WILDCARD_EXEMPT: [Category; 5] =
        [Category::Infrastructure, Category::Monitoring, Category::Preview, Category::Feed, Category::UserFetch];

    /// Default burst: how many requests a rate-limited crawler may send without delay after a
    /// pause.
    pub const DEFAULT_BURST: NonZeroU32 = NonZeroU32::new(5).expect("above zero");

    /// Decides on a request.
    ///
    /// 1. Groups that name an agent apply to it for every method. If no group names the agent, the
    ///    groups for `*` apply if [`Policy::holds_to_star`] is true and the method is either
    ///    configured ([`PolicyBuilder::wildcard_methods`](super::PolicyBuilder::wildcard_methods))
    ///    or not in IANA's registry. If no group applies, the request passes unchecked.
    /// 2. Requests for `/robots.txt`, requests from exempt addresses or agents, and requests whose
    ///    path is exempt in all of its forms also pass unchecked.
    /// 3. An allowed request passes. For a disallowed request, the last override that applies
    ///    decides. If no override applies, the mode decides. The mode that applies to the agent,
    ///    from an override or from the policy, also limits how impostors and crawl delays are
    ///    handled.
    /// 4. If no override applies, [`Mode::Refuse`] only tags the crawlers of search engines that
    ///    people use ([`Agent::is_index_engine`]), with [`Reason::SearchEngine`]. Search engines
    ///    would remove a page with status 403 from their index.
    /// 5. An impostor does not get the privileges of a crawler's name ([`IdentityNeeded`]):
    ///    exemptions for agents, overrides that are milder than the mode, and, for search engines,
    ///    a tag instead of a refusal. Within the limits of the mode, the policy may tag or refuse
    ///    an impostor even if the rules allow the request ([`Impostors`]). The reason is then
    ///    [`Reason::Impostor`]. A request with an exempt address, path or cookie still passes.
    /// 6. If the request has several agents, the result is the strictest decision, with the
    ///    strictest [`RateLimit`] of all agents.
    /// 7. The decision on an allowed request contains a [`RateLimit`] if the agent's groups have a
    ///    `Crawl-delay` and the policy limits the agent's rate
    ///    ([`PolicyBuilder::rate`](super::PolicyBuilder::rate) within the limits of the mode, or a
    ///    rate override). The `RateLimit` does not change the action. Only the layer counts
    ///    requests, so only the layer can determine whether a request arrives too soon.
    pub fn decide<'r>(&self, rules: &'r RuleSet, agents: &[Agent], request: RequestFacts<'_>) -> Decision<'r> {
        self.decide_with_grace(rules, None, agents, request)
    }

    /// Decides like [`Policy::decide`], but disallowed requests are only observed during their
    /// grace period. Each agent is judged separately: a grace period for one agent of a request
    /// does not apply to the request's other agents.
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
        // The decision under `Mode::Refuse` uses only the rest of the work budget, so it cannot
        // affect the decision under the policy's mode.
        decision.with_refusing(&decide(Mode::Refuse, work))
    }

    fn depends_on_mode(&self, decision: &Decision<'_>, identity: Identity) -> bool {
        let is_disallowed = || decision.verdict.is_some_and(|verdict| verdict.access() == Access::Disallow);
        decision.rate_limit.is_some() || is_disallowed() || matches!(identity, Identity::Refuted(_))
    }

    /// Adjusts the decision if there is evidence that a person made the request. A request with an
    /// exempt cookie passes. Otherwise, signs of a human sender are recorded, and a request with
    /// such signs passes if the policy exempts people. Changes the decision only if the request is
    /// disallowed, arrived too soon for its crawl delay, or is from an impostor.
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

    /// Reports whether this evidence exempts a request from rate limiting. An exempt request is not
    /// counted, and passes even if it arrives too soon for its crawl delay.
    #[doc(hidden)]
    pub fn spares<'e>(&self, evidence: impl FnOnce() -> HumanEvidence<'e>) -> bool {
        let spares_people = self.suspect_human == SuspectHuman::Exempt;
        if self.cookies.exempt.is_empty() && !spares_people {
            return false;
        }
        let evidence = evidence();
        evidence.is_exempt(&self.cookies) || (spares_people && evidence.signs(&self.cookies).any())
    }

    /// Reports whether the groups for `*` apply to an agent if no group names it. Ignores the
    /// method of the request.
    #[doc(hidden)]
    pub fn holds_to_star(&self, agent: &Agent) -> bool {
        self.star.applies_to(agent)
    }

    /// Returns the action and the reason, at the time `now`, for an agent's request that a rule
    /// with the pattern `pattern` disallows. If `pattern` is `None`, overrides for patterns do not
    /// apply. Ignores exempt paths and addresses. Also ignores whether the rule's group applies to
    /// the agent ([`Policy::holds_to_star`]).
    #[doc(hidden)]
    pub fn action_for_rule(&self, agent: &Agent, pattern: Option<&[u8]>, now: SystemTime) -> (Action, Reason) {
        if self.exempt.cover_agent(agent) {
            return (Action::Pass, Reason::Exempt);
        }
        let has_not_ended = |over: &Override| over.until.is_none_or(|end| now < end);
        let handling = self.handling(self.mode, agent, Identity::Unclaimed, pattern, has_not_ended);
        (handling.action(), handling.reason)
    }

    /// Returns the override that decided on a disallowed request; `None` if no override decided.
    /// `pattern` is the pattern of the disallowing rule, `reason` the reason of the decision, and
    /// `now` the time of the decision.
    #[doc(hidden)]
    pub fn override_for(
        &self,
        agent: &Agent,
        identity: Identity,
        pattern: Option<&[u8]>,
        reason: Reason,
        now: SystemTime,
    ) -> Option<&Override> {
        let has_not_ended = |over: &Override| over.until.is_none_or(|end| now < end);
        let handling = self.handling(self.mode, agent, identity, pattern, has_not_ended);
        handling.over.filter(|_| handling.reason == reason)
    }

    /// Returns the path of a request in the forms that this policy compares with the rules. If the
    /// target contains a `#`, returns the forms of the part before the `#` and the forms of the
    /// whole target, because some servers treat a `#` as an ordinary byte.
    pub fn path<'t>(&self, target: &'t [u8]) -> RequestPath<'t> {
        RequestPath::of_request(target, self.forms)
    }

    /// Returns the path of a request in the forms that a [`Reading`] compares with the rules.
    /// [`Reading::Reference`] uses only one form. The fragment of a URL is ignored, because clients
    /// do not send it.
    #[doc(hidden)]
    pub fn path_read_as<'t>(&self, reading: Reading, target: &'t [u8]) -> RequestPath<'t> {
        if target.starts_with(b"/") {
            reading.path_of_request(target, self.forms)
        } else {
            reading.path_with(target, self.forms)
        }
    }

    /// Returns the crawlers that overrides and exemptions select, each with the kind of the
    /// setting, for example `rate override`.
    #[doc(hidden)]
    pub fn selected_crawlers(&self) -> impl Iterator<Item = (&'static str, Cow<'_, Crawlers>)> {
        let modes = self.overrides.iter().filter_map(Override::selection).map(|crawlers| ("override", crawlers));
        let rates = self.rate.overrides.iter().filter_map(Override::selection);
        let rates = rates.map(|crawlers| ("rate override", crawlers));
        let exempt = self.exempt.agents.iter().map(|name| ("exemption", Cow::Owned(Crawlers::Agent(name.clone()))));
        modes.chain(rates).map(|(setting, crawlers)| (setting, Cow::Borrowed(crawlers))).chain(exempt)
    }

    /// Returns the rate overrides that record or refuse requests and have not ended by `now`.
    #[doc(hidden)]
    pub fn rate_overrides(&self, now: SystemTime) -> impl Iterator<Item = &Override<RateMode>> {
        let is_running = move |over: &&Override<RateMode>| over.until.is_none_or(|end| now < end);
        self.rate.overrides.iter().filter(is_running).filter(|over| over.mode != RateMode::Off)
    }

    /// Returns a description and the end time of each override that has ended by `now`.
    #[doc(hidden)]
    pub fn ended_overrides(&self, now: SystemTime) -> impl Iterator<Item = (String, SystemTime)> {
        let modes = self.overrides.iter().map(|over| (format!("override for {over}"), over.until));
        let rates = self.rate.overrides.iter().map(|over| (format!("rate override for {over}"), over.until));
        modes.chain(rates).filter_map(move |(over, end)| Some((over, end.filter(|end| *end <= now)?)))
    }

    /// Returns the rate mode for crawlers without a rate override.
    #[doc(hidden)]
    pub const fn rate_mode(&self) -> RateMode {
        self.rate.mode
    }

    /// Returns the burst: how many requests a crawler may send without delay after a pause.
    #[doc(hidden)]
    pub const fn rate_burst(&self) -> NonZeroU32 {
        self.rate.burst
    }

    /// Reports whether the identity of one of these agents can change the decision, because the
    /// policy tags or refuses impostors, or requires evidence for the privileges of a crawler's
    /// name.
    #[doc(hidden)]
    pub fn heeds_claims(&self, agents: &[Agent]) -> bool {
        (self.identity.impostors != Impostors::Observe || self.grants_by_evidence())
            && agents.iter().any(|agent| agent.class().is_crawler())
    }

    /// Reports whether the policy requires evidence for the privileges of a crawler's name.
    fn grants_by_evidence(&self) -> bool {
        let has_grants =
            || !(self.exempt.agents.is_empty() && self.overrides.is_empty() && self.rate.overrides.is_empty());
        self.identity.needed != IdentityNeeded::Claimed && has_grants()
    }

    /// Reports whether the policy exempts networks.
    #[doc(hidden)]
    pub const fn exempts_networks(&self) -> bool {
        !self.exempt.networks.is_empty()
    }

    /// Reports whether this address is in an exempt network.
    #[doc(hidden)]
    pub fn exempts_address(&self, address: IpAddr) -> bool {
        self.exempt.cover_address(Some(address))
    }

    /// Returns a warning for each setting that probably exempts more requests from the rules than
    /// the operator intended.
    #[doc(hidden)]
    pub fn excessive_exemptions(&self) -> Vec<String> {
        let networks = self.exempt.networks.iter().filter(|network| network.length() == 0);
        let mut lines: Vec<_> = networks
            .map(|network| format!("the network {network} is exempt, so no request from it is judged"))
            .collect();
        if self.exempt.patterns.iter().any(PathPattern::matches_all) {
            let line = "an exempt path pattern matches every path, so no request is judged: to exempt only the home \
                        page, write \"/$\"";
            lines.push(line.to_owned());
        }
        if !self.star.covers_method("GET") {
            let line = "the groups for \"*\" do not apply to GET, because wildcard_methods leaves it out: list \
                        \"GET\" and \"HEAD\", too";
            lines.push(line.to_owned());
        }
        lines
    }

    /// Returns a clause for each setting of this policy that does not work if client addresses are
    /// unknown. The caller combines the clauses into one message.
    #[doc(hidden)]
    pub fn rules_by_address(&self) -> Vec<&'static str> {
        let limits = self.rate.mode != RateMode::Off || !self.rate.overrides.is_empty();
        let rules = [
            (self.exempts_networks(), "the exempt networks have no effect"),
            (limits, "all clients that claim to be the same crawler share one crawl delay"),
            (self.identity.impostors != Impostors::Observe, "impostors pass"),
            (self.grants_by_evidence(), "overrides and exemptions that depend on a crawler's identity do not apply"),
        ];
        rules.into_iter().filter_map(|(is_set, rule)| is_set.then_some(rule)).collect()
    }

    /// Reports whether a group applies to an agent. Ignores the method of the request.
    #[doc(hidden)]
    pub fn has_group(&self, rules: &RuleSet, agent: &Agent) -> bool {
        self.selection(rules, agent).applies()
    }

    /// Returns the groups that apply to an agent. Ignores the method of the request.
    #[doc(hidden)]
    pub fn selection<'r>(&self, rules: &'r RuleSet, agent: &Agent) -> Selection<'r> {
        let fallback = if self.star.applies_to(agent) { Fallback::Star } else { Fallback::Nothing };
        rules.select(self.tokens_of(agent), fallback)
    }

    /// Returns the agent that a decision is about. For a decision that is neither based on a rule
    /// nor reported to observers, returns the first agent that is a crawler. If the request is
    /// exempt and no agent is a crawler, returns the first agent that has a group.
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

    /// Reports whether a decision is unnecessary, because it would always be [`Reason::NoGroup`]:
    /// no agent is a crawler, `*` applies to none of the agents, and no group names any of them.
    /// This check is cheaper than a decision.
    #[doc(hidden)]
    pub fn passes_over(&self, rules: &RuleSet, agents: &[Agent]) -> bool {
        agents.iter().all(|agent| {
            let is_named = || rules.select(self.tokens_of(agent), Fallback::Nothing).applies();
            !agent.class().is_crawler() && !self.star.applies_to(agent) && (agent.tokens().is_empty() || !is_named())
        })
    }

    /// Returns the groups whose usage lines and licences apply to an agent. If no group names the
    /// agent, returns the groups for `*`, even if the policy does not apply the rules of these
    /// groups to the agent. So a response's header fields state the same usage as the file.
    #[doc(hidden)]
    pub fn selection_for_use<'r>(&self, rules: &'r RuleSet, agent: &Agent) -> Selection<'r> {
        rules.select(self.tokens_of(agent), Fallback::Star)
    }

    fn tokens_of<'a>(&self, agent: &'a Agent) -> &'a [ProductToken] {
        if self.family { agent.tokens() } else { &agent.tokens()[..agent.tokens().len().min(1)] }
    }

    /// Decides on the request of one agent. `mode` applies if no override applies.
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
        let fallback = || match self.star.applies_to(agent) && self.star.covers_method(request.method) {
            true => Fallback::Star,
            false => Fallback::Nothing,
        };
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
        let is_exempt =
            || request.with_all_forms(rules.reading(), self.forms, |path| self.exempt.cover_path(path, work));
        if *request.is_exempt.get_or_init(is_exempt) {
            return Decision::unjudged(Reason::Exempt);
        }
        let path = request.path(rules.reading(), self.forms);
        let bound = || self.handling(mode, agent, identity, None, |over| over.has_not_ended(request)).mode;
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

    /// Returns the strictest handling of a disallowed request among all disallowed forms of its
    /// path, and the verdict on the form with this handling. Different forms may match different
    /// rules, and an override may apply to only one of the rules. For example, some servers
    /// interpret `/old/../private/` as a path below `/old/`, and others as `/private/`.
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
            self.handling(mode, agent, request.identity, pattern, |over| over.has_not_ended(request))
        };
        let handling = of(&verdict);
        if handling.mode == Mode::Refuse || !self.overrides.iter().any(|over| over.rule_pattern().is_some()) {
            return (handling, verdict);
        }
        let each = selection.disallowing(request.path(selection.rules.reading(), self.forms).forms(), work);
        let rank = |handling: Handling<'_>| (handling.action(), handling.reason);
        let handled = each.map(|verdict| (of(&verdict), verdict));
        handled.fold(
            (handling, verdict),
            |strictest, next| if rank(next.0) > rank(strictest.0) { next } else { strictest },
        )
    }

    /// Returns how an agent's disallowed request is handled. `rule` is the pattern of the rule that
    /// disallows the request. If `rule` is `None`, the result contains the mode that limits how
    /// impostors and crawl delays are handled. `mode` applies if no override applies.
    fn handling(
        &self,
        mode: Mode,
        agent: &Agent,
        identity: Identity,
        rule: Option<&[u8]>,
        has_not_ended: impl Fn(&Override) -> bool,
    ) -> Handling<'_> {
        let is_believed = self.identity.believe(identity);
        // If the policy does not accept the claim, an override for crawlers counts only if it is
        // stricter than the mode and all other overrides. So an impostor has no advantage from a
        // name with a mild override.
        let mut claimed: Option<Handling<'_>> = None;
        for over in self.overrides.iter().rev().filter(|over| over.fits(agent, rule) && has_not_ended(over)) {
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

/// The handling of a disallowed request, before grace periods are applied.
#[derive(Clone, Copy)]
struct Handling<'p> {
    mode: Mode,
    reason: Reason,
    /// The override that decided; `None` if the mode of the policy decided.
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

#[derive(Clone, Debug)]
pub(super) struct Exemptions {
    pub(super) patterns: Vec<PathPattern>,
    pub(super) networks: Vec<Network>,
    pub(super) agents: Vec<ProductToken>,
}

impl Exemptions {
    /// Reports whether the path is exempt. Every form must be exempt, because some servers
    /// interpret `/.well-known/..%2fprivate/x` as `/private/x`. If the work budget is used up, the
    /// path is not exempt.
    fn cover_path(&self, path: &RequestPath<'_>, work: &mut MatchBudget) -> bool {
        let mut covers = |form: &[u8]| self.patterns.iter().any(|pattern| pattern.matches_within(form, work));
        path.is_robots_txt() || path.forms().all(|(_, form)| covers(form))
    }

    pub(super) fn cover_address(&self, address: Option<IpAddr>) -> bool {
        address.is_some_and(|address| self.networks.iter().any(|network| network.contains(address)))
    }

    pub(super) fn cover_agent(&self, agent: &Agent) -> bool {
        self.agents.iter().any(|name| has_crawler_name(agent, name))
    }
}
