//! Whose bucket a request takes from.

use std::net::IpAddr;

use crate::agent::{Agent, Identity};
use crate::rules::ProductToken;

/// The sender of a request, as far as limiting goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RateKey<'a> {
    token: Option<&'a ProductToken>,
    sender: RateSender,
}

/// What is known of who sends a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RateSender {
    /// The crawler that it names: all its requests take from one bucket.
    Verified,
    /// Not the crawler that it names: all impostors of one name take from one bucket.
    Refuted,
    /// Neither: those of one network take from one bucket, and those whose address is not known from another.
    Claimed(Option<IpAddr>),
}

/// A network that shares a bucket: an IPv4 address, or the first 64 bits of an IPv6 address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum SharedNetwork {
    V4(u32),
    V6(u64),
}

impl RateSender {
    /// The sender of a request whose claim was checked with this outcome. The address is looked at where nothing else tells
    /// senders apart.
    #[must_use]
    pub fn of(identity: Identity, address: impl FnOnce() -> Option<IpAddr>) -> Self {
        match identity {
            Identity::Verified(_) => Self::Verified,
            Identity::Refuted(_) => Self::Refuted,
            _ => Self::Claimed(address()),
        }
    }
}

impl<'a> RateKey<'a> {
    /// The key of an agent that is held to a delay, as the layer counts it; `is_named`: whether a group of the file names a token.
    ///
    /// `None` where it is not limited: an agent without a name is distinguished by its network only.
    #[must_use]
    pub fn of(agent: &'a Agent, sender: RateSender, is_named: impl Fn(&ProductToken) -> bool) -> Option<Self> {
        match agent.tokens() {
            [] => matches!(sender, RateSender::Claimed(Some(_))).then_some(Self::unnamed(sender)),
            [first, ..] if agent.is_registered() => Some(Self::new(first, sender)),
            // Any other name may be made up, in front of one of the file too.
            tokens @ [first, ..] => Some(match tokens.iter().find(|token| is_named(token)) {
                Some(token) => Self::new(token, sender),
                None => Self::unknown(first, sender),
            }),
        }
    }

    /// A sender that names the crawler with this product token.
    #[must_use]
    pub const fn new(token: &'a ProductToken, sender: RateSender) -> Self {
        Self { token: Some(token), sender }
    }

    /// A sender whose name may be made up. All such names count as one, so that a client has no more requests by sending more names.
    #[must_use]
    pub const fn unnamed(sender: RateSender) -> Self {
        Self { token: None, sender }
    }

    /// A sender that names a crawler which nobody knows: its name may be made up, unless it is verified.
    #[must_use]
    pub const fn unknown(token: &'a ProductToken, sender: RateSender) -> Self {
        match sender {
            RateSender::Verified => Self::new(token, sender),
            RateSender::Refuted | RateSender::Claimed(_) => Self::unnamed(sender),
        }
    }

    /// The crawler's product token; `None` for all names that may be made up.
    #[must_use]
    pub const fn token(&self) -> Option<&'a ProductToken> {
        self.token
    }

    /// What is known of the sender.
    #[must_use]
    pub const fn sender(&self) -> RateSender {
        self.sender
    }
}

impl SharedNetwork {
    pub(super) fn of(address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => Self::V4(address.to_bits()),
            IpAddr::V6(address) => Self::V6((address.to_bits() >> 64) as u64),
        }
    }
}
