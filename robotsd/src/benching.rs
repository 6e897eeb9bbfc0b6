//! What the bench of counting calls: requests through the layer of a site, counted as a worker counts them and not.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::hint::black_box;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use http::{Request, Response};
use tower::{Layer, Service};
use tower_robots::layer::{Robots, RobotsLayer};

use crate::decision::{MayWait, OutcomeCounts};

/// Sends requests through layers of one site: one that counts, one that does not.
#[derive(Debug)]
pub struct CountingBench {
    quiet: Robots<IdleService>,
    counting: Robots<IdleService>,
    counts: Arc<OutcomeCounts>,
}

/// A service behind the layers, which does nothing.
#[derive(Clone, Debug)]
struct IdleService;

impl CountingBench {
    /// For a layer without observers.
    pub fn new(layer: &RobotsLayer) -> Self {
        let counts = Arc::<OutcomeCounts>::default();
        let (disallowed, crawlers) = (Arc::clone(&counts), Arc::clone(&counts));
        let counting = layer
            .clone()
            .count_agent_lookups(Arc::clone(counts.agent_lookups()))
            .observe(move |event| disallowed.disallowed(event))
            .observe_crawlers(move |event| crawlers.crawler(event));
        Self { quiet: layer.layer(IdleService), counting: counting.layer(IdleService), counts }
    }

    /// A request that is not counted.
    #[inline(never)]
    pub fn quiet(&mut self, request: Request<()>) {
        send(&mut self.quiet, request);
    }

    /// A request of which only the layer counts something: its observers are those of `serve`.
    #[inline(never)]
    pub fn observed(&mut self, request: Request<()>) {
        send(&mut self.counting, request);
    }

    /// A request that is counted as `serve` does it, in the layer and around it.
    #[inline(never)]
    pub fn counted(&mut self, request: Request<()>) {
        let mut counted = self.counts.request(request.uri().path().as_bytes(), request.method().into(), 0);
        let response = send(&mut self.counting, request);
        self.counts.decided(&mut counted, MayWait::No);
        self.counts.answered(&counted, response.status());
    }
}

impl Service<Request<()>> for IdleService {
    type Response = Response<String>;
    type Error = Infallible;
    type Future = Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<()>) -> Self::Future {
        black_box(&request);
        ready(Ok(Response::new(String::new())))
    }
}

/// The response of a service that has it at the first poll.
fn send<S: Service<Request<()>, Response = Response<B>, Error = Infallible>, B>(
    service: &mut S,
    request: Request<()>,
) -> Response<B> {
    let mut context = Context::from_waker(Waker::noop());
    let _ = service.poll_ready(&mut context);
    match std::pin::pin!(service.call(request)).poll(&mut context) {
        Poll::Ready(Ok(response)) => response,
        Poll::Pending => unreachable!("the layer waits for nothing here"),
    }
}
