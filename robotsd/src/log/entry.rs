//! One event, as a line.

use std::fmt::Write as _;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::event::{LogEvent, LogLevel};
use crate::config::LogFormat;

/// Octets of nearly every line.
const LINE: usize = 640;

/// One event. Fields without a value are left out.
#[derive(Clone, Debug)]
pub(crate) struct LogEntry<'a> {
    /// When, counted from 1970.
    pub(crate) at: Duration,
    pub(crate) level: LogLevel,
    pub(crate) event: LogEvent,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) trace_id: Option<&'a str>,
    pub(crate) site: Option<&'a str>,
    pub(crate) agent: Option<&'a str>,
    pub(crate) category: Option<&'a str>,
    pub(crate) identity: Option<&'a str>,
    pub(crate) identity_method: Option<&'a str>,
    pub(crate) identity_reason: Option<&'a str>,
    pub(crate) decision: Option<&'a str>,
    pub(crate) reason: Option<&'a str>,
    pub(crate) would: Option<&'a str>,
    /// Of a finding.
    pub(crate) severity: Option<&'a str>,
    /// The key of the config that has another value, and both values as the config would spell them.
    pub(crate) setting: Option<&'a str>,
    pub(crate) before: Option<&'a str>,
    pub(crate) after: Option<&'a str>,
    /// When that takes effect.
    pub(crate) applies: Option<&'a str>,
    pub(crate) status: Option<u16>,
    /// Of the refusal of a call.
    pub(crate) grpc_status: Option<u16>,
    pub(crate) group: Option<&'a str>,
    pub(crate) rule: Option<&'a str>,
    pub(crate) line: Option<usize>,
    /// How the path was read, where that is not as it was sent.
    pub(crate) form: Option<&'a str>,
    pub(crate) robots_hash: Option<String>,
    pub(crate) suspect_human: Option<String>,
    pub(crate) method: Option<&'a str>,
    pub(crate) path: Option<String>,
    pub(crate) address: Option<String>,
    pub(crate) message: Option<String>,
}

impl LogEntry<'_> {
    /// An event that happens now, at its usual level.
    pub(crate) fn now(event: LogEvent) -> Self {
        Self {
            at: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default(),
            level: event.level(),
            event,
            request_id: None,
            trace_id: None,
            site: None,
            agent: None,
            category: None,
            identity: None,
            identity_method: None,
            identity_reason: None,
            decision: None,
            reason: None,
            would: None,
            severity: None,
            setting: None,
            before: None,
            after: None,
            applies: None,
            status: None,
            grpc_status: None,
            group: None,
            rule: None,
            line: None,
            form: None,
            robots_hash: None,
            suspect_human: None,
            method: None,
            path: None,
            address: None,
            message: None,
        }
    }

    /// The whole line, with its end.
    pub(super) fn to_line(&self, format: LogFormat) -> String {
        let mut line = String::with_capacity(LINE);
        match format {
            LogFormat::Json => self.write_json(&mut line),
            LogFormat::Text => self.write_text(&mut line),
        }
        line.push('\n');
        line
    }

    /// By hand, because every refused request has a line.
    fn write_json(&self, out: &mut String) {
        out.push_str("{\"ts\":\"");
        self.write_time(out);
        out.push('"');
        // What is written before each value, in one piece.
        macro_rules! key {
            ($name:literal) => {
                concat!(",\"", $name, "\":")
            };
        }
        push_field(out, key!("level"), Some(self.level.as_str()));
        push_field(out, key!("event"), Some(self.event.as_str()));
        push_field(out, key!("request_id"), self.request_id);
        push_field(out, key!("trace_id"), self.trace_id);
        push_field(out, key!("site"), self.site);
        push_field(out, key!("agent"), self.agent);
        push_field(out, key!("category"), self.category);
        push_field(out, key!("identity"), self.identity);
        push_field(out, key!("identity_method"), self.identity_method);
        push_field(out, key!("identity_reason"), self.identity_reason);
        push_field(out, key!("decision"), self.decision);
        push_field(out, key!("reason"), self.reason);
        push_field(out, key!("would"), self.would);
        push_field(out, key!("severity"), self.severity);
        push_field(out, key!("setting"), self.setting);
        push_field(out, key!("before"), self.before);
        push_field(out, key!("after"), self.after);
        push_field(out, key!("applies"), self.applies);
        push_number(out, key!("status"), self.status.map(usize::from));
        push_number(out, key!("grpc_status"), self.grpc_status.map(usize::from));
        push_field(out, key!("group"), self.group);
        push_field(out, key!("rule"), self.rule);
        push_number(out, key!("line"), self.line);
        push_field(out, key!("form"), self.form);
        push_field(out, key!("robots_hash"), self.robots_hash.as_deref());
        push_field(out, key!("suspect_human"), self.suspect_human.as_deref());
        push_field(out, key!("method"), self.method);
        push_field(out, key!("path"), self.path.as_deref());
        push_field(out, key!("address"), self.address.as_deref());
        push_field(out, key!("message"), self.message.as_deref());
        out.push('}');
    }

    fn write_text(&self, out: &mut String) {
        self.write_time(out);
        let _ = write!(out, " {:<5} {}", self.level.as_str(), self.event.as_str());
        let [status, grpc_status] =
            [self.status, self.grpc_status].map(|status| status.map(|status| status.to_string()));
        let number = self.line.map(|line| line.to_string());
        for (name, value) in [
            ("site", self.site),
            ("agent", self.agent),
            ("category", self.category),
            ("identity", self.identity),
            ("identity_method", self.identity_method),
            ("identity_reason", self.identity_reason),
            ("decision", self.decision),
            ("reason", self.reason),
            ("would", self.would),
            ("severity", self.severity),
            ("setting", self.setting),
            ("before", self.before),
            ("after", self.after),
            ("applies", self.applies),
            ("status", status.as_deref()),
            ("grpc_status", grpc_status.as_deref()),
            ("group", self.group),
            ("rule", self.rule),
            ("line", number.as_deref()),
            ("form", self.form),
            ("suspect_human", self.suspect_human.as_deref()),
            ("method", self.method),
            ("path", self.path.as_deref()),
            ("address", self.address.as_deref()),
            ("request_id", self.request_id),
            ("trace_id", self.trace_id),
            ("robots_hash", self.robots_hash.as_deref()),
        ] {
            if let Some(value) = value {
                let _ = write!(out, " {name}={}", quoted(value));
            }
        }
        if let Some(message) = &self.message {
            let shown = |char: char| if is_plain(char) { char.to_string() } else { char.escape_debug().to_string() };
            let printable: String = message.chars().map(shown).collect();
            let _ = write!(out, ": {printable}");
        }
    }

    fn write_time(&self, out: &mut String) {
        let _ = write!(out, "{}", humantime::format_rfc3339_millis(UNIX_EPOCH + self.at));
    }
}

