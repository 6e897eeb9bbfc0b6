//! Fetches robots.txt files over HTTP, and handles the responses. Use this module for sites whose
//! robots.txt is on another server, and for crawlers.
//!
//! Crawlers and sites need different information from a response.
//!
//! - A *crawler* needs to know whether it may fetch pages. If the server fails, the crawler must
//!   not fetch any page. If the file is missing, the crawler may fetch all pages. [`CrawlerCache`]
//!   implements these rules for authors of crawlers.
//! - A *site* needs to know its own rules, but the response of a failing server does not contain
//!   them. So [`LiveRobots::upstream`](crate::live::LiveRobots::upstream) and
//!   [`LiveRobots::url`](crate::live::LiveRobots::url) keep the last good version while fetches
//!   fail, and never disallow everything because of a failure. If the file is missing, a site stops
//!   enforcing the last version only after a day.
//!
//! A [`Fetcher`] fetches the files. Each fetcher has a single thread for all sites that share the
//! fetcher. This thread is separate from the threads that serve requests.
//!
//! This module contains only the client side: it does not serve requests.

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
pub(super) use self::url::without_secrets;
