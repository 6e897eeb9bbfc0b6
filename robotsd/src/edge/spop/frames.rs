//! Parses and builds the frames of SPOP and the values in them: variable-length integers, strings,
//! typed data, and lists.
//!
//! Frames are parsed in place, without copies. Strings are byte strings, because strings from a
//! client need not be UTF-8.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::{Buf, Bytes, BytesMut};

/// Maximum size of an accepted frame without its length field, in bytes. HAProxy's frames are at
/// most as large as its buffers: 16 KiB by default.
pub(crate) const MAX_FRAME_BYTES: usize = 64 * 1024;

/// Minimum `max-frame-size` that HAProxy may announce, in bytes.
const MIN_BOUND: u64 = 256;

/// Size of the length field of a frame, in bytes.
const LENGTH: usize = 4;

const AGENT_HELLO: u8 = 101;
const AGENT_DISCONNECT: u8 = 102;
const ACK: u8 = 103;

/// The flag that marks the last frame of a payload.
const FIN: u32 = 1;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum HaproxyFrame {
    Hello(Bytes),
    Disconnect,
    Notify {
        stream: u64,
        frame: u64,
        payload: Bytes,
    },
    /// A frame of an unknown type, which is skipped.
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreement {
    /// Maximum frame size, in bytes.
    pub(crate) max_frame_size: usize,
    pub(crate) has_pipelining: bool,
    pub(crate) is_health_check: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SpopError {
    pub(crate) status: u32,
    pub(crate) message: &'static str,
}

impl SpopError {
    pub(crate) const NORMAL: Self = Self::new(0, "normal");
    pub(crate) const TIMEOUT: Self = Self::new(2, "timeout");
    pub(crate) const TOO_BIG: Self = Self::new(3, "the frame is too big");
    pub(crate) const INVALID: Self = Self::new(4, "the frame is invalid");
    const NO_VERSION: Self = Self::new(5, "supported-versions is missing");
    const NO_FRAME_SIZE: Self = Self::new(6, "max-frame-size is missing");
    const NO_CAPABILITIES: Self = Self::new(7, "capabilities is missing");
    const VERSION: Self = Self::new(8, "version 2.0 is not supported");
    const FRAME_SIZE: Self = Self::new(9, "max-frame-size is less than 256");
    const FRAGMENT: Self = Self::new(10, "fragments are not supported");

    const fn new(status: u32, message: &'static str) -> Self {
        Self { status, message }
    }
}

/// Removes the next frame from the received bytes. Returns `None` if the frame is incomplete.
pub(crate) fn take(bytes: &mut BytesMut, max_frame_size: usize) -> Result<Option<HaproxyFrame>, SpopError> {
    let Some(length) = bytes.first_chunk::<LENGTH>() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    if length > max_frame_size {
        return Err(SpopError::TOO_BIG);
    }
    if bytes.len() < LENGTH + length {
        return Ok(None);
    }
    bytes.advance(LENGTH);
    read(bytes.split_to(length).freeze()).map(Some)
}

fn read(frame: Bytes) -> Result<HaproxyFrame, SpopError> {
    let parsed = || {
        let (kind, rest) = frame.split_first()?;
        let (flags, rest) = rest.split_first_chunk::<4>()?;
        let (stream, rest) = split_integer(rest)?;
        let (number, payload) = split_integer(rest)?;
        Some((*kind, u32::from_be_bytes(*flags), stream, number, frame.slice_ref(payload)))
    };
    let (kind, flags, stream, frame, payload) = parsed().ok_or(SpopError::INVALID)?;
    match kind {
        0 => Err(SpopError::FRAGMENT),
        1..=3 if flags & FIN == 0 => Err(SpopError::FRAGMENT),
        1 => Ok(HaproxyFrame::Hello(payload)),
        2 => Ok(HaproxyFrame::Disconnect),
        3 => Ok(HaproxyFrame::Notify { stream, frame, payload }),
        _ => Ok(HaproxyFrame::Unknown),
    }
}

pub(crate) fn agree(payload: &[u8]) -> Result<Agreement, SpopError> {
    let items = Arguments::all(payload).ok_or(SpopError::INVALID)?;
    let versions = items.bytes(b"supported-versions").ok_or(SpopError::NO_VERSION)?;
    let Some(SpopValue::Number(max_frame_size)) = items.get(b"max-frame-size") else {
        return Err(SpopError::NO_FRAME_SIZE);
    };
    let capabilities = items.bytes(b"capabilities").ok_or(SpopError::NO_CAPABILITIES)?;
    // An agent that supports major version 2 supports all its minor versions.
    if !listed(versions).any(|version| version.starts_with(b"2.")) {
        return Err(SpopError::VERSION);
    }
    if max_frame_size < MIN_BOUND {
        return Err(SpopError::FRAME_SIZE);
    }
    Ok(Agreement {
        max_frame_size: usize::try_from(max_frame_size).unwrap_or(MAX_FRAME_BYTES).min(MAX_FRAME_BYTES),
        has_pipelining: listed(capabilities).any(|capability| capability == b"pipelining"),
        is_health_check: items.get(b"healthcheck") == Some(SpopValue::Flag(true)),
    })
}

fn listed(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii)
}

pub(crate) fn push_hello(out: &mut Vec<u8>, agreement: Agreement) {
    push_frame(out, AGENT_HELLO, 0, 0, |out| {
        push_string(out, b"version");
        push_text(out, b"2.0");
        push_string(out, b"max-frame-size");
        push_number(out, agreement.max_frame_size as u32);
        push_string(out, b"capabilities");
        push_text(out, if agreement.has_pipelining { b"pipelining" } else { b"" });
    });
}

pub(crate) fn push_disconnect(out: &mut Vec<u8>, why: SpopError) {
    push_frame(out, AGENT_DISCONNECT, 0, 0, |out| {
        push_string(out, b"status-code");
        push_number(out, why.status);
        push_string(out, b"message");
        push_text(out, why.message.as_bytes());
    });
}

pub(crate) fn push_ack(out: &mut Vec<u8>, stream: u64, frame: u64, variables: &VariableList) {
    push_frame(out, ACK, stream, frame, |out| out.extend_from_slice(&variables.actions));
}

fn push_frame(out: &mut Vec<u8>, kind: u8, stream: u64, frame: u64, payload: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; LENGTH]);
    out.push(kind);
    out.extend_from_slice(&FIN.to_be_bytes());
    push_integer(out, stream);
    push_integer(out, frame);
    payload(out);
    let length = (out.len() - start - LENGTH) as u32;
    out[start..start + LENGTH].copy_from_slice(&length.to_be_bytes());
}