/// Writes a field, if it has a value. Not inlined: there are many, and most lines have half of them.
#[inline(never)]
fn push_field(out: &mut String, key: &str, value: Option<&str>) {
    if let Some(value) = value {
        out.push_str(key);
        push_json(out, value);
    }
}

fn push_number(out: &mut String, key: &str, value: Option<usize>) {
    if let Some(value) = value {
        out.push_str(key);
        out.push_str(itoa::Buffer::new().format(value));
    }
}

/// A text in quotes, with everything escaped that is no part of a line of plain text.
fn push_json(out: &mut String, text: &str) {
    out.push('"');
    let plain = |byte: &u8| matches!(byte, b' '..=b'~') & (*byte != b'"') & (*byte != b'\\');
    // Eight at a time, without a branch for each.
    let (words, rest) = text.as_bytes().as_chunks::<8>();
    if words.iter().all(|word| word.iter().fold(true, |all, byte| all & plain(byte))) && rest.iter().all(plain) {
        out.push_str(text);
    } else {
        for char in text.chars() {
            match char {
                '"' => out.push_str("\\\""),
                '\\' => out.push_str("\\\\"),
                '\u{8}' => out.push_str("\\b"),
                '\t' => out.push_str("\\t"),
                '\n' => out.push_str("\\n"),
                '\u{c}' => out.push_str("\\f"),
                '\r' => out.push_str("\\r"),
                '\0'..'\u{20}' => push_escape(out, char),
                _ if speaks(char) => push_escape(out, char),
                _ => out.push(char),
            }
        }
    }
    out.push('"');
}

fn push_escape(out: &mut String, char: char) {
    let _ = write!(out, "\\u{:04x}", u32::from(char));
}

/// Whether JSON lets a character stand that terminals act upon: controls from 0x7F, and marks that turn the direction
/// of text.
fn speaks(char: char) -> bool {
    matches!(char,
        '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// JSON in which terminals find nothing to act upon either.
pub(super) fn escaped(json: String) -> String {
    if json.bytes().all(|byte| byte < 0x7F) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        if speaks(char) { push_escape(&mut out, char) } else { out.push(char) }
    }
    out
}

/// Quotes are plain in a message; what a terminal acts upon is not.
fn is_plain(char: char) -> bool {
    matches!(char, '"' | '\'' | '\\') || char.escape_debug().len() == 1
}

/// A plain word as it is, anything else in quotes with what does not print escaped.
fn quoted(value: &str) -> String {
    let plain = |char: char| char.is_ascii_graphic() && !matches!(char, '"' | '\\' | '=');
    if !value.is_empty() && value.chars().all(plain) { value.to_owned() } else { format!("{value:?}") }
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
            let line = entry.to_line(format);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert!(!line.trim_end().chars().any(|char| char.is_control() || char == '\u{202e}'), "{line:?}");
        }
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
        let line = entry.to_line(LogFormat::Json);
        let read: serde_json::Value = serde_json::from_str(&line).expect("JSON");
        assert_eq!(read["site"], *every);
        assert_eq!((&read["event"], &read["path"]), (&"refused".into(), &"/plain".into()));
        assert_eq!(read["level"], "info");
        assert_eq!((&read["status"], &read["line"]), (&403.into(), &7.into()));
        assert_eq!(read.as_object().map(serde_json::Map::len), Some(7));
        assert!(read["ts"].as_str().is_some_and(|ts| ts.len() == "2026-01-01T00:00:00.000Z".len()));
    }
}
