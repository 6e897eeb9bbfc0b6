//! Why a request is allowed or disallowed: the decision, how it came about, and the host that it holds for.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use tower_robots::agent::{Agent, Class, Identity, NamedAs, Obeys};
use tower_robots::policy::{Action, HumanEvidence, RateMode, Reason};
use tower_robots::rules::{
    Access, CrawlDelay, Fallback, Group, PathForm, ProductToken, Reading, RequestPath, Trace, Verdict,
};

use crate::commands::agents::AgentSummary;
use crate::commands::arguments::site::SelectedSite;
use crate::commands::claim::CheckedClaim;
use crate::evaluator::{Evaluator, KnownSender};
use crate::names::quoted_list;
use crate::render::printable;
use crate::target_url::TargetUrl;

/// The sender of the request.
#[derive(Clone, Debug)]
pub(super) enum Requester {
    /// A crawler that obeys these product tokens, without a request of its own: only the file counts. The name is as it was given.
    Token { name: String, tokens: Vec<ProductToken>, fallback: Fallback, crawler: Option<String> },
    /// Agents, whose request the policy decides about, first the one to call it by.
    Agents { agents: Vec<Agent>, is_star: bool },
}

impl Requester {
    /// A product token. A registered one stands for its crawler, with the further tokens that it obeys; the reference parser
    /// takes it as given.
    pub(super) fn token(evaluator: &Evaluator, token: &str) -> Self {
        let (_, agents) = evaluator.resolve(token);
        let agent = agents.first();
        let crawler = agent.registered().filter(|_| evaluator.reading != Reading::Reference);
        let tokens = crawler.map_or_else(|| vec![ProductToken::new(token)], |crawler| crawler.tokens.to_vec());
        let fallback = crawler.map_or(Fallback::Star, |_| agent.fallback());
        let (name, crawler) = (token.to_owned(), crawler.map(|crawler| crawler.name.to_owned()));
        Self::Token { name, tokens, fallback, crawler }
    }

    /// The text that a person writes: the name of a crawler, or a `User-Agent` field.
    pub(super) fn user_agent(evaluator: &Evaluator, name: &str) -> Self {
        let (named_as, agents) = evaluator.resolve(name);
        Self::Agents { agents: agents.to_vec(), is_star: named_as == NamedAs::Star }
    }

    /// The lines of `User-Agent` of a request, read as a server reads them. A word that is a crawler's name may be none there.
    pub(super) fn of_lines<'l>(evaluator: &Evaluator, lines: impl Iterator<Item = &'l str>) -> Self {
        let agents: Vec<_> = lines.flat_map(|line| evaluator.agents(line.as_bytes()).to_vec()).collect();
        let agents = if agents.is_empty() { vec![Agent::empty()] } else { agents };
        Self::Agents { agents, is_star: false }
    }

    /// The agents that its request names; none for a token.
    pub(super) fn agents(&self) -> &[Agent] {
        match self {
            Self::Token { .. } => &[],
            Self::Agents { agents, .. } => agents,
        }
    }

    /// The name in an answer: that of the crawler, or the kind of agent.
    pub(super) fn name(&self) -> String {
        let agent = match self {
            Self::Token { name, .. } => return printable(name),
            Self::Agents { is_star: true, .. } => return "any crawler that no group names".to_owned(),
            Self::Agents { agents, .. } => agents.first(),
        };
        match (agent.and_then(Agent::crawler), agent.map_or(Class::Empty, Agent::class)) {
            (Some(crawler), _) => printable(crawler),
            (None, Class::Browser) => "a browser".to_owned(),
            (None, Class::Empty) => "a request without a User-Agent".to_owned(),
            (None, class) => format!("this agent ({class})"),
        }
    }

    /// The name in the column of a table.
    pub(super) fn column(&self) -> String {
        match self {
            Self::Agents { is_star: true, .. } => "*".to_owned(),
            _ => self.name(),
        }
    }
}

/// The evidence about the sender of a request.
#[derive(Debug, Default)]
pub(super) struct ExplainedSender {
    pub(super) address: Option<IpAddr>,
    /// The result of checking its claim, if an address was named.
    pub(super) claim: Option<CheckedClaim>,
}

impl ExplainedSender {
    pub(super) fn known(&self) -> KnownSender {
        let identity = self.claim.as_ref().map_or(Identity::Unclaimed, |claim| claim.identity);
        KnownSender { identity, address: self.address }
    }
}

