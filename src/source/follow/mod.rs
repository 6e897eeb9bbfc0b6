//! Documents that are fetched regularly and saved: published lists, key directories, a registry,
//! and parts that are appended to a robots.txt. Use this module if an application needs documents
//! that are maintained elsewhere.
//!
//! 1. The trait `Document` defines a kind of document: how it is parsed, how often it is fetched,
//!    and which versions must be accepted before they are used.
//! 2. [`FollowedDocument`] is a document that is fetched regularly. A task waits until the next
//!    fetch is due, fetches the document with a conditional request, and applies the outcome. If a
//!    fetch fails, the last version stays in use.
//! 3. The last good version is saved in a folder (module `saved`). The saved version is used if the
//!    network is not available at the next start.
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
pub(super) use self::published::{CurrentCopy, DocumentSettings, EMBEDDED, Following, OWN_FILE, SAVED};
pub(super) use self::saved::{SavedDocuments, read_json, write_json};
