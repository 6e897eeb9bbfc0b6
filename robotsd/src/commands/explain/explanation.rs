//! Explains why a request is allowed or disallowed: the decision, the reasons for it, and the host.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use http::Method;
use http::header::{HeaderName, LINK};
use tower_robots::agent::{Agent, Class, Identity, NamedAs, Obeys};
use tower_robots::parts::ResponseFields;
use tower_robots::policy::{Action, HumanEvidence, RateMode, Reason};
use tower_robots::rules::{
    Access, CrawlDelay, Fallback, Group, PathForm, ProductToken, Reading, RequestPath, Selection, Trace, Usage, Verdict,
};

use crate::commands::agents::AgentSummary;
use crate::commands::arguments::site::SelectedSite;
use crate::commands::claim::CheckedClaim;
use crate::evaluator::{Evaluator, KnownSender};
use crate::names::quoted_list;
use crate::refusal::ExpectedRefusal;
use crate::render::printable;
use crate::target_url::TargetUrl;

#[derive(Clone, Debug)]
pub(super) enum Requester {
    /// A crawler that obeys these product tokens. There is no request, so the policy is not
    /// applied. `name` is the token from the command line.
    Token { name: String, tokens: Vec<ProductToken>, fallback: Fallback, crawler: Option<String> },
    /// The agents that a request names in its `User-Agent` field. The explanation contains the name
    /// of the first agent.
    Agents { agents: Vec<Agent>, is_star: bool },
}

impl Requester {
    /// Returns the requester for a product token. If a crawler in the registry has this token, the
    /// requester is this crawler, and all tokens that it obeys are used. The reference parser uses
    /// only the given token.
    pub(super) fn token(evaluator: &Evaluator, token: &str) -> Self {
        let (_, agents) = evaluator.resolve(token);
        let agent = agents.first();
        let crawler = agent.registered().filter(|_| evaluator.reading != Reading::Reference);
        let tokens = crawler.map_or_else(|| vec![ProductToken::new(token)], |crawler| crawler.tokens.to_vec());
        let fallback = crawler.map_or(Fallback::Star, |_| agent.fallback());
        let (name, crawler) = (token.to_owned(), crawler.map(|crawler| crawler.name.to_owned()));
        Self::Token { name, tokens, fallback, crawler }
    }

    /// Returns the requester for the name of a crawler, or for a `User-Agent` field.
    pub(super) fn user_agent(evaluator: &Evaluator, name: &str) -> Self {
        let (named_as, agents) = evaluator.resolve(name);
        Self::Agents { agents: agents.to_vec(), is_star: named_as == NamedAs::Star }
    }

