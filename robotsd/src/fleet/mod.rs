//! The replicas of the same sites as a fleet: one document in the store that all of them read.
//!
//! `document` is what stands there and how it is changed, `member` what a replica knows and makes of it; both are pure. `handle` is what
//! the other rooms have of it, `keeper` the thread that talks to the store, `standing` the words for the state of each replica,
//! `turns` which replica notifies people of it.
//!
//! No request waits for the store, and none asks whether there is a fleet: a mark turns a kill switch, which is a part of the
//! snapshot that a request loads.

mod document;
mod first_version;
mod handle;
mod keeper;
mod member;
mod standing;
mod turns;

#[cfg(test)]
mod test_store;
#[cfg(test)]
mod tests;

pub(crate) use self::document::EVERY_SITE;
pub(crate) use self::handle::{Fleet, random};
pub(crate) use self::keeper::FleetSites;
