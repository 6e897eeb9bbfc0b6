//! The socket of a connection on the fast path. This module also contains the clock for the `Date`
//! field, and the wait for the next request.

use std::future::{Future, poll_fn};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http::HeaderValue;
use parking_lot::Mutex;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::date;
use crate::edge::connection::settings::{ConnectionSettings, stopped};
use crate::edge::connection_state::ConnectionState;
use crate::http_common::{IdleTimeout, InterimClient, Transfer, client_does_not_read};
use crate::socket::{LingeringClose, Socket};

/// Size of the read buffer on the stack, in bytes. Longer request heads are handed over to hyper.
pub(crate) const READ: usize = 8 * 1024;

#[derive(Debug)]
pub(crate) struct FastSocket {
    socket: Socket,
    /// Bytes that arrived while a response was in progress.
    early: Bytes,
    /// Bytes that wait to be written. These bytes begin with the head of a response.
    pub(crate) out: Vec<u8>,
    sent: usize,
    timeout: IdleTimeout,
    pub(crate) transfer: Option<Transfer>,
    write_idle: Duration,
    pub(crate) clock: Arc<DateClock>,
    pub(crate) stop: watch::Receiver<bool>,
    connection: Arc<ConnectionState>,
}

impl FastSocket {
    pub(crate) fn new(
        socket: Socket,
        write_idle: Duration,
        clock: Arc<DateClock>,
        stop: watch::Receiver<bool>,
        connection: Arc<ConnectionState>,
    ) -> Self {
        let timeout = IdleTimeout::new(write_idle);
        let (early, out) = (Bytes::new(), Vec::new());
        Self { socket, early, out, sent: 0, timeout, transfer: None, write_idle, clock, stop, connection }
    }

    pub(crate) fn into_socket(self) -> Socket {
        self.socket
    }

