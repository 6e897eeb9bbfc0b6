//! Inspects the frames of an HTTP/2 connection to find incomplete frames and field sections,
//! unfinished responses, and clients that send too many frames.

use tokio::time::Instant;

use crate::http_common::FrameBudget;
use crate::http_common::frames::{self, Frames};

/// Maximum size of the pieces of response bodies passed to `h2`, in bytes. A piece and its frame
/// header fit into one TLS record, and into the default frame size (RFC 9113, section 4.2). A
/// client counts as reading only when a whole piece has been sent. If the pieces were larger, slow
/// clients would look stalled.
pub(crate) const PIECE: usize = 16 * 1024 - frames::HEAD;

#[derive(Debug)]
pub(crate) struct FrameAccounting {
    received: Frames,
    sent: Frames,
    budget: FrameBudget,
    /// Highest identifier of a stream whose request has arrived.
    last: u32,
    pub(crate) requests: usize,
    open: OpenStreams,
    /// Whether the current field section continues in a CONTINUATION frame that has not begun to
    /// arrive.
    in_fields: bool,
    /// The stream whose field section ends with the current frame.
    coming: Option<u32>,
    /// Number of frames that have begun, which identifies the current frame. A field section counts
    /// as one frame.
    begun: u32,
}

#[derive(Debug, Default)]
struct OpenStreams {
    streams: Vec<OpenStream>,
    /// A number that changes whenever a whole piece of the first stream in `streams` has been sent,
    /// or this stream has ended. As in [`stream_timeout`](super::stream_timeout), single bytes do
    /// not count as progress.
    turn: u32,
    /// Number of bytes that have been sent of the current piece of the first stream in `streams`.
    moved: usize,
}

#[derive(Clone, Copy, Debug)]
struct OpenStream {
    number: u32,
    has_content: bool,
}

impl FrameAccounting {
    pub(crate) fn new() -> Self {
        let (received, sent, last, requests, open, in_fields, coming, begun) = Default::default();
        let budget = FrameBudget::new(Instant::now());
        Self { received, sent, budget, last, requests, open, in_fields, coming, begun }
    }

    /// Inspects bytes from the client. If the client has sent more frames than its requests need,
    /// returns the type of the first excess frame as the error.
    pub(crate) fn received(&mut self, bytes: &[u8]) -> Result<(), u8> {
        let Self { received, budget, last, requests, open, in_fields, coming, begun, .. } = self;
        let mut flood = None;
        // A stream becomes a request when its field section is complete. Incomplete field sections
        // must not keep a connection open.
        let mut arrived = |open: &mut OpenStreams, stream: Option<u32>| {
            if let Some(stream) = stream.filter(|stream| stream > last) {
                *last = stream;
                *requests += 1;
                open.streams.push(OpenStream { number: stream, has_content: false });
            }
        };
        received.inspect(bytes, |frame| {
            arrived(open, coming.take());
            if !*in_fields {
                *begun = begun.wrapping_add(1);
            }
            let mut is_given_up = false;
            match frame.kind {
                frames::HEADERS | frames::CONTINUATION => {
                    *in_fields = frame.flags & frames::END_HEADERS == 0;
                    *coming = Some(frame.stream).filter(|_| !*in_fields);
                }
                frames::RST_STREAM => is_given_up = open.close(frame.stream).is_some_and(|stream| !stream.has_content),
                _ => {}
            }
            let passes =
                if is_given_up { budget.charge_reset(Instant::now) } else { budget.received(frame, Instant::now) };
            if !passes {
                flood.get_or_insert(frame.kind);
            }
        });
        if received.is_at_boundary() {
            arrived(open, coming.take());
        }
        flood.map_or(Ok(()), Err)
    }

    pub(crate) fn sent(&mut self, bytes: &[u8]) {
        let Self { sent, budget, open, .. } = self;
        sent.inspect(bytes, |frame| {
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

    /// Returns the number of the current frame or multi-frame field section, or `None` if it is
    /// complete.
    pub(crate) fn partial(&self) -> Option<u32> {
        (!self.received.is_at_boundary() || self.in_fields).then_some(self.begun)
    }

    /// Returns `None` if no stream has a response to send. Otherwise, returns a number that changes
    /// whenever the first open stream makes progress.
    pub(crate) fn unsent(&self) -> Option<u32> {
        (!self.open.streams.is_empty()).then_some(self.open.turn)
    }

    /// Returns a GOAWAY frame with this error code. Returns `None` if a frame has been sent only
    /// partly, because the GOAWAY would end up inside that frame.
    pub(crate) fn goaway(&self, code: u32) -> Option<[u8; 17]> {
        self.sent.is_at_boundary().then(|| frames::goaway(self.last, code))
    }
}

impl OpenStreams {
    fn sent(&mut self, stream: u32, bytes: usize) {
        let Some(at) = self.position(stream) else { return };
        self.streams[at].has_content = true;
        if at == 0 {
            self.moved += bytes;
            if self.moved >= PIECE {
                self.turn();
            }
        }
    }

    /// Removes a stream. Returns the stream's state, or `None` if the stream was not open.
    fn close(&mut self, stream: u32) -> Option<OpenStream> {
        let at = self.position(stream)?;
        let closed = self.streams.remove(at);
        if at == 0 {
            self.turn();
        }
        Some(closed)
    }

    fn position(&self, stream: u32) -> Option<usize> {
        self.streams.binary_search_by_key(&stream, |open| open.number).ok()
    }

    fn turn(&mut self) {
        self.turn = self.turn.wrapping_add(1);
        self.moved = 0;
    }
}
