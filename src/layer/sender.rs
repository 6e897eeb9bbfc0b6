//! Who sends a request: what became of its claim, and the crawler that its signature names.

use crate::agent::{Agent, Identity};

/// The sender of a request, as far as anything checks it.
#[derive(Clone, Debug, Default)]
pub(super) struct Sender {
    /// `None` where claims are not checked.
    pub(super) identity: Option<Identity>,
    /// The crawler that sends it by its signature alone: its agent counts in place of those that the `User-Agent` names.
    pub(super) signer: Option<Agent>,
}

impl Sender {
    pub(super) const fn checked(identity: Identity) -> Self {
        Self { identity: Some(identity), signer: None }
    }

    /// The agents that the request is judged by.
    pub(super) fn agents<'a>(&'a self, claimed: &'a [Agent]) -> &'a [Agent] {
        self.signer.as_ref().map_or(claimed, std::slice::from_ref)
    }
}
