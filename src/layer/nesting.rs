//! Requests in nested routers of axum 0.8. Each request is judged once, by the target that the
//! client sent.
//!
//! A nested router strips its prefix from the request's URI. The outermost router stores the whole
//! URI as [`OriginalUri`]. More than one of these routers may have a robots layer. The first layer
//! that judges a request therefore adds its decision to the request's extensions, and inner layers
//! do not judge the request again.
//!
//! **The axum variant of the layer is behind a version-specific feature (`axum08`).** Only code
//! that depends on axum can read the whole target, because axum's routers store it in one of axum's
//! types. The public signatures of this module do not use types of axum.
//!
//! A layer from `RobotsLayer::new` ignores [`OriginalUri`] even if the feature is enabled, because
//! any crate of a build can enable the feature, and the verdicts of the layer must not depend on
//! another crate. A layer from `RobotsLayer::new` judges requests with stripped targets, counts
//! them, and logs the first one. The axum layer counts and logs requests that only a layer in a
//! nested router judges, because such a layer does not receive requests for `/robots.txt`. If a
//! request has a crawl delay, both kinds of layer add their decision, so that no inner layer counts
//! the request again.

#[cfg(feature = "axum08")]
use axum::extract::{MatchedPath, NestedPath, OriginalUri};
#[cfg(feature = "axum08")]
use http::Uri;
use http::header::{HeaderName, USER_AGENT};
use http::uri::PathAndQuery;
use http::{Extensions, HeaderValue, Method};

use super::event::Observers;
use super::original::OriginalRequest;
use crate::live::{LiveRobots, SiteIdentity};
use crate::policy::{Action, Reason};

#[cfg(feature = "axum08")]
pub(super) fn original_uri(extensions: &Extensions) -> Option<&Uri> {
    extensions.get::<OriginalUri>().map(|original| &original.0)
}

/// Reports whether the application has its own route for exactly `/robots.txt`, which the layer
/// hides by answering the request itself.
#[cfg(feature = "axum08")]
pub(super) fn has_route(extensions: &Extensions) -> bool {
    extensions.get::<MatchedPath>().is_some_and(|route| route.as_str() == "/robots.txt")
}

#[cfg(not(feature = "axum08"))]
pub(super) const fn has_route(_: &Extensions) -> bool {
    false
}

/// Reports whether the layer judges the request by a target that differs from the target that the
/// outermost router received.
#[cfg(feature = "axum08")]
pub(super) fn is_stripped(request: &OriginalRequest<'_>) -> bool {
    let original = original_uri(request.extensions).map(Uri::path_and_query);
    original.is_some_and(|original| request.own_uri().is_some_and(|own| own.path_and_query() != original))
}

#[cfg(not(feature = "axum08"))]
pub(super) const fn is_stripped(_: &OriginalRequest<'_>) -> bool {
    false
}

/// Reports whether a nested router handles the request and no outer layer has stored its decision
/// ([`OuterDecision`]). Returns `false` for a request whose decision is never stored, for example
/// because the request has several `User-Agent` lines.
#[cfg(feature = "axum08")]
pub(super) fn lacks_outer_decision(request: &OriginalRequest<'_>, kept: &[HeaderValue]) -> bool {
    request.extensions.get::<NestedPath>().is_some()
        && request.extensions.get::<OuterDecision>().is_none()
        && request.target_uri().zip(only_line(request, kept)).is_some()
}

#[cfg(not(feature = "axum08"))]
pub(super) const fn lacks_outer_decision(_: &OriginalRequest<'_>, _: &[HeaderValue]) -> bool {
    false
}

/// The decision that a layer stores in the extensions of a judged request, with the site, method,
/// target and `User-Agent` that the decision is for. The type is private, so an application cannot
/// forge a decision.
///
/// If a service between two layers changes the method, the target or the `User-Agent` of a request,
/// the inner layer judges the request again. The inner layer also judges the request again if the
/// decision depends on an address or a cookie, because each layer may find addresses and cookies
/// differently.
#[derive(Clone)]
pub(super) struct OuterDecision {
    decision: (Action, Reason),
    /// Whether an outer layer has checked the sender.
    pub(super) is_sender_checked: bool,
    pub(super) notified: Observers,
    site: SiteIdentity,
    target: Option<PathAndQuery>,
    method: Method,
    agent: Option<HeaderValue>,
}

impl OuterDecision {
    /// Creates the decision to store for inner layers. `kept` contains the client's `User-Agent`
    /// lines that a proxy has forwarded in another field. Returns `None` if the request has several
    /// `User-Agent` lines, which is rare; an inner layer then judges the request again.
    pub(super) fn new(
        live: &LiveRobots,
        request: &OriginalRequest<'_>,
        kept: &[HeaderValue],
        decision: (Action, Reason),
        is_sender_checked: bool,
        notified: Observers,
    ) -> Option<Self> {
        let target = request.target_uri()?.path_and_query().cloned();
        let agent = only_line(request, kept)?.cloned();
        Some(Self {
            decision,
            is_sender_checked,
            notified,
            site: live.identity(),
            target,
            method: request.method.clone(),
            agent,
        })
    }

    /// Reports whether the decision depends only on the stored data, so that every inner layer may
    /// use it.
    pub(super) const fn is_final(&self) -> bool {
        !matches!(self.decision.1, Reason::Exempt | Reason::SuspectHuman)
    }

    pub(super) fn is_of(&self, action: Action, reason: Reason) -> bool {
        self.decision == (action, reason)
    }

    /// Reports whether the decision is for the same site and for a request with the same method,
    /// target and `User-Agent`.
    pub(super) fn covers(&self, live: &LiveRobots, request: &OriginalRequest<'_>, kept: &[HeaderValue]) -> bool {
        live.is(&self.site)
            && self.method == *request.method
            && request.target_uri().is_some_and(|uri| uri.path_and_query() == self.target.as_ref())
            && only_line(request, kept) == Some(self.agent.as_ref())
    }
}

/// The name of the `User-Agent` field; static, because a constant would be created and dropped at
/// every use.
pub(super) static AGENT_FIELD: HeaderName = USER_AGENT;

/// Returns the `User-Agent` line if there is exactly one. Returns `Some(None)` if there is no
/// `User-Agent` line, and `None` if there are several.
#[inline]
pub(super) fn only_line<'r>(request: &OriginalRequest<'r>, kept: &'r [HeaderValue]) -> Option<Option<&'r HeaderValue>> {
    match kept {
        [] => {
            let mut own = request.headers.get_all(&AGENT_FIELD).into_iter();
            let line = own.next();
            own.next().is_none().then_some(line)
        }
        [line] => Some(Some(line)),
        _ => None,
    }
}
