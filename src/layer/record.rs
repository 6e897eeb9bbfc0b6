//! The part of a decision that outlives its snapshot.

use std::time::Duration;

use crate::agent::{Agent, Category, Class, Identity};
use crate::live::{Content, VersionHash};
use crate::policy::{Action, Decision, HumanSigns, Reason};
use crate::rules::{Access, PathForm};

/// Characters of a claimed name that are kept; the longest registered one has a third of that.
const MAX_NAME: usize = 128;

/// An owned record of a request that robots.txt disallows, that comes sooner than its delay lets it, or that an impostor
/// sends whom the policy tags or refuses: for observers, and in the extensions of a tagged request and of a refusal, where a
/// borrowed [`Decision`] cannot stay.
///
/// The request of an impostor may be allowed, or be matched by no rule: then group, rule and line are those of the rule that
/// allows it, or `None`.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Record {
    agent: Option<String>,
    class: Class,
    category: Option<Category>,
    identity: Option<Identity>,
    action: Action,
    reason: Reason,
    access: Access,
    group: Option<String>,
    group_size: usize,
    rule: Option<String>,
    line: Option<usize>,
    form: PathForm,
    #[cfg_attr(feature = "serde", serde(skip))]
    limit: Option<Box<Limit>>,
    #[cfg_attr(feature = "serde", serde(skip))]
    signs: HumanSigns,
    #[cfg_attr(feature = "serde", serde(skip))]
    hash: VersionHash,
}

/// The delay that a request did not keep.
#[derive(Clone, Debug)]
struct Limit {
    interval: Duration,
    held_to: Duration,
    line: usize,
    group: String,
    wait: Duration,
    /// Its place among the requests that were refused for their pace, which spreads their return.
    turn: u32,
}

impl Record {
    /// `None` where no agent is judged.
    pub(super) fn new(
        content: &Content,
        agents: &[Agent],
        identity: Option<Identity>,
        decision: &Decision<'_>,
    ) -> Option<Self> {
        let agent = agents.get(decision.agent())?;
        let verdict = decision.verdict();
        let rule = verdict.and_then(|verdict| verdict.rule());
        let group = rule.map(|rule| {
            let name = verdict.and_then(|verdict| verdict.name()).or_else(|| rule.group().names().next());
            text(name.map_or(&b"*"[..], |name| name.value()))
        });
        Some(Self {
            agent: name(agent),
            class: agent.class(),
            category: agent.category(),
            identity,
            action: decision.action(),
            reason: decision.reason(),
            access: verdict.map_or(Access::Allow, |verdict| verdict.access()),
            group,
            group_size: rule.map_or(0, |rule| rule.group().names().len()),
            rule: rule.map(|rule| text(rule.pattern())),
            line: rule.map(|rule| rule.line()),
            form: verdict.map_or(PathForm::Standard, |verdict| verdict.form()),
            limit: limit(decision),
            signs: decision.signs(),
            hash: content.hash(),
        })
    }

    /// The claimed sender: a crawler's name, or else the agent's class. Partly from the client: escape it.
    #[must_use]
    pub fn agent(&self) -> &str {
        self.name().unwrap_or(self.class.as_str())
    }

