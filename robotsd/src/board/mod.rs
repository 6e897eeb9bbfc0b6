//! The board: which crawler read which version of robots.txt, its requests after that, and the judgement of it.
//!
//! Workers count in a [`recorder`]; the control thread takes that into the [`table`], which is written to the
//! [`history`], a file for each [`day`] of a site. [`row`] is what all of them add up.
//! [`judgement`] says what requests say about a crawler, with the times that [`watch`] does not cover; [`summary`]
//! makes the [`report`] of it. The [`requested_paths`] are for the gate. Nothing here decides about a request, and none
//! waits for it.

mod row;

mod judgement;
mod watch;

mod day;

mod history;
mod recorder;
mod report;
mod requested_paths;
mod summary;

mod table;
mod view;

mod page;

pub(crate) use self::page::{BoardPage, PageReload, style};
pub(crate) use self::recorder::SiteRecorders;
pub(crate) use self::row::{Second, seconds};
pub(crate) use self::table::{Board, SiteMoment};
pub(crate) use self::view::{BoardQuery, BoardSpan, merge};
pub(crate) use self::watch::Sight;
pub(crate) use report::{BoardReport, CrawlerBoard, TrafficTotals, csv};

#[cfg(test)]
mod tests;
