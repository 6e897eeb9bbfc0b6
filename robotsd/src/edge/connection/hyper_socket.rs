//! The client's socket as hyper sees it: it says when octets arrive, and a write that stands still ends it.
//!
//! hyper has no deadline for writing. A client that asks for a large file and never reads would otherwise hold its
//! connection, and the upstream's, for ever. Reading has its deadlines elsewhere: heads in the driver, bodies in
//! [`RequestBody`](crate::edge::RequestBody).
//!
//! On HTTP/2 it also counts frames in both directions (see [`frames`]), and has the last word where hyper has none: a
//! GOAWAY to a client that floods the connection, to one that has agreed on HTTP/2 and speaks something else, and to one
//! whose idle connection makes room for another.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Instant;

use crate::edge::connection_state::state::{ConnectionState, Unsent};
use crate::edge::http2::frames::{self, Budget, Frames};
use crate::edge::idle_timeout::IdleTimeout;
use crate::edge::request::body::PIECE;
use crate::edge::tls::AlpnProtocol;

#[derive(Debug)]
pub(crate) struct ClientStream<T> {
    socket: T,
    /// What has been read before.
    early: Bytes,
    activity: Arc<ConnectionState>,
    stalled: IdleTimeout,
    flushing: IdleTimeout,
    protocol: Protocol,
    /// As last said to [`ConnectionState`].
    unsent: Unsent,
    /// Likewise; by its number.
    partial: Option<u32>,
}

/// What the connection carries.
#[derive(Debug)]
enum Protocol {
    Http1,
    /// What has come so far may become the preface of HTTP/2, of which so many octets are there.
    Preface {
        octets: usize,
        /// It has to.
        is_agreed: bool,
    },
    Http2(Session),
}

/// The frames of an HTTP/2 connection.
#[derive(Debug)]
struct Session {
    received: Frames,
    sent: Frames,
    budget: Budget,
    /// The highest stream the client has opened.
    last: u32,
    open: OpenStreams,
    /// A field section has begun whose last frame has not.
    in_fields: bool,
    /// The stream whose field section is whole with the frame that is coming.
    coming: Option<u32>,
    /// Frames and field sections that have begun.
    begun: u32,
}

/// Streams whose answer has not been sent to its end.
#[derive(Debug, Default)]
struct OpenStreams {
    /// In order.
    streams: Vec<u32>,
    /// Changes when the first of them has moved by a whole piece, or ended. Single octets do not count, as in
    /// [`stall`](crate::edge::http2::stream_timeout).
    turn: u32,
    /// Octets of that piece that have been sent.
    moved: usize,
}

impl OpenStreams {
    fn sent(&mut self, stream: u32, octets: usize) {
        if self.streams.first() == Some(&stream) {
            self.moved += octets;
            if self.moved >= PIECE {
                self.turn();
            }
        }
    }

    fn close(&mut self, stream: u32) {
        if let Ok(at) = self.streams.binary_search(&stream) {
            self.streams.remove(at);
            if at == 0 {
                self.turn();
            }
        }
    }

    fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.moved = 0;
    }
}

const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

impl<T> ClientStream<T> {
    /// The protocol is the one `agreed` on, or else what the client begins with.
    pub(crate) fn new(
        socket: T,
        early: Bytes,
        agreed: Option<AlpnProtocol>,
        activity: Arc<ConnectionState>,
        write_idle: Duration,
    ) -> Self {
        let protocol = match agreed {
            Some(AlpnProtocol::Http1) => Protocol::Http1,
            agreed => Protocol::Preface { octets: 0, is_agreed: agreed.is_some() },
        };
        Self {
            socket,
            early,
            activity,
            stalled: IdleTimeout::new(write_idle),
            flushing: IdleTimeout::new(write_idle),
            protocol,
            unsent: Unsent::Nothing,
            partial: None,
        }
    }

    /// Passes on what a write came to, unless it has stood still for too long.
    fn watch<R>(&mut self, cx: &mut Context<'_>, written: Poll<io::Result<R>>) -> Poll<io::Result<R>> {
        if written.is_ready() {
            moved(&mut self.stalled, &self.activity);
            self.settle();
            return written;
        }
        let expired = poll_stuck(&mut self.stalled, &self.activity, cx);
        self.settle();
        ready!(expired);
        Poll::Ready(Err(stuck()))
    }

