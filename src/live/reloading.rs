//! A reload that a caller waits for.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, PoisonError};
use std::task::{Context, Poll, Waker};

use super::{Mutex, Reload};

/// A reload under way: a future, or [`Reloading::wait`] where there is no runtime.
#[derive(Debug)]
#[must_use = "the reload goes on without it, but only this gives its outcome"]
pub struct Reloading {
    completion: Arc<Completion>,
}

#[derive(Debug, Default)]
pub(crate) struct Completion {
    state: Mutex<CompletionState>,
    done: Condvar,
}

#[derive(Debug, Default)]
struct CompletionState {
    result: Option<Reload>,
    waker: Option<Waker>,
}

impl Reloading {
    pub(crate) fn new() -> (Self, Arc<Completion>) {
        let completion = Arc::new(Completion::default());
        (Self { completion: completion.clone() }, completion)
    }

    /// Blocks until the reload is done.
    pub fn wait(self) -> Reload {
        let mut state = self.completion.state.lock();
        loop {
            match state.result.take() {
                Some(reload) => return reload,
                None => state = self.completion.done.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }
}

impl Completion {
    pub(crate) fn fill(&self, reload: Reload) {
        let waker = {
            let mut state = self.state.lock();
            state.result = Some(reload);
            state.waker.take()
        };
        self.done.notify_all();
        // Without the lock: an executor may poll where it is woken.
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

impl Future for Reloading {
    type Output = Reload;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reload> {
        let mut state = self.completion.state.lock();
        match state.result.take() {
            Some(reload) => Poll::Ready(reload),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::task::Wake;
    use std::time::Duration;

    use super::*;
    use crate::live::reload::Cause;

    /// An executor that polls where it is woken.
    struct Inline(Mutex<Option<Reloading>>, mpsc::Sender<bool>);

    impl Wake for Inline {
        fn wake(self: Arc<Self>) {
            let reloading = self.0.lock().take();
            let polled =
                reloading.map(|mut reloading| Pin::new(&mut reloading).poll(&mut Context::from_waker(Waker::noop())));
            let _ = self.1.send(polled.is_some_and(|polled| polled.is_ready()));
        }
    }

    #[test]
    fn a_waker_may_poll_at_once() {
        let (mut reloading, completion) = Reloading::new();
        let (sender, receiver) = mpsc::channel();
        let executor = Arc::new(Inline(Mutex::default(), sender));
        let waker = Waker::from(executor.clone());
        assert!(Pin::new(&mut reloading).poll(&mut Context::from_waker(&waker)).is_pending());
        *executor.0.lock() = Some(reloading);
        std::thread::spawn(move || completion.fill(Reload::interrupted(Cause::Request, &"it".into(), None)));
        assert!(receiver.recv_timeout(Duration::from_secs(20)).expect("the poll waits for no lock"));
    }
}
