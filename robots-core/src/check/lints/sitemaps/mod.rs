//! Addresses of sitemaps and of the site.

pub(super) mod host_repeated;
pub(super) mod host_value;
pub(super) mod sitemap_not_absolute;
