//! The heads of HTTP/2 frames as they pass (RFC 9113, section 4.1); everything else in a frame is for `h2` to judge.

/// Where in the frames one direction of a connection is.
#[derive(Debug, Default)]
pub(crate) struct Frames {
    head: [u8; HEAD],
    /// Octets of the head that have passed.
    filled: usize,
    /// Octets of the payload that have not.
    payload: usize,
}

/// A frame whose head has passed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) kind: u8,
    pub(crate) flags: u8,
    pub(crate) stream: u32,
    pub(crate) length: usize,
}

const HEAD: usize = 9;

/// The length of a frame that is padded as far as one can be, and nothing else.
const MOST_PADDING: usize = 256;

pub(crate) const DATA: u8 = 0;
pub(crate) const HEADERS: u8 = 1;
pub(crate) const RST_STREAM: u8 = 3;
pub(crate) const SETTINGS: u8 = 4;
pub(crate) const GOAWAY: u8 = 7;
pub(crate) const CONTINUATION: u8 = 9;

pub(crate) const ACK: u8 = 0x1;
pub(crate) const END_STREAM: u8 = 0x1;
pub(crate) const PADDED: u8 = 0x8;
pub(crate) const END_HEADERS: u8 = 0x4;

impl Frame {
    pub(crate) fn is_reset(self) -> bool {
        self.kind == RST_STREAM
    }

    /// Whether it says that the SETTINGS of the other side are in force.
    pub(crate) fn is_settings_ack(self) -> bool {
        self.kind == SETTINGS && self.flags & ACK != 0
    }

    /// Whether it is of a message.
    pub(crate) fn is_content(self) -> bool {
        matches!(self.kind, DATA | HEADERS)
    }

    /// Whether it is DATA without octets that does not end its stream; padding counts as none while it may be all there is.
    pub(crate) fn is_empty_data(self) -> bool {
        let may_be_empty = self.length == 0 || self.flags & PADDED != 0 && self.length <= MOST_PADDING;
        self.kind == DATA && self.flags & END_STREAM == 0 && may_be_empty
    }
}

impl Frames {
    /// Walks over octets that pass, and names each frame that begins among them.
    pub(crate) fn pass(&mut self, mut octets: &[u8], mut each: impl FnMut(Frame)) {
        while !octets.is_empty() {
            if self.payload > 0 {
                let skipped = self.payload.min(octets.len());
                self.payload -= skipped;
                octets = &octets[skipped..];
                continue;
            }
            let taken = (HEAD - self.filled).min(octets.len());
            self.head[self.filled..self.filled + taken].copy_from_slice(&octets[..taken]);
            self.filled += taken;
            octets = &octets[taken..];
            if self.filled == HEAD {
                let [a, b, c, kind, flags, stream @ ..] = self.head;
                let length = u32::from_be_bytes([0, a, b, c]) as usize;
                self.filled = 0;
                self.payload = length;
                each(Frame { kind, flags, stream: u32::from_be_bytes(stream) & MOST_STREAM, length });
            }
        }
    }

    /// Whether no frame has passed in part.
    pub(crate) fn is_between(&self) -> bool {
        self.filled == 0 && self.payload == 0
    }
}

/// The highest bit of a stream's number is reserved.
const MOST_STREAM: u32 = u32::MAX >> 1;

/// A frame that ends a connection (RFC 9113, section 6.8); `last` is the last stream that was or will be answered.
pub(crate) fn goaway(last: u32, code: u32) -> [u8; 17] {
    let [a, b, c, d] = last.to_be_bytes();
    let [e, f, g, h] = code.to_be_bytes();
    [0, 0, 8, GOAWAY, 0, 0, 0, 0, 0, a, b, c, d, e, f, g, h]
}

/// A SETTINGS frame that sets nothing: the least that a server says first (RFC 9113, section 3.4).
pub(crate) const NO_SETTINGS: [u8; 9] = [0, 0, 0, SETTINGS, 0, 0, 0, 0, 0];

pub(crate) const NO_ERROR: u32 = 0;
pub(crate) const PROTOCOL_ERROR: u32 = 1;

/// The name of a type of frames.
pub(crate) const fn name(kind: u8) -> &'static str {
    match kind {
        DATA => "DATA",
        HEADERS => "HEADERS",
        2 => "PRIORITY",
        RST_STREAM => "RST_STREAM",
        SETTINGS => "SETTINGS",
        5 => "PUSH_PROMISE",
        6 => "PING",
        GOAWAY => "GOAWAY",
        8 => "WINDOW_UPDATE",
        CONTINUATION => "CONTINUATION",
        _ => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_are_found_wherever_they_are_cut() {
        let octets =
            [&[0, 0, 8, 6, 0, 0, 0, 0, 0][..], &[7; 8], &[0, 1, 0, DATA, 1, 0x80, 0, 0, 3], &[0; 256], &NO_SETTINGS]
                .concat();
        for size in 1..=octets.len() {
            let (mut frames, mut found) = (Frames::default(), Vec::new());
            for piece in octets.chunks(size) {
                frames.pass(piece, |frame| found.push((frame.kind, frame.flags, frame.stream, frame.length)));
            }
            assert_eq!(found, [(6, 0, 0, 8), (DATA, 1, 3, 256), (SETTINGS, 0, 0, 0)], "{size}");
            assert!(frames.is_between());
        }
        let mut frames = Frames::default();
        frames.pass(&octets[..20], |_| {});
        assert!(!frames.is_between());
    }
}
