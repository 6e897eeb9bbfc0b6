//! Reading dictionaries and strings of structured fields, strictly (RFC 9651, section 4.2), and their values with their
//! one written form (sections 3 and 4.1).
//!
//! By hand, because a signature is over the parameters exactly as received, and no crate says which octets a value was read
//! from. A property test compares this reader with the crate `sfv`.

use std::borrow::Cow;
use std::fmt::{self, Write};

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::display::Base64Display;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// More members, parameters or items than any signer sends. They are searched one by one, so a field of 64 KiB could cost as
/// much as its length squared.
const MOST: usize = 256;

/// The field is none: nothing is read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError;

type Read<T> = Result<T, SyntaxError>;

impl<'a> Dictionary<'a> {
    /// Reads the value of a field whose lines are joined.
    pub(crate) fn parse(field: &'a str) -> Read<Self> {
        let mut reader = FieldReader::of(field);
        let mut members = Vec::new();
        while !reader.is_at_end() {
            if members.len() == MOST {
                return Err(SyntaxError);
            }
            let key = reader.key()?;
            let member = if reader.eat(b'=') {
                reader.member()?
            } else {
                let parameters = reader.parameters()?;
                Member::Item(Item { value: BareItem::Boolean(true), parameters })
            };
            members.push((key, member));
            reader.skip(|octet| matches!(octet, b' ' | b'\t'));
            if reader.is_at_end() {
                break;
            }
            if !reader.eat(b',') {
                return Err(SyntaxError);
            }
            reader.skip(|octet| matches!(octet, b' ' | b'\t'));
            if reader.is_at_end() {
                return Err(SyntaxError);
            }
        }
        Ok(Self(members))
    }
}

impl<'a> Item<'a> {
    /// Reads the value of a field that is one item.
    pub(crate) fn parse(field: &'a str) -> Read<Self> {
        let mut reader = FieldReader::of(field);
        let item = reader.item()?;
        if reader.is_at_end() { Ok(item) } else { Err(SyntaxError) }
    }
}

