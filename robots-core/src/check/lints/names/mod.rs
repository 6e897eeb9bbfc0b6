//! The names of user-agent lines.

pub(super) mod browser_header_as_name;
pub(super) mod control_token;
pub(super) mod cut_product_token;
pub(super) mod empty_user_agent;
pub(super) mod ignores_robots;
pub(super) mod star_with_text;
pub(super) mod unknown_crawler;