    /// Says whether something of an answer is still here, or in hyper, waiting for the client to take it; and whether a
    /// frame has come in part.
    fn settle(&mut self) {
        let unsent = match &self.protocol {
            _ if self.stalled.is_waiting() || self.flushing.is_waiting() => Unsent::Socket,
            Protocol::Http2(session) if !session.open.streams.is_empty() => Unsent::Streams(session.open.turn),
            _ => Unsent::Nothing,
        };
        if self.unsent != unsent {
            self.unsent = unsent;
            self.activity.set_unsent(unsent);
        }
        let partial = if let Protocol::Http2(session) = &self.protocol { session.partial() } else { None };
        if self.partial != partial {
            self.partial = partial;
            self.activity.set_partial(partial.is_some());
        }
    }

    /// Looks at octets from the client, none at its end, before hyper gets them.
    fn received(&mut self, mut octets: &[u8]) -> Result<(), ProtocolViolation> {
        if let Protocol::Preface { octets: matched, is_agreed } = &mut self.protocol {
            let is_end = octets.is_empty();
            let expected = &PREFACE[*matched..];
            let common = expected.iter().zip(octets).take_while(|(expected, octet)| expected == octet).count();
            *matched += common;
            octets = &octets[common..];
            if *matched == PREFACE.len() {
                self.activity.preface_read();
                self.protocol = Protocol::Http2(Session::new());
            } else if *is_agreed && (is_end || !octets.is_empty()) {
                return Err(ProtocolViolation::Preface);
            } else if !octets.is_empty() {
                self.protocol = Protocol::Http1;
            }
        }
        match &mut self.protocol {
            Protocol::Http2(session) => session.received(octets),
            _ => Ok(()),
        }
    }

    fn sent(&mut self, slices: &[io::IoSlice<'_>], mut octets: usize) {
        let Protocol::Http2(session) = &mut self.protocol else { return };
        for slice in slices {
            let length = slice.len().min(octets);
            session.sent(&slice[..length]);
            octets -= length;
        }
    }
}

impl<T: AsyncWrite + Unpin> ClientStream<T> {
    /// Ends the connection for what a client has sent.
    fn end(&mut self, cx: &mut Context<'_>, broken: ProtocolViolation) -> io::Error {
        match &self.protocol {
            Protocol::Http2(session) if session.sent.is_between() => {
                let goaway = frames::goaway(session.last, frames::ENHANCE_YOUR_CALM);
                self.last_words(cx, &goaway);
            }
            // hyper has not spoken yet.
            Protocol::Preface { .. } => {
                let goaway = frames::goaway(0, frames::PROTOCOL_ERROR);
                self.last_words(cx, &[&frames::NO_SETTINGS[..], &goaway].concat());
            }
            _ => {}
        }
        match broken {
            ProtocolViolation::Preface => {
                io::Error::new(io::ErrorKind::InvalidData, "no preface of HTTP/2, which was agreed on")
            }
            ProtocolViolation::Flood(kind) => {
                self.activity.flooded();
                let name = frames::name(kind);
                io::Error::new(io::ErrorKind::InvalidData, format!("too many {name} frames for what is asked for"))
            }
        }
    }

    /// Ends a connection on which nothing is going on, and which makes room for another. Returns false where there is
    /// something after all.
    fn say_goodbye(&mut self, cx: &mut Context<'_>) -> bool {
        match &self.protocol {
            _ if self.unsent != Unsent::Nothing => return false,
            // It has just begun, and may become a request.
            _ if self.partial.is_some() && !self.activity.is_reclaimed_as_slow() => return false,
            Protocol::Http2(session) if session.sent.is_between() => {
                let goaway = frames::goaway(session.last, frames::NO_ERROR);
                self.last_words(cx, &goaway);
            }
            _ => {}
        }
        true
    }

    /// Says something, if it can be said without waiting: the client is not worth more.
    fn last_words(&mut self, cx: &mut Context<'_>, octets: &[u8]) {
        if matches!(Pin::new(&mut self.socket).poll_write(cx, octets), Poll::Ready(Ok(_))) {
            let _ = Pin::new(&mut self.socket).poll_flush(cx);
            let _ = Pin::new(&mut self.socket).poll_shutdown(cx);
        }
    }
}

/// What ends a connection here.
enum ProtocolViolation {
    Preface,
    /// Too many frames, the last one of this type.
    Flood(u8),
}

impl Session {
    fn new() -> Self {
        Self {
            received: Frames::default(),
            sent: Frames::default(),
            budget: Budget::new(Instant::now()),
            last: 0,
            open: OpenStreams::default(),
            in_fields: false,
            coming: None,
            begun: 0,
        }
    }

