//! A reload that a caller waits for.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use super::reload::Reload;

/// A reload under way: a future, or [`Reloading::wait`] where there is no runtime.
#[must_use = "the reload goes on without it, but only this gives its outcome"]
pub struct Reloading {
    completion: Arc<Completion>,
}

#[derive(Default)]
pub(crate) struct Completion {
    state: Mutex<CompletionState>,
    done: Condvar,
}

#[derive(Default)]
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
    #[must_use]
    pub fn wait(self) -> Reload {
        let mut state = self.completion.state.lock().unwrap_or_else(PoisonError::into_inner);
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
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.result = Some(reload);
        self.done.notify_all();
        if let Some(waker) = state.waker.take() {
            waker.wake();
        }
    }
}

impl Future for Reloading {
    type Output = Reload;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Reload> {
        let mut state = self.completion.state.lock().unwrap_or_else(PoisonError::into_inner);
        match state.result.take() {
            Some(reload) => Poll::Ready(reload),
            None => {
                state.waker = Some(context.waker().clone());
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Reloading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reloading").finish_non_exhaustive()
    }
}