/// The variables to set with an ACK. HAProxy keeps the variables until the request has been
/// answered.
#[derive(Debug)]
pub(crate) struct VariableList {
    pub(crate) actions: Vec<u8>,
    /// Maximum total size of `actions`, in bytes.
    most: usize,
}

/// Maximum size of the head of an ACK, in bytes.
const HEAD: usize = 1 + 4 + 10 + 10;

/// Maximum size of an action, without the name and the value of the variable, in bytes.
const AROUND: usize = 3 + 3 + 1 + 5;

impl VariableList {
    /// Creates an empty list for a frame of at most `max_frame_size` bytes.
    pub(crate) fn of_frame(max_frame_size: usize) -> Self {
        Self { actions: Vec::new(), most: max_frame_size.saturating_sub(HEAD) }
    }

    fn has_room(&self, name: &str, value: &[u8]) -> bool {
        self.actions.len() + AROUND + name.len() + value.len() <= self.most
    }

    /// Sets a variable to a string. If the list has no room for the variable, it is omitted.
    pub(crate) fn text(&mut self, name: &str, value: &[u8]) {
        if self.has_room(name, value) {
            self.set(name);
            push_text(&mut self.actions, value);
        }
    }

    /// Sets a variable to a number. If the list has no room for the variable, it is omitted.
    pub(crate) fn number(&mut self, name: &str, value: u32) {
        if self.has_room(name, &[]) {
            self.set(name);
            push_number(&mut self.actions, value);
        }
    }

    fn set(&mut self, name: &str) {
        // The action "set-var", its three arguments, and the scope "transaction".
        self.actions.extend_from_slice(&[1, 3, 2]);
        push_string(&mut self.actions, name.as_bytes());
    }
}

