//! The lints, one a file in the folder of its topic, and the table of all of them.
//!
//! A new lint is a file, its `mod` line and its row in the table; a test walks the table and tries every example.

mod delays;
mod effects;
mod fields;
mod file;
mod groups;
mod names;
mod paths;
mod rules;
mod sitemaps;
mod usage;

use super::lint::Lint;

macro_rules! lints {
    ($($topic:ident { $($name:ident,)+ })+) => {
        static LINTS: &[Lint] = &[$($($topic::$name::LINT,)+)+];
    };
}

lints! {
    file {
        byte_order_mark,
        utf_16,
        binary_file,
        invalid_utf_8,
        html_instead_of_text,
        no_known_field,
        empty_file,
        over_500_kib,
        long_line,
        nul_octet,
        cr_line_end,
    }
    fields {
        not_a_field,
        missing_colon,
        unknown_directive,
        misspelled_directive,
        unknown_lint,
    }
    groups {
        rule_before_group,
        duplicate_group,
        blank_line_in_group,
        line_between_names,
        group_without_rules,
    }
    names {
        empty_user_agent,
        cut_product_token,
        browser_header_as_name,
        star_with_text,
        unknown_crawler,
        control_token,
        ignores_robots,
    }
    paths {
        path_without_slash,
        url_as_path,
        space_in_path,
        hash_in_path,
        dollar_inside,
        redundant_star,
        unescaped_non_ascii,
        needless_escape,
    }
    rules {
        duplicate_rule,
        shadowed_rule,
        allow_disallow_tie,
        rule_on_exempt_path,
        costly_wildcards,
    }
    effects {
        whole_site_disallowed,
        ignores_star,
        assets_disallowed,
        sitemap_disallowed,
        secret_path,
        ad_file_disallowed,
        search_engine_refused,
    }
    sitemaps {
        sitemap_not_absolute,
        host_value,
        host_repeated,
    }
    delays {
        crawl_delay_value,
        crawl_delay_long,
        crawl_delay_decimal,
        crawl_delay_zero,
        crawl_delay_ignored,
        request_rate,
        visit_time,
    }
    usage {
        noindex,
        content_usage_value,
        content_signal_value,
        license_value,
    }
}

impl Lint {
    /// Every lint there is.
    pub fn all() -> &'static [Self] {
        LINTS
    }

    /// The lint with this code.
    pub fn of_code(code: &str) -> Option<&'static Self> {
        LINTS.iter().find(|lint| lint.code == code)
    }
}

#[cfg(test)]
mod tests;
