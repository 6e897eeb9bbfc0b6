//! Counts panics that occur while requests are judged. Also counts mistakes in the application's
//! use of the layer, such as a layer in the wrong place. The layer can detect such a mistake only
//! when it handles a request, and logs only the first occurrence.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Value of `unserved` after `/robots.txt` has been requested.
pub(super) const SERVED: u64 = u64::MAX;

/// The counts of panics and of mistakes in the use of the layer. [`Status`](super::Status)
/// documents these counts.
#[derive(Default)]
pub(crate) struct MishapCounts {
    #[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "for an event"))]
    origin: Arc<str>,
    pub(crate) faults: AtomicU64,
    pub(crate) callback_faults: AtomicU64,
    pub(super) stripped_targets: AtomicU64,
    pub(super) nested_only: AtomicU64,
    pub(super) unchecked_claims: AtomicU64,
    pub(super) without_address: AtomicU64,
    /// Number of crawler requests that were judged before the first request for `/robots.txt`;
    /// [`SERVED`] after this request.
    pub(super) unserved: AtomicU64,
    pub(super) shadowed_routes: AtomicU64,
    pub(crate) kept_fields: AtomicU64,
    lost_fields: AtomicU64,
    exempt_neighbours: AtomicU64,
    pub(crate) late_waits: AtomicU64,
}

impl MishapCounts {
    pub(super) fn new(origin: &Arc<str>) -> Self {
        Self { origin: Arc::clone(origin), ..Self::default() }
    }

    pub(crate) fn count_stripped_target(&self) {
        self.count_mistake(
            &self.stripped_targets,
            "RobotsLayer::new is used in a nested axum router, where request paths lack the prefix of the router, so \
             rules do not match, and crawlers pass: use RobotsLayer::for_axum08 in this router",
        );
    }

    pub(crate) fn count_nested_only(&self) {
        self.count_mistake(
            &self.nested_only,
            "RobotsLayer::for_axum08 is only on a nested axum router, which gets no requests for /robots.txt, so \
             crawlers cannot read the rules: put the layer on the outermost router, after its routes and fallback",
        );
    }

    pub(crate) fn count_unchecked_claim(&self) {
        self.count_mistake(
            &self.unchecked_claims,
            "the policy depends on whether a request really comes from the crawler that it names, but nothing checks \
             this, so impostors pass: give the layer a Verifier (RobotsLayer::verifier), or a \
             RobotsLayer::identity_from that returns a result for every request",
        );
    }

    /// Counts a request whose client address is unknown although the policy needs the address. The
    /// log gets a warning with two parts: `rules` returns a clause that says which rules are not
    /// enforced, and `remedy` returns advice.
    pub(crate) fn count_without_address(&self, rules: impl FnOnce() -> String, remedy: impl FnOnce() -> &'static str) {
        self.count_once(&self.without_address, || {
            format!(
                "the address of a client is unknown, so {consequence}: {remedy}",
                consequence = rules(),
                remedy = remedy()
            )
        });
    }

    pub(crate) fn count_unlisted_proxy(&self) {
        self.count_mistake(
            &self.without_address,
            "a request came through a proxy on a private address that RobotsLayer::forwarded_for does not list, so the proxy's address \
             counts as the client's: it is compared with exempt networks, clients share crawl delays, and crawlers cannot be verified by \
             address; add the proxy's network to RobotsLayer::forwarded_for",
        );
    }

    /// Counts a request that is exempt because of its private, link-local or loopback address, and
    /// that contains no forwarded client address.
    pub(crate) fn count_exempt_neighbour(&self, address: IpAddr) {
        self.count_once(&self.exempt_neighbours, || {
            format!(
                "a crawler's request is exempt because it comes from {address}: if this is a proxy, all requests through it are exempt; \
                 add it to RobotsLayer::forwarded_for, and configure it to send X-Forwarded-For"
            )
        });
    }

    pub(crate) fn count_shadowed_route(&self) {
        self.count_mistake(
            &self.shadowed_routes,
            "the application has a route for /robots.txt, and RobotsLayer answers instead of it: remove the route, or serve its text with \
             LiveRobots::text",
        );
    }

    pub(crate) fn count_late_wait(&self) {
        self.count_mistake(
            &self.late_waits,
            "VerifyLayer is inside a RobotsLayer that has already judged the request, so waiting has no effect: put VerifyLayer outside; with \
             Router::layer, add it after the RobotsLayer",
        );
    }

    pub(crate) fn count_lost_fields(&self) {
        self.count_mistake(
            &self.lost_fields,
            "the fields of RobotsLayer::signals are missing from a response, because RobotsLayer::respond and \
             Answer::respond do not add them: use RobotsLayer::decide, take Answer::response_fields before \
             Answer::respond, and add these fields to the response",
        );
    }

    pub(crate) fn note_robots_txt_request(&self) {
        let unserved = &self.unserved;
        // The counter is written only for the first request for `/robots.txt`. Every later request
        // only reads the counter, which is cheaper than a write.
        if unserved.load(Ordering::Relaxed) != SERVED {
            unserved.store(SERVED, Ordering::Relaxed);
        }
    }

    /// Counts a judged crawler request. Does nothing after `/robots.txt` has been requested,
    /// because `checked_add` fails for [`SERVED`].
    pub(crate) fn count_unserved(&self) {
        let counted = |count: u64| count.checked_add(1);
        let before = self.unserved.fetch_update(Ordering::Relaxed, Ordering::Relaxed, counted);
        if before == Ok(Self::MAX_UNSERVED - 1) {
            self.warn(|| {
                format!(
                    "{} crawler requests were judged, but none for /robots.txt reached the layer. So crawlers get the \
                     application's answer for this path: 404, which allows everything, or some other file. Put the \
                     layer on the outermost router with Router::layer, after its routes and fallback; or merge \
                     RobotsLayer::robots_txt_route; or, if another server answers /robots.txt, call \
                     RobotsLayer::robots_txt_served_elsewhere",
                    Self::MAX_UNSERVED
                )
            });
        }
    }

    /// If this number of crawler requests was judged and none was for `/robots.txt`, a warning is
    /// logged.
    const MAX_UNSERVED: u64 = 100;

    fn count_mistake(&self, count: &AtomicU64, mistake: &str) {
        self.count_once(count, || mistake.to_owned());
    }

    /// Counts a mistake of the application. Logs only the first occurrence, because the same
    /// mistake recurs with every request.
    fn count_once(&self, count: &AtomicU64, mistake: impl FnOnce() -> String) {
        if count.fetch_add(1, Ordering::Relaxed) == 0 {
            self.warn(mistake);
        }
    }

    #[cold]
    fn warn(
        &self,
        #[cfg_attr(not(feature = "tracing"), expect(unused_variables, reason = "for an event"))]
        mistake: impl FnOnce() -> String,
    ) {
        #[cfg(feature = "tracing")]
        tracing::warn!(target: "tower_robots::layer", "{}: {}", self.origin, mistake());
    }
}
