//! The function that adds a `Verifier` to a layer, and a second layer, which waits briefly for
//! evidence about a request's sender.

use std::future::{Future, poll_fn};
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::Request;
use pin_project_lite::pin_project;
use tokio::time::error::Elapsed;
use tokio::time::{Instant, timeout_at};
use tower_layer::Layer;
use tower_service::Service;

use super::enforcer::Enforcer;
use super::layer::RobotsLayer;
use super::original::OriginalRequest;
use super::sender_check::SenderCheck;
use crate::source::evidence::Verifier;

impl RobotsLayer {
    /// Sets the `Verifier` that checks who sent a request. A second call replaces the verifier.
    ///
    /// Requests do not wait for evidence. A request is judged with the evidence that is already
    /// loaded: address lists, keys and reverse DNS names. Missing evidence is fetched for later
    /// requests. If requests should wait briefly for missing reverse DNS names, put a
    /// [`VerifyLayer`] outside this layer. The policy decides what happens to impostors
    /// ([`Impostors`](crate::policy::Impostors)). A signed request whose `User-Agent` does not name
    /// a crawler is judged as a request of the crawler that signed it.
    ///
    /// The client's address must be known: from [`RobotsLayer::address_from`] or, in an axum app,
    /// from `into_make_service_with_connect_info::<SocketAddr>()`. Otherwise, only signatures can
    /// verify who sent a request. A signature may cover the scheme of the request, which is
    /// assumed to be `https` unless the target contains another scheme.
    ///
    /// ```no_run
    /// use tower_robots::agent::Registry;
    /// use tower_robots::layer::{RobotsLayer, SenderCheck};
    /// use tower_robots::live::LiveRobots;
    /// use tower_robots::policy::{Impostors, Mode, Policy};
    /// use tower_robots::source::evidence::Verifier;
    ///
    /// let policy = Policy::builder().mode(Mode::Refuse).impostors(Impostors::Refuse).build();
    /// let live = LiveRobots::text("User-agent: GPTBot\nDisallow: /drafts/\n").policy(policy).open()?;
    /// let verifier = Verifier::builder(Registry::builtin()).saved_in("/var/lib/app/evidence").start()?;
    /// let layer = RobotsLayer::for_axum08(live).verifier(SenderCheck::new(&verifier).site("shop"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verifier(self, check: SenderCheck) -> Self {
        self.with(|enforcer| enforcer.sender_check = Some(check))
    }
}

/// A layer that waits for the reverse DNS names of an address, so even the first request from an
/// address can be verified. The layer creates [`Verify`] services.
///
/// A [`RobotsLayer`] does not wait for reverse DNS names. Until the names of an address are known,
/// claims of requests from this address are undecided, and the requests are handled as if there
/// were no `Verifier`. If the policy has exceptions only for verified crawlers, or refuses
/// impostors, put this layer outside the `RobotsLayer`; with `Router::layer`, add it after the
/// `RobotsLayer`. A request waits only if it claims to be from a crawler that is verified by
/// reverse DNS names, and only if the client's address has not been looked up yet. The request
/// waits for at most 250 ms.
///
/// This layer needs Tokio's timer.
///
/// ```
/// use std::net::IpAddr;
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// use tower_robots::layer::{RobotsLayer, SenderCheck};
/// use tower_robots::parts::VerifyLayer;
/// use tower_robots::source::evidence::Verifier;
/// # use tower_robots::live::LiveRobots;
///
/// # fn stack(live: LiveRobots, verifier: &Verifier) {
/// let robots = RobotsLayer::new(live)
///     .address_from(|extensions| extensions.get::<IpAddr>().copied())
///     .verifier(SenderCheck::new(verifier));
/// let stack = ServiceBuilder::new().layer(VerifyLayer::new(&robots, Duration::from_millis(100))).layer(robots);
/// # }
/// ```
#[derive(Clone)]
pub struct VerifyLayer {
    pub(super) wait: Option<EvidenceWait>,
}

#[derive(Clone)]
pub(super) struct EvidenceWait {
    enforcer: Arc<Enforcer>,
    verifier: Verifier,
    pub(super) longest: Duration,
}

/// A service that waits for evidence before it calls the inner service `S`. [`VerifyLayer`] creates
/// it.
#[derive(Clone)]
pub struct Verify<S> {
    wait: Option<EvidenceWait>,
    inner: S,
}

impl VerifyLayer {
    /// Maximum time that a request waits for evidence.
    pub const MAX_WAIT: Duration = Duration::from_millis(250);

    /// Creates a layer that waits for evidence from the [`Verifier`] of `layer`. A request waits
    /// for at most `wait`, and never longer than [`VerifyLayer::MAX_WAIT`]. Requests do not wait if
    /// `wait` is zero, or if `layer` has no `Verifier` or no [`RobotsLayer::address_from`]. A
    /// missing `Verifier` or `address_from` is logged as a warning. Later changes of `layer` have
    /// no effect on the new layer.
    ///
    /// `VerifyLayer` and `RobotsLayer` each look up the agents of a request in the cache, so
    /// [`RobotsLayer::count_agent_lookups`] counts each request twice. To count each request once,
    /// set the counters only on the clone of the `RobotsLayer` that is passed to this function, and
    /// serve requests with a clone without counters.
    pub fn new(layer: &RobotsLayer, wait: Duration) -> Self {
        let longest = wait.min(Self::MAX_WAIT);
        #[cfg(feature = "tracing")]
        if let Some((missing, setter)) = layer.enforcer.missing_for_wait().filter(|_| !longest.is_zero()) {
            tracing::warn!(
                target: "tower_robots::layer",
                "VerifyLayer::new got a layer without {missing}, so requests do not wait for evidence: call \
                 RobotsLayer::{setter} on the layer first"
            );
        }
        let verifier = layer.enforcer.verifier().filter(|_| !longest.is_zero()).cloned();
        let enforcer = layer.enforcer.clone();
        Self { wait: verifier.map(|verifier| EvidenceWait { enforcer, verifier, longest }) }
    }

