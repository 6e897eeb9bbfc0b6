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

mod client;
mod crawler;
mod fetcher;
mod freshness;
mod outcome;
mod poller;
mod remote;
mod resolver;
mod site_freshness;
#[cfg(feature = "tls")]
pub(crate) mod tls;
mod url;
pub(crate) mod wire;

#[cfg(test)]
mod tests;

pub(super) use self::client::{Client, FetchMode, FetchTarget};
pub use self::client::{FetchAnswer, FetchRequest};
pub use self::crawler::{CrawlerCache, CrawlerReading};
pub(super) use self::fetcher::FetcherTask;
pub use self::fetcher::{FetchBody, Fetcher, FetcherBuilder};
pub(super) use self::freshness::later;
pub use self::freshness::{Freshness, Schedule};
pub use self::outcome::{FetchError, FetchErrorKind, FetchOutcome, Validators};
pub use self::remote::RemoteSource;
pub use self::url::FetchUrl;
