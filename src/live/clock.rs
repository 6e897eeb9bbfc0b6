//! What time it is: the system's clock, unless a test sets another.

use std::fmt;
use std::sync::Arc;
use std::time::SystemTime;

/// Tells the time. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Clock(Arc<dyn Fn() -> SystemTime + Send + Sync>);

impl Clock {
    pub(crate) fn new(tell: impl Fn() -> SystemTime + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
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
