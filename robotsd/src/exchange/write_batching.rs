//! Whose turn it is to write.

use std::future::poll_fn;
use std::task::Poll;

/// Lets every other task that is ready on this worker run, once, before the caller writes.
///
/// A write wakes the reader at the other end if it sleeps, and that costs the writer more than anything else in it. When
/// all ready tasks read and decide first and write after that, one reader of many connections is woken once.
pub(crate) async fn yield_before_write() {
    let mut has_yielded = false;
    poll_fn(|cx| {
        if std::mem::replace(&mut has_yielded, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use tower_robots::internals::Mutex;

    use super::*;

    #[tokio::test]
    async fn all_ready_tasks_read_before_one_writes() {
        let said = Arc::new(Mutex::new(Vec::new()));
        let each = [["a reads", "a writes"], ["b reads", "b writes"]].map(|[reads, writes]| {
            let said = Arc::clone(&said);
            tokio::spawn(async move {
                said.lock().push(reads);
                yield_before_write().await;
                said.lock().push(writes);
            })
        });
        for task in each {
            task.await.unwrap();
        }
        assert_eq!(*said.lock(), ["a reads", "b reads", "a writes", "b writes"]);
    }
}
