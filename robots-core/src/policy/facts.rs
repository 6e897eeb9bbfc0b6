//! The request that is judged, as far as a policy needs it.
//!
//! **Policy has no clock.** A moment is a value here (an override ends); a request brings a clock, which is read only
//! about disallowed requests where something ends. No timer republishes anything.

use std::cell::OnceCell;
use std::net::IpAddr;
use std::time::SystemTime;

use crate::agent::Identity;
use crate::rules::{PathForms, RequestPath};

/// A request without its agents: method, path, address, clock, and who sent it.
///
/// Path and address are only looked at once a group applies to the agent, and the clock only for disallowed requests.
#[must_use]
pub struct RequestFacts<'a> {
    pub(super) method: &'a str,
    pub(super) path: FactsPath<'a>,
    /// Finds the client's address, for the exempt networks.
    pub address: Option<&'a (dyn Fn() -> Option<IpAddr> + 'a)>,
    /// Says the time, for overrides that end.
    pub clock: Option<&'a (dyn Fn() -> SystemTime + 'a)>,
    /// The outcome of the claim that the request makes about its sender. [`Identity::Unclaimed`] changes nothing.
    pub identity: Identity,
}

pub(super) enum FactsPath<'a> {
    Read(&'a RequestPath<'a>),
    Unread { target: &'a [u8], read: OnceCell<RequestPath<'a>> },
}

impl<'a> RequestFacts<'a> {
    /// A request with this method for this path, which [`Policy::path`](super::Policy::path) makes of a target.
    pub const fn new(method: &'a str, path: &'a RequestPath<'a>) -> Self {
        Self { method, path: FactsPath::Read(path), address: None, clock: None, identity: Identity::Unclaimed }
    }

    /// A request with this method for this target, whose path the policy reads where it needs it.
    pub const fn of_target(method: &'a str, target: &'a [u8]) -> Self {
        let path = FactsPath::Unread { target, read: OnceCell::new() };
        Self { method, path, address: None, clock: None, identity: Identity::Unclaimed }
    }

    pub(super) fn address(&self) -> Option<IpAddr> {
        self.address.and_then(|address| address())
    }

    /// The path in these forms, or the one that was given with its own.
    #[inline]
    pub(super) fn path(&self, forms: PathForms) -> &RequestPath<'a> {
        match &self.path {
            FactsPath::Read(path) => path,
            FactsPath::Unread { target, read } => read.get_or_init(|| RequestPath::with_forms(target, forms)),
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
