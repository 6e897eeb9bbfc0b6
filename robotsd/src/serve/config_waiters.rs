//! The requests that wait for the outcome of reading the config.

use crate::admin::ReloadWaiter;
use crate::report::ConfigReload;

/// Those that wait for the reading under way, and those that came too late for it. The file may have been read before they
/// came, so they wait for another reading.
#[derive(Debug, Default)]
pub(super) struct ConfigWaiters {
    now: Vec<ReloadWaiter>,
    /// Some, even if empty, where another reading is required.
    next: Option<Vec<ReloadWaiter>>,
    /// What was published since those that wait now came.
    published: Option<String>,
}

impl ConfigWaiters {
    /// Waits for the reading under way. The watcher, which waits for no outcome, has no waiter.
    pub(super) fn join(&mut self, waiter: Option<ReloadWaiter>) {
        self.now.extend(waiter);
    }

    /// Requires another reading after the one under way.
    pub(super) fn queue(&mut self, waiter: Option<ReloadWaiter>) {
        self.next.get_or_insert_default().extend(waiter);
    }

    pub(super) const fn is_empty(&self) -> bool {
        self.now.is_empty()
    }

    pub(super) const fn has_next(&self) -> bool {
        self.next.is_some()
    }

    /// Sends the outcome of the reading under way. Where it found nothing new, but the one before it published a change that
    /// those that wait came too late for, that change is the outcome. Returns whether another reading is required.
    pub(super) fn answer(&mut self, outcome: &'static str, message: &str) -> bool {
        let (sent, text) = match self.published.take() {
            Some(published) if outcome == "unchanged" => ("published", published),
            _ => (outcome, message.to_owned()),
        };
        for waiter in self.now.drain(..) {
            // The client may have gone.
            let _ = waiter.send(ConfigReload { outcome: sent.to_owned(), message: text.clone() });
        }
        let Some(next) = self.next.take() else { return false };
        self.now = next;
        self.published = (sent == "published").then_some(text);
        true
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    fn outcome(mut waiting: oneshot::Receiver<ConfigReload>) -> (String, String) {
        let ConfigReload { outcome, message } = waiting.try_recv().unwrap();
        (outcome, message)
    }

    #[test]
    fn a_request_that_comes_while_the_watcher_publishes_its_change_hears_of_it() {
        let mut waiters = ConfigWaiters::default();
        waiters.join(None);
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("unchanged", "nothing is different"));
        assert_eq!(outcome(waiting), ("published".to_owned(), "site \"a\" is new".to_owned()));
        // A later one does not.
        let (waiter, waiting) = oneshot::channel();
        waiters.join(Some(waiter));
        assert!(!waiters.answer("unchanged", "nothing is different"));
        assert_eq!(outcome(waiting).0, "unchanged");
    }

    #[test]
    fn a_fault_is_the_outcome_whatever_was_published_before() {
        let mut waiters = ConfigWaiters::default();
        let (waiter, waiting) = oneshot::channel();
        waiters.queue(Some(waiter));
        assert!(waiters.answer("published", "site \"a\" is new"));
        assert!(!waiters.answer("kept", "no site"));
        assert_eq!(outcome(waiting).0, "kept");
    }
}
