//! How fast, and when.

pub(super) mod crawl_delay_decimal;
pub(super) mod crawl_delay_ignored;
pub(super) mod crawl_delay_long;
pub(super) mod crawl_delay_value;
pub(super) mod crawl_delay_zero;
pub(super) mod request_rate;
pub(super) mod visit_time;
