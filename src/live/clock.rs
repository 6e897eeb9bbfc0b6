//! The clock of a site: the system's, unless a test sets another.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// A source of the current time. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn new(read: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(read))
    }

    pub(crate) fn now(&self) -> SystemTime {
        (self.0)()
    }

    pub(crate) fn as_fn(&self) -> &(dyn Fn() -> SystemTime + Send + Sync) {
        &*self.0
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self::new(SystemTime::now)
    }
}

impl fmt::Debug for Clock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Clock").field(&self.now()).finish()
    }
}
