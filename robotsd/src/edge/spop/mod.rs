//! SPOP, the protocol that HAProxy uses to ask an agent about clients' requests (SPOE). Decision
//! listeners support SPOP in addition to HTTP.
//!
//! A SPOP connection is recognised by its first byte, which is 0, because a frame begins with its
//! length in four bytes. No HTTP request begins with 0. Each message in a NOTIFY frame is converted
//! to a decision request. This request goes through the same [steps](super::request) and to the
//! same service as an HTTP request. The response is converted to the variables of the ACK. Both
//! conversions are defined by the services behind the edge ([`SpopMessages`]).
//!
//! Only the required parts of the protocol are implemented: the handshake with its health check,
//! NOTIFY and ACK, and DISCONNECT in both directions. Several NOTIFY frames can be in progress at
//! the same time. robotsd does not announce support for fragmented payloads. A fragment, like any
//! other violation of the protocol, ends the connection.

pub(crate) mod frames;

#[cfg(test)]
mod tests;

use std::future::{Future, poll_fn};
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _};
use http::{Request, Response};
use http_body_util::{BodyExt, Collected};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep, sleep_until};

use self::frames::{Agreement, HaproxyFrame, MAX_FRAME_BYTES, SpopError};
use super::connection::settings::{ConnectionSettings, EdgeLimits, stopped};
use super::connection_error::{ConnectionErrorKind, ConnectionFailure};
use super::http1_fast::{DateClock, FastSocket, Handover, Next};
use super::request::service::{RequestService, ResponseWriter};
use crate::http_common::{EdgeService, RequestBody};

#[cfg(test)]
pub(crate) use self::frames::push_string;
pub(crate) use self::frames::{Arguments, SpopValue, VariableList, split_string};

#[derive(Clone, Copy, Debug)]
pub(crate) struct SpopMessages {
    pub(crate) request: fn(Arguments<'_>) -> Request<()>,
    pub(crate) variables: fn(&Response<Bytes>, &mut VariableList),
}

pub(crate) fn is_spop<S>(handover: &Handover<S>) -> bool {
    handover.bytes.first() == Some(&0) && !handover.service.connection.has_served()
}

/// Maximum number of unanswered frames of a connection.
const MAX_WAITING: usize = 64;

enum AfterFrame {
    Wait,
    /// Send the answers before reading more frames, so that unsent answers cannot accumulate.
    Send,
    /// End the connection. The reason has already been sent to HAProxy.
    End,
}

pub(crate) async fn serve<S: EdgeService>(
    handover: Handover<S>,
    settings: Arc<ConnectionSettings>,
    clock: Arc<DateClock>,
    stop: watch::Receiver<bool>,
    messages: SpopMessages,
) -> Result<(), ConnectionFailure> {
    let limits = &settings.limits;
    let Handover { socket, bytes, service, .. } = handover;
    let mut session = Session {
        client: FastSocket::new(socket, limits.body_idle, clock, stop.clone(), Arc::clone(&service.connection)),
        received: BytesMut::from(bytes),
        partial_since: Some(Instant::now()),
        has_seen_stop: false,
        has_stopped_reading: false,
        service,
        messages,
        agreement: None,
        waiting: FuturesUnordered::new(),
    };
    let mut stopped = pin!(stopped(stop));
    let mut timer = pin!(sleep_until(Instant::now()));
    loop {
        match session.answer_received().await? {
            AfterFrame::Wait => {}
            AfterFrame::Send => continue,
            AfterFrame::End => {
                session.client.close().await;
                return Ok(());
            }
        }
        timer.as_mut().reset(session.begin_wait(limits));
        match poll_fn(|cx| session.poll_event(stopped.as_mut(), timer.as_mut(), cx)).await {
            None => {}
            Some(Next::Bytes(read)) => session.received.extend_from_slice(&read),
            Some(end) => return session.end_session(end).await,
        }
    }
}

fn broken(error: io::Error) -> ConnectionFailure {
    (ConnectionErrorKind::Broken, error.into())
}

struct Session<S> {
    client: FastSocket,
    received: BytesMut,
    /// Time when the current incomplete frame began. Before the handshake, this field is set even
    /// if no frame has begun.
    partial_since: Option<Instant>,
    has_seen_stop: bool,
    /// Whether reading frames has ended because of a shutdown. If frames were still read, a
    /// connection with a constant flow of messages would never end.
    has_stopped_reading: bool,
    service: Arc<RequestService<S>>,
    messages: SpopMessages,
    /// The result of the handshake; `None` before the handshake.
    agreement: Option<Agreement>,
    waiting: FuturesUnordered<WaitingFrame>,
}

/// A frame that cannot be answered immediately. The output of the future contains the numbers of
/// the stream and the frame, because later frames may be answered first.
type WaitingFrame = Pin<Box<dyn Future<Output = ((u64, u64), VariableList)> + Send>>;

impl<S: EdgeService> Session<S> {
    async fn answer_received(&mut self) -> Result<AfterFrame, ConnectionFailure> {
        let length = self.received.len();
        let after = self.answer_frames();
        if self.received.len() < length {
            // Remaining bytes belong to another frame, whose deadline starts now.
            self.partial_since = None;
        }
        if let Err(error) = after {
            frames::push_disconnect(&mut self.client.out, error);
        }
        self.client.send(Bytes::new()).await.map_err(broken)?;
        match after {
            Ok(after) => Ok(after),
            Err(error) => {
                self.client.close().await;
                Err((ConnectionErrorKind::Protocol, format!("SPOP: {}", error.message).into()))
            }
        }
    }

