//! The access log: one line per request, in the combined format or as JSON. A separate thread
//! formats and writes the lines.
//!
//! Workers only send the data of each request to the writing thread. If this thread cannot keep up,
//! lines are dropped and counted, so that a slow disk does not slow down requests. Requests that
//! are not valid HTTP appear only in the event log, as connection errors, because hyper answers
//! these requests itself.
//!
//! The combined format is the one that log analysers expect: `address - - [time] "request" status
//! bytes "referer" "agent"`. Three more fields follow, each in quotes: the site, the action if the
//! robots.txt disallows the request, and the ID of the request. A missing value is written as `-`.
//! Quotes, backslashes, control characters and bytes from 0x80 are written as `\xHH`, as in nginx,
//! so that lines and fields cannot be forged.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use parking_lot::Mutex;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use tower_robots::internals::is_cut;

use super::{Log, LogEvent, LogPrivacy, LostLines};
use crate::config::{AccessFormat, AccessSettings};
use crate::date;
use crate::edge::{AccessRecord, OnAccess};
use crate::render;

/// Maximum number of requests that wait for the writing thread.
const QUEUE: usize = 16 * 1024;

/// Maximum total size of the lines that are collected before a write to the log, in bytes. If no
/// request is queued, even a single line is written immediately.
const BLOCK: usize = 64 * 1024;

/// Sends each request to the writing thread. Cheap to clone. The thread ends when the last clone is
/// dropped.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    queue: SyncSender<WriterMessage>,
    pub(crate) lost: Arc<LostLines>,
}

enum WriterMessage {
    Record(Box<AccessRecord>),
    Reopen,
    Flush(SyncSender<()>),
}

impl AccessLog {
    /// Opens the log and starts the thread. Later errors are reported to `log`.
    pub(crate) fn start(settings: &AccessSettings, privacy: LogPrivacy, log: Log) -> Result<Self, String> {
        let path = settings.path.clone();
        let (queue, messages) = sync_channel(QUEUE);
        let lost = Arc::<LostLines>::default();
        // The event log also writes to standard output. The two logs therefore share `is_cut`,
        // which records whether the last line on standard output is incomplete.
        let is_cut = if path.is_some() { Arc::default() } else { log.queue.0.is_cut.clone() };
        let sink = open_sink(path.as_deref(), &is_cut)?;
        let writer = Writer {
            format: settings.format,
            privacy,
            path,
            sink,
            is_cut,
            log,
            lines: Vec::with_capacity(BLOCK),
            lost_lines: lost.clone(),
        };
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.run(&messages))
            .map_err(|error| format!("no thread could be started for the access log: {error}"))?;
        Ok(Self { queue, lost })
    }

    /// Returns the observer that the edge calls for each request.
    pub(crate) fn observer(&self) -> OnAccess {
        let log = self.clone();
        Arc::new(move |record| {
            if let Err(TrySendError::Full(_)) = log.queue.try_send(WriterMessage::Record(record)) {
                log.lost.dropped.fetch_add(1, Ordering::Relaxed);
                log.lost.count.fetch_add(1, Ordering::Relaxed);
            }
        })
    }

    /// Makes the thread open the file again, which is necessary after log rotation.
    pub(crate) fn reopen(&self) {
        // A full queue drops this message. This is acceptable, because the next rotation reopens
        // the file.
        let _ = self.queue.try_send(WriterMessage::Reopen);
    }

    /// Waits until all queued lines are written, but at most one second.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        if self.queue.try_send(WriterMessage::Flush(done)).is_ok() {
            let _ = wait.recv_timeout(Duration::from_secs(1));
        }
    }
}

struct Writer {
    format: AccessFormat,
    privacy: LogPrivacy,
    /// The path of the log; `None` for standard output.
    path: Option<PathBuf>,
    sink: Box<dyn Write + Send>,
    /// Whether the last line that was written may be incomplete.
    is_cut: Arc<Mutex<bool>>,
    log: Log,
    lines: Vec<u8>,
    lost_lines: Arc<LostLines>,
}

