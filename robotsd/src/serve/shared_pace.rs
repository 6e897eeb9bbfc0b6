//! Asks the store of rates about requests that are limited, in front of the layer that judges them.
//!
//! What the store says goes with the request, to the layer: its decision, response, log and counts are then those of every other
//! request. Where the store says nothing, the layer counts by itself. A request that is only observed waits for nothing.

use std::future::Future;
use std::mem;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http::{Extensions, Request};
use pin_project_lite::pin_project;
use tower::Service;
use tower_robots::layer::{Original, PacedRequest, RobotsLayer};
use tower_robots::policy::RateMode;

use crate::decision::OutcomeCounts;
use crate::shared_rate::{BucketOwner, SharedBucket, SharedKey, SharedRate, SharedVerdict};
use crate::sites::{ServedSite, SiteName};

/// How long a request has to wait, as the store says; zero where it passes.
#[derive(Clone, Copy, Debug)]
struct SharedWait(Duration);

/// What requests of a site ask.
#[derive(Clone, Debug)]
pub(super) struct PaceQuestion {
    pub(super) store: SharedRate,
    pub(super) site: SiteName,
    /// Whether each host has a robots.txt of its own.
    pub(super) has_directory: bool,
    /// It notifies no task.
    pub(super) layer: RobotsLayer,
}

/// Asks in front of `S`.
#[derive(Clone, Debug)]
pub(super) struct SharedPace<S> {
    pub(super) inner: S,
    /// None where this process counts for itself.
    pub(super) question: Option<Arc<PaceQuestion>>,
    /// Learn that a request was judged, where it may have waited before; those of the worker.
    pub(super) waiting: Option<Arc<OutcomeCounts>>,
}

pin_project! {
    /// The response of `S`, once the store has answered.
    #[project = SharedPaceProjection]
    pub(super) enum SharedPaceFuture<S, B>
    where
        S: Service<Request<B>>,
    {
        Asking {
            answer: Pin<Box<dyn Future<Output = SharedVerdict> + Send>>,
            inner: S,
            request: Option<Request<B>>,
            waiting: Option<Arc<OutcomeCounts>>,
        },
        Called { #[pin] response: S::Future },
    }
}

/// A layer that takes the store's word.
pub(super) fn followed(layer: RobotsLayer) -> RobotsLayer {
    layer.too_soon_from(|extensions: &Extensions| extensions.get::<SharedWait>().map(|wait| wait.0))
}

impl PaceQuestion {
    pub(super) fn new(store: &SharedRate, site: &ServedSite) -> Arc<Self> {
        let (store, name) = (store.clone(), site.name.clone());
        Arc::new(Self { store, site: name, has_directory: site.has_directory(), layer: site.quiet_layer() })
    }

    /// Asks about a request; none where there is nothing to wait for. Who sends it is checked here, and goes with it to the layer.
    fn ask<B>(&self, request: &mut Request<B>) -> Option<Pin<Box<dyn Future<Output = SharedVerdict> + Send>>> {
        if let Some(sender) = self.layer.check_sender(&Original::of(request)) {
            request.extensions_mut().insert(sender);
        }
        let paced: PacedRequest = self.layer.paced(&Original::of(request))?;
        // The folder may be another one at each process; the file is named for its host at all of them.
        let file = Path::new(&paced.origin).file_name().filter(|_| self.has_directory).unwrap_or_default();
        let owner = if paced.has_network { BucketOwner::Network } else { BucketOwner::Crawler };
        let key = SharedKey::new(owner, &[self.site.as_bytes(), file.as_encoded_bytes(), paced.key.as_bytes()]);
        let bucket = SharedBucket::new(paced.interval, paced.burst.get());
        if paced.mode != RateMode::Refuse {
            attach(request, self.store.note(key, bucket));
            return None;
        }
        let store = self.store.clone();
        Some(Box::pin(async move { store.spend(key, bucket).await }))
    }
}

impl<S, B> Service<Request<B>> for SharedPace<S>
where
    S: Service<Request<B>> + Clone,
{
    type Response = S::Response;
    type Error = S::Error;
    type Future = SharedPaceFuture<S, B>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<B>) -> Self::Future {
        let asked = self.question.as_ref().and_then(|question| question.ask(&mut request));
        match asked {
            None => {
                let response = self.inner.call(request);
                judged(self.waiting.as_ref());
                SharedPaceFuture::Called { response }
            }
            Some(answer) => {
                // The one that is ready is called; its clone may not be.
                let next = self.inner.clone();
                let inner = mem::replace(&mut self.inner, next);
                SharedPaceFuture::Asking { answer, inner, request: Some(request), waiting: self.waiting.clone() }
            }
        }
    }
}

impl<S, B> Future for SharedPaceFuture<S, B>
where
    S: Service<Request<B>>,
{
    type Output = Result<S::Response, S::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        loop {
            let response = match self.as_mut().project() {
                SharedPaceProjection::Called { response } => return response.poll(context),
                SharedPaceProjection::Asking { answer, inner, request, waiting } => {
                    let said = ready!(answer.as_mut().poll(context));
                    // It is there until it is called, once.
                    let Some(mut request) = request.take() else { return Poll::Pending };
                    attach(&mut request, said);
                    let response = inner.call(request);
                    judged(waiting.as_ref());
                    response
                }
            };
            self.set(SharedPaceFuture::Called { response });
        }
    }
}

/// Lets what the store said go with the request.
fn attach<B>(request: &mut Request<B>, said: SharedVerdict) {
    let wait = match said {
        SharedVerdict::Allow => Duration::ZERO,
        SharedVerdict::Deny { wait } => wait.max(Duration::from_micros(1)),
        SharedVerdict::Unknown => return,
    };
    request.extensions_mut().insert(SharedWait(wait));
}

/// The layer decides when it is called; what is behind it answers in the future.
fn judged(waiting: Option<&Arc<OutcomeCounts>>) {
    waiting.into_iter().for_each(|counts| counts.judged());
}
