//! Evidence about who a crawler is, kept fresh on a thread of its own: published lists, key directories, names of addresses. For
//! applications whose policy asks for it.
//!
//! The room `identity` judges by evidence that it is given; this one has it. No request waits for it: missing evidence
//! makes a claim undecided, and is there for the next request.
//!
//! 1. Lists and key directories are [`FollowedDocument`] documents that are followed (`documents`): fetched with validators, checked
//!    by their shape, and kept through every failure.
//! 2. Names of addresses are looked up in the order in which requests need them, within bounds that no client can
//!    exceed and of which every network has its share (`lookups`, `lookup_queue`).
//! 3. Results of signatures are kept until they expire, and those that fail are bounded by their sender
//!    (`signature_results`).
//! 4. A claim that was verified by an address is not judged anew within the minute, unless the evidence has changed
//!    (`verified_claims`).
//! 5. Claims are counted by the path that they come on; when each path last verified its crawler outlives the process
//!    (`claim_paths`).
//! 6. A document that cannot be fetched is reported once by its cause ([`VerifierStatus`]).
//!
//! A registry of crawlers, which says whose evidence is fetched, is followed alike (`documents`).
//!
//! Nothing leaves the machine unless a [`Verifier`] or a [`FollowedDocument`] is started.
//!
//! [`FollowedDocument`]: super::follow::FollowedDocument

pub(crate) mod claim_paths;
mod claimants;
pub(crate) mod dns_resolver;
pub(crate) mod documents;
mod lookup_queue;
mod lookups;
mod path_breaker;
mod signature_results;
mod verification_plan;
mod verified_claims;
mod verifier;
mod verifier_builder;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use self::claim_paths::{ClaimPath, SuspectPath};
pub(crate) use self::documents::ListCopy;
pub use self::verifier::{Verifier, VerifierStatus};
