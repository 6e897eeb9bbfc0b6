//! Evidence about the identity of crawlers, kept up to date on a separate thread: published lists,
//! key directories, and names of addresses. For applications whose policy needs it.
//!
//! The module `identity` judges by the evidence that it is given; this module provides the
//! evidence. No request waits for it: missing evidence makes a claim undecided, and is available
//! for a later request.
//!
//! 1. Lists and key directories are [`FollowedDocument`] documents that are followed (`documents`). They
//!    are fetched with validators, checked for their format, and kept through every failure.
//! 2. Names of addresses are looked up as requests need them (`lookups`, `lookup_queue`). No client
//!    can exceed the limits, and every network has its share.
//! 3. Results of signature checks are kept until they expire, and failing ones are limited for each
//!    sender (`signature_results`).
//! 4. A claim that was verified by an address is not checked again within the minute, unless the
//!    evidence has changed (`verified_claims`).
//! 5. The outcomes of claims are counted by path. When each path last verified its crawler is saved
//!    for the next process (`claim_paths`).
//! 6. Documents that cannot be fetched are reported once for each cause ([`VerifierStatus`]).
//!
//! A registry of crawlers, which names whose evidence is fetched, is followed in the same way
//! (`documents`).
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