/// A typed value in a frame. Values of types that robotsd does not need are skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SpopValue<'a> {
    Null,
    Flag(bool),
    Number(u64),
    Address(IpAddr),
    Bytes(&'a [u8]),
}

/// A list of names and values: the arguments of a message, or the items of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// Returns the list if the bytes are exactly one list, and `None` otherwise.
    pub(super) fn all(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        while !rest.is_empty() {
            (_, rest) = split_item(rest)?;
        }
        Some(Self(bytes))
    }

    /// Returns the arguments of the first message in a payload, and the rest of the payload.
    pub(crate) fn of_message(payload: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (_name, rest) = split_string(payload)?;
        let (count, items) = rest.split_first()?;
        let mut rest = items;
        for _ in 0..*count {
            (_, rest) = split_item(rest)?;
        }
        Some((Self(&items[..items.len() - rest.len()]), rest))
    }

    pub(crate) fn get(self, name: &[u8]) -> Option<SpopValue<'a>> {
        let mut rest = self.0;
        while !rest.is_empty() {
            let ((found, value), left) = split_item(rest)?;
            if found == name {
                return Some(value);
            }
            rest = left;
        }
        None
    }

    /// Returns the value with this name if it is a string or binary data.
    pub(crate) fn bytes(self, name: &[u8]) -> Option<&'a [u8]> {
        match self.get(name)? {
            SpopValue::Bytes(bytes) => Some(bytes),
            _ => None,
        }
    }
}

type Item<'a> = (&'a [u8], SpopValue<'a>);

fn split_item(bytes: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let (name, rest) = split_string(bytes)?;
    let (value, rest) = split_value(rest)?;
    Some(((name, value), rest))
}

/// Parses a string at the start of the bytes. Also returns the remaining bytes.
pub(crate) fn split_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_integer(bytes)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn split_value(bytes: &[u8]) -> Option<(SpopValue<'_>, &[u8])> {
    let (kind, rest) = bytes.split_first()?;
    Some(match kind & 0x0F {
        0 => (SpopValue::Null, rest),
        1 => (SpopValue::Flag(kind & 0x10 != 0), rest),
        2..=5 => {
            let (number, rest) = split_integer(rest)?;
            (SpopValue::Number(number), rest)
        }
        6 => {
            let (address, rest) = rest.split_first_chunk::<4>()?;
            (SpopValue::Address(Ipv4Addr::from(*address).into()), rest)
        }
        7 => {
            let (address, rest) = rest.split_first_chunk::<16>()?;
            (SpopValue::Address(Ipv6Addr::from(*address).into()), rest)
        }
        8 | 9 => {
            let (text, rest) = split_string(rest)?;
            (SpopValue::Bytes(text), rest)
        }
        _ => return None,
    })
}

/// Parses an integer at the start of the bytes. Also returns the remaining bytes. Values below 240
/// are a single byte. In a larger value, the first byte contributes four bits, and each following
/// byte contributes seven. The highest bit of the last byte is 0.
pub(super) fn split_integer(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (first, mut rest) = bytes.split_first()?;
    let mut number = u64::from(*first);
    if *first < 0xF0 {
        return Some((number, rest));
    }
    let mut shift = 4;
    loop {
        let (byte, left) = rest.split_first()?;
        rest = left;
        let part = u64::from(*byte).checked_shl(shift).filter(|part| part >> shift == u64::from(*byte))?;
        number = number.checked_add(part)?;
        if *byte < 0x80 {
            return Some((number, rest));
        }
        shift += 7;
    }
}

pub(super) fn push_integer(out: &mut Vec<u8>, mut number: u64) {
    if number < 0xF0 {
        out.push(number as u8);
        return;
    }
    out.push(number as u8 | 0xF0);
    number = (number - 0xF0) >> 4;
    while number >= 0x80 {
        out.push(number as u8 | 0x80);
        number = (number - 0x80) >> 7;
    }
    out.push(number as u8);
}

pub(crate) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_integer(out, text.len() as u64);
    out.extend_from_slice(text);
}

pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(8);
    push_string(out, text);
}

pub(super) fn push_number(out: &mut Vec<u8>, number: u32) {
    out.push(3);
    push_integer(out, number.into());
}
