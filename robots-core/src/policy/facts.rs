//! The facts about a request that a policy needs for its decision.
//!
//! **A policy has no clock.** The caller passes a clock with each request, so overrides end without
//! a timer.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::time::SystemTime;

use crate::agent::Identity;
use crate::rules::{PathForms, Reading, RequestPath};

/// The facts about a request other than its agents: method, path, address, clock and identity.
///
/// The policy reads the path and the address only if a group applies to the agent, or if the sender
/// is an impostor and the policy tags or refuses impostors. The policy reads the clock only if the
/// decision depends on the time.
#[must_use]
pub struct RequestFacts<'a> {
    pub(super) method: &'a str,
    pub(super) path: FactsPath<'a>,
    /// Whether the path is exempt. Computed at most once, for all agents of the request.
    pub(super) is_exempt: OnceCell<bool>,
    /// Function that returns the client's address, for comparison with the exempt networks.
    pub address: Option<&'a (dyn Fn() -> Option<IpAddr> + 'a)>,
    /// Function that returns the current time. Needed for grace periods and for overrides that end.
    pub clock: Option<&'a (dyn Fn() -> SystemTime + 'a)>,
    /// Outcome of verifying the request's claim about its sender. [`Identity::Unclaimed`] does not
    /// affect the decision.
    pub identity: Identity,
}

pub(super) enum FactsPath<'a> {
    Read(&'a RequestPath<'a>),
    Unread { target: &'a [u8], read: OnceCell<RequestPath<'a>> },
}

impl<'a> RequestFacts<'a> {
    /// Creates the facts from a method and a parsed path. [`Policy::path`](super::Policy::path)
    /// parses the path of a target.
    pub const fn new(method: &'a str, path: &'a RequestPath<'a>) -> Self {
        Self::with_path(method, FactsPath::Read(path))
    }

    /// Creates the facts from a method and a request target. The policy parses the path only if it
    /// needs the path.
    pub const fn of_target(method: &'a str, target: &'a [u8]) -> Self {
        Self::with_path(method, FactsPath::Unread { target, read: OnceCell::new() })
    }

    const fn with_path(method: &'a str, path: FactsPath<'a>) -> Self {
        Self { method, path, is_exempt: OnceCell::new(), address: None, clock: None, identity: Identity::Unclaimed }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address.and_then(|address| address())
    }

    /// Returns the path in the forms that are compared with rules parsed with `reading`.
    #[inline]
    pub(super) fn path(&self, reading: Reading, forms: PathForms) -> &RequestPath<'a> {
        match &self.path {
            FactsPath::Read(path) => path,
            FactsPath::Unread { target, read } => read.get_or_init(|| reading.path_of_request(target, forms)),
        }
    }

    /// Calls `find` with the path in all forms, even if `reading` compares the rules with only one
    /// form. The exempt paths of a policy are always compared with all forms.
    pub(super) fn with_all_forms<T>(
        &self,
        reading: Reading,
        forms: PathForms,
        find: impl FnOnce(&RequestPath<'_>) -> T,
    ) -> T {
        match &self.path {
            FactsPath::Unread { target, .. } if reading == Reading::Reference => {
                find(&RequestPath::of_request(target, forms))
            }
            _ => find(self.path(reading, forms)),
        }
    }

    fn target(&self) -> &[u8] {
        match &self.path {
            FactsPath::Read(path) => path.as_bytes(),
            FactsPath::Unread { target, .. } => target,
        }
    }

    pub(super) fn now(&self) -> Option<SystemTime> {
        self.clock.map(|clock| clock())
    }
}

crate::debug_as!(|it| RequestFacts::<'_> { method: it.method, target: it.target().escape_ascii().to_string() });
