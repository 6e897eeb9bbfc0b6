//! The wait for the next request of a connection: its deadline, parking, shutdown, and the claim of its slot.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::edge::connection::settings::ConnectionSettings;
use crate::edge::connection_state::ConnectionState;
use crate::edge::http1_fast::socket::FastSocket;

/// After so long without a request a connection gives up the memory that it keeps for the next one.
///
/// In tests nearly at once, so that they meet parked connections.
pub(crate) const PARK: Duration = if cfg!(test) { Duration::from_millis(5) } else { Duration::from_secs(1) };

/// What ended the wait.
pub(crate) enum Next {
    Octets(Bytes),
    Closed(io::Result<()>),
    Overdue,
    Stop,
    Reclaimed,
}

impl Next {
    /// What a read has found.
    pub(crate) fn received(read: io::Result<Option<Bytes>>) -> Self {
        match read {
            Ok(Some(octets)) => Self::Octets(octets),
            Ok(None) => Self::Closed(Ok(())),
            Err(error) => Self::Closed(Err(error)),
        }
    }
}

pin_project_lite::pin_project! {
    /// The wait for the next request, with one timer for the whole connection: it is set anew only when it has run out
    /// too early, about once a second, and not for each request.
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
        // There is nothing to give up before the first request.
        Self {
            since: now,
            patience,
            timer: sleep_until(now + patience),
            is_armed: false,
            is_parked: true,
            has_served: false,
        }
    }

    /// A request has been answered; the next one has this long.
    pub(crate) fn again(self: Pin<&mut Self>, patience: Duration) {
        let this = self.project();
        *this.since = Instant::now();
        *this.patience = patience;
        *this.is_parked = false;
        *this.has_served = true;
    }

    /// Waits. `response` is dropped, and the client parked, where no request comes for a while.
    pub(crate) async fn next<D>(
        mut self: Pin<&mut Self>,
        client: &mut FastSocket,
        stop: &mut StopSignal<'_>,
        connection: &ConnectionState,
        response: &mut Option<D>,
    ) -> Next {
        poll_fn(|cx| {
            // What has arrived by now is served, whatever else is due.
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

/// The signal to stop, which is registered for once a connection: under load the next request is there before that has to
/// happen again.
pub(crate) struct StopSignal<'s> {
    stop: watch::Receiver<bool>,
    signal: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_registered: bool,
    settings: &'s ConnectionSettings,
    /// How long another request is waited for after the signal.
    farewell: Option<Pin<Box<Sleep>>>,
}

impl<'s> StopSignal<'s> {
    pub(crate) fn new(stop: watch::Receiver<bool>, settings: &'s ConnectionSettings) -> Self {
        let mut listening = stop.clone();
        let signal = Box::pin(async move {
            // A sender that is gone means the same.
            let _ = listening.wait_for(|stop| *stop).await;
        });
        Self { stop, signal, is_registered: false, settings, farewell: None }
    }

    /// Ready when a connection without a request in progress is to end.
    fn poll(&mut self, cx: &mut Context<'_>, has_served: bool) -> Poll<()> {
        if self.farewell.is_none() {
            if self.is_registered && !self.stop.has_changed().unwrap_or(true) {
                return Poll::Pending;
            }
            self.is_registered = true;
            ready!(self.signal.as_mut().poll(cx));
        }
        let patience = self.settings.farewell(has_served);
        if patience.is_zero() {
            return Poll::Ready(());
        }
        self.farewell.get_or_insert_with(|| Box::pin(tokio::time::sleep(patience))).as_mut().poll(cx)
    }
}