    /// Returns the requester that a server recognizes in the `User-Agent` lines of a request. A
    /// field that contains only the name of a crawler does not always identify the crawler.
    pub(super) fn from_field_lines<'l>(evaluator: &Evaluator, lines: impl Iterator<Item = &'l str>) -> Self {
        let agents: Vec<_> = lines.flat_map(|line| evaluator.agents(line.as_bytes()).to_vec()).collect();
        let agents = if agents.is_empty() { vec![Agent::empty()] } else { agents };
        Self::Agents { agents, is_star: false }
    }

    /// Returns the agents that the request names; empty if the requester is a product token.
    pub(super) fn agents(&self) -> &[Agent] {
        match self {
            Self::Token { .. } => &[],
            Self::Agents { agents, .. } => agents,
        }
    }

    /// Returns the name of a crawler, or the kind of agent if it is not a crawler.
    pub(super) fn name(&self) -> String {
        let agent = match self {
            Self::Token { name, .. } => return printable(name),
            Self::Agents { is_star: true, .. } => return "a crawler that is not named in any group".to_owned(),
            Self::Agents { agents, .. } => agents.first(),
        };
        match (agent.and_then(Agent::crawler), agent.map_or(Class::Empty, Agent::class)) {
            (Some(crawler), _) => printable(crawler),
            (None, Class::Browser) => "a browser".to_owned(),
            (None, Class::Empty) => "a request without a User-Agent".to_owned(),
            (None, class) => format!("this agent ({class})"),
        }
    }

    /// Returns the name of the requester for the heading of its column.
    pub(super) fn column(&self) -> String {
        match self {
            Self::Agents { is_star: true, .. } => "*".to_owned(),
            _ => self.name(),
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct ExplainedSender {
    pub(super) address: Option<IpAddr>,
    /// Result of checking the sender's claim; `None` if no address was given.
    pub(super) claim: Option<CheckedClaim>,
}

impl ExplainedSender {
    pub(super) fn known(&self) -> KnownSender {
        let identity = self.claim.as_ref().map_or(Identity::Unclaimed, |claim| claim.identity);
        KnownSender { identity, address: self.address }
    }
}

#[derive(Debug)]
pub(super) struct ExplainedRequest<'a> {
    pub(super) file: &'a str,
    /// The selected site. Without a config, only the file is explained, and no policy is shown.
    pub(super) site: &'a SelectedSite,
    /// The live version and its verdict about the request; `None` if the explained file is live.
    pub(super) live: Option<String>,
    pub(super) requester: &'a Requester,
    pub(super) sender: &'a ExplainedSender,
    pub(super) method: &'a str,
    pub(super) url: TargetUrl<'a>,
    pub(super) path: &'a RequestPath<'a>,
    pub(super) explanation: &'a Explanation<'a>,
    pub(super) trace: Option<Trace<'a>>,
}

impl ExplainedRequest<'_> {
    /// Returns the host of the URL, or the host of the site. `None` if neither is known; the
    /// explanation then applies to every host that serves the file.
    pub(super) fn host(&self) -> Option<String> {
        let (_, hosts) = self.site.hosts().unwrap_or_default();
        match (self.url.host(), hosts) {
            (Some(host), _) => Some(printable(host)),
            (None, [host]) if !host.contains('*') => Some(host.clone()),
            (None, _) => None,
        }
    }

    /// Returns the header fields that the config adds to the response, as `name: value`. For a
    /// refusal, these are only the links to licences.
    pub(super) fn fields(&self) -> Vec<String> {
        let Self { explanation, requester, site, .. } = self;
        let Some(signals) = site.signals().filter(|_| explanation.action.is_some()) else { return Vec::new() };
        let evaluator = explanation.evaluator;
        let of = (&evaluator.rules, &evaluator.settings.policy);
        let method = Method::from_bytes(self.method.as_bytes()).unwrap_or_default();
        let found = signals.fields_of(of, self.path, &method, requester.agents());
        let fields = found.filter(|_| !evaluator.is_off).map(ResponseFields::for_proxy).unwrap_or_default();
        let is_sent = |name: &HeaderName| explanation.action != Some(Action::Refuse) || *name == LINK;
        let fields = fields.iter().filter(|(name, _)| is_sent(name));
        fields.map(|(name, value)| format!("{name}: {}", printable(value.as_bytes()))).collect()
    }

    /// Returns the name and the hosts of the selected site if the URL belongs to another site;
    /// otherwise `None`.
    pub(super) fn other_site(&self) -> Option<(&str, String)> {
        let (name, hosts) = self.site.hosts()?;
        let is_own = |host| self.site.serves(self.url.is_https(), host);
        self.url.host().filter(|host| !is_own(host)).map(|_| (name, quoted_list(hosts.iter())))
    }
}

#[derive(Debug)]
pub(super) struct Explanation<'e> {
    pub(super) evaluator: &'e Evaluator,
    pub(super) access: Access,
    pub(super) form: PathForm,
    pub(super) verdict: Option<Verdict<'e>>,
    pub(super) reason: Reason,
    /// Action of the policy; `None` for a token, because there is no request.
    pub(super) action: Option<Action>,
    /// Until this time, the request is not refused or tagged, because the deciding rule is in its
    /// grace period.
    pub(super) grace_end: Option<SystemTime>,
    /// Minimum delay that the policy enforces between requests, and what happens to requests that
    /// come too early.
    pub(super) rate_limit: Option<(Duration, RateMode)>,
    pub(super) agent: Option<Agent>,
    /// The response to a refused request; `None` if the request is not refused.
    pub(super) refusal: Option<ExpectedRefusal>,
    /// Product tokens that the requester obeys.
    tokens: Vec<ProductToken>,
    /// Whether the requester obeys the group for `*` if no other group applies.
    pub(super) fallback: Fallback,
}

impl<'e> Explanation<'e> {
    /// Evaluates a request. `evidence` can show that a person, and not a crawler, sent the request.
    pub(super) fn new(
        evaluator: &'e Evaluator,
        requester: &Requester,
        sender: KnownSender,
        method: &str,
        path: &RequestPath<'_>,
        evidence: &HumanEvidence<'_>,
    ) -> Self {
        let (mut rate_limit, mut grace_end) = (None, None);
        let (verdict, reason, action, agent, tokens, fallback) = match requester {
            Requester::Token { tokens, fallback, .. } => {
                // `/robots.txt` is always allowed (RFC 9309, section 2.2.2), but the reference
                // parser does not implement this exemption.
                let is_exempt = evaluator.reading != Reading::Reference && path.is_robots_txt();
                let verdict = (!is_exempt).then(|| evaluator.rules.select(tokens, *fallback).verdict(path));
                let reason = match verdict.map(|verdict| (verdict.group(), verdict.access())) {
                    None => Reason::Exempt,
                    Some((None, _)) => Reason::NoGroup,
                    Some((Some(_), Access::Allow)) => Reason::Allowed,
                    Some((Some(_), Access::Disallow)) => Reason::Disallowed,
                };
                (verdict, reason, None, None, tokens.clone(), *fallback)
            }
            Requester::Agents { agents, .. } => {
                let decision = evaluator.decide_for_sender(agents, sender, method, path);
                let decision = evaluator.settings.policy.weigh(decision, evidence);
                grace_end = decision.grace_end.filter(|_| decision.reason == Reason::Grace);
                rate_limit = decision.rate_limit.map(|limit| (limit.interval, limit.mode));
                let agent = agents.get(decision.agent).or(agents.first()).cloned().unwrap_or_else(Agent::empty);
                let fallback = if evaluator.applies_star_to(&agent) { Fallback::Star } else { Fallback::Nothing };
                let tokens = agent.tokens().to_vec();
                (decision.verdict, decision.reason, Some(decision.action), Some(agent), tokens, fallback)
            }
        };
        let refused = agent.as_ref().filter(|_| action == Some(Action::Refuse));
        let refusal = refused.map(|agent| evaluator.refusal(agent, sender, method, path));
        let form = if agent.is_some() { path.form() } else { PathForm::Standard };
        Self {
            evaluator,
            access: verdict.map_or(Access::Allow, |verdict| verdict.access()),
            form: verdict.map_or(form, |verdict| verdict.form()),
            verdict,
            reason,
            action,
            grace_end,
            rate_limit,
            agent,
            refusal,
            tokens,
            fallback,
        }
    }

