//! The table of all lints. Each lint has its own file in the folder of its topic, such as `paths`.
//!
//! To add a lint, add its file, its `mod` line and its row in the table. A test checks the examples
//! of each lint.

mod delays {
    pub(super) mod crawl_delay_decimal;
    pub(super) mod crawl_delay_ignored;
    pub(super) mod crawl_delay_long;
    pub(super) mod crawl_delay_value;
    pub(super) mod crawl_delay_zero;
    pub(super) mod request_rate;
    pub(super) mod visit_time;
}

mod effects {
    pub(super) mod ad_file_disallowed;
    pub(super) mod assets_disallowed;
    pub(super) mod ignores_star;
    pub(super) mod search_engine_refused;
    pub(super) mod secret_path;
    pub(super) mod sitemap_disallowed;
    pub(super) mod star_rules_dropped;
    pub(super) mod whole_site_disallowed;
}

mod fields {
    pub(super) mod missing_colon;
    pub(super) mod misspelled_directive;
    pub(super) mod not_a_field;
    pub(super) mod several_directives;
    pub(super) mod unknown_directive;
    pub(super) mod unknown_lint;
}

mod file {
    pub(super) mod binary_file;
    pub(super) mod byte_order_mark;
    pub(super) mod cr_line_end;
    pub(super) mod empty_file;
    pub(super) mod html_instead_of_text;
    pub(super) mod invalid_utf_8;
    pub(super) mod long_line;
    pub(super) mod no_known_field;
    pub(super) mod nul_octet;
    pub(super) mod over_500_kib;
    pub(super) mod utf_16;
}

mod groups {
    pub(super) mod blank_line_in_group;
    pub(super) mod duplicate_group;
    pub(super) mod group_without_rules;
    pub(super) mod line_between_names;
    pub(super) mod rule_before_group;
}

mod names {
    pub(super) mod browser_header_as_name;
    pub(super) mod control_token;
    pub(super) mod cut_product_token;
    pub(super) mod empty_user_agent;
    pub(super) mod ignores_robots;
    pub(super) mod star_with_text;
    pub(super) mod unknown_crawler;
}

mod paths {
    pub(super) mod dollar_inside;
    pub(super) mod hash_in_path;
    pub(super) mod host_in_path;
    pub(super) mod invisible_character;
    pub(super) mod needless_escape;
    pub(super) mod path_without_slash;
    pub(super) mod query_as_path;
    pub(super) mod redundant_star;
    pub(super) mod regular_expression;
    pub(super) mod route_parameter;
    pub(super) mod several_paths;
    pub(super) mod space_in_path;
    pub(super) mod unescaped_non_ascii;
    pub(super) mod url_as_path;
}

mod rules {
    pub(super) mod allow_disallow_tie;
    pub(super) mod costly_wildcards;
    pub(super) mod duplicate_rule;
    pub(super) mod rule_on_exempt_path;
    pub(super) mod shadowed_rule;
}

mod sitemaps {
    pub(super) mod host_repeated;
    pub(super) mod host_value;
    pub(super) mod sitemap_not_absolute;
}

mod usage {
    pub(super) mod content_signal_value;
    pub(super) mod content_usage_value;
    pub(super) mod license_value;
    pub(super) mod noindex;
}

use super::lint::Lint;

static LINTS: &[Lint] = &[
    file::byte_order_mark::LINT,
    file::utf_16::LINT,
    file::binary_file::LINT,
    file::invalid_utf_8::LINT,
    file::html_instead_of_text::LINT,
    file::no_known_field::LINT,
    file::empty_file::LINT,
    file::over_500_kib::LINT,
    file::long_line::LINT,
    file::nul_octet::LINT,
    file::cr_line_end::LINT,
    fields::several_directives::LINT,
    fields::not_a_field::LINT,
    fields::missing_colon::LINT,
    fields::unknown_directive::LINT,
    fields::misspelled_directive::LINT,
    fields::unknown_lint::LINT,
    groups::rule_before_group::LINT,
    groups::duplicate_group::LINT,
    groups::blank_line_in_group::LINT,
    groups::line_between_names::LINT,
    groups::group_without_rules::LINT,
    names::empty_user_agent::LINT,
    names::cut_product_token::LINT,
    names::browser_header_as_name::LINT,
    names::star_with_text::LINT,
    names::unknown_crawler::LINT,
    names::control_token::LINT,
    names::ignores_robots::LINT,
    paths::path_without_slash::LINT,
    paths::url_as_path::LINT,
    paths::host_in_path::LINT,
    paths::several_paths::LINT,
    paths::space_in_path::LINT,
    paths::hash_in_path::LINT,
    paths::dollar_inside::LINT,
    paths::regular_expression::LINT,
    paths::route_parameter::LINT,
    paths::query_as_path::LINT,
    paths::redundant_star::LINT,
    paths::invisible_character::LINT,
    paths::unescaped_non_ascii::LINT,
    paths::needless_escape::LINT,
    rules::duplicate_rule::LINT,
    rules::shadowed_rule::LINT,
    rules::allow_disallow_tie::LINT,
    rules::rule_on_exempt_path::LINT,
    rules::costly_wildcards::LINT,
    effects::whole_site_disallowed::LINT,
    effects::ignores_star::LINT,
    effects::star_rules_dropped::LINT,
    effects::assets_disallowed::LINT,
    effects::sitemap_disallowed::LINT,
    effects::secret_path::LINT,
    effects::ad_file_disallowed::LINT,
    effects::search_engine_refused::LINT,
    sitemaps::sitemap_not_absolute::LINT,
    sitemaps::host_value::LINT,
    sitemaps::host_repeated::LINT,
    delays::crawl_delay_value::LINT,
    delays::crawl_delay_long::LINT,
    delays::crawl_delay_decimal::LINT,
    delays::crawl_delay_zero::LINT,
    delays::crawl_delay_ignored::LINT,
    delays::request_rate::LINT,
    delays::visit_time::LINT,
    usage::noindex::LINT,
    usage::content_usage_value::LINT,
    usage::content_signal_value::LINT,
    usage::license_value::LINT,
];

impl Lint {
    /// Returns all lints.
    pub fn all() -> &'static [Self] {
        LINTS
    }

    /// Returns the lint with this code; `None` if the code is unknown.
    #[doc(hidden)]
    pub fn of_code(code: &str) -> Option<&'static Self> {
        LINTS.iter().find(|lint| lint.code == code)
    }
}

#[cfg(test)]
mod tests;
