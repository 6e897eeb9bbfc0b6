//! The replicas of the same sites as a fleet: all of them read one document in the store.
//!
//! `document` defines the document and its changes, and `member` what a replica knows and how it
//! applies the document; both are pure. `handle` is the interface for other modules, and `upkeep`
//! contains operations on the document as a whole. `reader` is the thread that reads the document,
//! and `keeper` the thread that writes it and sends heartbeats. `link` is the connection of each of
//! their tasks, and `asks` contains the requests to them. `replica_status` names the state of each
//! replica, and `turns` decides which replica notifies people.
//!
//! No request waits for the store or checks whether there is a fleet: an off switch operates a kill
//! switch, which is part of the snapshot that a request loads.

mod asks;
mod document;
mod first_version;
mod handle;
mod keeper;
mod link;
mod member;
mod reader;
mod replica_status;
mod turns;
mod upkeep;

#[cfg(test)]
mod test_store;
#[cfg(test)]
mod tests;

pub(crate) use self::asks::FleetSites;
pub(crate) use self::document::EVERY_SITE;
pub(crate) use self::handle::{Fleet, random};
