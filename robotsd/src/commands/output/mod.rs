//! What several commands write.

pub(super) mod agent_summary;
pub(super) mod checked_share;
pub(super) mod page;
pub(super) mod standard_output;
pub(super) mod unmet;
pub(super) mod unread_lines;
