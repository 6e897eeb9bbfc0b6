//! Who sends the request of a question of a batch.

use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use serde::Serialize;
use tower_robots::agent::{Agent, Identity, IdentityMethod, IdentityOutcome};
use tower_robots::identity::{Identified, IdentityRequest, MessageHead, PublicAddress, Signers};

use super::offline_evidence::{EmbeddedEvidence, OfflineEvidence};
use crate::target_url::TargetUrl;

/// What a question says about its sender, besides the agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'q> {
    pub(super) method: &'q str,
    pub(super) url: TargetUrl<'q>,
    pub(super) address: Option<IpAddr>,
    pub(super) fields: &'q [(String, String)],
    /// In seconds since the epoch.
    pub(super) now: Option<u64>,
    pub(super) evidence: Option<&'q OfflineEvidence>,
}

/// Who sent the request, as an answer shows it.
#[derive(Debug, Serialize)]
pub(super) struct IdentitySummary {
    outcome: IdentityOutcome,
    method: Option<IdentityMethod>,
    reason: Option<&'static str>,
    crawler: Option<String>,
    #[serde(skip)]
    pub(super) identity: Identity,
}

impl Sender<'_> {
    /// Who it is. The second part is the crawler whose request it is by its signature alone.
    pub(super) fn identify(&self, agents: &[Agent], signers: &Signers) -> (IdentitySummary, Option<String>) {
        let now = self.now.map_or_else(SystemTime::now, |now| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(now)).unwrap_or_else(SystemTime::now)
        });
        let address = PublicAddress::of(self.address, |_| false).ok();
        let host = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority = self.url.host().and_then(|host| std::str::from_utf8(host).ok());
        let authority = authority.or(host.map(|(_, value)| value.as_str()));
        // A path is that of a site as it is usually served.
        let scheme = if self.url.host().is_none() || self.url.is_https() { "https" } else { "http" };
        let target = String::from_utf8_lossy(self.url.path());
        let message = MessageHead::new(self.method, scheme, authority, &target, &self.fields);
        let request = IdentityRequest::new(agents, address).signed(&message, signers);
        let found = match self.evidence {
            Some(evidence) => request.identify(evidence, now),
            None => request.identify(&EmbeddedEvidence, now),
        };
        let signer = found.signer().and_then(Agent::crawler).map(str::to_owned);
        (IdentitySummary::new(&found), signer)
    }
}

impl IdentitySummary {
    fn new(found: &Identified<'_>) -> Self {
        let identity = found.identity();
        Self {
            outcome: identity.outcome(),
            method: identity.method(),
            reason: identity.reason(),
            crawler: found.crawler().map(str::to_owned),
            identity,
        }
    }
}
