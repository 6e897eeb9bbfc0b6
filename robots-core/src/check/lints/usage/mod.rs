//! What may be done with pages.

pub(super) mod content_signal_value;
pub(super) mod content_usage_value;
pub(super) mod license_value;
pub(super) mod noindex;
