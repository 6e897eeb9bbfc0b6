//! From an accepted socket to a secured stream, within a deadline.

use std::error::Error;
use std::io;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_rustls::LazyConfigAcceptor;
use tokio_rustls::rustls::server::Acceptor;
use tokio_rustls::server::TlsStream;

use super::{Secured, Tls};
use crate::edge::activity::Activity;
use crate::edge::trouble::TroubleKind;

type Failure = (TroubleKind, Box<dyn Error + Send + Sync>);

impl Tls {
    /// Secures a connection; none where it ended before anything was said, or gave its place to another.
    ///
    /// `full` is called when all handshakes that may be under way are; the connection then waits for one to end.
    pub(in crate::edge) async fn secure(
        &self,
        socket: TcpStream,
        stop: &mut watch::Receiver<bool>,
        activity: &Arc<Activity>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, Failure> {
        let shaking = async {
            tokio::select! {
                biased;
                shaken = self.shake_hands(socket, stop, full) => shaken,
                () = activity.reclaimed() => Ok(None),
            }
        };
        let shaken = timeout(self.deadline, shaking)
            .await
            .unwrap_or_else(|_| Err((TroubleKind::Slow, "no TLS handshake in time".into())));
        activity.secured();
        shaken
    }

    async fn shake_hands(
        &self,
        socket: TcpStream,
        stop: &mut watch::Receiver<bool>,
        full: impl FnOnce(),
    ) -> Result<Option<(TlsStream<TcpStream>, Secured)>, Failure> {
        // A connection that says nothing takes nobody's place, and leaves at once when all do.
        let mut first = [0];
        let seen = tokio::select! {
            biased;
            seen = socket.peek(&mut first) => seen,
            _ = stop.wait_for(|stop| *stop) => return Ok(None),
        };
        match seen {
            // Health checks connect and leave.
            Ok(0) => return Ok(None),
            Err(error) => return Err((TroubleKind::Broken, error.into())),
            Ok(_) if first[0].is_ascii_uppercase() => {
                explain(socket).await;
                return Err((TroubleKind::Handshake, "a request without TLS".into()));
            }
            Ok(_) => {}
        }
        if self.places.available_permits() == 0 {
            full();
        }
        let place = self.places.acquire().await.map_err(|error| (TroubleKind::Handshake, error.into()))?;
        let failed = |error: io::Error| (TroubleKind::Handshake, error.into());
        let start = LazyConfigAcceptor::new(Acceptor::default(), socket).await.map_err(failed)?;
        let certificates = self.certificates.current();
        let hello = start.client_hello();
        let schemes = hello.signature_schemes();
        let chosen =
            certificates.choose(hello.server_name(), |shown| shown.pair.key.key.choose_scheme(schemes).is_some());
        let Some((number, shown)) = chosen else {
            return Err((TroubleKind::Handshake, "there is no certificate".into()));
        };
        let stream = start.into_stream(shown.config.clone()).await.map_err(failed)?;
        drop(place);
        let secured = Secured::new(self.certificates.clone(), shown.clone(), number, &stream);
        Ok(Some((stream, secured)))
    }
}

/// What a request in the clear is told. The same for all, whatever was asked, and before anything of it is read.
const WITHOUT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n\
    content-length: 39\r\ncache-control: no-store\r\nconnection: close\r\n\r\n400 this port speaks TLS: use https://\n";

/// Says why nothing comes of it, and waits for the client to have read that: closing on unread octets would reset the
/// connection and take the answer with it.
async fn explain(mut socket: TcpStream) {
    if socket.write_all(WITHOUT_TLS).await.is_err() || socket.shutdown().await.is_err() {
        return;
    }
    let mut unread = [0; 4096];
    for _ in 0..32 {
        if !matches!(socket.read(&mut unread).await, Ok(1..)) {
            return;
        }
    }
}
