#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
// The crate's page is also that of the registry, where links lead to docs.rs. Here they lead to the items: of two definitions
// of a link the first counts.
#![cfg_attr(all(feature = "axum08", feature = "watch"), doc = include_str!("docs/crate_links.md"))]
#![cfg_attr(
    all(feature = "axum08", feature = "watch", feature = "tls"),
    doc = "[`docs::crawlers`]: mod@crate::docs::crawlers\n"
)]
#![cfg_attr(all(feature = "axum08", feature = "watch"), doc = include_str!("../CRATE.md"))]
#![cfg_attr(
    not(all(feature = "axum08", feature = "watch")),
    doc = "Serve, check, reload and enforce a site's robots.txt. The whole page, and the chapters, are there with all features."
)]

#[cfg(all(feature = "layer", feature = "watch"))]
pub mod docs;
#[cfg(feature = "layer")]
pub mod layer;
pub mod live;
pub mod source;

#[doc(hidden)]
pub use robots_core::rate;
#[doc(inline)]
pub use robots_core::{agent, check, identity, policy, rules};

#[cfg(feature = "layer")]
#[doc(no_inline)]
pub use crate::layer::RobotsLayer;
#[doc(no_inline)]
pub use crate::live::LiveRobots;
#[doc(no_inline)]
pub use crate::policy::{Mode, Policy};
#[doc(no_inline)]
pub use crate::rules::RobotsTxt;
#[doc(no_inline)]
pub use crate::source::{HostMap, Sites};

/// Items for robotsd. No promise: any release may change it.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "layer")]
    pub use crate::layer::forwarded::ForwardedWay;
    #[cfg(feature = "layer")]
    pub use crate::layer::record::text;
    pub use crate::live::state::disk::is_cut;
    pub use crate::live::state::folder_name::folder_name;
    pub use crate::live::state::replacement::replace;
    #[cfg(feature = "tls")]
    pub use crate::source::fetch::tls::{certificate_fault, client_config, roots_of, system_roots};
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::wire::{Excess, exchange, send};
    pub use robots_core::debug_as;
    pub use robots_core::internals::{AddressClass, Grace, first_few};
}

/// The code of the project's page, which the tests of the documentation compile.
#[cfg(all(doctest, feature = "axum08", feature = "watch"))]
#[doc = include_str!("../README.md")]
struct ProjectPage;