struct FieldReader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> FieldReader<'a> {
    /// Spaces around a field are no part of it.
    fn of(field: &'a str) -> Self {
        Self { text: field.trim_matches(' '), at: 0 }
    }

    fn is_at_end(&self) -> bool {
        self.at == self.text.len()
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn next(&mut self) -> Option<u8> {
        let octet = self.peek()?;
        self.at += 1;
        Some(octet)
    }

    fn eat(&mut self, octet: u8) -> bool {
        let is_next = self.peek() == Some(octet);
        self.at += usize::from(is_next);
        is_next
    }

    fn skip(&mut self, is_skipped: impl Fn(u8) -> bool) {
        while self.peek().is_some_and(&is_skipped) {
            self.at += 1;
        }
    }

    /// The text since a place. All that is read is ASCII, so a place is never within a character.
    fn since(&self, start: usize) -> Read<&'a str> {
        self.text.get(start..self.at).ok_or(SyntaxError)
    }

    fn take(&mut self, is_first: impl Fn(u8) -> bool, is_more: impl Fn(u8) -> bool) -> Read<&'a str> {
        let start = self.at;
        if !self.peek().is_some_and(is_first) {
            return Err(SyntaxError);
        }
        self.at += 1;
        self.skip(is_more);
        self.since(start)
    }

    fn key(&mut self) -> Read<&'a str> {
        self.take(
            |octet| octet.is_ascii_lowercase() || octet == b'*',
            |octet| octet.is_ascii_lowercase() || octet.is_ascii_digit() || matches!(octet, b'_' | b'-' | b'.' | b'*'),
        )
    }

    fn member(&mut self) -> Read<Member<'a>> {
        if self.peek() == Some(b'(') { self.inner_list().map(Member::InnerList) } else { self.item().map(Member::Item) }
    }

    fn inner_list(&mut self) -> Read<InnerList<'a>> {
        let start = self.at;
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.skip(|octet| octet == b' ');
            if self.eat(b')') {
                let parameters = self.parameters()?;
                return Ok(InnerList { items, parameters, raw: self.since(start)? });
            }
            items.push(self.item()?);
            if items.len() > MOST || !matches!(self.peek(), Some(b' ' | b')')) {
                return Err(SyntaxError);
            }
        }
    }

    fn item(&mut self) -> Read<Item<'a>> {
        Ok(Item { value: self.bare_item()?, parameters: self.parameters()? })
    }

    fn parameters(&mut self) -> Read<Parameters<'a>> {
        let mut parameters = Parameters::default();
        while self.eat(b';') {
            self.skip(|octet| octet == b' ');
            let key = self.key()?;
            let value = if self.eat(b'=') { self.bare_item()? } else { BareItem::Boolean(true) };
            parameters.put(key, value);
            if parameters.0.len() > MOST {
                return Err(SyntaxError);
            }
        }
        Ok(parameters)
    }

    fn bare_item(&mut self) -> Read<BareItem<'a>> {
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b'"') => self.string().map(BareItem::String),
            Some(b':') => self.bytes().map(BareItem::Bytes),
            Some(b'?') => self.boolean().map(BareItem::Boolean),
            Some(b'@') => self.date().map(BareItem::Date),
            Some(b'%') => self.display_string().map(BareItem::DisplayString),
            _ => self
                .take(
                    |octet| octet.is_ascii_alphabetic() || octet == b'*',
                    |octet| is_token_octet(octet) || matches!(octet, b':' | b'/'),
                )
                .map(BareItem::Token),
        }
    }

    /// Up to 15 digits, or up to 12 and up to 3 after a point.
    fn number(&mut self) -> Read<BareItem<'a>> {
        let sign = if self.eat(b'-') { -1 } else { 1 };
        let whole = self.digits()?;
        if !self.eat(b'.') {
            return if whole.len() <= 15 { Ok(BareItem::Integer(sign * number(whole)?)) } else { Err(SyntaxError) };
        }
        let fraction = self.digits()?;
        if whole.len() > 12 || fraction.len() > 3 {
            return Err(SyntaxError);
        }
        let thousandths = number(&format!("{fraction:0<3}"))?;
        Ok(BareItem::Decimal(sign * (number(whole)? * 1000 + thousandths)))
    }

    fn digits(&mut self) -> Read<&'a str> {
        self.take(|octet| octet.is_ascii_digit(), |octet| octet.is_ascii_digit())
    }

    fn string(&mut self) -> Read<Cow<'a, str>> {
        self.at += 1;
        let start = self.at;
        let mut unescaped: Option<String> = None;
        loop {
            let before = self.since(start)?;
            match self.next().ok_or(SyntaxError)? {
                b'"' => return Ok(unescaped.map_or(Cow::Borrowed(before), Cow::Owned)),
                b'\\' => {
                    let escaped = self.next().filter(|octet| matches!(octet, b'"' | b'\\')).ok_or(SyntaxError)?;
                    unescaped.get_or_insert_with(|| before.to_owned()).push(char::from(escaped));
                }
                octet @ b' '..=b'~' => {
                    if let Some(text) = &mut unescaped {
                        text.push(char::from(octet));
                    }
                }
                _ => return Err(SyntaxError),
            }
        }
    }

    fn bytes(&mut self) -> Read<Vec<u8>> {
        self.at += 1;
        let start = self.at;
        self.skip(|octet| octet.is_ascii_alphanumeric() || matches!(octet, b'+' | b'/' | b'='));
        let encoded = self.since(start)?;
        if !self.eat(b':') {
            return Err(SyntaxError);
        }
        BASE64.decode(encoded).map_err(|_| SyntaxError)
    }

    fn boolean(&mut self) -> Read<bool> {
        self.at += 1;
        match self.next() {
            Some(b'1') => Ok(true),
            Some(b'0') => Ok(false),
            _ => Err(SyntaxError),
        }
    }

    fn date(&mut self) -> Read<i64> {
        self.at += 1;
        match self.peek() {
            Some(b'-' | b'0'..=b'9') => match self.number()? {
                BareItem::Integer(seconds) => Ok(seconds),
                _ => Err(SyntaxError),
            },
            _ => Err(SyntaxError),
        }
    }

    fn display_string(&mut self) -> Read<String> {
        self.at += 1;
        if !self.eat(b'"') {
            return Err(SyntaxError);
        }
        let mut octets = Vec::new();
        loop {
            match self.next().ok_or(SyntaxError)? {
                b'"' => return String::from_utf8(octets).map_err(|_| SyntaxError),
                b'%' => {
                    let mut digit = || {
                        let octet = self.next().filter(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'))?;
                        char::from(octet).to_digit(16).and_then(|digit| u8::try_from(digit).ok())
                    };
                    let (high, low) = (digit().ok_or(SyntaxError)?, digit().ok_or(SyntaxError)?);
                    octets.push(high << 4 | low);
                }
                octet @ b' '..=b'~' => octets.push(octet),
                _ => return Err(SyntaxError),
            }
        }
    }
}

