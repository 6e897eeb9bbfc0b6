//! Frames of a server for which h2 would end the connection, although one stream alone is concerned: that stream
//! is reset instead.
//!
//! The guard stands between the socket and h2, so that a bad response ends no other:
//!
//! - h2 bears a hundred DATA frames without octets in the life of a connection. They say nothing, so it sees none of
//!   them, and a stream that has as many in a row is reset.
//! - It stops reading at a field that HTTP does not allow, in the middle of the section, so its table is no longer the
//!   server's; and at a head of four times the size that the settings allow the server. Of such a section h2 gets what
//!   belongs into its table alone, with fillers of the same size where a field is bad. See
//!   [`field_blocks`](super::field_blocks).
//! - It ends the connection at six CONTINUATION frames. A field section is handed over in as few frames as it needs.
//! - It ends the connection at a WINDOW_UPDATE of nothing for a stream.
//!
//! h2 resets a stream for a PRIORITY frame that says that the stream depends on itself (RFC 7540, section 5.3.1), which
//! is one of few errors that need nothing else: so it informs the server and the request, and bears what is still under
//! way. Errors of the connection itself (RFC 9113, section 5.4.1), such as frames in the middle of a field section,
//! pass: h2 ends it.
//!
//! DATA passes as it is read, and a sound section that came whole is not copied.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use foldhash::fast::RandomState;
use tokio::time::Instant;

use super::connection_activity::ConnectionActivity;
use super::field_blocks::FieldBlocks;
use crate::exchange::FrameBudget;
use crate::exchange::frames::{
    CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, HEAD, HEADERS, PADDED, PRIORITY, PRIORITY_FIELDS, WINDOW_UPDATE,
};

/// DATA frames without octets that a stream may have in a row.
const EMPTY: usize = 100;

/// Those of padding alone that h2 gets in the life of a connection: they take from the windows, so they cannot be left out.
const PADDING: usize = 50;

/// Frames that may be left out, more than are under way when a stream is reset; every other frame of a message allows one more.
const SPARE: usize = 65_536;

/// The octets that h2 takes in one frame.
const FRAME: usize = 16_384;

/// A field section is held back until it is whole, up to so many times the octets that a head may have, and so many frames.
const SECTION: usize = 4;
const SECTION_FRAMES: usize = 256;

/// The frames from a server, on their way to h2.
#[derive(Debug)]
pub(super) struct StreamGuard {
    /// Octets of a frame that are still to pass.
    payload: usize,
    /// Octets that cannot be judged before others have come.
    held: BytesMut,
    /// Octets that come next, because those that came were not all to pass.
    pub(super) ready: BytesMut,
    /// Streams whose responses have not ended, each with the empty frames that came in a row.
    open: HashMap<u32, usize, RandomState>,
    /// The last stream that was opened.
    last: u32,
    fields: FieldBlocks,
    /// The octets that a head may have.
    head_bytes: usize,
    padding: usize,
    spare: usize,
    /// Frames that h2 does not bound have the budget that clients have.
    budget: FrameBudget,
    is_over_budget: bool,
    activity: Arc<ConnectionActivity>,
}

/// The frames of one field section.
struct Section<'a> {
    first: Frame,
    /// Of all of them.
    length: usize,
    frames: usize,
    /// The block that they make together; none if that is no field section.
    block: Option<Cow<'a, [u8]>>,
}

/// The action for the octets that come next.
enum Passage {
    Pass(usize),
    /// More have to come first.
    Wait,
    /// So many were replaced by what is ready.
    Replaced(usize),
}

impl StreamGuard {
    /// Announces to the server that a head may have `head_bytes`.
    pub(super) fn new(head_bytes: usize, activity: Arc<ConnectionActivity>) -> Self {
        let (payload, held, ready, open, last, fields, padding, is_over_budget) = Default::default();
        let (spare, budget) = (SPARE, FrameBudget::new(Instant::now()));
        Self { payload, held, ready, open, last, fields, head_bytes, padding, spare, budget, is_over_budget, activity }
    }

    /// A frame to the server.
    pub(super) fn sent(&mut self, frame: Frame) {
        self.budget.sent(frame);
        self.activity.note_sent(frame);
        if frame.is_reset() {
            self.open.remove(&frame.stream);
        } else if frame.kind == HEADERS && frame.stream > self.last {
            self.last = frame.stream;
            self.open.insert(frame.stream, 0);
        }
    }

