//! A bound on the interim answers (1xx) of an exchange.
//!
//! Any number of them may come before the answer (RFC 9110, section 15.2), and hyper reads on past each without a bound. A
//! server that sends nothing else would keep the fetcher's thread busy until the fetch is out of time.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use http::Request;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::error::{FetchError, FetchErrorKind};

/// Interim answers to one request. Servers send one or two: 100 (Continue), 103 (Early Hints).
const MOST: usize = 16;

/// The interim answers of one exchange.
#[derive(Clone, Debug, Default)]
pub(super) struct Interim(Arc<AtomicUsize>);

/// A stream from which nothing more is read after too many of them.
#[derive(Debug)]
pub(super) struct Bounded<S> {
    stream: S,
    interim: Interim,
}

impl Interim {
    /// Counts those that answer a request.
    pub(super) fn count<B>(&self, request: &mut Request<B>) {
        let count = self.0.clone();
        hyper::ext::on_informational(request, move |_| {
            count.fetch_add(1, Ordering::Relaxed);
        });
    }

    pub(super) fn bound<S>(&self, stream: S) -> Bounded<S> {
        Bounded { stream, interim: self.clone() }
    }

    /// # Errors
    ///
    /// If there were too many.
    pub(super) fn check(&self) -> Result<(), FetchError> {
        if self.0.load(Ordering::Relaxed) <= MOST {
            return Ok(());
        }
        let cause = format!("a server may send {MOST} before the answer");
        Err(FetchError::with_cause(FetchErrorKind::InterimAnswers, cause))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Bounded<S> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if let Err(error) = this.interim.check() {
            return Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, error)));
        }
        Pin::new(&mut this.stream).poll_read(cx, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Bounded<S> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.get_mut().stream).poll_write(cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
