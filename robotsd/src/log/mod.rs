//! The event log, with one line per event, and the access log ([`access`]). Separate threads write
//! the lines.
//!
//! Values from requests are escaped, so that a client cannot break or forge lines.
//!
//! All threads append their lines to one shared string, which the writing thread takes. Sending
//! each line to the writing thread would be slower, because one thread would allocate the line and
//! another thread would free it.

mod access;
mod entry;
mod event;

use std::borrow::Cow;
use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::config::{AddressLogging, LogConfig, LogFormat, QueryLogging};

pub(crate) use self::access::AccessLog;
pub(crate) use self::entry::LogEntry;
pub(crate) use self::event::{LogEvent, LogLevel};

/// Writes events. Cheap to clone. The writing thread ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Log {
    format: LogFormat,
    queue: Arc<OpenQueue>,
}

#[derive(Debug)]
struct OpenQueue(Arc<Queue>);

impl Log {
    pub(crate) fn start(format: LogFormat) -> Self {
        let queue = Arc::new(Queue::default());
        let taken_from = Arc::clone(&queue);
        std::thread::spawn(move || write_all(format, &taken_from));
        Self { format, queue: Arc::new(OpenQueue(queue)) }
    }

    /// Creates a log without output: no thread takes lines from its queue. When the queue is full,
    /// new lines are dropped.
    pub(crate) fn without_output() -> Self {
        Self { format: LogFormat::default(), queue: Arc::new(OpenQueue(Arc::default())) }
    }

    pub(crate) fn write(&self, entry: &LogEntry<'_>) {
        self.write_with(entry, &[]);
    }

    /// Writes an event with additional fields. Fields that are `None` are omitted.
    pub(crate) fn write_with(&self, entry: &LogEntry<'_>, fields: &[(&str, Option<&str>)]) {
        self.queue.0.push(&entry.to_line(self.format, fields));
    }

    pub(crate) fn write_message(&self, event: LogEvent, message: impl Into<String>) {
        self.write_message_at(event.level(), event, message);
    }

    pub(crate) fn write_message_at(&self, level: LogLevel, event: LogEvent, message: impl Into<String>) {
        self.write(&LogEntry { level, message: Some(message.into()), ..LogEntry::now(event) });
    }

    pub(crate) fn write_site_message(&self, site: &str, level: LogLevel, event: LogEvent, message: impl Into<String>) {
        self.write(&LogEntry { level, site: Some(site), message: Some(message.into()), ..LogEntry::now(event) });
    }

    pub(crate) fn lost(&self) -> &LostLines {
        &self.queue.0.lost
    }

    /// Waits until all queued lines are written, but at most one second, because the log may be a
    /// pipe without a reader.
    pub(crate) fn flush(&self) {
        let (done, wait) = sync_channel(1);
        self.queue.0.waiting.lock().flushes.push(done);
        self.queue.0.news.notify_one();
        let _ = wait.recv_timeout(Duration::from_secs(1));
    }
}

impl Drop for OpenQueue {
    fn drop(&mut self) {
        self.0.close();
    }
}

#[derive(Debug, Default)]
pub(crate) struct LostLines {
    pub(crate) count: AtomicU64,
    /// Number of lines dropped because the queue was full, and not reported yet.
    dropped: AtomicU64,
    /// `Some` while writing fails: the number of lines lost since the failure began, and the error.
    problem: Mutex<Option<(u64, String)>>,
}

impl LostLines {
    /// Returns the reason why lines cannot be written now; `None` if they can be written.
    pub(crate) fn problem(&self) -> Option<String> {
        self.problem.lock().as_ref().map(|(_, why)| why.clone())
    }

    /// Writes complete lines. If the last line may be incomplete, writes a line feed first. Because
    /// a full disk affects many lines, returns a message only when writing begins to fail and when
    /// writing works again.
    fn write(
        &self,
        out: &mut impl Write,
        is_cut: &Mutex<bool>,
        name: &str,
        lines: &[u8],
    ) -> Option<(LogLevel, String)> {
        let mut is_cut = is_cut.lock();
        let end: &[u8] = if *is_cut { b"\n" } else { b"" };
        let written = out.write_all(end).and_then(|()| out.write_all(lines)).and_then(|()| out.flush());
        *is_cut = written.is_err();
        let mut problem = self.problem.lock();
        let before = problem.take();
        let Err(error) = written else {
            return before
                .map(|(lost, _)| (LogLevel::Info, format!("{name} can be written again; {lost} lines were lost")));
        };
        let count = memchr::memchr_iter(b'\n', lines).count() as u64;
        self.count.fetch_add(count, Ordering::Relaxed);
        let begun =
            before.is_none().then(|| format!("{name} cannot be written, so lines of the log are lost: {error}"));
        *problem = before.map(|(lost, why)| (lost + count, why)).or_else(|| Some((count, begun.clone()?)));
        begun.map(|why| (LogLevel::Error, why))
    }
}