    /// Whether more came, or was left out, than a server can have meant.
    pub(super) fn is_flooded(&self) -> bool {
        self.spare == 0 || self.is_over_budget
    }

    /// Takes octets that came. Returns how many of them pass as they are, before what is ready.
    pub(super) fn received(&mut self, octets: &[u8]) -> usize {
        let mut at = 0;
        if self.held.is_empty() {
            let mut taken = 0;
            while at < octets.len() {
                match self.step(&octets[at..]) {
                    Passage::Pass(length) => at += length,
                    Passage::Wait => break,
                    Passage::Replaced(length) => {
                        taken = length;
                        break;
                    }
                }
            }
            self.held.extend_from_slice(&octets[at + taken..]);
        } else {
            self.held.extend_from_slice(octets);
        }
        let mut held = std::mem::take(&mut self.held);
        while !held.is_empty() {
            match self.step(&held) {
                Passage::Pass(length) => self.ready.extend_from_slice(&held.split_to(length)),
                Passage::Wait => break,
                Passage::Replaced(length) => held.advance(length),
            }
        }
        self.held = held;
        at
    }

    fn step(&mut self, octets: &[u8]) -> Passage {
        if self.payload > 0 {
            let length = self.payload.min(octets.len());
            self.payload -= length;
            return Passage::Pass(length);
        }
        let Some(head) = octets.first_chunk() else { return Passage::Wait };
        let frame = Frame::of_head(*head);
        match frame.kind {
            HEADERS if self.is_known(frame.stream) => self.section(octets),
            DATA if self.is_known(frame.stream) && frame.is_empty_data() => self.empty_data(frame, octets),
            WINDOW_UPDATE if self.is_known(frame.stream) && frame.length == 4 => match octets.get(HEAD..HEAD + 4) {
                // The highest bit is reserved.
                Some([0 | 0x80, 0, 0, 0]) => {
                    self.note(frame);
                    self.reset(frame.stream, "a WINDOW_UPDATE of nothing");
                    Passage::Replaced(HEAD + frame.length)
                }
                Some(_) => self.pass(frame),
                None => Passage::Wait,
            },
            _ => self.pass(frame),
        }
    }

    /// Whether it is a stream of ours, open or closed.
    fn is_known(&self, stream: u32) -> bool {
        stream <= self.last && stream % 2 == 1
    }

    fn pass(&mut self, frame: Frame) -> Passage {
        self.note(frame);
        self.payload = frame.length;
        Passage::Pass(HEAD)
    }

    /// Accounts for a frame that h2 gets.
    fn note(&mut self, frame: Frame) {
        self.activity.note_received(frame);
        self.is_over_budget |= !self.budget.received(frame, Instant::now);
        if frame.is_content() {
            self.spare = (self.spare + 1).min(SPARE);
        }
        if frame.is_reset() || frame.is_content() && frame.flags & END_STREAM != 0 {
            self.open.remove(&frame.stream);
        } else if frame.kind == DATA
            && let Some(empty) = self.open.get_mut(&frame.stream)
        {
            *empty = 0;
        }
    }

    /// A DATA frame that says nothing, as far as its head says.
    fn empty_data(&mut self, frame: Frame, octets: &[u8]) -> Passage {
        if frame.length == 0 && frame.flags & PADDED == 0 {
            self.spare = self.spare.saturating_sub(1);
            let empty = self.open.get_mut(&frame.stream).map(|empty| {
                *empty += 1;
                *empty
            });
            if empty.is_some_and(|empty| empty >= EMPTY) {
                self.reset(frame.stream, "too many DATA frames without octets");
            }
            return Passage::Replaced(HEAD);
        }
        let Some(padding) = octets.get(HEAD).filter(|_| frame.length > 0) else {
            return if frame.length == 0 { self.pass(frame) } else { Passage::Wait };
        };
        if usize::from(*padding) + 1 != frame.length {
            return self.pass(frame);
        }
        if self.padding < PADDING && self.open.contains_key(&frame.stream) {
            self.padding += 1;
            return self.pass(frame);
        }
        // To a stream that was reset its padding is as good as octets, which h2 gives back to the windows and does not count.
        self.spare = self.spare.saturating_sub(1);
        self.reset(frame.stream, "too many DATA frames of padding alone");
        self.ready.extend_from_slice(&Frame { flags: frame.flags & !PADDED, ..frame }.head());
        self.payload = frame.length;
        Passage::Replaced(HEAD)
    }

