//! Rules beside each other, and what they cost.

pub(super) mod allow_disallow_tie;
pub(super) mod costly_wildcards;
pub(super) mod duplicate_rule;
pub(super) mod rule_on_exempt_path;
pub(super) mod shadowed_rule;
