//! The settings of a layer, and the functions that find a request's target, agents and client.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
#[cfg(feature = "tracing")]
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;

use http::{Extensions, HeaderValue, Uri};

use super::event::{AddressFrom, AgentFrom, ExemptIf, IdentityFrom, Observers, RefuseWith, Sender, TargetFrom};
use super::forwarded::ForwardedWay;
use super::nesting;
use super::original::OriginalRequest;
#[cfg(feature = "verify")]
use super::sender_check::SenderCheck;
use super::signals::Signals;
use crate::agent::Agent;
use crate::live::{AgentLookups, Content, LiveRobots};
use crate::policy::Network;
use crate::source::Sites;
#[cfg(feature = "verify")]
use crate::source::evidence::Verifier;

#[derive(Clone)]
pub(super) struct Enforcer {
    pub(super) sites: Sites,
    pub(super) target_from: Option<TargetFrom>,
    pub(super) address_from: Option<AddressFrom>,
    pub(super) trusted_proxies: Arc<[Network]>,
    pub(super) agent_from: Option<AgentFrom>,
    pub(super) identity_from: Option<IdentityFrom>,
    pub(super) exempt_if: Option<ExemptIf>,
    pub(super) counting: Counting,
    #[cfg(feature = "verify")]
    pub(super) sender_check: Option<SenderCheck>,
    pub(super) observers: Observers,
    pub(super) crawler_records: CrawlerRecords,
    pub(super) refuse_with: Option<RefuseWith>,
    pub(super) signals: Option<Arc<Signals>>,
    pub(super) agent_lookups: Option<Arc<AgentLookups>>,
    pub(super) robots_txt: RobotsTxtPlace,
    pub(super) notes: Arc<LayerNotes>,
    /// Function that finds the target that the outermost router received; `None` for a layer that
    /// does not support nested routers.
    pub(super) nested_target: Option<fn(&Extensions) -> Option<&Uri>>,
}

/// The state that a layer and its clones share.
#[derive(Default)]
pub(super) struct LayerNotes {
    /// Hosts that belong to no site and have already been logged. The number of slots limits these
    /// log lines, because a client can send any host.
    #[cfg(feature = "tracing")]
    pub(super) unknown_hosts: [OnceLock<Box<[u8]>>; 16],
    /// Whether the application serves `/robots.txt` from its own route, with a
    /// [`RobotsTxtService`](crate::parts::RobotsTxtService).
    pub(super) has_route: AtomicBool,
}

