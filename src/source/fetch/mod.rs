//! Fetches robots.txt files over HTTP, and interprets the responses: for sites whose file is
//! elsewhere, and for authors of crawlers.
//!
//! Crawlers and sites interpret a response differently. A *crawler* needs to know whether it may
//! fetch: a failing server means no, a missing file means yes. [`CrawlerCache`] implements this for
//! authors of crawlers. A *site* needs its own rules, and a failing server gives no information
//! about them. So [`LiveRobots::upstream`](crate::live::LiveRobots::upstream) and
//! [`LiveRobots::url`](crate::live::LiveRobots::url) keep the last good version through every
//! failure, and never invent a disallow. They believe that a file is gone only after it has been
//! missing for a day.
//!
//! A [`Fetcher`] does the fetching: one thread for all sites that share it, separate from the
//! threads that serve requests.
//!
//! This module is an HTTP client; it serves nothing and checks no rules.

pub(crate) mod client;
mod crawler;
pub(crate) mod fetcher;
pub(crate) mod freshness;
pub(crate) mod outcome;
mod poller;
pub(crate) mod remote;
mod resolver;
mod site_freshness;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod url;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

pub(crate) use self::client::FetchAnswer;
pub use self::client::FetchRequest;
pub(super) use self::client::{Client, FetchMode, FetchTarget};
pub use self::crawler::{CrawlerCache, CrawlerReading};
pub(super) use self::fetcher::FetcherTask;
pub use self::fetcher::{Fetcher, FetcherBuilder};
pub(crate) use self::freshness::Schedule;
pub(super) use self::freshness::later;
pub(crate) use self::outcome::Validators;
pub use self::outcome::{FetchError, FetchErrorKind, FetchOutcome};
pub use self::url::FetchUrl;
