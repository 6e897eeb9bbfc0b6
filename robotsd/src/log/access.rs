//! The log of requests: one line each, in the combined format or as JSON, formatted and written by a thread of its own.
//!
//! A request's worker only hands over what it knows. When the thread cannot keep up, lines are dropped and counted, so
//! that a slow disk slows no request. hyper answers what is no HTTP by itself: such a request has no line here; the log
//! of events has it as a connection error.

mod combined;
mod json;
mod status;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TryRecvError, TrySendError, sync_channel};
use std::time::Duration;

use super::{Log, LogEvent, LogLevel, LogPrivacy};
use crate::config::{AccessFormat, AccessSettings};
use crate::edge::{AccessRecord, OnAccess};

/// Requests that wait to be written.
const QUEUE: usize = 16 * 1024;

/// Octets that are written at once.
const BLOCK: usize = 64 * 1024;

/// Writes a line for every request. Cheap to clone; the thread ends with the last clone.
#[derive(Clone, Debug)]
pub(crate) struct AccessLog {
    queue: SyncSender<WriterMessage>,
    dropped: Arc<AtomicU64>,
    lost: LostLines,
}

/// Lines that an access log has lost so far. It keeps no log open.
#[derive(Clone, Debug, Default)]
pub(crate) struct LostLines(Arc<AtomicU64>);

enum WriterMessage {
    Record(Box<AccessRecord>),
    Reopen,
    Flush(SyncSender<()>),
}

impl AccessLog {
    /// Opens the log and starts to write it; later errors go to `log`.
    pub(crate) fn start(settings: &AccessSettings, privacy: LogPrivacy, log: Log) -> Result<Self, String> {
        let sink = Sink::open(settings.path.clone())?;
        let (queue, messages) = sync_channel(QUEUE);
        let dropped = Arc::new(AtomicU64::new(0));
        let lost = LostLines::default();
        let writer = Writer {
            format: settings.format,
            privacy,
            sink,
            log,
            dropped: dropped.clone(),
            lines: Vec::with_capacity(BLOCK),
            lost: 0,
            lost_lines: lost.clone(),
        };
        std::thread::Builder::new()
            .name("access-log".into())
            .spawn(move || writer.run(&messages))
            .map_err(|error| format!("no thread could be started for the access log: {error}"))?;
        Ok(Self { queue, dropped, lost })
    }

    /// The lines that are lost so far, also later on.
    pub(crate) fn lost(&self) -> LostLines {
        self.lost.clone()
    }

    /// The observer that the edge calls for each request.
    pub(crate) fn observer(&self) -> OnAccess {
        let log = self.clone();
        Arc::new(move |record| {
            if let Err(TrySendError::Full(_)) = log.queue.try_send(WriterMessage::Record(record)) {
                log.dropped.fetch_add(1, Ordering::Relaxed);
                log.lost.add(1);
            }
        })
    }

    /// Opens the file anew, because the old one may have been moved away.
    pub(crate) fn reopen(&self) {
        // Where the queue is full, a file that is written this busily is opened again soon enough.
        let _ = self.queue.try_send(WriterMessage::Reopen);
    }

    /// Waits until everything handed over so far is written, for a second at most.
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
    sink: Sink,
    log: Log,
    dropped: Arc<AtomicU64>,
    /// Whole lines that are not written yet.
    lines: Vec<u8>,
    /// Lines that could not be written since the last event about it.
    lost: u64,
    lost_lines: LostLines,
}

impl LostLines {
    pub(crate) fn total(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn add(&self, lines: u64) {
        self.0.fetch_add(lines, Ordering::Relaxed);
    }
}

impl Writer {
    fn run(mut self, messages: &Receiver<WriterMessage>) {
        loop {
            let message = match messages.try_recv() {
                Ok(message) => message,
                Err(TryRecvError::Disconnected) => break,
                Err(TryRecvError::Empty) => {
                    // Nothing else to do: what there is can be read at once.
                    self.write();
                    match messages.recv_timeout(Duration::from_secs(1)) {
                        Ok(message) => message,
                        Err(RecvTimeoutError::Timeout) => continue,
                        Err(RecvTimeoutError::Disconnected) => break,
                    }
                }
            };
            match message {
                WriterMessage::Record(record) => {
                    match self.format {
                        AccessFormat::Combined => combined::line(&record, self.privacy, &mut self.lines),
                        AccessFormat::Json => json::line(&record, self.privacy, &mut self.lines),
                    }
                    if self.lines.len() >= BLOCK {
                        self.write();
                    }
                }
                WriterMessage::Reopen => {
                    self.write();
                    if let Err(message) = self.sink.reopen() {
                        let message = format!("{message}; the file opened before is written on");
                        self.log.say(LogEvent::AccessLog, message);
                    }
                }
                WriterMessage::Flush(done) => {
                    self.write();
                    let _ = done.send(());
                }
            }
        }
        self.write();
    }

    fn write(&mut self) {
        let dropped = self.dropped.swap(0, Ordering::Relaxed);
        if dropped > 0 {
            let message = format!("{dropped} requests were not logged: the log is slower than the requests");
            self.log.say(LogEvent::AccessLog, message);
        }
        if self.lines.is_empty() {
            return;
        }
        match self.sink.write_all(&self.lines) {
            Ok(()) if self.lost > 0 => {
                let message = format!("{} is written again; {} lines are lost", self.sink, self.lost);
                self.log.say_at(LogLevel::Info, LogEvent::AccessLog, message);
                self.lost = 0;
            }
            Ok(()) => {}
            Err(error) => {
                // Reported when it begins and when it is over: a full disk stays full for many requests.
                if self.lost == 0 {
                    let message = format!("{} cannot be written: {error}; lines are lost", self.sink);
                    self.log.say(LogEvent::AccessLog, message);
                }
                let lines = memchr::memchr_iter(b'\n', &self.lines).count() as u64;
                self.lost += lines;
                self.lost_lines.add(lines);
            }
        }
        self.lines.clear();
    }
}

/// Where the lines go.
enum Sink {
    Output,
    File { path: PathBuf, file: File },
}

impl Sink {
    fn open(path: Option<PathBuf>) -> Result<Self, String> {
        match path {
            None => Ok(Self::Output),
            Some(path) => Ok(Self::File { file: append(&path)?, path }),
        }
    }

    fn reopen(&mut self) -> Result<(), String> {
        if let Self::File { path, file } = self {
            *file = append(path)?;
        }
        Ok(())
    }

    fn write_all(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            // Locked for whole lines, because events are written there as well.
            Self::Output => io::stdout().lock().write_all(lines),
            Self::File { file, .. } => file.write_all(lines),
        }
    }
}

fn append(path: &Path) -> Result<File, String> {
    OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
        .map_err(|error| format!("{}: the access log cannot be opened: {error}", path.display()))
}

impl std::fmt::Display for Sink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Output => f.write_str("standard output"),
            Self::File { path, .. } => write!(f, "{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests;