    /// Reads bytes from the client. Returns `None` if the client has closed its sending side.
    pub(crate) fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        if !self.early.is_empty() {
            return Poll::Ready(Ok(Some(std::mem::take(&mut self.early))));
        }
        self.poll_read(cx)
    }

    /// Completes when the client has disconnected. Stores up to [`READ`] bytes that arrive before
    /// the client disconnects.
    pub(crate) fn poll_disconnected(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        while self.early.is_empty() {
            match ready!(self.poll_read(cx)) {
                Ok(Some(bytes)) => self.early = bytes,
                Ok(None) | Err(_) => return Poll::Ready(()),
            }
        }
        Poll::Pending
    }

    /// Writes everything in [`out`](Self::out), and then `data`.
    pub(crate) async fn send(&mut self, mut data: Bytes) -> io::Result<()> {
        poll_fn(|cx| self.poll_send(cx, &mut data)).await
    }

    pub(crate) fn poll_send(&mut self, cx: &mut Context<'_>, data: &mut Bytes) -> Poll<io::Result<()>> {
        loop {
            let out = &self.out[self.sent..];
            let socket = Pin::new(&mut self.socket);
            let written = match (out.is_empty(), data.is_empty()) {
                (true, true) => break,
                (false, true) => socket.poll_write(cx, out),
                (true, false) => socket.poll_write(cx, data),
                (false, false) => socket.poll_write_vectored(cx, &[IoSlice::new(out), IoSlice::new(data)]),
            };
            let Poll::Ready(written) = written else { return self.poll_stalled(cx) };
            self.progressed();
            match written? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                written => {
                    let of_out = written.min(self.out.len() - self.sent);
                    self.sent += of_out;
                    bytes::Buf::advance(data, written - of_out);
                }
            }
        }
        self.out.clear();
        self.sent = 0;
        if let Socket::Tls(stream) = &mut self.socket {
            match Pin::new(stream).poll_flush(cx) {
                Poll::Ready(flushed) => flushed?,
                Poll::Pending => return self.poll_stalled(cx),
            }
            self.progressed();
        }
        Poll::Ready(Ok(()))
    }

    /// Writes the interim responses that have arrived. Does not wait for the final response.
    pub(crate) fn poll_send_interim(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let is_sending = !self.out.is_empty() || self.timeout.is_waiting;
        if !is_sending && !self.connection.interim().is_waiting() {
            return Poll::Ready(Ok(()));
        }
        if self.out.is_empty() {
            self.take_interim();
        }
        self.poll_send(cx, &mut Bytes::new())
    }

    /// Appends the remaining interim responses to [`out`](Self::out), so that they are written
    /// before the final response.
    pub(crate) fn take_interim(&mut self) {
        let Self { connection, out, .. } = self;
        if connection.interim().is_waiting() {
            connection.interim().take_bytes(out);
            connection.interim().note_written();
        }
    }

    /// Closes the sending side gracefully. If the client has sent more bytes, reads and discards
    /// them for a limited time, unless a new connection has claimed the slot.
    pub(crate) async fn close(&mut self) {
        let (mut lingering, limit) = (None, self.write_idle);
        let closing = poll_fn(|cx| -> Poll<io::Result<()>> {
            let shut =
                if lingering.is_none() { Pin::new(&mut self.socket).poll_shutdown(cx) } else { Poll::Ready(Ok(())) };
            if self.connection.is_reclaimed() {
                return Poll::Ready(Ok(()));
            }
            ready!(shut)?;
            // Closing a socket with unread bytes would reset the connection, and the client could
            // lose the response.
            let has_sent_more = |this: &Self| !this.early.is_empty() || this.socket.peek().is_ok();
            if lingering.is_none() && self.poll_disconnected(cx).is_pending() && !has_sent_more(self) {
                return Poll::Ready(Ok(()));
            }
            lingering.get_or_insert_with(LingeringClose::new).poll(&mut self.socket, cx).map(Ok)
        });
        // The time limit ends the wait for clients that do not read. The future is boxed, so that a
        // connection reserves memory for this future only when it closes.
        let _ = Box::pin(tokio::time::timeout(limit, closing)).await;
    }

    /// Frees the buffers. Only the socket itself stays in memory.
    pub(crate) fn park(&mut self) {
        self.out = Vec::new();
        self.timeout = IdleTimeout::new(self.write_idle);
    }

    fn progressed(&mut self) {
        let Self { timeout, transfer, .. } = self;
        timeout.progressed(|| transfer.clone());
    }

    fn poll_stalled(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.timeout.poll_stalled(self.transfer.as_ref(), cx).map(|()| Err(client_does_not_read()))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Option<Bytes>>> {
        let mut room = [MaybeUninit::uninit(); READ];
        let mut buffer = ReadBuf::uninit(&mut room);
        ready!(Pin::new(&mut self.socket).poll_read(cx, &mut buffer))?;
        let bytes = buffer.filled();
        Poll::Ready(Ok(if bytes.is_empty() { None } else { Some(Bytes::copy_from_slice(bytes)) }))
    }
}

/// The `Date` of responses, formatted once a second and shared by the connections of a worker.
#[derive(Debug, Default)]
pub(crate) struct DateClock(Mutex<Option<(u64, HeaderValue)>>);

impl DateClock {
    pub(crate) fn write(&self, out: &mut Vec<u8>) {
        self.with(|value| out.extend_from_slice(value.as_bytes()));
    }

    pub(crate) fn value(&self) -> HeaderValue {
        self.with(HeaderValue::clone)
    }

    fn with<R>(&self, read: impl FnOnce(&HeaderValue) -> R) -> R {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO).as_secs();
        // Only connections of the same worker share a clock, so the lock is never contended.
        let mut kept = self.0.lock();
        let (second, value) = kept.get_or_insert_with(|| (now, text(now)));
        if *second != now {
            (*second, *value) = (now, text(now));
        }
        read(value)
    }
}

fn text(second: u64) -> HeaderValue {
    let date = date::http_date(UNIX_EPOCH + Duration::from_secs(second));
    // A date contains only letters, digits, spaces, commas and colons, so this conversion cannot
    // fail.
    HeaderValue::try_from(date).unwrap_or_else(|_| HeaderValue::from_static(""))
}

/// Time until an idle connection frees the memory that it keeps for the next request.
///
/// The time is very short in tests, so that the tests cover parked connections.
pub(crate) const PARK: Duration = if cfg!(test) { Duration::from_millis(5) } else { Duration::from_secs(1) };

pub(crate) enum Next {
    Bytes(Bytes),
    Closed(io::Result<()>),
    Overdue,
    Stop,
    Reclaimed,
}

impl Next {
    pub(crate) fn received(read: io::Result<Option<Bytes>>) -> Self {
        match read {
            Ok(Some(bytes)) => Self::Bytes(bytes),
            Ok(None) => Self::Closed(Ok(())),
            Err(error) => Self::Closed(Err(error)),
        }
    }
}

