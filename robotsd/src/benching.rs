//! The functions that the bench of counting calls: requests through the layer of a site, counted as a worker counts them and not.

use std::hint::black_box;
use std::sync::Arc;

use http::{Request, StatusCode};
use tower_robots::layer::RobotsLayer;
use tower_robots::parts::{Answer, OriginalRequest};

use crate::counting::OutcomeCounts;

/// Sends requests through layers of one site: one that counts, one that does not.
#[derive(Debug)]
pub struct CountingBench {
    quiet: RobotsLayer,
    counting: RobotsLayer,
    counts: Arc<OutcomeCounts>,
}

impl CountingBench {
    /// For a layer without observers.
    pub fn new(layer: &RobotsLayer) -> Self {
        let counts = Arc::<OutcomeCounts>::default();
        let counting = layer.clone().count_agent_lookups(Arc::clone(counts.agent_lookups())).with_crawler_records();
        Self { quiet: layer.clone(), counting, counts }
    }

    /// A request that is not counted.
    #[inline(never)]
    pub fn quiet(&mut self, request: Request<()>) {
        send(&self.quiet, request, |_| {});
    }

    /// A request of which only the layer makes something to count.
    #[inline(never)]
    pub fn observed(&mut self, request: Request<()>) {
        send(&self.counting, request, |_| {});
    }

    /// A request that is counted as `serve` does it.
    #[inline(never)]
    pub fn counted(&mut self, request: Request<()>) {
        let mut counted = self.counts.request(request.uri().path().as_bytes(), request.method().into(), 0);
        let status = send(&self.counting, request, |answer| self.counts.decided(&mut counted, answer));
        self.counts.answered(&counted, status);
    }
}

/// The status of the answer, behind which a service does nothing.
fn send(layer: &RobotsLayer, mut request: Request<()>, decided: impl FnOnce(&Answer)) -> StatusCode {
    let answer = layer.decide(&OriginalRequest::of(&request)).respond(None);
    decided(&answer);
    let refusal = answer.respond(&mut request);
    black_box(&request);
    refusal.map_or(StatusCode::OK, |refusal| refusal.status())
}
