//! The functions that the counting benchmark calls. The functions send requests through the layer
//! of a site, with and without the counters that a worker of `serve` uses.

use std::hint::black_box;
use std::sync::Arc;

use http::{Request, StatusCode};
use tower_robots::layer::RobotsLayer;
use tower_robots::parts::{Answer, OriginalRequest};

use crate::counting::OutcomeCounts;

#[derive(Debug)]
pub struct CountingBench {
    quiet: RobotsLayer,
    counting: RobotsLayer,
    counts: Arc<OutcomeCounts>,
}

impl CountingBench {
    /// Creates the benchmark. `layer` must have no observers.
    pub fn new(layer: &RobotsLayer) -> Self {
        let counts = Arc::<OutcomeCounts>::default();
        let counting = layer.clone().count_agent_lookups(Arc::clone(counts.agent_lookups())).with_crawler_records();
        Self { quiet: layer.clone(), counting, counts }
    }

    #[inline(never)]
    pub fn quiet(&mut self, request: Request<()>) {
        send(&self.quiet, request, |_| {});
    }

    /// Sends a request through the counting layer, but does not record the decision.
    #[inline(never)]
    pub fn observed(&mut self, request: Request<()>) {
        send(&self.counting, request, |_| {});
    }

    #[inline(never)]
    pub fn counted(&mut self, request: Request<()>) {
        let mut counted = self.counts.request(request.uri().path().as_bytes(), request.method().into(), 0);
        let status = send(&self.counting, request, |answer| self.counts.count_decision(&mut counted, answer));
        self.counts.count_response(&counted, status);
    }
}

fn send(layer: &RobotsLayer, mut request: Request<()>, decided: impl FnOnce(&Answer)) -> StatusCode {
    let answer = layer.decide(&OriginalRequest::of(&request)).respond(None);
    decided(&answer);
    let refusal = answer.respond(&mut request);
    black_box(&request);
    refusal.map_or(StatusCode::OK, |refusal| refusal.status())
}
