//! The lints, one a file in the folder of its topic, and the table of all of them.
//!
//! A new lint is a file, its `mod` line and its row in the table; a test walks the table and tries every example.

/// How fast, and when.
mod delays {
    pub(super) mod crawl_delay_decimal;
    pub(super) mod crawl_delay_ignored;
    pub(super) mod crawl_delay_long;
    pub(super) mod crawl_delay_value;
    pub(super) mod crawl_delay_zero;
    pub(super) mod request_rate;
    pub(super) mod visit_time;
}

/// The effects of the rules on a site.
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

/// The marks of a field, and of each kind of field.
mod fields {
    pub(super) mod missing_colon;
    pub(super) mod misspelled_directive;
    pub(super) mod not_a_field;
    pub(super) mod unknown_directive;
    pub(super) mod unknown_lint;
}

/// The file as a whole, and its lines.
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

/// The boundaries of groups.
mod groups {
    pub(super) mod blank_line_in_group;
    pub(super) mod duplicate_group;
    pub(super) mod group_without_rules;
    pub(super) mod line_between_names;
    pub(super) mod rule_before_group;
}

/// The names of user-agent lines.
mod names {
    pub(super) mod browser_header_as_name;
    pub(super) mod control_token;
    pub(super) mod cut_product_token;
    pub(super) mod empty_user_agent;
    pub(super) mod ignores_robots;
    pub(super) mod star_with_text;
    pub(super) mod unknown_crawler;
}

/// How paths of rules are spelled.
mod paths {
    pub(super) mod dollar_inside;
    pub(super) mod hash_in_path;
    pub(super) mod needless_escape;
    pub(super) mod path_without_slash;
    pub(super) mod redundant_star;
    pub(super) mod space_in_path;
    pub(super) mod unescaped_non_ascii;
    pub(super) mod url_as_path;
}

/// Rules beside each other, and their cost.
mod rules {
    pub(super) mod allow_disallow_tie;
    pub(super) mod costly_wildcards;
    pub(super) mod duplicate_rule;
    pub(super) mod rule_on_exempt_path;
    pub(super) mod shadowed_rule;
}

/// Addresses of sitemaps and of the site.
mod sitemaps {
    pub(super) mod host_repeated;
    pub(super) mod host_value;
    pub(super) mod sitemap_not_absolute;
}

/// The permitted uses of pages.
mod usage {
    pub(super) mod content_signal_value;
    pub(super) mod content_usage_value;
    pub(super) mod license_value;
    pub(super) mod noindex;
}

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
        star_rules_dropped,
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
