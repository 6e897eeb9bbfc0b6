//! Events of a state directory, and its listeners.

use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, PoisonError};

/// A trouble of a state directory begins or ends. `Display` gives it in one line.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct StateEvent<'a> {
    pub(super) site: Option<&'a str>,
    pub(super) trouble: Result<&'a str, &'a str>,
}

type StateListener = Box<dyn Fn(&StateEvent<'_>) + Send + Sync>;

#[derive(Default)]
pub(super) struct StateListeners(Mutex<Vec<StateListener>>);

impl<'a> StateEvent<'a> {
    /// The site whose part of the directory it is about; `None` where it is the directory itself.
    #[must_use]
    pub const fn site(&self) -> Option<&'a str> {
        self.site
    }

    /// The trouble, in the words of [`Status`](crate::live::Status); `None` where it is over.
    #[must_use]
    pub const fn trouble(&self) -> Option<&'a str> {
        match self.trouble {
            Err(trouble) => Some(trouble),
            Ok(_) => None,
        }
    }
}

impl fmt::Display for StateEvent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(site) = self.site {
            write!(f, "{site}: ")?;
        }
        match self.trouble {
            Ok(text) | Err(text) => f.write_str(text),
        }
    }
}

impl StateListeners {
    pub(super) fn add(&self, listener: StateListener) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(listener);
    }

    pub(super) fn notify(&self, event: &StateEvent<'_>) {
        #[cfg(feature = "tracing")]
        match event.trouble {
            Err(_) => tracing::warn!(target: "tower_robots::state", "{event}"),
            Ok(_) => tracing::info!(target: "tower_robots::state", "{event}"),
        }
        for listener in &*self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            // A listener's panic must not end the writing; the panic hook has reported it.
            let _ = catch_unwind(AssertUnwindSafe(|| listener(event)));
        }
    }
}
