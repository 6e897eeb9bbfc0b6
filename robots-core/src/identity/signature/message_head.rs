//! The head of a request, with the data that a signature can cover. This module does not depend on
//! any HTTP library.

use std::borrow::Cow;

use crate::rules::{Authority, Port};

/// Access to the header fields of a request, independent of the HTTP library.
pub trait FieldLines {
    /// Calls `each` with the value of every line of a field, in order. `name` must be in lower
    /// case.
    fn for_each_line(&self, name: &str, each: &mut dyn FnMut(&[u8]));
}

impl<N: AsRef<str>, V: AsRef<[u8]>> FieldLines for &[(N, V)] {
    fn for_each_line(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        let lines = self.iter().filter(|(found, _)| found.as_ref().eq_ignore_ascii_case(name));
        lines.for_each(|(_, value)| each(value.as_ref()));
    }
}

/// The head of a request as the client sent it. A signature can cover any part of the head.
///
/// `target` is the target in the request line, or the value of `:path` in HTTP/2. `authority` is
/// the value of `:authority`, the authority in an absolute target, or the value of `Host`. `scheme`
/// is the scheme that the client used. If a proxy terminates TLS, `scheme` is `https`.
#[derive(Clone, Copy)]
pub struct MessageHead<'a> {
    pub(super) method: &'a str,
    pub(super) scheme: &'a str,
    pub(super) authority: Option<&'a str>,
    pub(super) target: &'a str,
    fields: &'a dyn FieldLines,
}

impl<'a> MessageHead<'a> {
    /// Creates the head of a request.
    pub fn new(
        method: &'a str,
        scheme: &'a str,
        authority: Option<&'a str>,
        target: &'a str,
        fields: &'a dyn FieldLines,
    ) -> Self {
        Self { method, scheme, authority, target, fields }
    }

    /// Returns the value of a field: its lines, trimmed and joined with `, `. `None` if the request
    /// does not have the field, and [`FieldValue::OtherBytes`] if the value has bytes that a
    /// signature base cannot contain.
    pub(super) fn field(&self, name: &str) -> Option<FieldValue> {
        let mut value: Option<String> = None;
        let mut is_text = true;
        self.fields.for_each_line(name, &mut |line| {
            let line = trimmed(line);
            let is_fine = |byte: &u8| matches!(byte, b'\t' | b' '..=b'~');
            match std::str::from_utf8(line) {
                Ok(line) if line.bytes().all(|byte| is_fine(&byte)) => match &mut value {
                    Some(value) => {
                        value.push_str(", ");
                        value.push_str(line);
                    }
                    None => value = Some(line.to_owned()),
                },
                _ => {
                    is_text = false;
                    value.get_or_insert_default();
                }
            }
        });
        value.map(|value| if is_text { FieldValue::Text(value) } else { FieldValue::OtherBytes })
    }

    /// Returns the value of a field. `None` if the field is missing, or if its value contains bytes
    /// that a signature base cannot contain.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        match self.field(name)? {
            FieldValue::Text(value) => Some(value),
            FieldValue::OtherBytes => None,
        }
    }

    /// Reports whether a field has this value. Compares line by line, without joining the lines in
    /// memory.
    pub(super) fn has_text(&self, name: &str, value: &str) -> bool {
        let mut rest = Some(value.as_bytes());
        let mut is_first = true;
        self.fields.for_each_line(name, &mut |line| {
            let between: &[u8] = if is_first { b"" } else { b", " };
            rest = rest.and_then(|rest| rest.strip_prefix(between)?.strip_prefix(trimmed(line)));
            is_first = false;
        });
        !is_first && rest.is_some_and(<[u8]>::is_empty)
    }

    pub(super) fn for_each_line(&self, name: &str, each: &mut dyn FnMut(&[u8])) {
        self.fields.for_each_line(name, each);
    }

    pub(in crate::identity) fn names_signer(&self) -> bool {
        let mut is_named = false;
        self.fields.for_each_line("signature-agent", &mut |_| is_named = true);
        is_named
    }

    pub(super) fn scheme(&self) -> String {
        self.scheme.to_ascii_lowercase()
    }

    /// Returns the authority in lower case, without the default port of the scheme (RFC 9421,
    /// section 2.2.3).
    pub(super) fn authority(&self) -> Option<String> {
        let authority = self.authority.filter(|authority| !authority.is_empty())?;
        let split = Authority::of_host_field(authority.as_bytes());
        let default = if self.scheme.eq_ignore_ascii_case("https") { 443 } else { 80 };
        let shown = match split.port {
            Port::Empty => std::str::from_utf8(split.host).ok()?,
            Port::Number(port) if port == default => std::str::from_utf8(split.host).ok()?,
            _ => authority,
        };
        Some(shown.to_ascii_lowercase())
    }

    /// Returns the path and the query of the target. An empty path is returned as `/`.
    pub(super) fn path_and_query(&self) -> (&'a str, Option<&'a str>) {
        let target = self.target.split('#').next().unwrap_or_default();
        // An absolute target begins with its scheme (RFC 9112, section 3.2.2).
        let target = match target.split_once("://") {
            Some((scheme, rest)) if !scheme.contains(['/', '?']) => {
                &rest[rest.find(['/', '?']).unwrap_or(rest.len())..]
            }
            _ => target,
        };
        let (path, query) = target.split_once('?').map_or((target, None), |(path, query)| (path, Some(query)));
        (if path.is_empty() { "/" } else { path }, query)
    }

    pub(super) fn target_uri(&self) -> Option<String> {
        let (path, query) = self.path_and_query();
        let query = query.map_or(Cow::Borrowed(""), |query| Cow::Owned(format!("?{query}")));
        Some(format!("{}://{}{path}{query}", self.scheme(), self.authority()?))
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FieldValue {
    Text(String),
    /// The field value has bytes that a signature base cannot contain. A signature base is ASCII,
    /// and a line feed ends a component (RFC 9421, section 2.5).
    OtherBytes,
}

fn trimmed(mut line: &[u8]) -> &[u8] {
    while let [b' ' | b'\t', rest @ ..] | [rest @ .., b' ' | b'\t'] = line {
        line = rest;
    }
    line
}

crate::debug_as!(|it| MessageHead::<'_> {
    method: it.method,
    scheme: it.scheme,
    authority: it.authority,
    target: it.target
});
