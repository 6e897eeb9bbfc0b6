//! Robots.txt files that are kept behind HTTP, and the meaning of responses: for sites whose file is elsewhere, and for authors of
//! crawlers.
//!
//! A response means different things to a crawler and to a site. A *crawler* needs to know whether it may fetch: a failing
//! server means no, a missing file means yes; [`CrawlerCache`] is that reading, for authors of crawlers. A *site* needs its
//! own rules: a failing server says nothing about them. So [`LiveRobots::upstream`](crate::live::LiveRobots::upstream) and
//! [`LiveRobots::url`](crate::live::LiveRobots::url) keep the last good version through every failure, never invent a
//! disallow, and believe that a file is gone only when it has been gone for a day.
//!
//! Fetching is done by a [`Fetcher`]: one thread for as many sites as share it, never the thread of a request.
//!
//! This room speaks HTTP as a client; it serves nothing and checks no rules.

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
