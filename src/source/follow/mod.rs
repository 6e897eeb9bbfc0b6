//! The documents that are fetched and kept: published lists, directories of keys, a registry, parts that are appended to a
//! robots.txt. For applications that append what others keep.
//!
//! 1. A `Document` says how one kind is read, how often it is fetched, and the conditions for accepting it.
//! 2. [`FollowedDocument`] is one that is followed: one loop until it is due, fetch it, conclude. It is fetched with validators, and
//!    kept through every failure.
//! 3. The last good one is saved in a folder (`saved`), for the next start without a network.
//!
//! The evidence of crawlers, and its use, are in `evidence`. Nothing leaves the machine unless a [`FollowedDocument`] or a
//! `Verifier` is started.

mod builder;
mod document;
pub(crate) mod published;
mod saved;

pub use self::builder::FollowBuilder;
pub use self::published::DocumentStatus;
pub(crate) use self::published::{DocumentEvent, FollowedDocument};
pub use self::saved::FollowError;

pub(super) use self::document::{Demand, Document, HOUR, MINUTE};
pub(super) use self::published::{DocumentSettings, EMBEDDED, Following, Held, OWN_FILE, SAVED};
pub(super) use self::saved::{SavedDocuments, read_json, write_json};
