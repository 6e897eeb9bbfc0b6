//! Test support: an edge that listens on its own port.

use std::net::SocketAddr;

use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::{ConnectionError, ConnectionErrorKind, Edge, EdgeLimits, ListenerSettings};
use crate::http_common::EdgeService;
use crate::http_common::test_peer::{Http2Client, Raw, RawMessage, listen, shared, soon, wait_until};

/// An edge that runs until its shutdown or the end of the test.
pub(crate) struct ServedEdge {
    pub(crate) address: SocketAddr,
    pub(crate) edge: Edge,
    pub(crate) served: JoinHandle<()>,
    pub(crate) reported: &'static Mutex<Vec<ConnectionError>>,
    stop: Option<oneshot::Sender<()>>,
}

impl ServedEdge {
    pub(crate) fn start(limits: EdgeLimits, service: impl EdgeService) -> Self {
        Self::start_behind(ListenerSettings::default(), limits, service)
    }

    pub(crate) fn start_behind(settings: ListenerSettings, limits: EdgeLimits, service: impl EdgeService) -> Self {
        Self::start_on(listen().0, settings, limits, service)
    }

    pub(crate) fn start_on(
        listener: TcpListener,
        settings: ListenerSettings,
        limits: EdgeLimits,
        service: impl EdgeService,
    ) -> Self {
        let reported = shared::<Mutex<Vec<ConnectionError>>>();
        let edge = Edge::new(limits, |error: &ConnectionError| reported.lock().push(error.clone()), None);
        Self { reported, ..Self::of(edge, listener, settings, service) }
    }

    /// Starts an existing edge, which must report its errors to `reported`.
    pub(crate) fn of(edge: Edge, listener: TcpListener, settings: ListenerSettings, service: impl EdgeService) -> Self {
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = edge.clone();
        let served = tokio::spawn(async move {
            let stopped = async {
                if stopped.await.is_err() {
                    std::future::pending().await
                }
            };
            serving.serve(listener, settings, service, stopped).await;
        });
        Self { address, edge, served, reported: shared(), stop: Some(stop) }
    }

    pub(crate) fn begin_shutdown(&mut self) {
        self.stop.take().unwrap().send(()).unwrap();
    }

    pub(crate) async fn client(&self) -> Raw {
        Raw::connect(self.address).await
    }

    /// Waits until the edge has closed its listener.
    pub(crate) async fn stops_listening(&self) {
        soon(async { while TcpStream::connect(self.address).await.is_ok() {} }).await;
    }

    pub(crate) async fn sent(&self, bytes: impl AsRef<[u8]>) -> Raw {
        Raw::sent(self.address, bytes).await
    }

    pub(crate) async fn ask(&self, request: &str) -> RawMessage {
        self.client().await.ask(request).await
    }

    pub(crate) async fn http2(&self) -> Http2Client {
        Http2Client::connect(self.address).await
    }

    pub(crate) fn has_reported(&self, kind: ConnectionErrorKind) -> bool {
        self.reported.lock().iter().any(|error| error.kind == kind)
    }

    /// Waits until exactly this number of errors of a kind have been counted, whether or not they
    /// were reported.
    pub(crate) async fn counts(&self, kind: ConnectionErrorKind, total: u64) {
        let counted = || self.edge.traffic().errors.iter().find(|(known, _)| *known == kind).unwrap().1;
        wait_until(|| counted() >= total).await;
        assert_eq!(counted(), total);
    }

    /// Waits for an error of a kind, and returns the detail of the first one.
    pub(crate) async fn reports(&self, kind: ConnectionErrorKind) -> String {
        wait_until(|| self.has_reported(kind)).await;
        self.reported.lock().iter().find(|error| error.kind == kind).unwrap().detail.clone()
    }

    /// Returns the reported errors, each with its kind, client and detail.
    pub(crate) fn messages(&self) -> Vec<String> {
        let text = |error: &ConnectionError| {
            let peer = error.peer.map(|peer| format!(" {peer}")).unwrap_or_default();
            format!("{}{peer}: {}", error.kind.as_str(), error.detail)
        };
        self.reported.lock().iter().map(text).collect()
    }
}
