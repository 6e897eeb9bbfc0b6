//! The board: which crawler read which version of robots.txt, its requests after that, and the judgement of it.
//!
//! Workers count in a [`recorder`]; the control thread takes that into the [`table`], which is written to the
//! [`history`], a file for each [`day`] of a site. [`row`] is what all of them add up.
//! [`judgement`] says what requests say about a crawler, with the times that [`watch`] does not cover; [`summary`]
//! makes the [`report`] of it. The [`requested_paths`] are for the gate. [`visitors`] are people sent by services, and
//! [`given_back`](mod@given_back) weighs them against what crawlers took. Nothing here decides about a request, and none waits for it.

mod row;

mod given_back;
mod judgement;
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

pub(crate) use self::given_back::{OperatorBalance, TakenPages};
pub(crate) use self::judgement::{Disallowed, GONE_BY, GoneBy, MOST_VERSIONS};
pub(crate) use self::log_board::{LogBoard, LoggedTimes};
pub(crate) use self::page::{BoardPage, style};
pub(crate) use self::recorder::{
    Counted, CrawlerRequest, RowScratch, SiteRecorders, cut, standing, write_origin, written as version_name,
};
pub(crate) use self::row::{Done, Second, date_of, seconds, written as seconds_in_words};
pub(crate) use self::summary::Evidence;
pub(crate) use self::table::{Board, SiteMoment};
pub(crate) use self::view::{BoardQuery, BoardSpan, ReplicaRows, join, merge};
pub(crate) use self::watch::Sight;
pub(crate) use crate::counting::{is_page, service_of};
pub(crate) use report::{BoardReport, CrawlerBoard, SiteBoard, TrafficTotals, csv};

#[cfg(any(test, fuzzing))]
pub(crate) mod test_octets;
#[cfg(test)]
mod tests;