    /// Counts the rules in the file that are still in their grace period. Returns `None` if the
    /// deciding rule has no grace period.
    pub(super) fn grace_rules(&self) -> Option<usize> {
        let grace = self.evaluator.grace.as_ref().filter(|_| self.grace_end.is_some())?;
        Some(grace.count_rules(SystemTime::now(), &self.evaluator.rules))
    }

    /// Returns the summary of the agent; `None` if the requester is a product token.
    pub(super) fn agent(&self) -> Option<AgentSummary<'_>> {
        self.agent.as_ref().map(|agent| AgentSummary::new(agent, self.evaluator.applies_star_to(agent)))
    }

    /// Returns the verdict of the file alone, without exemptions.
    pub(super) fn verdict_of_file(&self, path: &RequestPath<'_>) -> Verdict<'e> {
        self.evaluator.rules.select(&self.tokens, self.fallback).verdict(path)
    }

    /// Returns the minimum delay between the agent's requests; `None` if no group applies to this
    /// request.
    pub(super) fn crawl_delay(&self) -> Option<CrawlDelay<'e>> {
        self.verdict?.group()?;
        self.evaluator.rules.select(&self.tokens, self.fallback).crawl_delay()
    }

    /// Reports whether the agent is a search engine that no group names. The policy does not limit
    /// the request rate of such a search engine.
    pub(super) fn is_unnamed_engine(&self) -> bool {
        let is_star = self.evaluator.rules.select(&self.tokens, self.fallback).is_star();
        is_star && self.agent.as_ref().is_some_and(Agent::is_index_engine)
    }

    /// Reports whether the agent's operator documents that the agent obeys a crawl delay.
    pub(super) fn obeys_crawl_delay(&self) -> Obeys {
        let crawler = self.agent.as_ref().and_then(Agent::registered);
        crawler.map_or(Obeys::Unknown, |crawler| crawler.obeys_crawl_delay)
    }

    pub(super) fn usage(&self, path: &RequestPath<'_>) -> Option<Usage> {
        self.selection_for_use().usage(path)
    }

    pub(super) fn licenses(&self) -> &'e [Box<str>] {
        self.selection_for_use().licenses()
    }

    /// Returns the groups whose usage lines and licences apply. If no group names the agent, these
    /// are the groups for `*`.
    fn selection_for_use(&self) -> Selection<'e> {
        self.evaluator.rules.select(&self.tokens, Fallback::Star)
    }

    /// Returns all matching rules, for each form of the path.
    pub(super) fn trace(&self, path: &RequestPath<'_>) -> Option<Trace<'e>> {
        let decider = self.verdict?.group()?.line();
        let own = self.tokens.as_slice();
        // `choices` contains all combinations of tokens and fallback that the policy may have used
        // to select the groups. The policy used the combination that selects the deciding group.
        let first = &own[..own.len().min(1)];
        let choices = [(own, Fallback::Nothing), (first, Fallback::Nothing), (&own[..0], Fallback::Star)];
        let mut selections = choices.into_iter().map(|(tokens, of)| self.evaluator.rules.select(tokens, of));
        let selection = selections.find(|selection| selection.groups().any(|group| group.line() == decider))?;
        Some(selection.trace(path))
    }

    /// Returns the token that selected the groups in `trace`; `None` if the groups for `*` were
    /// selected.
    pub(super) fn token_of(&self, trace: &Trace<'_>) -> Option<&ProductToken> {
        let line = |group: &Group<'_>| group.line();
        self.tokens.iter().find(|token| {
            let named = self.evaluator.rules.select(std::slice::from_ref(*token), Fallback::Nothing);
            named.applies() && named.groups().map(|group| group.line()).eq(trace.groups.iter().map(line))
        })
    }
}