/// Writes lines until the queue is closed. Lines that arrive during a [`PAUSE`] are written
/// together afterwards.
fn write_all(format: LogFormat, queue: &Queue) {
    let overflow =
        |message| LogEntry { message: Some(message), ..LogEntry::now(LogEvent::LogOverflow) }.to_line(format, &[]);
    let mut block = String::new();
    while let Some((lost, flushes)) = queue.take(&mut block) {
        if lost > 0 {
            block.push_str(&overflow(format!(
                "{lost} lines were not written: the log could not be written as fast as events occurred"
            )));
        }
        // Errors are not fatal: robotsd continues to serve even if standard output is closed.
        let said = queue.lost.write(&mut io::stdout(), &queue.is_cut, "standard output", block.as_bytes());
        if let Some((LogLevel::Info, message)) = said {
            queue.push(&overflow(message));
        }
        block.clear();
        for done in flushes {
            let _ = done.send(());
        }
        queue.pause();
    }
}

/// Maximum number of queued lines. Further lines are dropped and counted, so that a slow disk does
/// not slow down requests.
const MAX_QUEUED_LINES: usize = 4096;

/// Pause after each write, so that several lines are written together. Even a core that only
/// refuses requests produces fewer than [`MAX_QUEUED_LINES`] lines in this time.
const PAUSE: Duration = Duration::from_millis(5);

/// Interval between attempts to write again after a failure.
const RETRY: Duration = Duration::from_secs(1);

/// Maximum capacity of the buffer that is reused for the next lines, in bytes.
const KEPT: usize = 512 * 1024;

#[derive(Debug, Default)]
struct Queue {
    waiting: Mutex<PendingLines>,
    news: Condvar,
    lost: LostLines,
    /// Whether the last line on standard output may be incomplete. The access log shares this flag,
    /// because it may also write to standard output.
    is_cut: Arc<Mutex<bool>>,
}

#[derive(Debug, Default)]
struct PendingLines {
    lines: String,
    count: usize,
    /// Number of lines that were dropped since the writing thread last took lines.
    lost: u64,
    /// Callers of `flush`, which are notified when the queued lines have been written.
    flushes: Vec<SyncSender<()>>,
    /// Whether the writing thread is asleep and must be woken when a line arrives.
    is_awaited: bool,
    is_closed: bool,
}

impl Queue {
    /// Adds a line to the queue. If the queue is full, drops the line.
    fn push(&self, line: &str) {
        let mut waiting = self.waiting.lock();
        if waiting.count == MAX_QUEUED_LINES {
            waiting.lost += 1;
            self.lost.count.fetch_add(1, Ordering::Relaxed);
            return;
        }
        waiting.count += 1;
        waiting.lines.push_str(line);
        // Waking the writing thread costs more than adding a line. During a pause, the thread is
        // not woken, because it takes all lines after the pause.
        let is_awaited = std::mem::take(&mut waiting.is_awaited);
        drop(waiting);
        if is_awaited {
            self.news.notify_one();
        }
    }

    /// Closes the queue. The writing thread ends when the queue is empty.
    fn close(&self) {
        self.waiting.lock().is_closed = true;
        self.news.notify_one();
    }

    /// Waits for lines and swaps them into `block`, which must be empty. Returns the number of
    /// dropped lines, and the senders to notify after the lines are written. Returns `None` when
    /// the queue is closed and empty.
    fn take(&self, block: &mut String) -> Option<(u64, Vec<SyncSender<()>>)> {
        block.shrink_to(KEPT);
        let mut waiting = self.waiting.lock();
        while waiting.is_empty() {
            if waiting.is_closed {
                return None;
            }
            waiting.is_awaited = true;
            if self.lost.problem().is_none() {
                self.news.wait(&mut waiting);
            } else if self.news.wait_for(&mut waiting, RETRY).timed_out() {
                // Returns without new lines, so that the caller retries a failed write.
                break;
            }
        }
        waiting.is_awaited = false;
        waiting.count = 0;
        std::mem::swap(&mut waiting.lines, block);
        Some((std::mem::take(&mut waiting.lost), std::mem::take(&mut waiting.flushes)))
    }

    /// Waits for [`PAUSE`], so that several lines can be written together. Returns immediately if a
    /// caller waits for a flush or the queue is closed.
    fn pause(&self) {
        let is_quiet = |waiting: &mut PendingLines| waiting.flushes.is_empty() && !waiting.is_closed;
        self.news.wait_while_for(&mut self.waiting.lock(), is_quiet, PAUSE);
    }
}

impl PendingLines {
    fn is_empty(&self) -> bool {
        self.count == 0 && self.lost == 0 && self.flushes.is_empty()
    }
}

/// Which parts of queries and of clients' addresses are logged. By default, the values of query
/// parameters are left out, and only the networks of addresses are logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPrivacy {
    pub(crate) query: QueryLogging,
    pub(crate) address: AddressLogging,
}

impl LogPrivacy {
    pub(crate) const fn new(log: &LogConfig) -> Self {
        Self { query: log.query, address: log.address }
    }

