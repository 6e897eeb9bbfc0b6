//! Decides on requests according to the operator's settings. Every application builds a [`Policy`].
//! The Tower layer calls [`Policy::decide`]. An application without Tower calls `decide` directly.
//!
//! [`Policy::decide`] combines the agents of a request, the rules of the robots.txt and the
//! operator's settings. The method uses no HTTP types, no I/O and no system clock. If the
//! `User-Agent` lines of a request name several agents, the result is the strictest of the
//! decisions for these agents.

mod builder;
mod decide;
mod decision;
mod facts;
pub(crate) mod grace;
mod human_evidence;
mod overrides;
mod rate;
pub(crate) mod refusals;
mod scope;

pub use self::builder::PolicyBuilder;
pub use self::decide::Policy;
pub use self::decision::{Action, Decision, IdentityNeeded, Impostors, Reason, UnderRefuse};
pub use self::facts::RequestFacts;
pub use self::human_evidence::{HumanEvidence, HumanSigns, SuspectHuman};
pub use self::overrides::{Crawlers, Mode, Override};
pub use self::rate::{RateLimit, RateMode};
pub use self::scope::{EmptyAgent, WildcardExceptions, WildcardScope};
#[doc(no_inline)]
pub use crate::agent::Network;

#[cfg(test)]
mod tests;
