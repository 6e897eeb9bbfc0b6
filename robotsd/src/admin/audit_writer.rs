//! Writes audit records to the log, and to the audit file if one is configured.

use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use futures_util::future::OptionFuture;
use parking_lot::Mutex;
use tokio::task::{JoinHandle, spawn_blocking};
use tokio::time::timeout;

use crate::audit::{AuditRecord, append};
use crate::log::{Log, LogEntry, LogEvent, LogLevel};

/// Maximum time to wait for the disk to write a record.
const WRITE_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of recorded refusals per hour. Without this limit, an unknown client could fill
/// the disk.
const MAX_REFUSALS_PER_HOUR: u32 = 120;
const HOUR: Duration = Duration::from_secs(3600);

#[derive(Debug)]
pub(crate) struct AuditWriter {
    /// The audit file, if any, and the name of this replica.
    place: OnceLock<(Option<PathBuf>, String)>,
    log: Log,
    /// Why the last record could not be written to the audit file; `None` if it was written.
    problem: Mutex<Option<String>>,
    refusals: Mutex<Refusals>,
    /// Task that writes the records of the latest config change. It first waits for the task of the
    /// previous change.
    pub(super) config_task: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug, Default)]
struct Refusals {
    /// Time of the first refusal in the current hour.
    since: Option<Instant>,
    count: u32,
    /// Number of unrecorded refusals since the last recorded refusal.
    left_out: usize,
}

impl AuditWriter {
    pub(super) fn new(log: Log) -> Self {
        Self {
            place: OnceLock::new(),
            log,
            problem: Mutex::default(),
            refusals: Mutex::default(),
            config_task: Mutex::default(),
        }
    }

    pub(crate) fn set_destination(&self, path: Option<PathBuf>, replica: String) {
        let _ = self.place.set((path, replica));
    }

    pub(super) fn replica(&self) -> String {
        self.place.get().map(|(_, replica)| replica.clone()).unwrap_or_default()
    }

    pub(super) async fn append(&self, record: AuditRecord) -> Result<(), String> {
        let Some((Some(path), _)) = self.place.get().cloned() else { return Ok(()) };
        let late = format!("{}: the audit file cannot be written, because the disk does not respond", path.display());
        let written = match timeout(WRITE_TIMEOUT, spawn_blocking(move || append(&path, &record))).await {
            Ok(written) => written.unwrap_or_else(|error| Err(error.to_string())),
            Err(_) => Err(late),
        };
        *self.problem.lock() = written.clone().err();
        written
    }

    /// Returns why the last record could not be written, and `None` if it was written. Until a
    /// record can be written again, robotsd refuses `accept`, `rollback` and `enforce on`.
    pub(super) fn problem(&self) -> Option<String> {
        let why = self.problem.lock().clone()?;
        Some(format!("{why}; robotsd refuses `accept`, `rollback` and `enforce on` until it can write the audit file"))
    }

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
            self.log.write_message_at(LogLevel::Error, LogEvent::Admin, why);
        }
    }

    /// Waits until the records of config changes are written, or until [`WRITE_TIMEOUT`] has
    /// passed.
    pub(crate) async fn finish(&self) {
        let last = self.config_task.lock().take();
        let _ = timeout(WRITE_TIMEOUT, OptionFuture::from(last)).await;
    }

    /// Counts a refusal. If the refusal is to be recorded, returns the number of unrecorded
    /// refusals since the last recorded refusal; `None` if the limit for this hour is reached.
    pub(super) fn admit_refusal(&self) -> Option<usize> {
        let mut refusals = self.refusals.lock();
        if refusals.since.is_none_or(|since| since.elapsed() >= HOUR) {
            (refusals.since, refusals.count) = (Some(Instant::now()), 0);
        }
        if refusals.count == MAX_REFUSALS_PER_HOUR {
            refusals.left_out += 1;
            return None;
        }
        refusals.count += 1;
        Some(std::mem::take(&mut refusals.left_out))
    }
}