pin_project_lite::pin_project! {
    /// The wait for the next request. A connection has only one timer, which is not reset for each
    /// request. Under load, the timer therefore fires before the deadline about once a second, and
    /// is then set to the current deadline.
    pub(crate) struct RequestWait {
        since: Instant,
        patience: Duration,
        #[pin]
        timer: Sleep,
        is_armed: bool,
        is_parked: bool,
        has_served: bool,
    }
}

impl RequestWait {
    pub(crate) fn new(patience: Duration) -> Self {
        let now = Instant::now();
        // A new connection counts as parked, because it has no memory to free before its first
        // request.
        Self {
            since: now,
            patience,
            timer: sleep_until(now + patience),
            is_armed: false,
            is_parked: true,
            has_served: false,
        }
    }

    /// Restarts the wait after a response. `patience` is the time until the next request must
    /// arrive.
    pub(crate) fn restart(self: Pin<&mut Self>, patience: Duration) {
        let this = self.project();
        *this.since = Instant::now();
        *this.patience = patience;
        *this.is_parked = false;
        *this.has_served = true;
    }

    /// Waits for the next request. If no request arrives for [`PARK`], parks the connection: drops
    /// `response` and frees the client's buffers.
    pub(crate) async fn next<D>(
        mut self: Pin<&mut Self>,
        client: &mut FastSocket,
        stop: &mut StopSignal<'_>,
        connection: &ConnectionState,
        response: &mut Option<D>,
    ) -> Next {
        poll_fn(|cx| {
            // A request that has already arrived is served, even if a deadline has passed or the
            // listener has stopped.
            if let Poll::Ready(read) = client.poll_receive(cx) {
                return Poll::Ready(Next::received(read));
            }
            if stop.poll(cx, self.has_served).is_ready() {
                return Poll::Ready(Next::Stop);
            }
            if connection.is_reclaimed() {
                return Poll::Ready(Next::Reclaimed);
            }
            self.as_mut().poll_overdue(cx, || {
                *response = None;
                client.park();
            })
        })
        .await
    }

    fn poll_overdue(self: Pin<&mut Self>, cx: &mut Context<'_>, mut park: impl FnMut()) -> Poll<Next> {
        let mut this = self.project();
        loop {
            let patience = if *this.is_parked { *this.patience } else { PARK.min(*this.patience) };
            let due = *this.since + patience;
            if this.timer.deadline() > due {
                this.timer.as_mut().reset(due);
            } else if *this.is_armed && !this.timer.is_elapsed() {
                return Poll::Pending;
            }
            *this.is_armed = true;
            if this.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            let now = Instant::now();
            if now >= *this.since + *this.patience {
                return Poll::Ready(Next::Overdue);
            }
            if now >= due {
                *this.is_parked = true;
                park();
            }
            this.timer.as_mut().reset(*this.since + if *this.is_parked { *this.patience } else { patience });
        }
    }
}

/// The signal that the listener stops. The waker for the signal is registered only once per
/// connection, not for each request.
pub(crate) struct StopSignal<'s> {
    stop: watch::Receiver<bool>,
    signal: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_registered: bool,
    settings: &'s ConnectionSettings,
    /// Timer that limits the wait for one more request after the signal that the listener stops.
    drain_timer: Option<Pin<Box<Sleep>>>,
}

impl<'s> StopSignal<'s> {
    pub(crate) fn new(stop: watch::Receiver<bool>, settings: &'s ConnectionSettings) -> Self {
        let signal = Box::pin(stopped(stop.clone()));
        Self { stop, signal, is_registered: false, settings, drain_timer: None }
    }

    /// Completes when the idle connection should be closed.
    fn poll(&mut self, cx: &mut Context<'_>, has_served: bool) -> Poll<()> {
        if self.drain_timer.is_none() {
            if self.is_registered && !self.stop.has_changed().unwrap_or(true) {
                return Poll::Pending;
            }
            self.is_registered = true;
            ready!(self.signal.as_mut().poll(cx));
        }
        let patience = self.settings.idle_drain_time(has_served);
        if patience.is_zero() {
            return Poll::Ready(());
        }
        self.drain_timer.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience))).as_mut().poll(cx)
    }
}
