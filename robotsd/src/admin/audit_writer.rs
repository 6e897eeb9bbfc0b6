//! Writes the audit: to its file, where there is one, and to the log.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::audit::{AuditRecord, append};
use crate::log::{Log, LogEntry, LogEvent, LogLevel};

/// How long the disk may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Refusals that are written in an hour: an unknown client must not fill the disk.
const REFUSALS: u32 = 120;
const HOUR: Duration = Duration::from_secs(3600);

/// Where the audit is written.
#[derive(Debug)]
pub(crate) struct AuditWriter {
    /// The file, if there is one, and what this process is called.
    place: OnceLock<(Option<PathBuf>, String)>,
    log: Log,
    /// Why the last record could not be written to the file.
    trouble: Mutex<Option<String>>,
    refusals: Mutex<Refusals>,
    /// The task that writes the lines of the last config, behind those of the one before.
    pub(super) config_lines: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Refusals {
    /// Since when they are counted.
    since: Option<Instant>,
    count: u32,
    left_out: usize,
}

impl AuditWriter {
    pub(super) fn new(log: Log) -> Self {
        Self {
            place: OnceLock::new(),
            log,
            trouble: Mutex::default(),
            refusals: Mutex::default(),
            config_lines: Mutex::default(),
        }
    }

    /// Has it written to a file from now on, by the name of this replica.
    pub(crate) fn keep_in(&self, path: Option<PathBuf>, replica: String) {
        let _ = self.place.set((path, replica));
    }

    /// What this process is called.
    pub(super) fn replica(&self) -> String {
        self.place.get().map(|(_, replica)| replica.clone()).unwrap_or_default()
    }

    /// Writes a record to the file.
    pub(super) async fn append(&self, record: AuditRecord) -> Result<(), String> {
        let Some((Some(path), _)) = self.place.get().cloned() else { return Ok(()) };
        let late = format!("{}: the audit cannot be written: no answer of the disk", path.display());
        let written = match timeout(PATIENCE, spawn_blocking(move || append(&path, &record))).await {
            Ok(written) => written.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err(late),
        };
        *self.trouble.lock() = written.clone().err();
        written
    }

    /// That decisions are refused because the last record could not be written.
    pub(super) fn trouble(&self) -> Option<String> {
        let why = self.trouble.lock().clone()?;
        Some(format!("{why}; accept, rollback and `enforce on` are refused until it can be"))
    }

    /// Writes what came of something to file and log.
    pub(super) async fn note(&self, record: AuditRecord) {
        let fields = [
            ("id", Some(&*record.id)),
            ("who", record.who.as_deref()),
            ("how", Some(&*record.how)),
            ("from", record.from.as_deref()),
            ("replica", Some(&*record.replica)),
            ("action", Some(&*record.action)),
            ("result", Some(&*record.result)),
        ];
        let entry = LogEntry {
            level: if record.result == "done" { LogEvent::Audit.level() } else { LogLevel::Warn },
            site: record.site.as_deref(),
            before: record.before.as_deref(),
            after: record.after.as_deref(),
            reason: record.reason.as_deref(),
            message: record.message.clone(),
            ..LogEntry::now(LogEvent::Audit)
        };
        self.log.write_with(&entry, &fields);
        if let Err(why) = self.append(record).await {
            self.log.say_at(LogLevel::Error, LogEvent::Admin, why);
        }
    }

    /// Waits for the lines of configs, unless the disk takes too long.
    pub(crate) async fn finish(&self) {
        let last = self.config_lines.lock().take();
        let _ = timeout(PATIENCE, OptionFuture::from(last)).await;
    }

    /// How many refusals before this one were not written, if this one may be.
    pub(super) fn admit_refusal(&self) -> Option<usize> {
        let mut refusals = self.refusals.lock();
        if refusals.since.is_none_or(|since| since.elapsed() >= HOUR) {
            (refusals.since, refusals.count) = (Some(Instant::now()), 0);
        }
        if refusals.count == REFUSALS {
            refusals.left_out += 1;
            return None;
        }
        refusals.count += 1;
        Some(std::mem::take(&mut refusals.left_out))
    }
}
