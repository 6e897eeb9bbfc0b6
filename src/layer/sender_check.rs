//! Checks who sent a request, using the evidence that a `Verifier` has collected so far.
//!
//! **If a request is not signed and names no crawler, the check only compares each field name of
//! the request with `Signature-Input`.** Requests have few fields, so these comparisons take less
//! time than a hash lookup of `Signature-Input`, which is rarely present.

use std::net::IpAddr;
use std::sync::Arc;

use http::uri::Scheme;
use http::{Extensions, HeaderMap, HeaderName};

use super::event::{ListenerFrom, Sender};
use super::original::OriginalRequest;
use super::record::is_crawler;
use crate::agent::{Agent, Identity};
use crate::identity::{FieldLines, IdentityRequest, MessageHead};
use crate::source::evidence::{ClaimPath, Verifier};

/// The field that describes the signatures of a request.
const SIGNATURE_INPUT: HeaderName = HeaderName::from_static("signature-input");

/// The settings for checking senders, for [`RobotsLayer::verifier`](super::RobotsLayer::verifier).
#[derive(Clone)]
#[must_use]
pub struct SenderCheck {
    pub(super) verifier: Verifier,
    /// The site's name in reports. If the name is `None`, reports contain the origin of the
    /// robots.txt.
    site: Option<Arc<str>>,
    listener_from: Option<ListenerFrom>,
    scheme_from: Option<SchemeFrom>,
}

type SchemeFrom = Arc<dyn Fn(&Extensions) -> Option<Scheme> + Send + Sync>;

impl SenderCheck {
    /// Creates a check that uses the evidence that this `Verifier` collects.
    pub fn new(verifier: &Verifier) -> Self {
        Self { verifier: verifier.clone(), site: None, listener_from: None, scheme_from: None }
    }

    /// Sets the site's name in [`VerifierStatus`](crate::source::evidence::VerifierStatus).
    /// Default: the origin of the site's robots.txt. A second call replaces the name.
    pub fn site(self, site: impl Into<Arc<str>>) -> Self {
        Self { site: Some(site.into()), ..self }
    }

    /// Sets a function that finds the listener that received a request. The results of checks are
    /// counted separately for each site and listener, because a proxy in front of one listener can
    /// cause all checks of its requests to fail. Default: there is only one listener. A second call
    /// replaces the function.
    pub fn listener_from(self, listener: impl Fn(&Extensions) -> Option<Arc<str>> + Send + Sync + 'static) -> Self {
        Self { listener_from: Some(Arc::new(listener)), ..self }
    }

    /// Sets a function that finds the scheme that the client used. A signature may cover the
    /// scheme, but most requests do not contain the scheme. Default: the scheme in the target or,
    /// if there is none, `https`. The default also applies if the function returns `None`. A second
    /// call replaces the function.
    pub fn scheme_from(self, scheme: impl Fn(&Extensions) -> Option<Scheme> + Send + Sync + 'static) -> Self {
        Self { scheme_from: Some(Arc::new(scheme)), ..self }
    }

    /// Returns the sender of a request whose `User-Agent` names these agents. If evidence is
    /// missing, does not wait: the claim of this request is undecided, and the evidence is fetched
    /// for later requests.
    pub(super) fn sender(
        &self,
        origin: &str,
        request: &OriginalRequest<'_>,
        agents: &[Agent],
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> Sender {
        let is_signed = is_signed(request);
        if !is_signed && !agents.iter().any(is_crawler) {
            return Sender::checked(Identity::Unclaimed);
        }
        let listener = self.listener_from.as_ref().and_then(|listener| listener(request.extensions));
        let site = self.site.as_deref().unwrap_or(origin);
        let path = ClaimPath { site, listener: listener.as_deref().unwrap_or_default() };
        let now = self.verifier.now();
        if !is_signed {
            return Sender::checked(self.verifier.identify_unsigned(agents, address(), path, now));
        }
        self.with_signed(request, agents, address(), |request| {
            let found = self.verifier.identify(request, path, now);
            Sender { identity: Some(found.identity), signer: found.signer.cloned() }
        })
    }

    pub(super) fn is_awaited(
        &self,
        request: &OriginalRequest<'_>,
        agents: &[Agent],
        address: impl FnOnce() -> Option<IpAddr>,
    ) -> bool {
        let is_awaited = |request: &IdentityRequest<'_>| self.verifier.is_awaited(request, self.verifier.now());
        if is_signed(request) {
            return self.with_signed(request, agents, address(), is_awaited);
        }
        let unsigned = || IdentityRequest::new(agents, self.verifier.public_address(address()));
        agents.iter().any(is_crawler) && is_awaited(&unsigned())
    }

    fn with_signed<T>(
        &self,
        original: &OriginalRequest<'_>,
        agents: &[Agent],
        address: Option<IpAddr>,
        read: impl FnOnce(&IdentityRequest<'_>) -> T,
    ) -> T {
        let request = IdentityRequest::new(agents, self.verifier.public_address(address));
        let found = self.scheme_from.as_ref().and_then(|scheme| scheme(original.extensions));
        let scheme = found.as_ref().map(Scheme::as_str).or_else(|| Some(original.scheme()?.as_str()));
        let target = String::from_utf8_lossy(original.target());
        let fields = Fields(original.headers);
        let method = original.method.as_str();
        let message = MessageHead::new(method, scheme.unwrap_or("https"), original.host(), &target, &fields);
        let signers = self.verifier.signers();
        read(&request.signed(&message, &signers))
    }
}

robots_core::debug_as!(|it| SenderCheck { site: it.site });

fn is_signed(request: &OriginalRequest<'_>) -> bool {
    request.headers.keys().any(|name| *name == SIGNATURE_INPUT)
}

struct Fields<'a>(&'a HeaderMap);

impl FieldLines for Fields<'_> {
    fn for_each_line(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        self.0.get_all(name).into_iter().for_each(|value| each(value.as_bytes()));
    }
}
