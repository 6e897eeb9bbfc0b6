//! The board shows which version of robots.txt each crawler fetched, what the crawler requested
//! after that, and whether it obeys. In this module, a *read* is a fetch of robots.txt by a
//! crawler.
//!
//! Each worker counts requests in a [`recorder`]. The control thread moves these counts into the
//! [`table`], and a blocking thread writes the table to the [`history`]: one file per site and
//! [`day`]. The recorder, the table and the history all store crawlers' counts in [`row`]s.
//! [`judgement`] decides whether a crawler ignores robots.txt; [`watch`] tells `judgement` when
//! fetches may have been missed. [`summary`] builds the [`report`] from the rows and judgements.
//! [`requested_paths`] holds the most requested paths. Before a new version of robots.txt goes
//! live, robotsd checks whether the version disallows one of these paths. [`visitors`] counts
//! people that services such as search engines referred to the site; [`referrals`](mod@referrals)
//! compares the number of these visitors with the number of pages that crawlers fetched. The board
//! never affects or delays a request.
//!
//! To show another figure, add it to the [`report`] and to [`page`]. Figures about all requests of
//! a site, such as durations, are not in the rows: the module `counting` counts them, and
//! `ServedSite::traffic` (in `sites`) passes them to the board.

mod row;

mod judgement;
mod referrals;
mod visitors;
mod watch;

mod day;

mod history;
mod recorder;
mod report;
mod requested_paths;
mod summary;

mod table;
mod view;

mod log_board;

mod page;

pub(crate) use self::judgement::{Disallowed, MAX_VERSIONS, UsableVersion, VERSION_LIFETIME};
pub(crate) use self::log_board::{LogBoard, LoggedTimes};
pub(crate) use self::page::{BoardPage, style};
pub(crate) use self::recorder::{
    Counted, CrawlerRequest, RowScratch, SiteRecorders, claim_result, cut, write_origin, written as version_name,
};
pub(crate) use self::referrals::{OperatorBalance, TakenPages};
pub(crate) use self::row::{Done, Second, date_of, seconds, written as seconds_in_words};
pub(crate) use self::summary::Evidence;
pub(crate) use self::table::{Board, SiteUpdate};
pub(crate) use self::view::{BoardQuery, BoardSpan, ReplicaRows, join, merge};
pub(crate) use self::watch::Sight;
pub(crate) use crate::counting::{is_page, service_of};
pub(crate) use report::{BoardReport, CrawlerBoard, SiteBoard, TrafficTotals, csv};

#[cfg(any(test, fuzzing))]
pub(crate) mod test_any_input;
#[cfg(test)]
mod tests;
