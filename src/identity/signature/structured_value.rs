//! The values of structured fields (RFC 9651, section 3), and their one written form (section 4.1).

use std::borrow::Cow;

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

/// As section 4.2.7 requires: encoded with padding, decoded with or without, and whatever the bits that are left over.
pub(super) const BASE64: GeneralPurpose = GeneralPurpose::new(
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

    pub(super) fn write(&self, out: &mut String) {
        for (key, value) in &self.0 {
            out.push(';');
            out.push_str(key);
            if *value != BareItem::Boolean(true) {
                out.push('=');
                value.write(out);
            }
        }
    }
}

impl Member<'_> {
    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Item(item) => item.write(out),
            Self::InnerList(list) => list.write(out),
        }
    }
}

impl Item<'_> {
    pub(super) fn write(&self, out: &mut String) {
        self.value.write(out);
        self.parameters.write(out);
    }
}

impl InnerList<'_> {
    fn write(&self, out: &mut String) {
        out.push('(');
        for (number, item) in self.items.iter().enumerate() {
            if number > 0 {
                out.push(' ');
            }
            item.write(out);
        }
        out.push(')');
        self.parameters.write(out);
    }
}

impl BareItem<'_> {
    pub(super) fn as_str(&self) -> Option<&str> {
        if let Self::String(text) = self { Some(text) } else { None }
    }

    pub(super) const fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(number) = self { Some(*number) } else { None }
    }

    pub(super) fn write(&self, out: &mut String) {
        match self {
            Self::Integer(number) => out.push_str(&number.to_string()),
            Self::Decimal(thousandths) => {
                let sign = if *thousandths < 0 { "-" } else { "" };
                let digits = format!("{:03}", thousandths.unsigned_abs() % 1000);
                let fraction = digits.trim_end_matches('0');
                let fraction = if fraction.is_empty() { "0" } else { fraction };
                out.push_str(&format!("{sign}{}.{fraction}", thousandths.unsigned_abs() / 1000));
            }
            Self::String(text) => {
                out.push('"');
                for char in text.chars() {
                    if matches!(char, '"' | '\\') {
                        out.push('\\');
                    }
                    out.push(char);
                }
                out.push('"');
            }
            Self::Token(token) => out.push_str(token),
            Self::Bytes(bytes) => {
                out.push(':');
                BASE64.encode_string(bytes, out);
                out.push(':');
            }
            Self::Boolean(value) => out.push_str(if *value { "?1" } else { "?0" }),
            Self::Date(seconds) => {
                out.push('@');
                out.push_str(&seconds.to_string());
            }
            Self::DisplayString(text) => {
                out.push_str("%\"");
                for octet in text.bytes() {
                    match octet {
                        b'%' | b'"' | ..=0x1F | 0x7F.. => out.push_str(&format!("%{octet:02x}")),
                        _ => out.push(char::from(octet)),
                    }
                }
                out.push('"');
            }
        }
    }
}