    /// A field section, whole.
    fn section(&mut self, octets: &[u8]) -> Passage {
        let Some(section) = Section::find(octets, SECTION * self.head_bytes) else {
            return Passage::Wait;
        };
        let (first, length) = (section.first, section.length);
        let Some(block) = section.block else { return self.pass(first) };
        match self.fields.check(&block, self.head_bytes) {
            // It has its place as it is, or as fewer frames.
            Ok(None) if section.frames == 1 => {
                self.note(first);
                Passage::Pass(length)
            }
            Ok(None) => {
                self.note(first);
                (1..section.frames).for_each(|_| self.note(Frame { kind: CONTINUATION, length: 0, ..first }));
                self.say(Frame { flags: first.flags & END_STREAM, ..first }, &block);
                Passage::Replaced(length)
            }
            Ok(Some(bad)) => {
                self.note(Frame { flags: first.flags & !END_STREAM, ..first });
                self.reset(first.stream, bad.why);
                for piece in bad.kept {
                    self.say(Frame { flags: 0, ..first }, &piece);
                }
                Passage::Replaced(length)
            }
            Err(_) => self.pass(first),
        }
    }

    /// Has h2 get a field section.
    fn say(&mut self, first: Frame, block: &[u8]) {
        let (mut frame, mut left) = (first, block);
        loop {
            let (piece, after) = left.split_at(left.len().min(FRAME));
            let end = if after.is_empty() { END_HEADERS } else { 0 };
            self.ready.extend_from_slice(&Frame { flags: frame.flags | end, length: piece.len(), ..frame }.head());
            self.ready.extend_from_slice(piece);
            if after.is_empty() {
                return;
            }
            (frame, left) = (Frame { kind: CONTINUATION, flags: 0, ..first }, after);
        }
    }

    /// Has h2 reset a stream, if it has not ended.
    fn reset(&mut self, stream: u32, why: &'static str) {
        if self.open.remove(&stream).is_none() {
            return;
        }
        self.activity.note_fault(stream, why);
        let frame = Frame { kind: PRIORITY, flags: 0, stream, length: 5 };
        self.ready.extend_from_slice(&frame.head());
        self.ready.extend_from_slice(&stream.to_be_bytes());
        self.ready.extend_from_slice(&[0]);
    }
}

impl<'a> Section<'a> {
    /// The frames that these octets begin with; none while they are not all there.
    fn find(octets: &'a [u8], most: usize) -> Option<Self> {
        let first = Frame::of_head(*octets.first_chunk()?);
        let (mut section, mut frame) = (Section { first, length: 0, frames: 0, block: None }, first);
        loop {
            section.length += HEAD + frame.length;
            section.frames += 1;
            if section.length > most || section.frames > SECTION_FRAMES {
                return Some(section);
            }
            let after = octets.get(section.length..)?;
            if frame.flags & END_HEADERS != 0 {
                section.block = block(&octets[..section.length]);
                return Some(section);
            }
            frame = Frame::of_head(*after.first_chunk()?);
            if frame.kind != CONTINUATION || frame.stream != first.stream {
                return Some(section);
            }
        }
    }
}

/// The block that the frames of a section make together.
fn block(frames: &[u8]) -> Option<Cow<'_, [u8]>> {
    let (first, mut left) = part(frames)?;
    let mut block = Cow::Borrowed(first);
    while !left.is_empty() {
        let (piece, after) = part(left)?;
        block.to_mut().extend_from_slice(piece);
        left = after;
    }
    Some(block)
}