    pub(crate) fn target(self, target: &str) -> Cow<'_, str> {
        let Some((path, query)) = target.split_once('?') else { return target.into() };
        match self.query {
            QueryLogging::Drop => path.into(),
            QueryLogging::Keep => target.into(),
            QueryLogging::Redact => {
                let redacted = query.split('&').map(|pair| match pair.split_once('=') {
                    Some((name, value)) if !value.is_empty() => format!("{name}=…"),
                    // A parameter without a value is replaced as a whole, because the parameter
                    // itself may be a secret, as in `?dG9rZW4=`.
                    _ => "…".to_owned(),
                });
                format!("{path}?{}", redacted.collect::<Vec<_>>().join("&")).into()
            }
        }
    }

    /// Formats the part of a client's address that may be logged. A network is written with its
    /// prefix length.
    pub(crate) fn address(self, address: IpAddr) -> Option<String> {
        let network = self.network(address)?;
        Some(match (self.address, network) {
            (AddressLogging::Truncate, IpAddr::V4(network)) => {
                // The code is faster than the formatter of the standard library. Speed matters,
                // because each refused request is logged with an address.
                let mut text = String::with_capacity("255.255.255.0/24".len());
                for byte in &network.octets()[..3] {
                    text.push_str(itoa::Buffer::new().format(*byte));
                    text.push('.');
                }
                text + "0/24"
            }
            (AddressLogging::Truncate, IpAddr::V6(network)) => format!("{network}/48"),
            _ => network.to_string(),
        })
    }

    /// Returns the address itself, or the first address of the network that contains it.
    fn network(self, address: IpAddr) -> Option<IpAddr> {
        match self.address {
            AddressLogging::Keep => Some(address),
            AddressLogging::Drop => None,
            AddressLogging::Truncate => Some(match address.to_canonical() {
                IpAddr::V4(address) => {
                    let [a, b, c, _] = address.octets();
                    Ipv4Addr::new(a, b, c, 0).into()
                }
                IpAddr::V6(address) => {
                    let [a, b, c, ..] = address.segments();
                    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queued_lines_keep_their_order_and_lines_beyond_the_limit_are_counted() {
        let queue = Queue::default();
        for line in 0..MAX_QUEUED_LINES + 3 {
            queue.push(&format!("{line}\n"));
        }
        let mut block = String::new();
        assert_eq!(queue.take(&mut block).map(|(lost, _)| lost), Some(3));
        assert!(block.lines().map(str::to_owned).eq((0..MAX_QUEUED_LINES).map(|line| line.to_string())));
        block.clear();
        queue.push("last\n");
        queue.close();
        assert_eq!(queue.take(&mut block).map(|(lost, _)| lost), Some(0));
        assert_eq!(queue.lost.count.load(Ordering::Relaxed), 3);
        assert_eq!(block, "last\n");
        block.clear();
        assert!(queue.take(&mut block).is_none());
    }

    struct Disk {
        room: usize,
        written: Vec<u8>,
    }

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.room == 0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = bytes.len().min(self.room);
            self.written.extend_from_slice(&bytes[..taken]);
            self.room -= taken;
            Ok(taken)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_lost_on_a_full_disk_are_counted_and_never_joined_to_the_next_line() {
        let (lost, is_cut) = (LostLines::default(), Mutex::new(false));
        let mut disk = Disk { room: 6, written: Vec::new() };
        let why = format!(
            "the log cannot be written, so lines of the log are lost: {}",
            io::Error::from(io::ErrorKind::StorageFull)
        );
        let over = "the log can be written again; 3 lines were lost".to_owned();
        for (room, lines, said, count, problem) in [
            (0, "one\n", None, 0, None),
            (0, "two\nthree\n", Some((LogLevel::Error, why.clone())), 2, Some(&why)),
            (0, "four\n", None, 3, Some(&why)),
            (99, "five\n", Some((LogLevel::Info, over)), 3, None),
            (0, "six\n", None, 3, None),
        ] {
            disk.room += room;
            assert_eq!(lost.write(&mut disk, &is_cut, "the log", lines.as_bytes()), said, "{lines}");
            let known = (lost.count.load(Ordering::Relaxed), lost.problem());
            assert_eq!(known, (count, problem.cloned()), "{lines}");
        }
        assert_eq!(String::from_utf8_lossy(&disk.written), "one\ntw\nfive\nsix\n");
    }

    #[test]
    fn queries_are_redacted_by_default() {
        for (query, want) in [
            (QueryLogging::Keep, "/x?q=secret&word&b="),
            (QueryLogging::Redact, "/x?q=…&…&…"),
            (QueryLogging::Drop, "/x"),
        ] {
            assert_eq!(LogPrivacy { query, ..LogPrivacy::default() }.target("/x?q=secret&word&b="), want);
        }
        assert_eq!(LogPrivacy::default().target("/x"), "/x");
    }

    #[test]
    fn addresses_are_truncated_by_default() {
        let with = |address| LogPrivacy { address, ..LogPrivacy::default() };
        for (address, want) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::9", "2001:db8:1::/48"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(LogPrivacy::default().address(address).as_deref(), Some(want));
            assert_eq!(with(AddressLogging::Drop).address(address), None);
            assert_eq!(with(AddressLogging::Keep).address(address), Some(address.to_string()));
        }
    }
}
