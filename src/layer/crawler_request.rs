//! A crawler's request, allowed or not: for handlers and for observers of all requests of crawlers.

use super::record::{cut, text, token_name};
use crate::agent::{Agent, Class, Identity};
use crate::live::{Content, VersionHash};
use crate::policy::{Action, Decision, Policy, Reason};
use crate::rules::Access;

/// A crawler's request and its decision: which agent sends it, the verdict, and the action taken.
///
/// In the extensions of the request where [`RobotsLayer::with_crawler_extension`] is set, whether the request is allowed
/// or not; and the record of the [`Event`](super::Event) of [`RobotsLayer::observe_crawlers`].
///
/// A crawler is an agent that is registered or declares itself one, and any other that a group of the robots.txt applies
/// to. Requests of other agents have no such extension, nor has any while nothing is known of the robots.txt or its
/// enforcement is off.
///
/// The agent is the one the request *claims* to come from; what became of that claim is its
/// [`identity`](CrawlerRequest::identity), where the layer has a `Verifier` or
/// [`RobotsLayer::identity_from`](super::RobotsLayer::identity_from).
///
/// [`RobotsLayer::with_crawler_extension`]: super::RobotsLayer::with_crawler_extension
/// [`RobotsLayer::observe_crawlers`]: super::RobotsLayer::observe_crawlers
#[derive(Clone, Debug)]
pub struct CrawlerRequest {
    agent: Agent,
    /// The name of an agent that is known by its product token alone.
    token: Option<String>,
    identity: Option<Identity>,
    action: Action,
    reason: Reason,
    access: Option<Access>,
    rule: Option<(String, usize)>,
    hash: VersionHash,
}

impl CrawlerRequest {
    /// `None` where no agent of the request is a crawler.
    pub(super) fn new(
        content: &Content,
        policy: &Policy,
        agents: &[Agent],
        identity: Option<Identity>,
        decision: &Decision<'_>,
    ) -> Option<Self> {
        let verdict = decision.verdict();
        let judged = agents.get(decision.agent()).filter(|_| verdict.is_some());
        // Where a request is exempt there may be a group for its agent, though no verdict says so.
        let is_exempt = decision.reason() == Reason::Exempt;
        let has_group = |agent: &&Agent| is_exempt && policy.has_group(content.rules(), agent);
        let agent = judged
            .or_else(|| agents.iter().find(|agent| is_crawler(agent)))
            .or_else(|| agents.iter().find(has_group))?;
        let rule = verdict.and_then(|verdict| verdict.rule());
        Some(Self {
            agent: agent.clone(),
            token: if agent.crawler().is_some() { None } else { token_name(agent) },
            identity,
            action: decision.action(),
            reason: decision.reason(),
            access: verdict.map(|verdict| verdict.access()),
            rule: rule.map(|rule| (text(rule.pattern()), rule.line())),
            hash: content.hash(),
        })
    }

    /// The agent, with its class, category and product tokens.
    #[must_use]
    pub const fn agent(&self) -> &Agent {
        &self.agent
    }

    /// The agent's name: that of a crawler, or else its class. Partly from the client: escape it.
    #[must_use]
    pub fn name(&self) -> &str {
        self.claimed_name().unwrap_or(self.agent.class().as_str())
    }

    fn claimed_name(&self) -> Option<&str> {
        self.agent.crawler().map(cut).or(self.token.as_deref())
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

    /// The verdict of the rules; `None` where they were not evaluated: no group applies, or the request is exempt, as one for
    /// `/robots.txt` is.
    #[must_use]
    pub const fn access(&self) -> Option<Access> {
        self.access
    }

    /// The path pattern of the rule that decided, as written, if one did: what no rule matches is allowed.
    #[must_use]
    pub fn rule(&self) -> Option<&str> {
        self.rule.as_ref().map(|(pattern, _)| pattern.as_str())
    }

    /// The line of the rule that decided, if one did.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.rule.as_ref().map(|(_, line)| *line)
    }

    /// The version of the robots.txt.
    #[must_use]
    pub const fn hash(&self) -> VersionHash {
        self.hash
    }
}

/// Like a [`Record`](super::Record): what a log wants to hold.
#[cfg(feature = "serde")]
impl serde::Serialize for CrawlerRequest {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct as _;
        let mut fields = serializer.serialize_struct("CrawlerRequest", 9)?;
        fields.serialize_field("agent", &self.claimed_name())?;
        fields.serialize_field("class", &self.agent.class())?;
        fields.serialize_field("category", &self.agent.category())?;
        fields.serialize_field("identity", &self.identity)?;
        fields.serialize_field("action", &self.action)?;
        fields.serialize_field("reason", &self.reason)?;
        fields.serialize_field("access", &self.access)?;
        fields.serialize_field("rule", &self.rule())?;
        fields.serialize_field("line", &self.line())?;
        fields.end()
    }
}

/// Whether a request may be a crawler's. Most are not, and are known by this.
pub(super) fn may_be_of_crawler(agents: &[Agent], decision: &Decision<'_>) -> bool {
    // Of what no group is for, the agents alone decide.
    decision.reason() != Reason::NoGroup || agents.iter().any(is_crawler)
}

/// Whether an agent is a crawler, regardless of the robots.txt.
pub(super) const fn is_crawler(agent: &Agent) -> bool {
    matches!(agent.class(), Class::Registered | Class::Declared)
}
