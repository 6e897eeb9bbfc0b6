//! The combined log format, as log analysers read it.
//!
//! `address - - [time] "request" status octets "referer" "agent"`, and then in the same manner, in quotes and with `-`
//! for what is not there: the site, what was done about what robots.txt disallows, and the request's id. Quotes, backslashes, controls and octets
//! from 0x80 are written `\xHH`, as nginx does, so a line stays a line and a field a field.

use std::io::Write as _;

use super::status::status;
use crate::date;
use crate::edge::{AccessRecord, AccessValue};
use crate::log::privacy::LogPrivacy;

pub(super) fn line(record: &AccessRecord, privacy: LogPrivacy, out: &mut Vec<u8>) {
    let address = privacy.network(record.peer.ip()).map_or_else(|| "-".to_owned(), |address| address.to_string());
    let target = privacy.target(&record.target);
    let _ = write!(out, "{address} - - [{}] \"{} ", time(record), record.method);
    escape(target.as_bytes(), out);
    let _ = write!(out, " {:?}\" {} {}", record.version, status(record), record.sent);
    let referer = record.referer.as_ref().map(|value| privacy.target(&String::from_utf8_lossy(value.as_bytes())));
    quote(referer.as_ref().map(String::as_bytes), out);
    quote(record.user_agent.as_ref().map(|value| value.as_bytes()), out);
    let note = |wanted: &str| {
        record.notes.iter().find_map(|(name, value)| match value {
            AccessValue::Text(text) if *name == wanted => Some(text.as_bytes()),
            _ => None,
        })
    };
    quote(note("site"), out);
    quote(note("action"), out);
    quote(Some(record.id.as_str().as_bytes()), out);
    out.push(b'\n');
}

/// `21/Nov/2026:06:25:38 +0000`
fn time(record: &AccessRecord) -> String {
    // `Sat, 21 Nov 2026 06:25:38 GMT`
    let date = date::http(record.at);
    let mut words = date.split(' ').skip(1);
    let mut word = || words.next().unwrap_or_default();
    format!("{}/{}/{}:{} +0000", word(), word(), word(), word())
}

fn quote(value: Option<&[u8]>, out: &mut Vec<u8>) {
    out.extend_from_slice(b" \"");
    match value {
        Some(value) if !value.is_empty() => escape(value, out),
        _ => out.push(b'-'),
    }
    out.push(b'"');
}

fn escape(value: &[u8], out: &mut Vec<u8>) {
    for octet in value {
        match octet {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                let _ = write!(out, "\\x{octet:02X}");
            }
            _ => out.push(*octet),
        }
    }
}
