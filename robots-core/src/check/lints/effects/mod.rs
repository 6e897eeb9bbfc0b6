//! What the rules do to a site.

pub(super) mod ad_file_disallowed;
pub(super) mod assets_disallowed;
pub(super) mod ignores_star;
pub(super) mod search_engine_refused;
pub(super) mod secret_path;
pub(super) mod sitemap_disallowed;
pub(super) mod whole_site_disallowed;
