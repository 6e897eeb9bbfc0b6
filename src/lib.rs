#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]
// The package registry also displays `CRATE.md`, so the links in `CRATE.md` point to docs.rs. For
// rustdoc, `crate_links.md` redefines these links as links to items of this crate. `crate_links.md`
// is included first, because rustdoc uses the first definition of a link.
#![cfg_attr(all(feature = "axum08", feature = "watch"), doc = include_str!("docs/crate_links.md"))]
#![cfg_attr(all(feature = "axum08", feature = "watch"), doc = include_str!("../CRATE.md"))]
#![cfg_attr(
    not(all(feature = "axum08", feature = "watch")),
    doc = "Serve, check, reload and enforce a site's robots.txt. The full page needs all features."
)]

pub mod docs;
#[cfg(feature = "layer")]
pub mod layer;
pub mod live;
pub mod source;

/// Compiles and runs the code on the pages of the handbook.
#[cfg(all(doctest, feature = "axum08", feature = "verify", feature = "watch"))]
mod handbook {
    #[doc = include_str!("../docs/src/start/axum.md")]
    mod axum {}
    #[doc = include_str!("../docs/src/start/crawler.md")]
    mod crawler {}
    #[doc = include_str!("../docs/src/howto/library.md")]
    mod library {}
    #[doc = include_str!("../docs/src/howto/rate-limits.md")]
    mod rate_limits {}
    #[doc = include_str!("../docs/src/howto/test-a-policy.md")]
    mod test_a_policy {}
    #[doc = include_str!("../docs/src/explanation/identity.md")]
    mod identity {}
}

#[doc(hidden)]
pub use robots_core::rate;
#[doc(inline)]
pub use robots_core::{agent, check, identity, policy, rules};

// The items that applications use most.
#[cfg(feature = "axum08")]
#[doc(no_inline)]
pub use crate::layer::axum08::CrawlerRequest;
#[cfg(feature = "layer")]
#[doc(no_inline)]
pub use crate::layer::{Event, Record, RobotsLayer};
#[doc(no_inline)]
pub use crate::live::{Gate, LiveRobots, Rejection, StateDir, StateError, Status};
#[doc(no_inline)]
pub use crate::policy::{Mode, Policy};
#[doc(no_inline)]
pub use crate::rules::RobotsTxt;
#[doc(no_inline)]
pub use crate::source::{HostMap, Sites};

/// The building blocks of `RobotsLayer`, for a proxy or for an integration with another framework.
#[cfg(feature = "layer")]
pub mod parts {
    pub use crate::layer::answer::{Answer, Outcome};
    pub use crate::layer::layer::Judgement;
    #[doc(hidden)]
    pub use crate::layer::layer::SameBodyLayer;
    pub use crate::layer::original::OriginalRequest;
    #[doc(hidden)]
    pub use crate::layer::rate_limit::RateLimitedRequest;
    pub use crate::layer::refusal::IntoRefusal;
    #[doc(hidden)]
    pub use crate::layer::service::RobotsTxtService;
    pub use crate::layer::service::{ResponseBody, Robots};
    pub use crate::layer::signals::ResponseFields;
    #[cfg(feature = "verify")]
    pub use crate::layer::verify::VerifyLayer;
}

/// Items for robotsd. Any release may change these items.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "layer")]
    pub use crate::layer::event::Provisional;
    #[cfg(feature = "layer")]
    pub use crate::layer::fields::{
        HOP_BY_HOP, is_of_caches, is_of_connection, is_of_content, plain_name, vary_by_agent,
    };
    #[cfg(feature = "layer")]
    pub use crate::layer::forwarded::ForwardedWay;
    #[cfg(feature = "layer")]
    pub use crate::layer::grpc::GrpcCode;
    #[cfg(feature = "layer")]
    pub use crate::layer::plain_ascii::is_plain_ascii;
    #[cfg(feature = "layer")]
    pub use crate::layer::record::{mark, text};
    #[cfg(feature = "layer")]
    pub use crate::layer::service::{AnyBody, BodyKind, ResponseFuture, SameBody};
    #[cfg(all(feature = "layer", feature = "verify"))]
    pub use crate::layer::verify::{Verify, VerifyFuture};
    pub use crate::live::agent_cache::AgentLookups;
    pub use crate::live::compile_cache::CompileCache;
    pub use crate::live::gate::WatchedPages;
    pub use crate::live::handle::Condition;
    pub use crate::live::publisher::Remembered;
    pub use crate::live::reload::Attribution;
    pub use crate::live::source::Appendix;
    pub use crate::live::state::ProblemEvent;
    pub use crate::live::state::disk::is_cut;
    pub use crate::live::state::folder_name::folder_name;
    pub use crate::live::state::replacement::{replace, sync_folder};
    pub use crate::source::builder::SiteSource;
    pub use crate::source::directory::DirectoryEvent;
    #[cfg(feature = "verify")]
    pub use crate::source::evidence::claim_paths::{ClaimPath, SuspectPath};
    #[cfg(feature = "verify")]
    pub use crate::source::evidence::dns_resolver::NameResolver;
    #[cfg(feature = "verify")]
    pub use crate::source::evidence::documents::ListCopy;
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::client::FetchAnswer;
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::fetcher::FetchBody;
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::freshness::{Freshness, Schedule};
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::outcome::Validators;
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::remote::RemoteSource;
    #[cfg(feature = "tls")]
    pub use crate::source::fetch::tls::{certificate_fault, client_config, roots_of, system_roots};
    #[cfg(feature = "fetch")]
    pub use crate::source::fetch::wire::{Excess, exchange, send};
    pub use crate::source::file_source::FileSource;
    #[cfg(feature = "fetch")]
    pub use crate::source::follow::published::{DocumentEvent, FollowedDocument};
    pub use crate::source::hosts::Origin;
    #[cfg(feature = "watch")]
    pub use crate::source::watch::Watched;
    pub use robots_core::debug_as;
    pub use robots_core::internals::{
        AddressClass, Grace, RefusalCase, RefusalTable, RefusedRequest, damerau_levenshtein, first_few,
    };
}

/// Compiles and runs the examples in `README.md`.
#[cfg(all(doctest, feature = "axum08", feature = "watch"))]
#[doc = include_str!("../README.md")]
struct ProjectPage;