/// The content of the next frame, without padding and without a priority, and those after it.
fn part(frames: &[u8]) -> Option<(&[u8], &[u8])> {
    let (head, left) = frames.split_first_chunk()?;
    let frame = Frame::of_head(*head);
    let (payload, after) = left.split_at_checked(frame.length)?;
    if frame.kind == CONTINUATION {
        return Some((payload, after));
    }
    let has = |flag: u8| frame.flags & flag != 0;
    let (padding, payload) = match has(PADDED) {
        true => payload.split_first().map(|(padding, payload)| (usize::from(*padding), payload))?,
        false => (0, payload),
    };
    let payload = if has(PRIORITY_FIELDS) { payload.get(5..)? } else { payload };
    Some((payload.get(..payload.len().checked_sub(padding)?)?, after))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::test_peer::frame;

    /// The octets that h2 gets of a server's in pieces of a size, with two streams open.
    fn through(octets: &[u8], size: usize) -> (Vec<u8>, Arc<ConnectionActivity>) {
        let activity = Arc::new(ConnectionActivity::new(Instant::now()));
        let (mut guard, mut got) = (StreamGuard::new(1_024, Arc::clone(&activity)), Vec::new());
        for stream in [1, 3] {
            guard.sent(Frame { kind: HEADERS, flags: END_HEADERS, stream, length: 0 });
        }
        for piece in octets.chunks(size) {
            let length = guard.received(piece);
            got.extend_from_slice(&piece[..length]);
            got.extend_from_slice(&guard.ready.split());
        }
        (got, activity)
    }

    #[test]
    fn the_same_comes_through_wherever_it_is_cut() {
        let empty = frame(DATA, 0, 1, &[]);
        let status = [0x88];
        let bad = b"\x40\x03x-a\x03b\nc\x84";
        let said = [
            // Padded, with a priority, in three frames.
            frame(HEADERS, PADDED | PRIORITY_FIELDS, 1, &[2, 0, 0, 0, 0, 9, 0x88, 0, 0]),
            frame(CONTINUATION, 0, 1, &[]),
            frame(CONTINUATION, END_HEADERS, 1, b"\0\x01a\x01b"),
            empty.clone(),
            frame(DATA, PADDED, 1, &[2, b'o', 0, 0]),
            frame(DATA, PADDED, 1, &[1, 0]),
            frame(HEADERS, END_HEADERS, 3, &[&status[..], bad].concat()),
            frame(DATA, 0, 3, b"late"),
            frame(6, 0, 0, &[7; 8]),
            empty.repeat(EMPTY),
            frame(DATA, END_STREAM, 1, &[]),
        ]
        .concat();
        let got = [
            frame(HEADERS, END_HEADERS, 1, b"\x88\0\x01a\x01b"),
            frame(DATA, PADDED, 1, &[2, b'o', 0, 0]),
            frame(DATA, PADDED, 1, &[1, 0]),
            frame(PRIORITY, 0, 3, &[0, 0, 0, 3, 0]),
            frame(HEADERS, END_HEADERS, 3, b"\x40\x03x-a\x03xxx"),
            frame(DATA, 0, 3, b"late"),
            frame(6, 0, 0, &[7; 8]),
            frame(PRIORITY, 0, 1, &[0, 0, 0, 1, 0]),
            frame(DATA, END_STREAM, 1, &[]),
        ]
        .concat();
        for size in 1..=said.len() {
            let (through, activity) = through(&said, size);
            assert_eq!(through, got, "{size}");
            assert!(activity.fault(3).is_some_and(|why| why.contains("octets that HTTP")), "{size}");
            assert!(activity.fault(1).is_some_and(|why| why.contains("without octets")) && activity.fault(1).is_none());
        }
    }

    #[test]
    fn what_h2_ends_the_connection_for_passes_as_it_is() {
        for said in [
            frame(HEADERS, END_HEADERS, 5, &[0x88]),
            frame(HEADERS, END_HEADERS, 2, &[0x88]),
            frame(HEADERS, END_HEADERS, 1, &[0x80]),
            frame(HEADERS, END_HEADERS | PADDED, 1, &[9, 0x88]),
            [frame(HEADERS, 0, 1, &[0x88]), frame(DATA, 0, 1, b"a")].concat(),
            [frame(HEADERS, 0, 1, &[0x88]), frame(CONTINUATION, END_HEADERS, 3, &[0x88])].concat(),
            frame(CONTINUATION, END_HEADERS, 1, &[0x88]),
            frame(DATA, PADDED, 1, &[]),
            frame(DATA, 0, 5, &[]),
            frame(HEADERS, END_HEADERS, 1, &[0x88; 5_000]),
            [frame(HEADERS, 0, 1, &[0x88]), frame(CONTINUATION, 0, 1, &[]).repeat(300)].concat(),
        ] {
            for size in [1, 10, said.len()] {
                assert!(through(&said, size).0 == said, "{said:?} {size}");
            }
        }
    }

    #[test]
    fn frames_that_are_left_out_have_a_bound() {
        let mut guard = StreamGuard::new(1_024, Arc::new(ConnectionActivity::new(Instant::now())));
        guard.sent(Frame { kind: HEADERS, flags: END_HEADERS, stream: 1, length: 0 });
        let empty = frame(DATA, 0, 1, &[]);
        let left_out = (0..).take_while(|_| {
            guard.received(&empty);
            !guard.is_flooded()
        });
        assert_eq!(left_out.count(), SPARE - 1);
        assert!(guard.ready.len() < 20 && guard.held.is_empty());
    }
}
