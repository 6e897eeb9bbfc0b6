//! Documents that are fetched and saved: published lists, key directories, a registry, and parts
//! that are appended to a robots.txt. For applications that append lists maintained by others.
//!
//! 1. A `Document` defines how one kind is parsed, how often it is fetched, and when a version must
//!    be accepted.
//! 2. [`FollowedDocument`] is one followed document. Its task loops: wait until due, fetch, conclude.
//!    Fetches use validators, and the document is kept through every failure.
//! 3. The last good version is saved in a folder (`saved`), for the next start without a network.
//!
//! The evidence of crawlers, and its use, are in `evidence`. Nothing leaves the machine unless a
//! [`FollowedDocument`] or a `Verifier` is started.

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
