//! A fleet consists of replicas that serve the same sites. The replicas share a document in a
//! store, which contains off switches and accepted versions.
//!
//! `document` defines the document and its changes. `member` defines what a replica knows and how
//! it applies the document. Neither module has side effects. `handle` is the interface for other
//! modules, and `upkeep` creates, restores and repairs the document. The thread of `reader` reads
//! the document, and the thread of `keeper` writes it and sends heartbeats.
//!
//! Requests of visitors never wait for the store. An off switch of the fleet sets a kill switch in
//! the process, and only this kill switch is read when a request arrives.

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
