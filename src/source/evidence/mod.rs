//! Evidence about who sent a request: published lists, key directories, and reverse DNS names of
//! addresses. This module is for applications whose policy depends on the identity of crawlers. The
//! evidence is kept up to date on its own thread.
//!
//! The module `identity` decides about claims; this module provides the evidence. No request waits
//! for evidence. If evidence is missing, the claim is undecided, and the evidence is fetched for
//! later requests.
//!
//! 1. Lists and key directories are followed as [`FollowedDocument`] (`documents`). Both are
//!    fetched with conditional requests, and their format is checked. If a fetch fails, the last
//!    copy is kept.
//! 2. Reverse DNS names are looked up when a request needs them (`lookups`, `lookup_queue`). The
//!    number of lookups is limited, and each network gets a fair share of them.
//! 3. The result of checking a signature is stored until it expires. The rate of failing checks is
//!    limited for each client (`signature_results`).
//! 4. An address that was verified for a crawler is not checked again within the same minute,
//!    unless the evidence has changed (`verified_claims`).
//! 5. Requests take different paths through proxies to this process. The outcomes of checks are
//!    counted separately for each path. The times when crawlers were last verified on each path are
//!    saved for the next process (`claim_paths`).
//! 6. If several documents cannot be fetched for the same reason, this is reported only once
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
