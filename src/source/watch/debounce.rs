//! Decides when a watched file or folder is read. [`Debounce`] is a state machine without files,
//! clocks or event sources: callers pass events and times to it.

use std::time::{Duration, Instant};

use super::target::ReadResult;
use crate::source::file::QUIET;

/// Maximum delay between a modification and its event. A read can find the modified content before
/// the system reports the event.
pub(super) const SETTLE: Duration = Duration::from_millis(20);

/// How long to wait before a folder is listed after names were added or removed, so that one
/// listing finds many changes.
const GATHER: Duration = Duration::from_millis(100);

/// How soon a file or folder must be read after an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The file was modified. Read the file when it has not been modified for a while.
    WhenQuiet,
    /// The writer has closed the file. Read the file now.
    Closed,
    /// A complete file was renamed to the watched name. Read the file now.
    Renamed,
    /// The file was removed or renamed to another name. If a time for the next read is already set,
    /// this time does not change, because a removal modifies no content. If no time is set, the
    /// read is delayed, because another file may soon be renamed to the watched name. (For example,
    /// when a ConfigMap is updated, the old folder is removed right after the new folder has
    /// replaced it.)
    Gone,
    /// Names were added to or removed from the folder. List the folder soon, even if changes
    /// continue.
    Gathered,
}

#[derive(Debug)]
pub(super) enum DueWork {
    Look,
    /// Publish the result of the earlier read, because no write has been reported since the read
    /// began.
    Take(ReadResult),
    /// Look for changes that no event has reported: compare the length, times and inode, and read
    /// the contents if necessary.
    Poll,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Activity {
    None,
    Queued,
    Running,
}

#[derive(Debug)]
pub(super) struct Debounce {
    work: Activity,
    /// When the scheduler's timer for this target ends; `None` if the target has no timer.
    pub(super) queued: Option<Instant>,
    due: Option<Instant>,
    /// The result of a read, and the time when it may be published if no event reports a write
    /// before that time.
    settling: Option<(Instant, ReadResult)>,
    /// The last event, if any, that arrived after the read began and before its result was
    /// published. A removal does not replace another event.
    meanwhile: Option<Urgency>,
    written_meanwhile: bool,
    poll: Duration,
    next_poll: Instant,
}

impl Debounce {
    /// Creates the state of a new target. The new target counts as being read, so no worker reads
    /// it before [`Debounce::finish`] is called.
    pub(super) fn new(poll: Duration, now: Instant) -> Self {
        Self {
            work: Activity::Running,
            queued: None,
            due: None,
            settling: None,
            meanwhile: None,
            written_meanwhile: false,
            poll,
            next_poll: now + poll,
        }
    }

    /// Returns when to process the target next; `None` if it is waiting for a worker or being
    /// processed.
    pub(super) fn wake(&self) -> Option<Instant> {
        if self.work != Activity::None {
            return None;
        }
        Some(match (&self.settling, self.due) {
            (Some((settled, _)), _) => *settled,
            (None, Some(due)) => due.min(self.next_poll),
            (None, None) => self.next_poll,
        })
    }

    /// Records an event, which usually replaces the previous event. For example, if a file is
    /// modified again after it was closed, the file is not complete.
    pub(super) fn notify(&mut self, urgency: Urgency, now: Instant) {
        if self.work == Activity::Running || self.settling.is_some() {
            if urgency == Urgency::Gone {
                self.meanwhile.get_or_insert(urgency);
                return;
            }
            self.meanwhile = Some(urgency);
            self.written_meanwhile |= !matches!(urgency, Urgency::Renamed | Urgency::Gathered);
        } else {
            self.schedule_read(urgency, now);
        }
    }

    fn schedule_read(&mut self, urgency: Urgency, now: Instant) {
        self.due = Some(match urgency {
            Urgency::Closed | Urgency::Renamed => now,
            Urgency::WhenQuiet => now + QUIET,
            Urgency::Gone => self.due.unwrap_or(now + QUIET),
            Urgency::Gathered => self.due.unwrap_or(now + GATHER),
        });
    }

    pub(super) fn queue(&mut self) {
        self.work = Activity::Queued;
    }

    /// Returns what to do now, if anything. The caller must call [`Debounce::finish`] afterwards.
    pub(super) fn begin(&mut self, now: Instant) -> Option<DueWork> {
        self.work = Activity::None;
        let job = if let Some((settled, held)) = self.settling.take() {
            if settled > now {
                self.settling = Some((settled, held));
                return None;
            }
            if std::mem::take(&mut self.written_meanwhile) {
                // The file was written after the read began, so the result may be incomplete. The
                // event that reported this write determines when the file is read again.
                self.catch_up(now);
                return None;
            }
            DueWork::Take(held)
        } else if self.due.is_some_and(|due| due <= now) {
            self.due = None;
            self.meanwhile = None;
            self.written_meanwhile = false;
            DueWork::Look
        } else if self.next_poll <= now {
            self.next_poll = now + self.poll;
            DueWork::Poll
        } else {
            return None;
        };
        self.work = Activity::Running;
        Some(job)
    }

    /// Keeps the result of a read for [`SETTLE`]. If another process wrote the file during the
    /// read, the event of that write arrives within this time.
    pub(super) fn settle(&mut self, held: ReadResult, now: Instant) {
        self.settling = Some((now + SETTLE, held));
    }

