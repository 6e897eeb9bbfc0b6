//! Evidence about the identity of crawlers: published lists, key directories, and reverse DNS names
//! of addresses. It is kept up to date on a separate thread, for applications whose policy depends
//! on the identity of crawlers.
//!
//! The module `identity` decides about claims; this module provides the evidence. No request waits
//! for evidence: if evidence is missing, the claim is undecided, and the evidence is fetched for
//! later requests.
//!
//! 1. Lists and key directories are followed as [`FollowedDocument`] (`documents`). They are
//!    fetched with conditional requests, and their format is checked. If a fetch fails, the last
//!    copy is kept.
//! 2. Reverse DNS names are looked up when a request needs them (`lookups`, `lookup_queue`). The
//!    number of look-ups is limited, and the limit is shared fairly among networks.
//! 3. Results of signature checks are kept until they expire, and the rate of failing checks is
//!    limited for each client (`signature_results`).
//! 4. A claim that was verified by an address is not checked again within the minute, unless the
//!    evidence has changed (`verified_claims`).
//! 5. The outcomes of claims are counted by path. The times when crawlers were last verified on
//!    each path are saved for the next process (`claim_paths`).
//! 6. Documents that cannot be fetched are reported together, once for each cause
//!    ([`VerifierStatus`]).
//!
//! A registry of crawlers, which contains the URLs of lists and key directories, can be followed in
//! the same way (`documents`).
//!
//! Nothing is sent over the network unless a [`Verifier`] or a [`FollowedDocument`] is started.
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