    fn received(&mut self, octets: &[u8]) -> Result<(), ProtocolViolation> {
        let Self { received, budget, last, open, in_fields, coming, begun, .. } = self;
        let mut flood = None;
        // A request is one once its field section is whole: what comes of it before keeps no connection open.
        let mut arrived = |open: &mut OpenStreams, stream: Option<u32>| {
            if let Some(stream) = stream.filter(|stream| stream > last) {
                *last = stream;
                open.streams.push(stream);
            }
        };
        received.pass(octets, |frame| {
            arrived(open, coming.take());
            if !*in_fields {
                *begun = begun.wrapping_add(1);
            }
            match frame.kind {
                frames::HEADERS | frames::CONTINUATION => {
                    *in_fields = frame.flags & frames::END_HEADERS == 0;
                    *coming = Some(frame.stream).filter(|_| !*in_fields);
                }
                frames::RST_STREAM => open.close(frame.stream),
                _ => {}
            }
            if !budget.received(frame, Instant::now) {
                flood.get_or_insert(frame.kind);
            }
        });
        if received.is_between() {
            arrived(open, coming.take());
        }
        flood.map_or(Ok(()), |kind| Err(ProtocolViolation::Flood(kind)))
    }

    /// The frame, or the field section of several, that has come in part.
    fn partial(&self) -> Option<u32> {
        (!self.received.is_between() || self.in_fields).then_some(self.begun)
    }

    fn sent(&mut self, octets: &[u8]) {
        let Self { sent, budget, open, .. } = self;
        sent.pass(octets, |frame| {
            budget.sent(frame);
            if frame.kind == frames::DATA {
                open.sent(frame.stream, frame.length);
            }
            let is_end = match frame.kind {
                frames::DATA | frames::HEADERS => frame.flags & frames::END_STREAM != 0,
                kind => kind == frames::RST_STREAM,
            };
            if is_end {
                open.close(frame.stream);
            }
        });
    }
}

/// The client has taken something.
fn moved(idle: &mut IdleTimeout, activity: &ConnectionState) {
    if idle.is_waiting() {
        activity.note_taken();
        if let Some(transfer) = activity.transfer() {
            transfer.moved();
        }
    }
    idle.moved();
}

/// Ready once the client has stood still for too long, or once what it holds is needed elsewhere.
fn poll_stuck(idle: &mut IdleTimeout, activity: &ConnectionState, cx: &mut Context<'_>) -> Poll<()> {
    let given_up = activity.transfer().map_or(Poll::Pending, |transfer| transfer.poll_stalled(cx));
    if given_up.is_ready() { given_up } else { idle.poll_expired(cx) }
}

fn stuck() -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, "the client does not read")
}

impl<T: AsyncRead + AsyncWrite + Unpin> AsyncRead for ClientStream<T> {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if this.early.is_empty() {
            let goodbye = this.activity.goodbye();
            match Pin::new(&mut this.socket).poll_read(cx, buffer) {
                Poll::Ready(read) => read?,
                Poll::Pending if goodbye.is_wanted() && this.say_goodbye(cx) => {
                    this.activity.goodbye().say();
                    return Poll::Ready(Ok(()));
                }
                Poll::Pending => return Poll::Pending,
            }
        } else {
            let length = this.early.len().min(buffer.remaining());
            buffer.put_slice(&this.early.split_to(length));
        }
        let octets = &buffer.filled()[before..];
        if !octets.is_empty() {
            this.activity.bytes_read();
            this.activity.goodbye().withdraw();
        }
        if let Err(broken) = this.received(octets) {
            return Poll::Ready(Err(this.end(cx, broken)));
        }
        this.settle();
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for ClientStream<T> {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write(cx, bytes);
        if let Poll::Ready(Ok(octets)) = written {
            this.sent(&[io::IoSlice::new(bytes)], octets);
        }
        this.watch(cx, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = Pin::new(&mut this.socket).poll_write_vectored(cx, slices);
        if let Poll::Ready(Ok(octets)) = written {
            this.sent(slices, octets);
        }
        this.watch(cx, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.socket.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.socket).poll_flush(cx);
        if flushed.is_ready() {
            moved(&mut this.flushing, &this.activity);
            this.settle();
            return flushed;
        }
        // With TLS, what has been written may still be here.
        let expired = poll_stuck(&mut this.flushing, &this.activity, cx);
        this.settle();
        ready!(expired);
        Poll::Ready(Err(stuck()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().socket).poll_shutdown(cx)
    }
}
