//! The lints, one a file, and the table of all of them.
//!
//! A new lint is a file here and a row in the table; a test walks the table and tries every example. A lint whose findings
//! can be corrected has the edits for it in its file too, and a row in a second table.

mod ad_file_disallowed;
mod allow_disallow_tie;
mod assets_disallowed;
mod binary_file;
mod blank_line_in_group;
mod browser_header_as_name;
mod byte_order_mark;
mod content_signal_value;
mod content_usage_value;
mod control_token;
mod costly_wildcards;
mod cr_line_end;
mod crawl_delay_decimal;
mod crawl_delay_ignored;
mod crawl_delay_long;
mod crawl_delay_value;
mod crawl_delay_zero;
mod cut_product_token;
mod dollar_inside;
mod duplicate_group;
mod duplicate_rule;
mod empty_file;
mod empty_user_agent;
mod group_without_rules;
mod hash_in_path;
mod host_repeated;
mod host_value;
mod html_instead_of_text;
mod ignores_robots;
mod ignores_star;
mod invalid_utf_8;
mod license_value;
mod line_between_names;
mod long_line;
mod missing_colon;
mod misspelled_directive;
mod needless_escape;
mod no_known_field;
mod noindex;
mod not_a_field;
mod nul_octet;
mod over_500_kib;
mod path_without_slash;
mod redundant_star;
mod request_rate;
mod rule_before_group;
mod rule_on_exempt_path;
mod search_engine_refused;
mod secret_path;
mod shadowed_rule;
mod sitemap_disallowed;
mod sitemap_not_absolute;
mod space_in_path;
mod star_with_text;
mod unescaped_non_ascii;
mod unknown_crawler;
mod unknown_directive;
mod unknown_lint;
mod url_as_path;
mod utf_16;
mod visit_time;
mod whole_site_disallowed;

use super::fixable_file::LintFix;
use super::lint::Lint;

static LINTS: [Lint; 62] = [
    // The file and its lines.
    byte_order_mark::LINT,
    utf_16::LINT,
    binary_file::LINT,
    invalid_utf_8::LINT,
    html_instead_of_text::LINT,
    no_known_field::LINT,
    empty_file::LINT,
    over_500_kib::LINT,
    long_line::LINT,
    nul_octet::LINT,
    cr_line_end::LINT,
    // Fields.
    not_a_field::LINT,
    missing_colon::LINT,
    unknown_directive::LINT,
    misspelled_directive::LINT,
    unknown_lint::LINT,
    // Groups.
    rule_before_group::LINT,
    empty_user_agent::LINT,
    cut_product_token::LINT,
    browser_header_as_name::LINT,
    star_with_text::LINT,
    unknown_crawler::LINT,
    control_token::LINT,
    ignores_robots::LINT,
    duplicate_group::LINT,
    blank_line_in_group::LINT,
    line_between_names::LINT,
    group_without_rules::LINT,
    // Rules.
    path_without_slash::LINT,
    url_as_path::LINT,
    space_in_path::LINT,
    hash_in_path::LINT,
    dollar_inside::LINT,
    redundant_star::LINT,
    unescaped_non_ascii::LINT,
    needless_escape::LINT,
    duplicate_rule::LINT,
    shadowed_rule::LINT,
    allow_disallow_tie::LINT,
    rule_on_exempt_path::LINT,
    // Meaning.
    whole_site_disallowed::LINT,
    costly_wildcards::LINT,
    ignores_star::LINT,
    assets_disallowed::LINT,
    sitemap_disallowed::LINT,
    secret_path::LINT,
    ad_file_disallowed::LINT,
    search_engine_refused::LINT,
    // Other lines.
    sitemap_not_absolute::LINT,
    host_value::LINT,
    host_repeated::LINT,
    crawl_delay_value::LINT,
    crawl_delay_long::LINT,
    crawl_delay_decimal::LINT,
    crawl_delay_zero::LINT,
    crawl_delay_ignored::LINT,
    request_rate::LINT,
    visit_time::LINT,
    noindex::LINT,
    content_usage_value::LINT,
    content_signal_value::LINT,
    license_value::LINT,
];

/// The lints whose findings can be corrected, where the file says enough.
static FIXES: [LintFix; 44] = [
    byte_order_mark::FIX,
    utf_16::FIX,
    empty_file::FIX,
    nul_octet::FIX,
    cr_line_end::FIX,
    not_a_field::FIX,
    missing_colon::FIX,
    unknown_directive::FIX,
    misspelled_directive::FIX,
    unknown_lint::FIX,
    rule_before_group::FIX,
    empty_user_agent::FIX,
    cut_product_token::FIX,
    browser_header_as_name::FIX,
    star_with_text::FIX,
    unknown_crawler::FIX,
    duplicate_group::FIX,
    blank_line_in_group::FIX,
    line_between_names::FIX,
    group_without_rules::FIX,
    path_without_slash::FIX,
    url_as_path::FIX,
    space_in_path::FIX,
    hash_in_path::FIX,
    dollar_inside::FIX,
    redundant_star::FIX,
    unescaped_non_ascii::FIX,
    needless_escape::FIX,
    duplicate_rule::FIX,
    shadowed_rule::FIX,
    allow_disallow_tie::FIX,
    sitemap_disallowed::FIX,
    ad_file_disallowed::FIX,
    sitemap_not_absolute::FIX,
    host_value::FIX,
    host_repeated::FIX,
    crawl_delay_value::FIX,
    crawl_delay_long::FIX,
    crawl_delay_decimal::FIX,
    crawl_delay_zero::FIX,
    request_rate::FIX,
    content_usage_value::FIX,
    content_signal_value::FIX,
    license_value::FIX,
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

/// How findings of this lint are corrected; none where the file does not say what is meant.
pub(super) fn fix_of(code: &str) -> Option<&'static LintFix> {
    FIXES.iter().find(|fix| fix.code == code)
}

#[cfg(test)]
mod tests;
