//! Parses the frame headers in the HTTP/2 bytes that pass through a socket (RFC 9113, section 4.1).
//! `h2` checks the rest of each frame.
//!
//! [`FrameBudget`] limits floods of frames. Some frames carry no part of a message, but still have
//! to be processed: PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, empty DATA or CONTINUATION
//! frames, and frames of unknown types. `h2` accepts any number of these frames, so a client could
//! keep a CPU core busy without reaching any limit. Therefore, each of these frames reduces a
//! budget of the connection. Requests and the bytes of responses increase the budget, because
//! clients legitimately send frames without message content for each request and while they receive
//! a response.

use tokio::time::Instant;

/// Tracks the frame boundaries in the bytes of one direction.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    head: [u8; HEAD],
    /// Number of bytes of the current frame header that have arrived.
    filled: usize,
    /// Number of payload bytes of the current frame that are still to come.
    payload: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) length: usize,
}

pub(crate) const HEAD: usize = 9;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const PRIORITY: u8 = 2;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const WINDOW_UPDATE: u8 = 8;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const END_HEADERS: u8 = 0x4;

impl Frame {
    pub(crate) fn of_head(head: [u8; HEAD]) -> Self {
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]) as usize;
        Self { kind, flags, stream: u32::from_be_bytes(stream) & MAX_STREAM_ID, length }
    }

    pub(crate) fn is_reset(self) -> bool {
        self.kind == RST_STREAM
    }

    pub(crate) fn is_settings_ack(self) -> bool {
        self.kind == SETTINGS && self.flags & ACK != 0
    }

    /// Reports whether the frame carries a part of a message.
    pub(crate) fn is_content(self) -> bool {
        matches!(self.kind, DATA | HEADERS)
    }

    /// Reports whether this is an empty DATA frame without padding that does not end its stream.
    pub(crate) fn is_empty_data(self) -> bool {
        self.kind == DATA && self.length == 0 && self.flags & END_STREAM == 0
    }
}

impl Frames {
    /// Processes the next bytes of the connection. Calls `each` for every frame whose header is
    /// complete after these bytes.
    pub(crate) fn inspect(&mut self, mut bytes: &[u8], mut each: impl FnMut(Frame)) {
        while !bytes.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(bytes.len());
                self.payload -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = (HEAD - self.filled).min(bytes.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEAD {
                let frame = Frame::of_head(self.head);
                self.filled = 0;
                self.payload = frame.length;
                each(frame);
            }
        }
    }

    /// Reports whether the connection is at a frame boundary.
    pub(crate) fn is_at_boundary(&self) -> bool {
        self.filled == 0 && self.payload == 0
    }
}

/// Maximum stream identifier; the highest bit is reserved.
const MAX_STREAM_ID: u32 = u32::MAX >> 1;

