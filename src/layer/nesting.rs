//! Requests in nested routers of axum 0.8: each is judged once, by the target that the client sent.
//!
//! A nested router strips its prefix from the request's URI; the outermost router keeps the whole as [`OriginalUri`]. One
//! request meets the layers of every router on its way, so the first that judges it leaves a mark.
//!
//! **axum has a form of the layer, behind a feature with its version.** Its routers keep the whole target in a type of
//! their own, so there has to be a dependency on it; it is read here and is part of no signature. The plain layer does
//! not read it, because a feature that another crate turns on must not change what is judged; it counts what it judges
//! by less than the whole target, and logs the first. The layer for axum does so where it judges in a nested router alone,
//! which gets no requests for `/robots.txt`.

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

/// The URI that the outermost router got.
#[cfg(feature = "axum08")]
pub(super) fn original_uri(extensions: &Extensions) -> Option<&Uri> {
    extensions.get::<OriginalUri>().map(|original| &original.0)
}

/// Whether a route of the application is for `/robots.txt` alone, which the layer answers instead.
#[cfg(feature = "axum08")]
pub(super) fn has_route(extensions: &Extensions) -> bool {
    extensions.get::<MatchedPath>().is_some_and(|route| route.as_str() == "/robots.txt")
}

/// No router is known that says which route matches.
#[cfg(not(feature = "axum08"))]
pub(super) const fn has_route(_: &Extensions) -> bool {
    false
}

/// Whether the request is judged by its own target although that is not what the outermost router got.
#[cfg(feature = "axum08")]
pub(super) fn is_stripped(request: &OriginalRequest<'_>) -> bool {
    let original = original_uri(request.extensions).map(Uri::path_and_query);
    original.is_some_and(|original| request.own_uri().is_some_and(|own| own.path_and_query() != original))
}

/// No router is known that cuts a part from targets.
#[cfg(not(feature = "axum08"))]
pub(super) const fn is_stripped(_: &OriginalRequest<'_>) -> bool {
    false
}

/// Whether the request is in a nested router, and no layer outside has left a mark that it could have left.
#[cfg(feature = "axum08")]
pub(super) fn is_unmarked(request: &OriginalRequest<'_>, kept: &[HeaderValue]) -> bool {
    request.extensions.get::<NestedPath>().is_some()
        && request.extensions.get::<OuterDecision>().is_none()
        && request.target_uri().zip(only_line(request, kept)).is_some()
}

/// No router is known that nests another.
#[cfg(not(feature = "axum08"))]
pub(super) const fn is_unmarked(_: &OriginalRequest<'_>, _: &[HeaderValue]) -> bool {
    false
}

/// The mark of a request that was judged, in its extensions: for which site, and by what. Only this file makes one, so no
/// client and no application can.
///
/// It holds what the decision depends on. If something between two layers changes that, the inner one judges again. It
/// does so too where the decision depends on more: an address or a cookie, which layers may find in ways of their own.
#[derive(Clone)]
pub(super) struct OuterDecision {
    decision: (Action, Reason),
    /// Whether the layers outside have checked the sender.
    pub(super) is_sender_checked: bool,
    /// The observers that the layers outside have notified of the decision.
    pub(super) notified: Observers,
    site: SiteIdentity,
    target: Option<PathAndQuery>,
    method: Method,
    agent: Option<HeaderValue>,
}

impl OuterDecision {
    /// The mark of a request, which a trusted proxy may have kept lines of `User-Agent` of; `None` for one with several
    /// lines, which is rare, and judged again.
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

    /// Whether the decision holds for every layer inside: it depends on nothing but the content of the mark.
    pub(super) const fn is_final(&self) -> bool {
        !matches!(self.decision.1, Reason::Exempt | Reason::SuspectHuman)
    }

    /// Whether the mark is of the same decision.
    pub(super) fn is_of(&self, action: Action, reason: Reason) -> bool {
        self.decision == (action, reason)
    }

    /// Whether a request is judged for this site by what the mark's was judged by.
    pub(super) fn covers(&self, live: &LiveRobots, request: &OriginalRequest<'_>, kept: &[HeaderValue]) -> bool {
        live.is(&self.site)
            && self.method == *request.method
            && request.target_uri().is_some_and(|uri| uri.path_and_query() == self.target.as_ref())
            && only_line(request, kept) == Some(self.agent.as_ref())
    }
}

/// In one place, because a constant is made anew, and dropped, wherever it is looked up.
pub(super) static AGENT_FIELD: HeaderName = USER_AGENT;

/// The only line of `User-Agent`, or that there is no line; `None` where there are several.
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
