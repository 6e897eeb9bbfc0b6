//! Evidence about who a crawler is, kept fresh on a thread of its own: published lists, key directories, names of addresses.
//!
//! The room `identity` judges by evidence that it is given; this one has it. No request waits for it: what is not at hand
//! makes a claim undecided, and is there for the next request.
//!
//! 1. Lists and key directories are followed as documents (`followed`): fetched with validators, checked by their shape,
//!    and kept through every failure.
//! 2. Names of addresses are looked up in the order in which requests need them, within bounds that no client can exceed
//!    (`lookups`).
//! 3. Results of signatures are kept until they expire, and those that fail are bounded by their sender (`signature_results`).
//! 4. Who was verified by an address is not judged anew within the minute, unless the evidence has changed (`verified_claims`).
//! 5. Claims are counted by the path that they come on; when each path last verified its crawler outlives the process
//!    (`claim_paths`, `saved_paths`).
//!
//! A registry of crawlers that is published is followed as lists are: a [`PublishedRegistry`]. So is a part of a robots.txt: a
//! [`PublishedFragment`].
//!
//! Nothing leaves the machine unless a [`Verifier`], a [`PublishedRegistry`] or a [`PublishedFragment`] is started.

mod claim_paths;
mod crawler_methods;
mod dns_resolver;
mod document;
mod failing_checks;
mod first_seen;
mod followed;
mod follower;
mod generations;
mod list_copies;
mod lookups;
mod name_resolver;
mod operator_table;
mod published_fragment;
mod published_registry;
mod question_gate;
mod recent_marks;
mod registry_text;
mod saved_documents;
mod saved_lists;
mod saved_paths;
mod signature_results;
mod verification_plan;
mod verified_claims;
mod verified_path;
mod verifier;
mod verifier_builder;
mod verifier_error;
mod verifier_status;

#[cfg(test)]
pub(crate) mod tests;

pub use self::claim_paths::{ClaimPath, SuspectPath};
pub use self::followed::EvidenceOrigin;
pub use self::list_copies::ListCopy;
pub use self::name_resolver::NameResolver;
pub use self::published_fragment::{
    PublishedFragment, PublishedFragmentBuilder, PublishedFragmentEvent, PublishedFragmentStatus,
};
pub use self::published_registry::{
    PublishedRegistry, PublishedRegistryBuilder, PublishedRegistryEvent, PublishedRegistryStatus, WaitingRegistry,
};
pub use self::saved_lists::{SavedList, SavedLists};
pub use self::verifier::Verifier;
pub use self::verifier_builder::VerifierBuilder;
pub use self::verifier_error::VerifierError;
pub use self::verifier_status::{DirectoryStatus, ListStatus, LookupStatus, SignatureStatus, VerifierStatus};
