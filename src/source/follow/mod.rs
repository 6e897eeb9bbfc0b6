//! Documents that are fetched and saved: published lists, key directories, a registry, and parts
//! that are appended to a robots.txt. For applications that append lists to a robots.txt which are
//! maintained elsewhere.
//!
//! 1. A `Document` defines how one kind of document is parsed, how often it is fetched, and when a
//!    version must be accepted before it is used.
//! 2. [`FollowedDocument`] is one followed document. Its task repeats: it waits until a fetch is
//!    due, fetches the document, and applies the outcome. Fetches are conditional requests. If a
//!    fetch fails, the last version is kept.
//! 3. The last good version is saved in a folder (`saved`), in case the network is not available at
//!    the next start.
//!
//! The documents that verify crawlers are defined in the module `evidence`. Nothing is sent over
//! the network unless a [`FollowedDocument`] or a `Verifier` is started.

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
