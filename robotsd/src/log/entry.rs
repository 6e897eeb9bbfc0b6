//! Formats a line of the event log as text or JSON.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tower_robots::internals::is_plain_ascii;

use super::event::{LogEvent, LogLevel};
use crate::config::LogFormat;
use crate::render;

/// Initial capacity for a line, in bytes; nearly every line is shorter.
const LINE: usize = 640;

/// Declares the optional fields of an entry, in the order of the output in both formats. `plain`
/// marks values that need no escaping, because robotsd itself creates them.
macro_rules! fields {
    ($($(#[$about:meta])* $field:ident: $type:ty $([$kind:ident])?,)*) => {
        /// One event. Fields that are `None` are not written.
        #[derive(Clone, Debug)]
        pub(crate) struct LogEntry<'a> {
            /// Time of the event, since the Unix epoch.
            pub(crate) at: Duration,
            pub(crate) level: LogLevel,
            pub(crate) event: LogEvent,
            $($(#[$about])* pub(crate) $field: Option<$type>,)*
        }

        impl LogEntry<'_> {
            pub(crate) fn now(event: LogEvent) -> Self {
                let at = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Self { at, level: event.level(), event, $($field: None,)* }
            }

            fn push_fields(&self, line: &mut Line) {
                // The text around the field name is concatenated at compile time.
                $(fields!(@push $($kind)?)(
                    line,
                    &FieldName {
                        json: concat!(",\"", stringify!($field), "\":"),
                        text: concat!(" ", stringify!($field), "="),
                    },
                    self.$field.as_ref(),
                );)*
            }
        }
    };
    (@push) => { push_text };
    (@push plain) => { push_plain };
    (@push number) => { push_number };
    (@push message) => { push_message };
}

fields! {
    site: &'a str,
    host: &'a str,
    agent: &'a str,
    category: &'a str [plain],
    identity: &'a str [plain],
    identity_method: &'a str,
    identity_reason: &'a str,
    decision: &'a str [plain],
    reason: &'a str,
    /// The exception that applies to this request instead of the site's mode.
    exception: String,
    would: &'a str [plain],
    grace_end: String [plain],
    severity: &'a str,
    /// The changed key of the config. `before` and `after` are the old and the new value of the
    /// key, in TOML.
    setting: &'a str,
    before: &'a str,
    after: &'a str,
    /// When the change takes effect.
    applies: &'a str,
    status: u16 [number],
    grpc_status: u16 [number],
    group: &'a str,
    rule: &'a str,
    line: usize [number],
    /// The path form that matched the deciding rule, if this form differs from the path in the
    /// request.
    form: &'a str,
    suspect_human: String,
    method: &'a str,
    path: Cow<'a, str>,
    address: String [plain],
    // These fields come last, because readers use them only to find related lines.
    request_id: &'a str,
    trace_id: &'a str,
    robots_hash: String [plain],
    message: String [message],
}

thread_local! {
    /// Time of the last line, in whole seconds, as a number and as text. Later lines within the
    /// same second reuse the text.
    static SECOND: RefCell<(u64, String)> = const { RefCell::new((0, String::new())) };
}

impl LogEntry<'_> {
    /// Returns the line with its line feed. `fields` are additional fields.
    ///
    /// No serializer is used, because every refused request is logged, so this function must be
    /// fast.
    pub(super) fn to_line(&self, format: LogFormat, fields: &[(&str, Option<&str>)]) -> String {
        let mut line = Line { out: String::with_capacity(LINE), format };
        self.push_start(&mut line);
        for (name, value) in fields {
            let (json, text) = (&*format!(",\"{name}\":"), &*format!(" {name}="));
            push_text(&mut line, &FieldName { json, text }, value.as_ref());
        }
        self.push_fields(&mut line);
        line.out.push_str(if format == LogFormat::Json { "}\n" } else { "\n" });
        line.out
    }

    fn push_start(&self, Line { out, format }: &mut Line) {
        let (level, event) = (self.level.as_str(), self.event.as_str());
        match format {
            LogFormat::Json => {
                out.push_str("{\"ts\":\"");
                self.write_time(out);
                out.extend(["\",\"level\":\"", level, "\",\"event\":\"", event, "\""]);
            }
            LogFormat::Text => {
                self.write_time(out);
                let _ = write!(out, " {level:<5} {event}");
            }
        }
    }

    fn write_time(&self, out: &mut String) {
        let second = self.at.as_secs();
        SECOND.with_borrow_mut(|(last, text)| {
            if *last != second || text.is_empty() {
                *last = second;
                text.clear();
                let _ = write!(text, "{}", humantime::format_rfc3339_seconds(UNIX_EPOCH + self.at));
                // Removes the time zone, which must follow the milliseconds.
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

struct Line {
    out: String,
    format: LogFormat,
}

struct FieldName<'n> {
    json: &'n str,
    text: &'n str,
}

/// Writes a field if it has a value. This function is not inlined, because it is called for every
/// field, and most fields have no value.
#[inline(never)]
fn push_text(line: &mut Line, name: &FieldName<'_>, value: Option<&impl AsRef<str>>) {
    let Some(value) = value.map(AsRef::as_ref) else { return };
    if line.format == LogFormat::Json && !is_plain_ascii(value.as_bytes()) {
        line.out.push_str(name.json);
        line.out.push_str(&render::json_text(value));
    } else {
        push_unescaped(line, name, value);
    }
}

/// Writes a field whose value needs no escaping in JSON. Writes nothing for `None`.
#[inline(never)]
fn push_plain(line: &mut Line, name: &FieldName<'_>, value: Option<&impl AsRef<str>>) {
    if let Some(value) = value.map(AsRef::as_ref) {
        debug_assert!(is_plain_ascii(value.as_bytes()), "{name}{value:?}", name = name.json);
        push_unescaped(line, name, value);
    }
}

fn push_unescaped(Line { out, format }: &mut Line, name: &FieldName<'_>, value: &str) {
    match format {
        LogFormat::Json => {
            out.push_str(name.json);
            out.push('"');
            out.push_str(value);
            out.push('"');
        }
        LogFormat::Text => {
            out.push_str(name.text);
            push_word(out, value);
        }
    }
}

#[inline(never)]
fn push_number(Line { out, format }: &mut Line, name: &FieldName<'_>, value: Option<&(impl itoa::Integer + Copy)>) {
    if let Some(value) = value {
        out.push_str(if *format == LogFormat::Json { name.json } else { name.text });
        out.push_str(itoa::Buffer::new().format(*value));
    }
}

/// Writes the message. In the text format, the message has no field name.
fn push_message(line: &mut Line, name: &FieldName<'_>, message: Option<&String>) {
    match (line.format, message) {
        (LogFormat::Text, Some(message)) => line.out.extend([": ", &render::printable(message)]),
        _ => push_text(line, name, message),
    }
}

/// Writes a value of the text format. A value that is not a plain word is put in quotes, with
/// escapes for characters that do not print.
fn push_word(out: &mut String, value: &str) {
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b'=');
    if !value.is_empty() && value.bytes().all(is_plain) {
        out.push_str(value);
    } else {
        let _ = write!(out, "{value:?}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_event_is_one_printable_line_regardless_of_what_a_client_sends() {
        let entry = LogEntry {
            agent: Some("Evil\nBot \x1b[31m\""),
            path: Some("/a\r\nb\u{9b}31m\u{202e}".into()),
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
    fn json_log_lines_are_valid_json_for_every_character() {
        let every: String = ('\0'..='\u{300}').chain('\u{2000}'..='\u{2100}').chain(['\u{1f916}']).collect();
        let entry = LogEntry {
            site: Some(&every),
            status: Some(403),
            line: Some(7),
            path: Some("/plain".into()),
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