/// Builds a GOAWAY frame, which ends a connection (RFC 9113, section 6.8). `last` is the identifier
/// of the last stream that was or will be answered.
pub(crate) fn goaway(last: u32, code: u32) -> [u8; 17] {
    let [a, b, c, d] = last.to_be_bytes();
    let [e, f, g, h] = code.to_be_bytes();
    [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// An empty SETTINGS frame, the shortest connection preface of a server (RFC 9113, section 3.4).
pub(crate) const NO_SETTINGS: [u8; 9] = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;

pub(crate) const fn name(kind: u8) -> &'static str {
    match kind {
        DATA => "DATA",
        HEADERS => "HEADERS",
        PRIORITY => "PRIORITY",
        RST_STREAM => "RST_STREAM",
        SETTINGS => "SETTINGS",
        5 => "PUSH_PROMISE",
        6 => "PING",
        GOAWAY => "GOAWAY",
        WINDOW_UPDATE => "WINDOW_UPDATE",
        CONTINUATION => "CONTINUATION",
        _ => "unknown",
    }
}

/// The budget for frames from a client that carry no part of a message.
///
/// Clients have legitimate reasons for such frames. A browser sends priorities and larger windows
/// for its requests. During a download, a client updates two windows for each frame, or for each
/// piece of content that it reads. gRPC measures the round-trip time with a PING for each burst of
/// DATA. Clients also reset requests. The budget allows several times as many frames as legitimate
/// clients send.
#[derive(Debug)]
pub(crate) struct FrameBudget {
    left: u32,
    refilled: Instant,
}

/// Initial budget of a connection. Time alone does not increase the budget beyond this value.
const BASE: u32 = 1000;

/// Growth of the budget per second.
const PER_SECOND: u64 = 100;

/// Maximum budget. This budget is enough for a client that has a window of 32 MiB and updates both
/// windows after each KiB.
const MAX_BUDGET: u32 = 65_536;

/// Growth of the budget for each request, and for each HEADERS or DATA frame sent to the client.
const PER_FRAME: u32 = 4;

/// The budget grows by 1 for this number of bytes of DATA sent to the client. The growth allows two
/// WINDOW_UPDATE frames per KiB.
const OCTETS: u32 = 512;

/// Cost of a RST_STREAM frame if no content of the response was sent. The cost equals the growth of
/// the budget for the HEADERS frames of the request and of its response. A browser that leaves a
/// page resets up to a hundred requests at the same time.
const RESET_COST: u32 = 2 * PER_FRAME;

/// Cost of a SETTINGS frame, which must be acknowledged and may change the window of every stream.
const SETTINGS_COST: u32 = 10;

/// Maximum size of a DATA payload without content, in bytes: the one-byte Pad Length field and 255
/// bytes of padding.
const ALL_PADDING: usize = 256;

impl FrameBudget {
    pub(crate) fn new(now: Instant) -> Self {
        Self { left: BASE, refilled: now }
    }

    /// Charges a frame from the client to the budget. Returns false if the budget is exceeded.
    /// Calls `now` only if the time is needed.
    pub(crate) fn received(&mut self, frame: Frame, now: impl FnOnce() -> Instant) -> bool {
        match frame.kind {
            HEADERS => self.earn(PER_FRAME),
            DATA if frame.length > ALL_PADDING || frame.length > 0 && frame.flags & PADDED == 0 => self.earn(1),
            // Only HEADERS counts as a request. `h2` limits the number of CONTINUATION frames.
            SETTINGS => return self.spend(SETTINGS_COST, now),
            _ => return self.spend(1, now),
        }
        true
    }

    /// Charges a RST_STREAM frame from the client to the budget. Must be called only if no content
    /// of the response has been sent. Returns false if the budget is exceeded.
    pub(crate) fn charge_reset(&mut self, now: impl FnOnce() -> Instant) -> bool {
        self.spend(RESET_COST, now)
    }

    pub(crate) fn sent(&mut self, frame: Frame) {
        match frame.kind {
            HEADERS => self.earn(PER_FRAME),
            DATA => self.earn(PER_FRAME + u32::try_from(frame.length).unwrap_or(0) / OCTETS),
            _ => {}
        }
    }

    fn earn(&mut self, tokens: u32) {
        self.left = self.left.saturating_add(tokens).min(MAX_BUDGET);
    }

    fn spend(&mut self, tokens: u32, now: impl FnOnce() -> Instant) -> bool {
        if self.left < tokens {
            let now = now();
            let since = now.saturating_duration_since(self.refilled).as_millis() as u64;
            self.refilled = now;
            self.earn((since * PER_SECOND / 1000).min(u64::from(BASE)) as u32);
        }
        match self.left.checked_sub(tokens) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn frames_are_found_regardless_of_how_the_bytes_are_split() {
        let bytes =
            [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &[7; 8], &[0, 1, 0, DATA, 1, 0x80, 0, 0, 3], &[0; 256], &NO_SETTINGS]
                .concat();
        for size in 1..=bytes.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in bytes.chunks(size) {
                frames.inspect(piece, |frame| found.push((frame.kind, frame.flags, frame.stream, frame.length)));
            }
            assert_eq!(found, [(6, 0, 0, 8), (DATA, 1, 3, 256), (SETTINGS, 0, 0, 0)], "{size}");
            assert!(frames.is_at_boundary());
        }
        let mut frames = Frames::default();
        frames.inspect(&bytes[..20], |_| {});
        assert!(!frames.is_at_boundary());
    }

    fn frame(kind: u8, length: usize) -> Frame {
        Frame { kind, flags: 0, stream: 1, length }
    }

    fn passing(budget: &mut FrameBudget, frame: Frame, now: Instant) -> u32 {
        (0..2 * MAX_BUDGET).take_while(|_| budget.received(frame, || now)).count() as u32
    }

    #[test]
    fn frames_without_message_content_have_a_budget_that_refills_over_time() {
        let padding = Frame { flags: PADDED, ..frame(DATA, ALL_PADDING) };
        let frames = [2, 3, 6, 8, CONTINUATION, 0x42].map(|kind| frame(kind, 4));
        let frames = frames.into_iter().chain([frame(DATA, 0), padding]).map(|frame| (frame, 1));
        for (frame, cost) in frames.chain([(frame(SETTINGS, 6), SETTINGS_COST)]) {
            let start = Instant::now();
            let mut budget = FrameBudget::new(start);
            assert_eq!(passing(&mut budget, frame, start), BASE / cost, "{frame:?}");
            let later = start + Duration::from_secs(1);
            assert_eq!(passing(&mut budget, frame, later), PER_SECOND as u32 / cost, "{frame:?}");
            let much_later = later + Duration::from_secs(3600);
            assert_eq!(passing(&mut budget, frame, much_later), BASE / cost, "{frame:?}");
        }
    }

    #[test]
    fn downloads_and_requests_add_to_the_frame_budget_up_to_a_limit() {
        let start = Instant::now();
        let mut budget = FrameBudget::new(start);
        let takes = |budget: &mut FrameBudget, kind| assert!(budget.received(frame(kind, 4), || start), "{kind}");
        for _ in 0..100_000 {
            // The client updates both windows for each KiB, and sends a PING for each DATA frame.
            budget.sent(frame(DATA, 16 * 1024));
            (0..32).for_each(|_| takes(&mut budget, 8));
            takes(&mut budget, 6);
        }
        for _ in 0..100_000 {
            // The server sends small messages. After each message, the client updates both windows
            // and sends a PING.
            budget.sent(frame(DATA, 20));
            [8, 8, 6].into_iter().for_each(|kind| takes(&mut budget, kind));
        }
        for _ in 0..100_000 {
            // The client sends requests, each with a priority and a window update, and resets them.
            [HEADERS, 2, 8, 3].into_iter().for_each(|kind| takes(&mut budget, kind));
        }
        for _ in 0..100_000 {
            // The client makes gRPC calls, and resets each call after the head of the response.
            takes(&mut budget, HEADERS);
            budget.sent(frame(HEADERS, 40));
            assert!(budget.charge_reset(|| start));
        }
        // A client that sends no frames cannot accumulate an unlimited budget.
        (0..100_000).for_each(|_| budget.sent(frame(DATA, 16 * 1024)));
        assert_eq!(passing(&mut budget, frame(8, 4), start), MAX_BUDGET);
    }

    #[test]
    fn requests_that_are_reset_at_once_cost_more_budget_than_they_add() {
        let start = Instant::now();
        let mut budget = FrameBudget::new(start);
        let given_up = (0..MAX_BUDGET).take_while(|_| {
            assert!(budget.received(frame(HEADERS, 20), || start));
            budget.charge_reset(|| start)
        });
        let given_up = given_up.count() as u32;
        assert!((200..BASE).contains(&given_up), "{given_up}");
    }
}
