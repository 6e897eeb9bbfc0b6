//! A layer that waits a moment for evidence about a sender, in front of the one that judges.

use std::fmt;
use std::future::Future;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http::Request;
use pin_project_lite::pin_project;
use tokio::time::{Instant, timeout_at};
use tower_layer::Layer;
use tower_service::Service;

use super::enforce::Enforcer;
use super::layer::RobotsLayer;
use super::original::Original;
use crate::source::evidence::Verifier;

/// Waits for names that are being looked up, so that the first request of an address is judged by them; makes [`Verify`].
///
/// A [`RobotsLayer`] waits for nothing: the first requests of an address whose names are not known yet are `undecided`, and
/// pass as they would without a `Verifier`. Where the policy needs `verified` for what it grants, or refuses impostors, this
/// layer outside of it makes them wait, for 250 ms at most. Only requests wait that claim to be a crawler whose addresses have
/// names, and whose address is new.
///
/// It needs Tokio's timer.
///
/// ```
/// use std::time::Duration;
/// use tower::ServiceBuilder;
/// use tower_robots::layer::{RobotsLayer, VerifyLayer};
/// # use tower_robots::live::LiveRobots;
/// # let live = LiveRobots::inline("# nothing restricted\n").open()?;
///
/// let robots = RobotsLayer::new(live);
/// let stack = ServiceBuilder::new().layer(VerifyLayer::new(&robots, Duration::from_millis(100))).layer(robots);
/// # Ok::<(), tower_robots::live::Rejection>(())
/// ```
#[derive(Clone)]
pub struct VerifyLayer {
    wait: EvidenceWait,
}

/// What a service waits for, and how long.
#[derive(Clone)]
struct EvidenceWait {
    enforcer: Arc<Enforcer>,
    longest: Duration,
}

/// Waits for evidence in front of `S`. Made by [`VerifyLayer`].
#[derive(Clone)]
pub struct Verify<S> {
    wait: EvidenceWait,
    inner: S,
}

impl VerifyLayer {
    /// The longest that a request waits.
    pub const LONGEST_WAIT: Duration = Duration::from_millis(250);

    /// Waits for the evidence of the [`Verifier`] that a layer has. `wait` is cut to [`VerifyLayer::LONGEST_WAIT`]; with zero,
    /// and where the layer has no `Verifier`, nothing waits.
    #[must_use]
    pub fn new(layer: &RobotsLayer, wait: Duration) -> Self {
        let longest = wait.min(Self::LONGEST_WAIT);
        Self { wait: EvidenceWait { enforcer: layer.enforcer.clone(), longest } }
    }
}

impl<S> Layer<S> for VerifyLayer {
    type Service = Verify<S>;

    fn layer(&self, inner: S) -> Verify<S> {
        Verify { wait: self.wait.clone(), inner }
    }
}

impl EvidenceWait {
    fn is_needed<B>(&self, request: &Request<B>) -> bool {
        !self.longest.is_zero() && self.enforcer.is_evidence_awaited(Original::of(request))
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
        let state = match self.wait.enforcer.verifier() {
            Some(verifier) if self.wait.is_needed(&request) => {
                let verifier = verifier.clone();
                let until = Instant::now() + self.wait.longest;
                let next = self.inner.clone();
                State::Waiting {
                    // The one that is ready takes the request.
                    service: Some((mem::replace(&mut self.inner, next), request)),
                    wait: self.wait.clone(),
                    looked_up: looked_up(verifier.clone(), until),
                    is_registered: false,
                    verifier,
                    until,
                }
            }
            _ => State::Called { future: self.inner.call(request) },
        };
        VerifyFuture { state }
    }
}

/// A look-up has ended, or the time is up.
type LookedUp = Pin<Box<dyn Future<Output = Waited> + Send>>;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Waited {
    LookedUp,
    TimeIsUp,
}

fn looked_up(verifier: Verifier, until: Instant) -> LookedUp {
    Box::pin(async move {
        match timeout_at(until, verifier.looked_up()).await {
            Ok(()) => Waited::LookedUp,
            Err(_) => Waited::TimeIsUp,
        }
    })
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
        Waiting {
            service: Option<(S, Request<B>)>,
            wait: EvidenceWait,
            looked_up: LookedUp,
            // Whether a look-up that ends from now on wakes the task.
            is_registered: bool,
            verifier: Verifier,
            until: Instant,
        },
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
        loop {
            let (mut service, request) = match state.as_mut().project() {
                StateProjection::Called { future } => return future.poll(context),
                StateProjection::Waiting { service, wait, looked_up: next, is_registered, verifier, until } => {
                    let waited = next.as_mut().poll(context);
                    let is_needed = service.as_ref().is_some_and(|(_, request)| wait.is_needed(request));
                    match waited {
                        // What ended before the task was to be woken is seen here.
                        Poll::Pending if !mem::replace(is_registered, true) && !is_needed => {}
                        Poll::Ready(Waited::LookedUp) if is_needed => {
                            *next = looked_up(verifier.clone(), *until);
                            *is_registered = false;
                            continue;
                        }
                        Poll::Ready(_) => {}
                        Poll::Pending => return Poll::Pending,
                    }
                    // It is there until the service is called, which ends this state.
                    let Some(service) = service.take() else { return Poll::Pending };
                    service
                }
            };
            state.set(State::Called { future: service.call(request) });
        }
    }
}

impl fmt::Debug for VerifyLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VerifyLayer").field("wait", &self.wait.longest).finish_non_exhaustive()
    }
}

impl<S: fmt::Debug> fmt::Debug for Verify<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verify").field("wait", &self.wait.longest).field("inner", &self.inner).finish()
    }
}

impl<S, B> fmt::Debug for VerifyFuture<S, B>
where
    S: Service<Request<B>>,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_waiting = matches!(self.state, State::Waiting { .. });
        f.debug_struct("VerifyFuture").field("is_waiting", &is_waiting).finish_non_exhaustive()
    }
}