    /// Waits for the evidence about one request, as [`Verify`] does. Use this function in code
    /// without Tower services. Returns immediately if no evidence about the request is being
    /// fetched.
    pub async fn evidence(&self, request: &OriginalRequest<'_>) {
        if let Some(mut waiting) = self.wait.as_ref().and_then(|wait| wait.begin(*request)).map(Box::new) {
            poll_fn(|context| waiting.poll(context, *request)).await;
        }
    }
}

impl<S> Layer<S> for VerifyLayer {
    type Service = Verify<S>;

    fn layer(&self, inner: S) -> Verify<S> {
        Verify { wait: self.wait.clone(), inner }
    }
}

impl EvidenceWait {
    /// Returns a value that waits for evidence; `None` if no evidence for the request is being
    /// fetched.
    fn begin(&self, request: OriginalRequest<'_>) -> Option<WaitingForEvidence> {
        let is_needed = self.enforcer.is_evidence_awaited(request, self.enforcer.agent_lookups.as_deref());
        let waiting = || {
            let until = Instant::now() + self.longest;
            WaitingForEvidence { wait: self.clone(), next_lookup: self.next_lookup(until), until }
        };
        is_needed.then(waiting)
    }

    /// Reports whether evidence about the request is still being fetched. The cache lookup of the
    /// request's agents is not counted here, because `begin` has already counted it.
    fn is_still_needed(&self, request: OriginalRequest<'_>) -> bool {
        self.enforcer.is_evidence_awaited(request, None)
    }

    /// Returns a future that resolves when the next DNS lookup ends, or with an error at `until`.
    fn next_lookup(&self, until: Instant) -> NextLookup {
        let verifier = self.verifier.clone();
        Box::pin(async move { timeout_at(until, verifier.lookup_ended()).await })
    }
}

impl<S, B> Service<Request<B>> for Verify<S>
where
    S: Service<Request<B>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = VerifyFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<B>) -> VerifyFuture<S, B> {
        let state = match self.wait.as_ref().and_then(|wait| wait.begin(OriginalRequest::of(&request))) {
            None => State::Called { future: self.inner.call(request) },
            Some(evidence) => {
                let next = self.inner.clone();
                // Only the service whose `poll_ready` was called is ready; its clone is not.
                let service = mem::replace(&mut self.inner, next);
                State::Waiting { waiting: Some(Box::new(Waiting { service, request, evidence })) }
            }
        };
        VerifyFuture { state }
    }
}

/// A future that resolves when a lookup has ended, or with an error when the time limit is
/// exceeded.
type NextLookup = Pin<Box<dyn Future<Output = Result<(), Elapsed>> + Send>>;

struct Waiting<S, B> {
    service: S,
    request: Request<B>,
    evidence: WaitingForEvidence,
}

struct WaitingForEvidence {
    wait: EvidenceWait,
    next_lookup: NextLookup,
    until: Instant,
}

impl WaitingForEvidence {
    fn poll(&mut self, context: &mut Context<'_>, request: OriginalRequest<'_>) -> Poll<()> {
        loop {
            match self.next_lookup.as_mut().poll(context) {
                Poll::Ready(Ok(())) => self.next_lookup = self.wait.next_lookup(self.until),
                // The evidence is checked only after the waker is registered, so that no lookup
                // ends unnoticed between the check and the registration.
                Poll::Pending if self.wait.is_still_needed(request) => return Poll::Pending,
                _ => return Poll::Ready(()),
            }
        }
    }
}

pin_project! {
    /// The future of [`Verify`].
    pub struct VerifyFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        #[pin]
        state: State<S, B>,
    }
}

pin_project! {
    #[project = StateProjection]
    enum State<S, B>
    where
        S: Service<Request<B>>,
    {
        // Boxed to keep the enum small; only requests that wait allocate. `None` only while the
        // state changes to `Called`.
        Waiting { waiting: Option<Box<Waiting<S, B>>> },
        Called { #[pin] future: S::Future },
    }
}

impl<S, B> Future for VerifyFuture<S, B>
where
    S: Service<Request<B>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut state = self.project().state;
        let waited = match state.as_mut().project() {
            StateProjection::Called { future } => return future.poll(context),
            StateProjection::Waiting { waiting } => {
                if let Some(waiting) = waiting {
                    ready!(waiting.evidence.poll(context, OriginalRequest::of(&waiting.request)));
                }
                waiting.take()
            }
        };
        // `waited` is always `Some`, because the value is taken from the state `Waiting` only once:
        // the next statement replaces this state.
        let Some(mut waiting) = waited else { return Poll::Pending };
        state.set(State::Called { future: waiting.service.call(waiting.request) });
        match state.project() {
            StateProjection::Called { future } => future.poll(context),
            StateProjection::Waiting { .. } => Poll::Pending,
        }
    }
}

robots_core::debug_as!(|it| VerifyLayer { wait: it.wait.as_ref().map(|wait| wait.longest) });

robots_core::debug_as!(|it| [S: std::fmt::Debug] Verify::<S> {
    wait: it.wait.as_ref().map(|wait| wait.longest),
    inner: it.inner
});

robots_core::debug_as!(|it| [S: Service<Request<B>>, B] VerifyFuture::<S, B> {
    is_waiting: matches!(it.state, State::Waiting { .. })
});
