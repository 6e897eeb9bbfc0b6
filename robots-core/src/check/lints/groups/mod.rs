//! Where groups begin and end.

pub(super) mod blank_line_in_group;
pub(super) mod duplicate_group;
pub(super) mod group_without_rules;
pub(super) mod line_between_names;
pub(super) mod rule_before_group;
