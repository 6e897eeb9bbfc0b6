//! The log: one line an event, written by a thread of its own. [`access`] is the log of requests.
//!
//! Every field from a request is escaped, so that one event is one line whatever a client sends.

mod access;
mod privacy;

pub(crate) use self::access::AccessLog;
pub(crate) use self::privacy::Privacy;

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant, SystemTime};

use serde::Serialize;

use crate::config::LogFormat;

/// Lines that wait to be written; when it is full a line is dropped and counted, so that a slow disk slows no request.
const QUEUE: usize = 4096;

/// How long lines may wait for others to be written with: far below what anybody who watches the log would notice, and
/// too short for the queue to fill at any rate a core can refuse at.
const PAUSE: Duration = Duration::from_millis(5);

/// Octets that are written at once.
const BLOCK: usize = 64 * 1024;

/// Writes events. Cheap to clone; the thread ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    format: LogFormat,
    lines: SyncSender<Message>,
    dropped: Arc<AtomicU64>,
}

enum Message {
    Line(String),
    Flush(SyncSender<()>),
}

/// One event. Fields without a value are left out.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Entry<'a> {
    pub(crate) ts: String,
    pub(crate) event: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) request_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) site: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) category: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) identity: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) decision: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) status: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) group: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rule: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) robots_hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) suspect_human: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) method: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) address: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) message: Option<String>,
}

impl Log {
    pub(crate) fn start(format: LogFormat) -> Self {
        let (lines, queue) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = dropped.clone();
        std::thread::spawn(move || write_all(format, &queue, &lost));
        Self { format, lines, dropped }
    }

    pub(crate) fn write(&self, entry: &Entry<'_>) {
        let line = entry.line(self.format);
        if let Err(TrySendError::Full(_)) = self.lines.try_send(Message::Line(line)) {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn say(&self, event: &str, message: impl Into<String>) {
        self.write(&Entry { event, message: Some(message.into()), ..Entry::now() });
    }

    /// Waits until everything written so far is out, but not for a reader that has stopped reading.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        let deadline = Instant::now() + Duration::from_secs(1);
        let mut message = Message::Flush(done);
        while let Err(TrySendError::Full(back)) = self.lines.try_send(message) {
            if Instant::now() > deadline {
                return;
            }
            std::thread::sleep(Duration::from_millis(10));
            message = back;
        }
        let _ = wait.recv_timeout(deadline.saturating_duration_since(Instant::now()));
    }
}

/// Writes until the last sender is gone, everything that came within a [`PAUSE`] at once.
fn write_all(format: LogFormat, queue: &Receiver<Message>, lost: &AtomicU64) {
    let mut block = String::new();
    let mut flushed = Vec::new();
    while let Ok(first) = queue.recv() {
        let mut next = Some(first);
        let mut is_hurried = false;
        while let Some(message) = next {
            match message {
                Message::Line(line) => block.push_str(&line),
                Message::Flush(done) => {
                    flushed.push(done);
                    is_hurried = true;
                }
            }
            next = if block.len() < BLOCK { queue.try_recv().ok() } else { None };
        }
        let lost = lost.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let entry = Entry {
                event: "log-overflow",
                message: Some(format!("{lost} lines were not written: the log is slower than the events")),
                ..Entry::now()
            };
            block.push_str(&entry.line(format));
        }
        let mut out = std::io::stdout().lock();
        // A closed standard output is no reason to stop serving.
        let _ = out.write_all(block.as_bytes()).and_then(|()| out.flush());
        drop(out);
        block.clear();
        for done in flushed.drain(..) {
            let _ = done.send(());
        }
        // A thread that waits for a message has to be woken by whoever sends one, which costs a request more than the
        // line itself. One that sleeps finds all of them at once.
        if !is_hurried {
            std::thread::sleep(PAUSE);
        }
    }
}

impl Entry<'_> {
    pub(crate) fn now() -> Self {
        Self { ts: humantime::format_rfc3339_millis(SystemTime::now()).to_string(), ..Self::default() }
    }

    fn line(&self, format: LogFormat) -> String {
        let mut line = match format {
            LogFormat::Json => escaped(serde_json::to_string(self).unwrap_or_default()),
            LogFormat::Text => self.text(),
        };
        line.push('\n');
        line
    }

    fn text(&self) -> String {
        let mut out = format!("{} {}", self.ts, self.event);
        let status = self.status.map(|status| status.to_string());
        let number = self.line.map(|line| line.to_string());
        for (name, value) in [
            ("site", self.site),
            ("agent", self.agent),
            ("category", self.category),
            ("identity", self.identity),
            ("decision", self.decision),
            ("reason", self.reason),
            ("status", status.as_deref()),
            ("group", self.group),
            ("rule", self.rule),
            ("line", number.as_deref()),
            ("suspect_human", self.suspect_human.as_deref()),
            ("method", self.method),
            ("path", self.path.as_deref()),
            ("address", self.address.as_deref()),
            ("request_id", self.request_id),
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
        out
    }
}

/// Quotes are plain in a message; what a terminal acts upon is not.
fn is_plain(char: char) -> bool {
    matches!(char, '"' | '\'' | '\\') || char.escape_debug().len() == 1
}

/// JSON escapes controls below 0x20 only; others, and marks that turn the direction of text, speak to terminals too.
fn escaped(json: String) -> String {
    if json.bytes().all(|byte| byte < 0x7F) {
        return json;
    }
    let mut out = String::with_capacity(json.len());
    for char in json.chars() {
        match char {
            '\u{7f}'..='\u{9f}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {
                let _ = write!(out, "\\u{:04x}", u32::from(char));
            }
            _ => out.push(char),
        }
    }
    out
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
        let entry = Entry {
            event: "refused",
            agent: Some("Evil\nBot \x1b[31m\""),
            path: Some("/a\r\nb\u{9b}31m\u{202e}".to_owned()),
            message: Some("x\ny".to_owned()),
            ..Entry::now()
        };
        for format in [LogFormat::Json, LogFormat::Text] {
            let line = entry.line(format);
            assert_eq!(line.matches('\n').count(), 1, "{line}");
            assert!(!line.trim_end().chars().any(|char| char.is_control() || char == '\u{202e}'), "{line:?}");
        }
    }
}
