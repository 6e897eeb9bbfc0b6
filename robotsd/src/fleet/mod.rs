//! The replicas of the same sites as a fleet: one document in the store that all of them read.
//!
//! `document` is what stands there and how it is changed, `member` what a replica knows and makes of it; both are pure. `handle` is what
//! the other rooms have of it, `upkeep` what an operator does to the document as a whole, `reader` the thread that reads it, `keeper` the
//! one that writes it and says what the replica has, `link` the connection that each of their tasks has of its own, `asks` what they are
//! asked for, `standing` the words for the state of each replica, `turns` which replica notifies people of it.
//!
//! No request waits for the store, and none asks whether there is a fleet: a mark turns a kill switch, which is a part of the
//! snapshot that a request loads.

mod asks;
mod document;
mod first_version;
mod handle;
mod keeper;
mod link;
mod member;
mod reader;
mod standing;
mod turns;
mod upkeep;

#[cfg(test)]
mod test_store;
#[cfg(test)]
mod tests;

pub(crate) use self::asks::FleetSites;
pub(crate) use self::document::EVERY_SITE;
pub(crate) use self::handle::{Fleet, random};
