//! What becomes of requests whose claim is refuted, and whose claim is believed where an entry is for a crawler.

use super::decision::Action;
use crate::agent::{Agent, Class, Identity};
use crate::rules::keywords;

/// What becomes of an impostor: a request that claims to be a crawler, and whose [`Identity`] is refuted.
///
/// Whatever is chosen, an impostor meets the file like any other crawler, without what is granted to the crawler's name:
/// the default tag of search engines, overrides that are milder than the mode, and the exemption of agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum Impostors {
    /// It passes where the file allows it. The default.
    #[default]
    Observe,
    /// It is tagged at least, whatever the file says.
    Tag,
    /// It is refused, whatever the file says.
    Refuse,
}

keywords!(Impostors, "a rule for impostors", {
    Observe = "observe",
    Tag = "tag",
    Refuse = "refuse",
});

/// What is needed of an identity for what is granted to a crawler by its name: overrides that are milder than the mode, and
/// the exemption of agents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "lowercase"))]
#[non_exhaustive]
pub enum IdentityNeeded {
    /// A claim that is not refuted. The default: without evidence nothing changes.
    #[default]
    Claimed,
    /// A claim that is verified or undecided. Crawlers whose operator publishes no method get nothing.
    Undecided,
    /// A claim that is verified.
    Verified,
}

keywords!(IdentityNeeded, "a need for an identity", {
    Claimed = "claimed",
    Undecided = "undecided",
    Verified = "verified",
});

/// What identities mean to a policy.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct IdentityRules {
    pub(super) impostors: Impostors,
    pub(super) needed: IdentityNeeded,
}

impl IdentityRules {
    /// Whether what is granted to the name of a crawler is granted to this request.
    pub(super) const fn believe(self, identity: Identity) -> bool {
        match (identity, self.needed) {
            (Identity::Verified(_), _) | (Identity::Undecided(_), IdentityNeeded::Undecided) => true,
            (Identity::Refuted(_), _) => false,
            (_, needed) => matches!(needed, IdentityNeeded::Claimed),
        }
    }

    /// The least that is done about an agent's request, whatever the file says. A signature can be refuted without the name of
    /// a crawler; a browser that sends one may still be a person's.
    pub(super) const fn least_action(self, agent: &Agent, identity: Identity) -> Action {
        let is_claim = matches!(agent.class(), Class::Registered | Class::Declared);
        match self.impostors {
            Impostors::Tag if is_claim && matches!(identity, Identity::Refuted(_)) => Action::Tag,
            Impostors::Refuse if is_claim && matches!(identity, Identity::Refuted(_)) => Action::Refuse,
            _ => Action::Pass,
        }
    }
}