impl Writer {
    fn run(mut self, messages: &Receiver<WriterMessage>) {
        loop {
            let message = messages.try_recv().or_else(|_| {
                // No message is queued, so the collected lines are written now, to be visible
                // immediately.
                self.write();
                messages.recv_timeout(Duration::from_secs(1))
            });
            match message {
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
                Ok(WriterMessage::Record(record)) => {
                    match self.format {
                        AccessFormat::Combined => write_combined(&record, self.privacy, &mut self.lines),
                        AccessFormat::Json => write_json(&record, self.privacy, &mut self.lines),
                    }
                    if self.lines.len() >= BLOCK {
                        self.write();
                    }
                }
                Ok(WriterMessage::Reopen) => {
                    self.write();
                    match open_sink(self.path.as_deref(), &self.is_cut) {
                        Ok(sink) => self.sink = sink,
                        Err(message) => {
                            let message =
                                format!("{message}; lines are still written to the file that was open before");
                            self.log.write_message(LogEvent::AccessLog, message);
                        }
                    }
                }
                Ok(WriterMessage::Flush(done)) => {
                    self.write();
                    let _ = done.send(());
                }
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let dropped = self.lost_lines.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let message =
                format!("{dropped} requests were not logged: the log could not be written as fast as requests ended");
            self.log.write_message(LogEvent::AccessLog, message);
        }
        if self.lines.is_empty() && self.lost_lines.problem().is_none() {
            return;
        }
        let name = self.path.as_ref().map_or("standard output".into(), |path| path.to_string_lossy());
        if let Some((level, message)) = self.lost_lines.write(&mut self.sink, &self.is_cut, &name, &self.lines) {
            self.log.write_message_at(level, LogEvent::AccessLog, message);
        }
        self.lines.clear();
    }
}

/// Opens the log. If the log is a file, records in `last_is_cut` whether the last line of the file
/// is incomplete, for example because the disk was full before a restart.
fn open_sink(path: Option<&Path>, last_is_cut: &Mutex<bool>) -> Result<Box<dyn Write + Send>, String> {
    let Some(path) = path else { return Ok(Box::new(io::stdout())) };
    let file = open(path).map_err(|error| format!("{}: the access log cannot be opened: {error}", path.display()))?;
    if file.metadata().is_ok_and(|opened| opened.is_file()) {
        *last_is_cut.lock() = File::open(path).and_then(|mut file| is_cut(&mut file)).unwrap_or(false);
    }
    Ok(Box::new(file))
}

/// Opens a file or a pipe without blocking. A blocking open would hang until the pipe has a reader.
/// Later writes may block.
fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
    use std::os::unix::fs::OpenOptionsExt as _;
    let opened = OpenOptions::new().create(true).append(true).custom_flags(libc::O_NONBLOCK).open(path);
    let file = opened.map_err(|error| match error.raw_os_error() {
        Some(libc::ENXIO) => io::Error::new(
            error.kind(),
            "the path is a socket, or a pipe that no program reads: if it is a pipe, start the program that reads it \
             first",
        ),
        _ => error,
    })?;
    fcntl_setfl(&file, fcntl_getfl(&file)? - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Status in the log if the client disconnected before the response, as in nginx. robotsd never
/// sends this status.
const CLIENT_LEFT: u16 = 499;

fn status(record: &AccessRecord) -> u16 {
    record.status.map_or(CLIENT_LEFT, |status| status.as_u16())
}

fn write_combined(record: &AccessRecord, privacy: LogPrivacy, out: &mut Vec<u8>) {
    let address = record.peer.and_then(|peer| privacy.network(peer.ip()));
    let address = address.map_or_else(|| "-".to_owned(), |address| address.to_string());
    let target = privacy.target(&record.target);
    let _ = write!(out, "{address} - - [{}] \"{} ", time(record), record.method);
    escape(target.as_bytes(), out);
    let _ = write!(out, " {:?}\" {} {}", record.version, status(record), record.sent);
    let referer = record.referer.as_ref().map(|value| String::from_utf8_lossy(value.as_bytes()));
    let referer = referer.as_deref().map(|referer| privacy.target(referer));
    quote(referer.as_deref().map(str::as_bytes), out);
    quote(record.user_agent.as_ref().map(|value| value.as_bytes()), out);
    let note = |wanted: &str| {
        let (_, value) = record.notes.iter().find(|(name, value)| *name == wanted && value.is_string())?;
        value.as_str().map(str::as_bytes)
    };
    quote(note("site"), out);
    quote(note("action"), out);
    quote(Some(record.id.as_str().as_bytes()), out);
    out.push(b'\n');
}

/// Formats the time of a record, such as `21/Nov/2026:06:25:38 +0000`.
fn time(record: &AccessRecord) -> String {
    // `date` has the format `Sat, 21 Nov 2026 06:25:38 GMT`.
    let date = date::http_date(record.at);
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
    for byte in value {
        match byte {
            b'"' | b'\\' | ..=0x1f | 0x7f.. => {
                let _ = write!(out, "\\x{byte:02X}");
            }
            _ => out.push(*byte),
        }
    }
}

fn write_json(record: &AccessRecord, privacy: LogPrivacy, out: &mut Vec<u8>) {
    out.extend_from_slice(render::json_text(&AccessLine { record, privacy }).as_bytes());
    out.push(b'\n');
}

struct AccessLine<'a> {
    record: &'a AccessRecord,
    privacy: LogPrivacy,
}

impl Serialize for AccessLine<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { record, privacy } = self;
        let text = |value: &http::HeaderValue| String::from_utf8_lossy(value.as_bytes()).into_owned();
        let mut line = serializer.serialize_map(None)?;
        line.serialize_entry("ts", &date::rfc3339_millis(record.at))?;
        line.serialize_entry("level", LogEvent::Request.level().as_str())?;
        line.serialize_entry("event", LogEvent::Request.as_str())?;
        line.serialize_entry("request_id", record.id.as_str())?;
        if let Some(trace) = &record.trace_id {
            line.serialize_entry("trace_id", trace)?;
        }
        for (name, value) in &record.notes {
            line.serialize_entry(name, value)?;
        }
        line.serialize_entry("method", record.method.as_str())?;
        if let Some(host) = &record.host {
            line.serialize_entry("host", &text(host))?;
        }
        line.serialize_entry("path", &privacy.target(&record.target))?;
        line.serialize_entry("protocol", &format!("{:?}", record.version))?;
        line.serialize_entry("status", &status(record))?;
        line.serialize_entry("octets", &record.sent)?;
        line.serialize_entry("whole", &record.is_whole)?;
        line.serialize_entry("seconds", &(record.took.as_micros() as f64 / 1e6))?;
        if let Some(address) = record.peer.and_then(|peer| privacy.address(peer.ip())) {
            line.serialize_entry("address", &address)?;
        }
        if let Some(referer) = &record.referer {
            line.serialize_entry("referer", &privacy.target(&text(referer)))?;
        }
        if let Some(agent) = &record.user_agent {
            line.serialize_entry("user_agent", &text(agent))?;
        }
        line.end()
    }
}

#[cfg(test)]
mod tests;
