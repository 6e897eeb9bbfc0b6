//! The lints, one a file, and the table of all of them.
//!
//! A new lint is a file here and a row in the table; a test walks the table and tries every example.

mod byte_order_mark;
mod costly_wildcards;
mod cut_product_token;
mod empty_file;
mod empty_user_agent;
mod group_without_rules;
pub(super) mod html_instead_of_text;
mod long_line;
mod missing_colon;
mod misspelled_directive;
mod not_a_field;
mod nul_octet;
mod over_500_kib;
mod path_without_slash;
mod rule_before_group;
mod sitemap_not_absolute;
mod unknown_directive;
mod whole_site_disallowed;

use super::lint::Lint;

static LINTS: [Lint; 18] = [
    // The file and its lines.
    byte_order_mark::LINT,
    html_instead_of_text::LINT,
    empty_file::LINT,
    over_500_kib::LINT,
    long_line::LINT,
    nul_octet::LINT,
    // Fields.
    not_a_field::LINT,
    missing_colon::LINT,
    unknown_directive::LINT,
    misspelled_directive::LINT,
    // Groups.
    rule_before_group::LINT,
    empty_user_agent::LINT,
    cut_product_token::LINT,
    group_without_rules::LINT,
    // Rules.
    path_without_slash::LINT,
    whole_site_disallowed::LINT,
    costly_wildcards::LINT,
    // Other lines.
    sitemap_not_absolute::LINT,
];

/// Every lint there is.
#[must_use]
pub fn lints() -> &'static [Lint] {
    &LINTS
}

/// The lint with this code.
#[must_use]
pub fn lint(code: &str) -> Option<&'static Lint> {
    LINTS.iter().find(|lint| lint.code() == code)
}

#[cfg(test)]
mod tests;