#[cfg(feature = "tracing")]
impl LayerNotes {
    /// Logs a request whose host belongs to no site, unless the host was already logged or all
    /// slots are in use.
    #[cold]
    pub(super) fn trace_unknown_host(&self, request: &OriginalRequest<'_>) {
        let host = request.host_bytes().unwrap_or_default();
        for slot in &self.unknown_hosts {
            let mut is_new = false;
            let known = slot.get_or_init(|| {
                is_new = true;
                host.into()
            });
            if is_new {
                tracing::warn!(
                    target: "tower_robots::layer",
                    host = request.host(),
                    "no site serves the host of a request, so no robots.txt applies to the request: if the host is \
                     yours, add it to a site, or give a site the pattern \"*\""
                );
            }
            if known.eq_ignore_ascii_case(host) {
                return;
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum RobotsTxtPlace {
    Here,
    /// Another server, such as a CDN, serves `/robots.txt`.
    Elsewhere,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Counting {
    Here,
    /// The caller of [`RobotsLayer::decide`](super::RobotsLayer::decide) counts the request, in a
    /// store that several processes share.
    InStore,
    /// The request is not counted, because another layer has already refused it.
    Before,
}

/// Whether a crawler's request gets a [`Record`](super::record::Record) even if it passes
/// unchanged.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CrawlerRecords {
    /// The request gets a record only if an observer needs one.
    Omit,
    InAnswer,
    /// The request always gets a record, also in its extensions.
    InExtensions,
}

impl Enforcer {
    /// Returns the sender of a request. `agents` are the agents that the request's `User-Agent`
    /// names.
    pub(super) fn sender(
        &self,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "needed only to check senders"))]
        live: &LiveRobots,
        request: &OriginalRequest<'_>,
        #[cfg_attr(not(feature = "verify"), expect(unused_variables, reason = "needed only to check senders"))]
        agents: &[Agent],
    ) -> Sender {
        if let Some(identity) = self.identity_from.as_ref().and_then(|identity| identity(request.extensions)) {
            return Sender::checked(identity);
        }
        #[cfg(feature = "verify")]
        if let Some(check) = &self.sender_check {
            return check.sender(&live.site.origin, request, agents, || self.address(request));
        }
        Sender::default()
    }

    pub(super) fn address(&self, request: &OriginalRequest<'_>) -> Option<IpAddr> {
        let peer = self.address_from.as_ref()?(request.extensions)?;
        if !self.is_trusted(peer) {
            return Some(peer);
        }
        let way = ForwardedWay::read(request.headers, SocketAddr::new(peer, 0), |address| self.is_trusted(address));
        // If there is only one hop, this hop is the trusted proxy itself, and the client's address
        // is unknown.
        (way.hops.len() > 1).then(|| way.client().ip())
    }

    fn is_trusted(&self, address: IpAddr) -> bool {
        self.trusted_proxies.iter().any(|network| network.contains(address))
    }

    /// Returns advice on how to configure the layer so that it finds the client's address.
    pub(super) fn missing_address_advice(&self, request: &OriginalRequest<'_>) -> &'static str {
        match self.address_from.as_ref().map(|address| address(request.extensions)) {
            None => "set RobotsLayer::address_from, or use RobotsLayer::for_axum08",
            Some(None) => {
                "the request's extensions do not contain the peer's address; if this is an axum app, serve it with \
                 into_make_service_with_connect_info::<SocketAddr>(); otherwise, correct the function that is set \
                 with RobotsLayer::address_from"
            }
            Some(Some(_)) => {
                "a proxy that RobotsLayer::forwarded_for lists did not forward the client's address; configure this \
                 proxy to send X-Forwarded-For"
            }
        }
    }

    #[cfg(feature = "verify")]
    pub(super) fn verifier(&self) -> Option<&Verifier> {
        self.sender_check.as_ref().map(|check| &check.verifier)
    }

    /// Returns the missing setting that the layer needs to wait for evidence, and the function that
    /// sets it; `None` if no setting is missing.
    #[cfg(all(feature = "verify", feature = "tracing"))]
    pub(super) fn missing_for_wait(&self) -> Option<(&'static str, &'static str)> {
        match (self.verifier(), &self.address_from) {
            (None, _) => Some(("a Verifier", "verifier")),
            (_, None) => Some(("the client's address", "address_from")),
            _ => None,
        }
    }

    pub(super) fn records_crawlers(&self) -> bool {
        self.crawler_records > CrawlerRecords::Omit || self.observers.observe_crawlers()
    }

    /// Replaces the request's target with the target that the client sent. If the layer cannot find
    /// this target, returns the request unchanged.
    pub(super) fn with_target<'r>(&self, request: OriginalRequest<'r>) -> OriginalRequest<'r> {
        let request = self.target_from.as_ref().map_or(request, |target| request.with_target_from(&**target));
        self.nested_target.map_or(request, |target| request.with_target_from(target))
    }

    /// Calls `judge` with the request's agents. The agents are recognised in the lines that
    /// [`forwarded_agent_lines`](Self::forwarded_agent_lines) returns or, if there are none, in the
    /// request's own `User-Agent` lines. If there is only one line, as in nearly every request, its
    /// agents are borrowed from the cache.
    #[inline]
    pub(super) fn with_agents<T>(
        &self,
        content: &Content,
        request: &OriginalRequest<'_>,
        lookups: Option<&AgentLookups>,
        judge: impl FnOnce(&[Agent]) -> T,
    ) -> T {
        let kept = self.forwarded_agent_lines(request);
        if let Some(line) = nesting::only_line(request, kept) {
            return judge(&content.cached_agents(line.map(HeaderValue::as_bytes).unwrap_or_default(), lookups));
        }
        let own = request.headers.get_all(&nesting::AGENT_FIELD).iter();
        let own = own.take(if kept.is_empty() { usize::MAX } else { 0 });
        let agents = |line: &HeaderValue| content.cached_agents(line.as_bytes(), lookups).to_vec();
        judge(&kept.iter().chain(own).flat_map(agents).collect::<Vec<_>>())
    }

    /// Returns the client's `User-Agent` lines that a proxy has forwarded in another field. If
    /// there are none, returns an empty slice. The caller must then use the request's own
    /// `User-Agent` lines.
    pub(super) fn forwarded_agent_lines<'r>(&self, request: &OriginalRequest<'r>) -> &'r [HeaderValue] {
        self.agent_from.as_ref().and_then(|agent| agent(request.extensions)).unwrap_or_default()
    }

    pub(super) const fn checks_senders(&self) -> bool {
        #[cfg(feature = "verify")]
        if self.sender_check.is_some() {
            return true;
        }
        self.identity_from.is_some()
    }
}