    /// The name it claims, if it claims one.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        self.agent.as_deref()
    }

    /// The agent's class.
    #[must_use]
    pub const fn class(&self) -> Class {
        self.class
    }

    /// The crawler's category, where it is registered.
    #[must_use]
    pub const fn category(&self) -> Option<Category> {
        self.category
    }

    /// What became of the claim that the request makes about its sender; `None` where claims are not checked.
    #[must_use]
    pub const fn identity(&self) -> Option<Identity> {
        self.identity
    }

    /// The action taken.
    #[must_use]
    pub const fn action(&self) -> Action {
        self.action
    }

    /// The reason for it.
    #[must_use]
    pub const fn reason(&self) -> Reason {
        self.reason
    }

    /// The verdict of the rules; [`Access::Allow`] where no group is for the agent.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The name, as written, that makes the deciding rule's group one for this agent.
    #[must_use]
    pub fn group(&self) -> Option<&str> {
        self.group.as_deref()
    }

    /// How many names the group has; 0 where there is none.
    #[must_use]
    pub const fn group_size(&self) -> usize {
        self.group_size
    }

    /// The path pattern of the deciding rule, as written.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_deref()
    }

    /// The line of the deciding rule.
    #[must_use]
    pub const fn line(&self) -> Option<usize> {
        self.line
    }

    /// The form of the path that decided.
    #[must_use]
    pub const fn form(&self) -> PathForm {
        self.form
    }

    /// The delay that a request came too soon for, as written in the robots.txt, and its line; `None` for any other request.
    #[must_use]
    pub fn delay(&self) -> Option<(Duration, usize)> {
        self.limit.as_ref().map(|limit| (limit.interval, limit.line))
    }

    /// The interval that the sender is held to, which may be shorter than the delay as written.
    pub(super) fn held_to(&self) -> Option<Duration> {
        self.limit.as_ref().map(|limit| limit.held_to)
    }

    /// The name, as written, that makes the delay's group one for this agent.
    #[must_use]
    pub fn delay_group(&self) -> Option<&str> {
        self.limit.as_ref().map(|limit| limit.group.as_str())
    }

    /// How long to wait before the next request; zero unless this one came too soon.
    #[must_use]
    pub fn wait(&self) -> Duration {
        self.limit.as_ref().map_or(Duration::ZERO, |limit| limit.wait)
    }

    /// The same record of a refusal that has this place among those of its site.
    pub(super) fn with_turn(mut self, turn: impl FnOnce() -> u32) -> Self {
        if let Some(limit) = &mut self.limit {
            limit.turn = turn();
        }
        self
    }

    /// When to come again: after the wait, or up to a tenth of it later.
    pub(super) fn retry_after(&self) -> Duration {
        let Some(limit) = &self.limit else { return Duration::ZERO };
        // Multiples of the golden ratio, modulo 1, are apart from each other, however many there are.
        let share = f64::from(limit.turn.wrapping_mul(0x9E37_79B9)) / f64::from(u32::MAX);
        limit.wait + limit.wait.mul_f64(share / 10.0)
    }

    /// The signs that a person is behind the request.
    #[must_use]
    pub const fn signs(&self) -> HumanSigns {
        self.signs
    }

    /// The version of the robots.txt.
    #[must_use]
    pub const fn hash(&self) -> VersionHash {
        self.hash
    }
}

/// The explanation for a request that came too soon; `None` for any other.
fn limit(decision: &Decision<'_>) -> Option<Box<Limit>> {
    let pace = decision.pace()?;
    let delay = pace.delay();
    let limit = || Limit {
        interval: delay.interval(),
        held_to: pace.interval(),
        line: delay.line(),
        group: text(delay.name().value()),
        wait: decision.wait(),
        turn: 0,
    };
    (!decision.wait().is_zero()).then(|| Box::new(limit()))
}

/// The name an agent claims: the registered one, or the product that declares itself, or the product token it obeys.
pub(super) fn name(agent: &Agent) -> Option<String> {
    agent.crawler().map(|name| cut(name).to_owned()).or_else(|| token_name(agent))
}

/// The product token it obeys: the name of an agent that has no other.
pub(super) fn token_name(agent: &Agent) -> Option<String> {
    agent.tokens().first().map(|token| cut(&token.to_string()).to_owned())
}

pub(super) fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

/// The part of a claimed name that is kept.
pub(super) fn cut(name: &str) -> &str {
    // A character has an octet at least.
    if name.len() <= MAX_NAME {
        return name;
    }
    name.char_indices().nth(MAX_NAME).map_or(name, |(at, _)| &name[..at])
}
