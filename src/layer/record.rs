//! The part of a decision that outlives its snapshot.

use crate::agent::{Agent, Category, Class};
use crate::live::{Content, VersionHash};
use crate::policy::{Action, Decision, HumanSigns, Reason};
use crate::rules::{Access, PathForm};

/// Characters of a claimed name that are kept; the longest registered one has a third of that.
const MAX_NAME: usize = 128;

/// An owned record of a request that robots.txt disallows: for observers, and in the extensions of a tagged request and
/// of a refusal, where a borrowed [`Decision`] cannot stay.
#[derive(Clone, Debug)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Record {
    agent: Option<String>,
    class: Class,
    category: Option<Category>,
    action: Action,
    reason: Reason,
    access: Access,
    group: String,
    group_size: usize,
    rule: String,
    line: usize,
    form: PathForm,
    #[cfg_attr(feature = "serde", serde(skip))]
    signs: HumanSigns,
    #[cfg_attr(feature = "serde", serde(skip))]
    hash: VersionHash,
}

impl Record {
    /// `None` where no rule decided.
    pub(super) fn new(content: &Content, agents: &[Agent], decision: &Decision<'_>) -> Option<Self> {
        let agent = agents.get(decision.agent())?;
        let verdict = decision.verdict()?;
        let rule = verdict.rule()?;
        Some(Self {
            agent: name(agent),
            class: agent.class(),
            category: agent.category(),
            action: decision.action(),
            reason: decision.reason(),
            access: verdict.access(),
            group: text(verdict.name().or_else(|| rule.group().names().next()).map_or(&b"*"[..], |name| name.value())),
            group_size: rule.group().names().len(),
            rule: text(rule.pattern()),
            line: rule.line(),
            form: verdict.form(),
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

    /// The verdict of the rules.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The name, as written, that makes the deciding rule's group one for this agent.
    #[must_use]
    pub fn group(&self) -> &str {
        &self.group
    }

    /// How many names the group has.
    #[must_use]
    pub const fn group_size(&self) -> usize {
        self.group_size
    }

    /// The path pattern of the deciding rule, as written.
    #[must_use]
    pub fn rule(&self) -> &str {
        &self.rule
    }

    /// The line of the deciding rule.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// The form of the path that decided.
    #[must_use]
    pub const fn form(&self) -> PathForm {
        self.form
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

/// The name an agent claims: the registered one, or the product that declares itself, or the product token it obeys.
pub(super) fn name(agent: &Agent) -> Option<String> {
    agent.crawler().map(cut).or_else(|| agent.tokens().first().map(|token| cut(&token.to_string())))
}

pub(super) fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
}

fn cut(name: &str) -> String {
    let end = name.char_indices().nth(MAX_NAME).map_or(name.len(), |(at, _)| at);
    name[..end].to_owned()
}