/// At most 15 digits.
fn number(digits: &str) -> Read<i64> {
    digits.parse().map_err(|_| SyntaxError)
}

/// RFC 9110, section 5.6.2.
const fn is_token_octet(octet: u8) -> bool {
    octet.is_ascii_alphanumeric()
        || matches!(
            octet,
            b'!' | b'#' | b'$' | b'%' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

/// As section 4.2.7 requires: encoded with padding, decoded with or without, and whatever the bits that are left over.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// A dictionary: a member for each key, of a repeated one the last.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Dictionary<'a>(pub(super) Vec<(&'a str, Member<'a>)>);

/// A member of a dictionary.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Member<'a> {
    Item(Item<'a>),
    InnerList(InnerList<'a>),
}

/// A value with its parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Item<'a> {
    pub(super) value: BareItem<'a>,
    pub(super) parameters: Parameters<'a>,
}

/// A list within parentheses.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct InnerList<'a> {
    pub(super) items: Vec<Item<'a>>,
    pub(super) parameters: Parameters<'a>,
    /// The list and its parameters, as received.
    pub(super) raw: &'a str,
}

/// Parameters in their order, each key once: of a repeated one the last value, in the place of the first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Parameters<'a>(pub(super) Vec<(&'a str, BareItem<'a>)>);

/// A value without parameters.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum BareItem<'a> {
    Integer(i64),
    /// In thousandths.
    Decimal(i64),
    String(Cow<'a, str>),
    Token(&'a str),
    Bytes(Vec<u8>),
    Boolean(bool),
    Date(i64),
    DisplayString(String),
}

impl<'a> Dictionary<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&Member<'a>> {
        // Of a repeated key the last.
        self.0.iter().rev().find(|(found, _)| *found == key).map(|(_, member)| member)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&'a str, &Member<'a>)> {
        self.0.iter().map(|(key, member)| (*key, member))
    }
}

impl<'a> Parameters<'a> {
    pub(super) fn get(&self, key: &str) -> Option<&BareItem<'a>> {
        self.0.iter().find(|(found, _)| *found == key).map(|(_, value)| value)
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = &'a str> {
        self.0.iter().map(|(key, _)| *key)
    }

    pub(super) fn put(&mut self, key: &'a str, value: BareItem<'a>) {
        match self.0.iter_mut().find(|(found, _)| *found == key) {
            Some((_, old)) => *old = value,
            None => self.0.push((key, value)),
        }
    }
}

impl fmt::Display for Parameters<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|(key, value)| match value {
            BareItem::Boolean(true) => write!(f, ";{key}"),
            value => write!(f, ";{key}={value}"),
        })
    }
}

impl fmt::Display for Member<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Item(item) => write!(f, "{item}"),
            Self::InnerList(list) => write!(f, "{list}"),
        }
    }
}

impl fmt::Display for Item<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.value, self.parameters)
    }
}

impl fmt::Display for InnerList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (number, item) in self.items.iter().enumerate() {
            write!(f, "{}{item}", if number > 0 { " " } else { "" })?;
        }
        write!(f, "){}", self.parameters)
    }
}

impl BareItem<'_> {
    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub(super) const fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }
}

impl fmt::Display for BareItem<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(number) => write!(f, "{number}"),
            Self::Decimal(thousandths) => {
                let sign = if *thousandths < 0 { "-" } else { "" };
                let digits = format!("{:03}", thousandths.unsigned_abs() % 1000);
                let fraction = digits.trim_end_matches('0');
                let fraction = if fraction.is_empty() { "0" } else { fraction };
                write!(f, "{sign}{}.{fraction}", thousandths.unsigned_abs() / 1000)
            }
            Self::String(text) => {
                f.write_str("\"")?;
                for char in text.chars() {
                    write!(f, "{}{char}", if matches!(char, '"' | '\\') { "\\" } else { "" })?;
                }
                f.write_str("\"")
            }
            Self::Token(token) => f.write_str(token),
            Self::Bytes(bytes) => write!(f, ":{}:", Base64Display::new(bytes, &BASE64)),
            Self::Boolean(value) => f.write_str(if *value { "?1" } else { "?0" }),
            Self::Date(seconds) => write!(f, "@{seconds}"),
            Self::DisplayString(text) => {
                f.write_str("%\"")?;
                for octet in text.bytes() {
                    match octet {
                        b'%' | b'"' | ..=0x1F | 0x7F.. => write!(f, "%{octet:02x}")?,
                        _ => f.write_char(char::from(octet))?,
                    }
                }
                f.write_str("\"")
            }
        }
    }
}
