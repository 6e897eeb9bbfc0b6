//! The name of a site, as everything that logs about it holds it.

use std::sync::Arc;

/// The name of a site. Cheap to clone.
pub(crate) type SiteName = Arc<str>;