    fn begin_wait(&mut self, limits: &EdgeLimits) -> Instant {
        let is_partial = !self.received.is_empty() || self.agreement.is_none();
        self.service.connection.set_partial(is_partial || !self.waiting.is_empty());
        if self.received.is_empty() {
            // An idle connection does not keep a buffer.
            self.received = BytesMut::new();
        }
        self.has_stopped_reading = self.has_seen_stop && !is_partial;
        self.has_seen_stop = *self.client.stop.borrow();
        let now = Instant::now();
        self.partial_since = if is_partial { self.partial_since.or(Some(now)) } else { None };
        // A frame must be complete before its deadline, even if its bytes keep arriving.
        self.partial_since.map_or(now + limits.keep_alive, |since| since + limits.header_read)
    }

    /// Completes with the event that ends the wait. The event is `None` if queued frames have been
    /// answered.
    fn poll_event(
        &mut self,
        stopped: Pin<&mut impl Future<Output = ()>>,
        timer: Pin<&mut Sleep>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Next>> {
        if self.poll_waiting(cx).is_ready() {
            return Poll::Ready(None);
        }
        if self.has_stopped_reading && self.waiting.is_empty() {
            return Poll::Ready(Some(Next::Stop));
        }
        // Bytes that have already arrived are read first, even if a deadline has passed or the
        // listener has stopped.
        if !self.has_stopped_reading
            && self.waiting.len() < MAX_WAITING
            && let Poll::Ready(read) = self.client.poll_receive(cx)
        {
            return Poll::Ready(Some(Next::received(read)));
        }
        // A shutdown must wait until all queued frames have been answered.
        if self.waiting.is_empty() && stopped.poll(cx).is_ready() {
            return Poll::Ready(Some(Next::Stop));
        }
        if self.service.connection.is_reclaimed() {
            return Poll::Ready(Some(Next::Reclaimed));
        }
        timer.poll(cx).map(|()| Some(Next::Overdue))
    }

    /// Ends the connection. If HAProxy is still connected, sends it the reason for ending the
    /// connection.
    async fn end_session(mut self, end: Next) -> Result<(), ConnectionFailure> {
        let is_partial = self.partial_since.is_some();
        let (why, ended) = match end {
            Next::Closed(Err(error)) if is_partial => return Err(broken(error)),
            // A proxy that resets an idle connection has simply disconnected.
            Next::Closed(_) => return Ok(()),
            Next::Overdue if is_partial => {
                (SpopError::TIMEOUT, Err((ConnectionErrorKind::Slow, "the SPOP frame was not complete in time".into())))
            }
            _ => (SpopError::NORMAL, Ok(())),
        };
        frames::push_disconnect(&mut self.client.out, why);
        let _ = self.client.send(Bytes::new()).await;
        self.client.close().await;
        ended
    }

    fn answer_frames(&mut self) -> Result<AfterFrame, SpopError> {
        loop {
            if self.client.out.len() > MAX_FRAME_BYTES {
                return Ok(AfterFrame::Send);
            }
            if self.waiting.len() >= MAX_WAITING {
                return Ok(AfterFrame::Wait);
            }
            let max_frame_size = self.agreement.map_or(MAX_FRAME_BYTES, |agreement| agreement.max_frame_size);
            let Some(frame) = frames::take(&mut self.received, max_frame_size)? else { return Ok(AfterFrame::Wait) };
            let out = &mut self.client.out;
            match (frame, self.agreement) {
                (HaproxyFrame::Hello(payload), None) => {
                    let agreement = frames::agree(&payload)?;
                    frames::push_hello(out, agreement);
                    if agreement.is_health_check {
                        return Ok(AfterFrame::End);
                    }
                    self.agreement = Some(agreement);
                }
                (HaproxyFrame::Notify { stream, frame, payload }, Some(agreement)) => {
                    let mut deciding = self.decide((stream, frame), &payload, agreement.max_frame_size)?;
                    // Nearly every message is decided without waiting.
                    match (&mut deciding).now_or_never() {
                        Some(((stream, frame), variables)) => {
                            frames::push_ack(&mut self.client.out, stream, frame, &variables);
                        }
                        None => self.waiting.push(deciding),
                    }
                }
                (HaproxyFrame::Disconnect, _) => {
                    frames::push_disconnect(out, SpopError::NORMAL);
                    return Ok(AfterFrame::End);
                }
                (HaproxyFrame::Unknown, Some(_)) => {}
                _ => return Err(SpopError::INVALID),
            }
        }
    }

    fn poll_waiting(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut answered = Poll::Pending;
        while let Poll::Ready(Some(((stream, frame), variables))) = self.waiting.poll_next_unpin(cx) {
            frames::push_ack(&mut self.client.out, stream, frame, &variables);
            answered = Poll::Ready(());
        }
        answered
    }

    /// Decides about the messages of a frame, and returns the variables to set. An invalid frame
    /// ends the connection, which HAProxy handles as an error.
    fn decide(&self, number: (u64, u64), payload: &[u8], max_frame_size: usize) -> Result<WaitingFrame, SpopError> {
        let mut answering = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            let (arguments, left) = Arguments::of_message(rest).ok_or(SpopError::INVALID)?;
            rest = left;
            let request = (self.messages.request)(arguments).map(|()| RequestBody::empty());
            answering.push(self.service.answer(request, ResponseWriter::Fast).1);
        }
        let messages = self.messages;
        Ok(Box::pin(async move {
            let mut variables = VariableList::of_frame(max_frame_size);
            for answering in answering {
                let (head, body) = answering.await.into_parts();
                // If reading the body fails, the decision in the head still counts.
                let body = body.collect().await.map(Collected::to_bytes).unwrap_or_default();
                (messages.variables)(&Response::from_parts(head, body), &mut variables);
            }
            (number, variables)
        }))
    }
}