/// A request with all that is said about it, and the name of the robots.txt.
#[derive(Debug)]
pub(super) struct ExplainedRequest<'a> {
    pub(super) file: &'a str,
    /// Without a config the question is what the file says, and no policy is shown.
    pub(super) site: &'a SelectedSite,
    /// What is live in place of the file, and what that says.
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
    /// The host that the answer holds for: that of the URL or of the site. A robots.txt has no host in it, so without either it is the
    /// same for each that serves it.
    pub(super) fn host(&self) -> Option<String> {
        let (_, hosts) = self.site.hosts().unwrap_or_default();
        match (self.url.host(), hosts) {
            (Some(host), _) => Some(printable(host)),
            (None, [host]) if !host.contains('*') => Some(host.clone()),
            (None, _) => None,
        }
    }

    /// The site and its hosts, where that of the URL is none of them.
    pub(super) fn other_site(&self) -> Option<(&str, String)> {
        let (name, hosts) = self.site.hosts()?;
        let is_own = |host| self.site.serves(self.url.is_https(), host);
        self.url.host().filter(|host| !is_own(host)).map(|_| (name, quoted_list(hosts.iter())))
    }
}

/// The verdict of the file about a request, and the decision of the policy.
#[derive(Debug)]
pub(super) struct Explanation<'e> {
    pub(super) evaluator: &'e Evaluator,
    pub(super) access: Access,
    pub(super) form: PathForm,
    pub(super) verdict: Option<Verdict<'e>>,
    pub(super) reason: Reason,
    /// The action of the policy; `None` for a token, which makes no request.
    pub(super) action: Option<Action>,
    /// Until when, at the latest, the request is only observed, because the rule is new.
    pub(super) grace_end: Option<SystemTime>,
    /// The delay that the policy keeps its requests to, and what becomes of one that comes sooner.
    pub(super) rate_limit: Option<(Duration, RateMode)>,
    pub(super) agent: Option<Agent>,
    /// Those of the token or of the agent.
    tokens: Vec<ProductToken>,
    /// Whether the group for `*` may apply.
    pub(super) fallback: Fallback,
}

impl<'e> Explanation<'e> {
    /// The explanation of a request, with what is known of its sender and what suggests a person.
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
                // RFC 9309, section 2.2.2: implicitly allowed. The reference parser leaves that to its caller.
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
                let fallback = if evaluator.holds_to_star(&agent) { Fallback::Star } else { Fallback::Nothing };
                let tokens = agent.tokens().to_vec();
                (decision.verdict, decision.reason, Some(decision.action), Some(agent), tokens, fallback)
            }
        };
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
            tokens,
            fallback,
        }
    }

    /// Number of rules of the file that only observe until the end of the grace; `None` if the request is not in it.
    pub(super) fn grace_rules(&self) -> Option<usize> {
        let grace = self.evaluator.grace.as_ref().filter(|_| self.grace_end.is_some())?;
        Some(grace.count_rules(SystemTime::now(), &self.evaluator.rules))
    }

    /// The agent, where the request had a `User-Agent` field.
    pub(super) fn agent(&self) -> Option<AgentSummary<'_>> {
        self.agent.as_ref().map(|agent| AgentSummary::new(agent, self.evaluator.holds_to_star(agent)))
    }

    /// The verdict of the file alone, without exemptions.
    pub(super) fn verdict_of_file(&self, path: &RequestPath<'_>) -> Verdict<'e> {
        self.evaluator.rules.select(&self.tokens, self.fallback).verdict(path)
    }

    /// The delay that the agent's requests shall keep; `None` where no group is for this request.
    pub(super) fn crawl_delay(&self) -> Option<CrawlDelay<'e>> {
        self.verdict?.group()?;
        self.evaluator.rules.select(&self.tokens, self.fallback).crawl_delay()
    }

    /// Whether the agent's operator says that it keeps a delay.
    pub(super) fn obeys_crawl_delay(&self) -> Obeys {
        let crawler = self.agent.as_ref().and_then(Agent::registered);
        crawler.map_or(Obeys::Unknown, |crawler| crawler.obeys_crawl_delay)
    }

    /// Every rule that matches, in every form of the path.
    pub(super) fn trace(&self, path: &RequestPath<'_>) -> Option<Trace<'e>> {
        let decider = self.verdict?.group()?.line();
        let own = self.tokens.as_slice();
        // The policy has chosen one of these; the line of the deciding group shows which.
        let first = &own[..own.len().min(1)];
        let choices = [(own, Fallback::Nothing), (first, Fallback::Nothing), (&own[..0], Fallback::Star)];
        let mut selections = choices.into_iter().map(|(tokens, of)| self.evaluator.rules.select(tokens, of));
        let selection = selections.find(|selection| selection.groups().any(|group| group.line() == decider))?;
        Some(selection.trace(path))
    }

    /// The token for which the groups of a trace were chosen; `None` where they are those of `*`.
    pub(super) fn token_of(&self, trace: &Trace<'_>) -> Option<&ProductToken> {
        let line = |group: &Group<'_>| group.line();
        self.tokens.iter().find(|token| {
            let named = self.evaluator.rules.select(std::slice::from_ref(*token), Fallback::Nothing);
            named.applies() && named.groups().map(|group| group.line()).eq(trace.groups.iter().map(line))
        })
    }
}
