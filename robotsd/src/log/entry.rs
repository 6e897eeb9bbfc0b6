//! An event of the log, and its formats as one line of text or JSON.

use std::cell::RefCell;
use std::fmt::{Display, Write as _};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::event::{LogEvent, LogLevel};
use crate::config::LogFormat;
use crate::render;

/// Initial capacity for a line, in bytes. It is enough for nearly every line.
const LINE: usize = 640;

/// Declares an entry with its optional fields, in their order in JSON. `plain` marks values that
/// robotsd itself creates, which need no escaping.
macro_rules! fields {
    ($($(#[$about:meta])* $field:ident: $type:ty $([$kind:ident])?,)*) => {
        /// One event. Fields without a value are not written.
        #[derive(Clone, Debug)]
        pub(crate) struct LogEntry<'a> {
            /// Time of the event, since 1970.
            pub(crate) at: Duration,
            pub(crate) level: LogLevel,
            pub(crate) event: LogEvent,
            $($(#[$about])* pub(crate) $field: Option<$type>,)*
        }

        impl LogEntry<'_> {
            /// Creates an event with the current time and the usual level of its kind.
            pub(crate) fn now(event: LogEvent) -> Self {
                let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Self { at, level: event.level(), event, $($field: None,)* }
            }

            fn push_fields(&self, out: &mut String) {
                // The text between two values is concatenated at compile time, so that one call
                // writes it.
                $(fields!(@push $($kind)?)(out, concat!(",\"", stringify!($field), "\":"), self.$field.as_ref());)*
            }

            /// Calls `write` with the name and value of every field that has a value.
            fn each_field(&self, mut write: impl FnMut(&'static str, &dyn Display)) {
                $(if let Some(value) = &self.$field {
                    write(stringify!($field), value);
                })*
            }
        }
    };
    (@push) => { push_text };
    (@push plain) => { push_plain };
    (@push number) => { push_number };
}

fields! {
    request_id: &'a str,
    trace_id: &'a str,
    site: &'a str,
    host: &'a str,
    agent: &'a str,
    category: &'a str [plain],
    identity: &'a str [plain],
    identity_method: &'a str,
    identity_reason: &'a str,
    decision: &'a str [plain],
    reason: &'a str,
    /// The mode override that decides about the request.
    exception: String,
    would: &'a str [plain],
    grace_end: String [plain],
    /// The severity of a finding.
    severity: &'a str,
    /// The config key that has changed. `before` and `after` contain its values in the format of
    /// the config.
    setting: &'a str,
    before: &'a str,
    after: &'a str,
    /// When the change takes effect.
    applies: &'a str,
    status: u16 [number],
    /// The gRPC status of a refused call.
    grpc_status: u16 [number],
    group: &'a str,
    rule: &'a str,
    line: usize [number],
    /// The form of the path that matched, if it differs from the path that was sent.
    form: &'a str,
    robots_hash: String [plain],
    suspect_human: String,
    method: &'a str,
    path: String,
    address: String [plain],
    message: String,
}

/// Fields that are written after the others in the text format, because readers use them only to
/// find related lines. Only the message follows them.
const LAST_IN_TEXT: [&str; 3] = ["request_id", "trace_id", "robots_hash"];

thread_local! {
    /// The time of the last line, to the second, as a number and as text. For other lines within
    /// the same second, only the milliseconds are formatted.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

impl LogEntry<'_> {
    /// Returns the line with its line feed. `fields` are written in addition to the entry's own.
    pub(super) fn to_line(&self, format: LogFormat, fields: &[(&str, Option<&str>)]) -> String {
        let mut line = String::with_capacity(LINE);
        match format {
            LogFormat::Json => self.write_json(&mut line, fields),
            LogFormat::Text => self.write_text(&mut line, fields),
        }
        line.push('\n');
        line
    }

    /// Writes the line as JSON. A serializer would be slower, and every refused request has a line.
    fn write_json(&self, out: &mut String, fields: &[(&str, Option<&str>)]) {
        out.push_str("{\"ts\":\"");
        self.write_time(out);
        out.push('"');
        push_plain(out, ",\"level\":", Some(self.level.as_str()));
        push_plain(out, ",\"event\":", Some(self.event.as_str()));
        for (name, value) in fields {
            push_text(out, &format!(",\"{name}\":"), value.as_ref());
        }
        self.push_fields(out);
        out.push('}');
    }

    fn write_text(&self, out: &mut String, fields: &[(&str, Option<&str>)]) {
        self.write_time(out);
        let _ = write!(out, " {:<5} {}", self.level.as_str(), self.event.as_str());
        for (name, value) in fields {
            let _ = value.map(|value| write!(out, " {name}={}", quoted(value.to_owned())));
        }
        for are_last in [false, true] {
            self.each_field(|name, value| {
                if name != "message" && LAST_IN_TEXT.contains(&name) == are_last {
                    let _ = write!(out, " {name}={}", quoted(value.to_string()));
                }
            });
        }
        if let Some(message) = &self.message {
            let _ = write!(out, ": {}", render::printable(message));
        }
    }

    fn write_time(&self, out: &mut String) {
        let second = self.at.as_secs();
        SECOND.with_borrow_mut(|(last, text)| {
            if *last != second || text.is_empty() {
                *last = second;
                text.clear();
                let _ = write!(text, "{}", humantime::format_rfc3339_seconds(UNIX_EPOCH + self.at));
                // The zone is removed, because the milliseconds come before it.
                text.pop();
            }
            out.push_str(text);
        });
        out.push('.');
        let milliseconds = self.at.subsec_millis();
        out.extend([100, 10, 1].map(|place| char::from(b'0' + (milliseconds / place % 10) as u8)));
        out.push('Z');
    }
}

/// Writes a field if it has a value. This function is not inlined, because it is called for each
/// field, and most calls have no value to write.
#[inline(never)]
fn push_text(out: &mut String, key: &str, value: Option<&impl AsRef<str>>) {
    if let Some(value) = value {
        out.push_str(key);
        push_json(out, value.as_ref());
    }
}

#[inline(never)]
fn push_number(out: &mut String, key: &str, value: Option<&(impl itoa::Integer + Copy)>) {
    if let Some(value) = value {
        out.push_str(key);
        out.push_str(itoa::Buffer::new().format(*value));
    }
}

/// Writes a field whose value needs no escaping, if it has a value.
#[inline(never)]
fn push_plain(out: &mut String, key: &str, value: Option<impl AsRef<str>>) {
    if let Some(value) = value {
        let value = value.as_ref();
        debug_assert!(is_plain_ascii(value.as_bytes()), "{key}{value:?}");
        out.extend([key, "\"", value, "\""]);
    }
}

/// Writes a JSON string.
fn push_json(out: &mut String, text: &str) {
    if is_plain_ascii(text.as_bytes()) {
        out.extend(["\"", text, "\""]);
    } else {
        out.push_str(&render::json_text(text));
    }
}

/// Reports whether every byte is printable ASCII other than quote and backslash, so that `text`
/// needs no escapes in JSON. Checks eight bytes at a time without a branch per byte, because a line
/// contains many short strings.
fn is_plain_ascii(text: &[u8]) -> bool {
    const HIGH: u64 = u64::from_ne_bytes([0x80; 8]);
    let each = |octet| u64::from_ne_bytes([octet; 8]);
    // If all bytes are below 0x80, this sets the high bit of each byte that is zero. Bytes from
    // 0x80 on are not plain ASCII anyway.
    let zero = |word: u64| word.wrapping_sub(each(1)) & !word;
    let is_plain = |word: u64| {
        let special = zero(word ^ each(b'"')) | zero(word ^ each(b'\\')) | zero(word ^ each(0x7F));
        let control = word.wrapping_sub(each(b' '));
        (word | control | special) & HIGH == 0
    };
    let (words, rest) = text.as_chunks();
    let mut last = [b' '; 8];
    last[..rest.len()].copy_from_slice(rest);
    words.iter().chain([&last]).all(|word| is_plain(u64::from_ne_bytes(*word)))
}

/// Returns a value unchanged if it is a plain word. Otherwise puts it in quotes and escapes
/// non-printing characters.
fn quoted(value: String) -> String {
    let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '"' | '\\' | '=');
    if !value.is_empty() && value.chars().all(plain) { value } else { format!("{value:?}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_one_line_whatever_a_client_sends() {
        let entry = LogEntry {
            agent: Some("Evil\nBot \x1b[31m\""),
            path: Some("/a\r\nb\u{9b}31m\u{202e}".to_owned()),
            message: Some("x\ny".to_owned()),
            ..LogEntry::now(LogEvent::Refused)
        };
        for format in [LogFormat::Json, LogFormat::Text] {
            let line = entry.to_line(format, &[]);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert!(!line.trim_end().chars().any(|char| char.is_control() || char == '\u{202e}'), "{line:?}");
        }
    }

    #[test]
    fn plain_is_what_prints_and_is_neither_quote_nor_backslash() {
        for octet in 0..=u8::MAX {
            let plain = matches!(octet, b' '..=b'~') && octet != b'"' && octet != b'\\';
            for length in 1..=17 {
                for at in 0..length {
                    for filler in [b' ', b'~', b'!', b'#', b'[', b']'] {
                        let mut text = vec![filler; length];
                        text[at] = octet;
                        assert_eq!(is_plain_ascii(&text), plain, "{text:?}");
                    }
                }
            }
        }
        assert!(is_plain_ascii(b""));
    }

    #[test]
    fn json_escapes_what_it_writes() {
        let every: String = ('\0'..='\u{300}').chain('\u{2000}'..='\u{2100}').chain(['\u{1f916}']).collect();
        let entry = LogEntry {
            site: Some(&every),
            status: Some(403),
            line: Some(7),
            path: Some("/plain".to_owned()),
            ..LogEntry::now(LogEvent::Refused)
        };
        let line = entry.to_line(LogFormat::Json, &[]);
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(read["site"], *every);
        assert_eq!((&read["event"], &read["path"]), (&"refused".into(), &"/plain".into()));
        assert_eq!(read["level"], "info");
        assert_eq!((&read["status"], &read["line"]), (&403.into(), &7.into()));
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(7));
        assert!(read["ts"].as_str().is_some_and(|ts| ts.len() == "2026-01-01T00:00:00.000Z".len()));
    }
}