    pub(super) fn again_when_quiet(&mut self) {
        self.meanwhile.get_or_insert(Urgency::WhenQuiet);
    }

    /// Records that the target must be read again at the time `then`, because a part of the target
    /// could not be used yet. For example, a file in a folder was modified too recently.
    pub(super) fn read_again_at(&mut self, then: Instant) {
        self.due = Some(then);
    }

    pub(super) fn finish(&mut self, now: Instant) {
        self.work = Activity::None;
        if self.settling.is_none() {
            self.written_meanwhile = false;
            self.catch_up(now);
        }
    }

    fn catch_up(&mut self, now: Instant) {
        if let Some(urgency) = self.meanwhile.take() {
            self.schedule_read(urgency, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::Version;

    const POLL: Duration = Duration::from_secs(2);

    fn debounce(start: Instant) -> Debounce {
        let mut debounce = Debounce::new(POLL, start);
        debounce.finish(start);
        debounce
    }

    fn held(text: &str) -> ReadResult {
        Ok(Version::new(text.as_bytes(), &"it".into(), None))
    }

    #[test]
    fn a_closed_file_is_read_at_once_and_published_after_the_settling_time() {
        let start = Instant::now();
        let mut debounce = debounce(start);
        assert_eq!(debounce.wake(), Some(start + POLL));
        debounce.notify(Urgency::Closed, start);
        assert_eq!(debounce.wake(), Some(start));
        assert!(matches!(debounce.begin(start), Some(DueWork::Look)));
        assert_eq!(debounce.wake(), None, "a worker has it");
        debounce.settle(held("a"), start);
        debounce.finish(start);
        assert_eq!(debounce.wake(), Some(start + SETTLE));
        assert!(debounce.begin(start).is_none(), "too early");
        // Renaming another file to the watched name does not modify the content that was read, so
        // the result is published.
        debounce.notify(Urgency::Renamed, start);
        assert!(matches!(debounce.begin(start + SETTLE), Some(DueWork::Take(_))));
        debounce.finish(start + SETTLE);
        assert_eq!(debounce.wake(), Some(start + SETTLE), "the other is read next");
    }

    #[test]
    fn a_removal_does_not_postpone_a_due_read_or_publication() {
        let start = Instant::now();
        let mut debounce = debounce(start);
        // Kubernetes updates a ConfigMap in this way: a new folder gets the name, and the old
        // folder is removed.
        debounce.notify(Urgency::Renamed, start);
        debounce.notify(Urgency::Gone, start);
        assert!(matches!(debounce.begin(start), Some(DueWork::Look)));
        debounce.notify(Urgency::Gone, start);
        debounce.settle(held("a"), start);
        debounce.notify(Urgency::Gone, start);
        debounce.finish(start);
        assert!(matches!(debounce.begin(start + SETTLE), Some(DueWork::Take(_))));
        debounce.finish(start + SETTLE);
        assert_eq!(debounce.wake(), Some(start + SETTLE + QUIET), "whether it is there is seen later");
        // A removal delays the read as long as a modification does, because a program that replaces
        // the file may remove the old file first.
        let mut debounce = self::debounce(start);
        debounce.notify(Urgency::Gone, start);
        assert_eq!(debounce.wake(), Some(start + QUIET));
        // A removal does not complete a file that is being written.
        debounce.notify(Urgency::WhenQuiet, start + SETTLE);
        debounce.notify(Urgency::Gone, start + SETTLE);
        assert_eq!(debounce.wake(), Some(start + SETTLE + QUIET));
    }

    #[test]
    fn a_file_written_while_it_settles_is_read_again_after_a_quiet_period() {
        let start = Instant::now();
        let mut debounce = debounce(start);
        debounce.notify(Urgency::Renamed, start);
        assert!(matches!(debounce.begin(start), Some(DueWork::Look)));
        debounce.notify(Urgency::WhenQuiet, start);
        debounce.settle(held("half"), start);
        debounce.finish(start);
        let later = start + SETTLE;
        assert!(debounce.begin(later).is_none());
        assert_eq!(debounce.wake(), Some(later + QUIET));
        // The last event determines the time of the read, so each new write postpones the read.
        debounce.notify(Urgency::Closed, later);
        debounce.notify(Urgency::WhenQuiet, later + QUIET / 2);
        assert_eq!(debounce.wake(), Some(later + QUIET / 2 + QUIET));
    }

    #[test]
    fn a_file_is_polled_if_no_event_arrives() {
        let start = Instant::now();
        let mut debounce = debounce(start);
        assert!(debounce.begin(start + POLL - GATHER).is_none(), "too early");
        assert!(matches!(debounce.begin(start + POLL), Some(DueWork::Poll)));
        debounce.finish(start + POLL);
        assert_eq!(debounce.wake(), Some(start + 2 * POLL));
    }

    #[test]
    fn constant_changes_of_names_do_not_postpone_the_listing_of_a_folder() {
        let start = Instant::now();
        let mut debounce = debounce(start);
        for step in 0..50 {
            debounce.notify(Urgency::Gathered, start + GATHER * step / 50);
        }
        assert_eq!(debounce.wake(), Some(start + GATHER));
    }
}
