//! Reading dictionaries and strings of structured fields, strictly (RFC 9651, section 4.2).
//!
//! By hand, because a signature is over the parameters exactly as received, and no crate says which octets a value was read
//! from. A property test compares this reader with the crate `sfv`.

use std::borrow::Cow;

use base64::Engine;

use super::structured_value::{BASE64, BareItem, Dictionary, InnerList, Item, Member, Parameters};

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
