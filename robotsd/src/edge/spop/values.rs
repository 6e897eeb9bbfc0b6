//! The values of SPOP: integers of variable length, strings, typed data, and the lists of a payload.
//!
//! Everything is read in place, and a string is octets: what a client sends need not be UTF-8.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A value of typed data, as far as it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Null,
    Flag(bool),
    Number(u64),
    Address(IpAddr),
    /// A string or binary data.
    Octets(&'a [u8]),
}

/// The arguments of one message, or the items of a handshake: names with their values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Arguments<'a>(&'a [u8]);

impl<'a> Arguments<'a> {
    /// A list that holds all these octets; none where they are no such list.
    pub(super) fn all(octets: &'a [u8]) -> Option<Self> {
        let mut rest = octets;
        while !rest.is_empty() {
            (_, rest) = split_item(rest)?;
        }
        Some(Self(octets))
    }

    /// The first message of a payload, and what follows it.
    pub(crate) fn of_message(payload: &'a [u8]) -> Option<(Self, &'a [u8])> {
        let (_name, rest) = split_string(payload)?;
        let (count, items) = rest.split_first()?;
        let mut rest = items;
        for _ in 0..*count {
            (_, rest) = split_item(rest)?;
        }
        Some((Self(&items[..items.len() - rest.len()]), rest))
    }

    /// The first value of this name.
    pub(crate) fn get(self, name: &[u8]) -> Option<Value<'a>> {
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

    /// The first string or binary value of this name.
    pub(crate) fn octets(self, name: &[u8]) -> Option<&'a [u8]> {
        match self.get(name)? {
            Value::Octets(octets) => Some(octets),
            _ => None,
        }
    }
}

/// A name with its value.
type Item<'a> = (&'a [u8], Value<'a>);

fn split_item(octets: &[u8]) -> Option<(Item<'_>, &[u8])> {
    let (name, rest) = split_string(octets)?;
    let (value, rest) = split_value(rest)?;
    Some(((name, value), rest))
}

/// A string at the start of octets, and what follows it.
pub(crate) fn split_string(octets: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = split_integer(octets)?;
    rest.split_at_checked(usize::try_from(length).ok()?)
}

fn split_value(octets: &[u8]) -> Option<(Value<'_>, &[u8])> {
    let (kind, rest) = octets.split_first()?;
    Some(match kind & 0x0F {
        0 => (Value::Null, rest),
        1 => (Value::Flag(kind & 0x10 != 0), rest),
        2..=5 => {
            let (number, rest) = split_integer(rest)?;
            (Value::Number(number), rest)
        }
        6 => {
            let (address, rest) = rest.split_first_chunk::<4>()?;
            (Value::Address(Ipv4Addr::from(*address).into()), rest)
        }
        7 => {
            let (address, rest) = rest.split_first_chunk::<16>()?;
            (Value::Address(Ipv6Addr::from(*address).into()), rest)
        }
        8 | 9 => {
            let (text, rest) = split_string(rest)?;
            (Value::Octets(text), rest)
        }
        _ => return None,
    })
}

/// An integer: up to 239 one octet; else four bits in the first, and seven in each that follows while its highest bit is set.
pub(super) fn split_integer(octets: &[u8]) -> Option<(u64, &[u8])> {
    let (first, mut rest) = octets.split_first()?;
    let mut number = u64::from(*first);
    if *first < 0xF0 {
        return Some((number, rest));
    }
    let mut shift = 4;
    loop {
        let (octet, left) = rest.split_first()?;
        rest = left;
        let part = u64::from(*octet).checked_shl(shift).filter(|part| part >> shift == u64::from(*octet))?;
        number = number.checked_add(part)?;
        if *octet < 0x80 {
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

pub(super) fn push_string(out: &mut Vec<u8>, text: &[u8]) {
    push_integer(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// A string as typed data.
pub(super) fn push_text(out: &mut Vec<u8>, text: &[u8]) {
    out.push(8);
    push_string(out, text);
}

/// An unsigned integer of 32 bits as typed data.
pub(super) fn push_number(out: &mut Vec<u8>, number: u32) {
    out.push(3);
    push_integer(out, number.into());
}
