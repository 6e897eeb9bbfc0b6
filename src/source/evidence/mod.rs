//! Evidence about who sent a request: published lists, key directories, and reverse DNS names of
//! addresses. Use this module if a policy depends on the identity of crawlers. A separate thread
//! keeps the evidence up to date.
//!
//! The module `identity` of `robots-core` verifies and refutes claims; this module provides the
//! evidence. No request waits for evidence. If evidence is missing, the claim stays undecided, and
//! the evidence is fetched for later requests.
//!
//! 1. Lists and key directories are fetched with conditional requests, and their format is checked.
//!    If a fetch fails, the last copy is kept. Each list and each directory is a
//!    [`FollowedDocument`] (module `documents`).
//! 2. Reverse DNS names are looked up when a request needs them (modules `lookups` and
//!    `lookup_queue`). The number of lookups is limited, and each network gets a fair share of the
//!    lookups.
//! 3. The result of checking a signature is stored until it expires. Each client can cause only a
//!    limited number of failing checks per second (module `signature_results`).
//! 4. An address that was verified for a crawler is not checked again within the same minute,
//!    unless the evidence has changed (module `verified_claims`).
//! 5. Requests reach this process on different paths, for example through a CDN or directly. The
//!    results of checks are counted separately for each path. The times when crawlers were last
//!    verified on each path are saved for the next process (module `claim_paths`).
//! 6. If several documents cannot be fetched for the same reason, the reason is reported only once
//!    ([`VerifierStatus`]).
//!
//! A registry of crawlers contains the URLs of lists and key directories. A registry can be kept up
//! to date in the same way (module `documents`).
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
