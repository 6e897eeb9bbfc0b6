//! Verifies the identity of a crawler: from a claim and its evidence to an
//! [`Identity`](crate::agent::Identity). For programs that have their own evidence; for a server on
//! Tower, the `Verifier` of `tower-robots` does all of this.
//!
//! Three methods verify a claim: address ranges that the operator publishes, the names of an
//! address, and a signature on the request. Nothing here fetches, resolves or reads the clock:
//! lists, DNS answers, keys and the time are arguments.
//!
//! 1. A claim is judged by the client's own address. A missing, private or reserved address, or the
//!    address of a trusted proxy, decides nothing ([`PublicAddress`]).
//! 2. Methods are tried in the order signature, range, reverse DNS. The first method that confirms
//!    the claim decides.
//! 3. A claim is refuted only if every complete method that could be tried failed. With missing,
//!    old or doubtful evidence, the claim is undecided.
//! 4. A list verifies at any age. It refutes only if it was confirmed after the address was first
//!    seen, or at most a day ago ([`ListEvidence`]).
//! 5. A name of an address counts only if it is the operator's name and resolves back to that
//!    address: the same name must satisfy both. A failure counts only while the
//!    resolver is known to answer for that operator.
//!
//! If so many claims fail that the network path of the requests is in doubt, the caller should
//! refute nothing; `Verifier` counts failures and does this.
//!
//! Lists and signatures need features: `RangeList` and `DocumentError` need `identity`, and everything about signatures and keys needs `signatures`. The feature `verify` of
//! `tower-robots` enables both. A [`RangeSet`] of your own prefixes needs neither.
//!
//! [`IdentityRequest::identify`] combines claim, registry and evidence. The layer, `explain` and
//! `replay` all use it.

pub(crate) mod address_class;
mod examination;
mod identify;
mod name_pattern;
mod range_set;
mod rdns;

#[cfg(feature = "identity")]
mod published_list;
#[cfg(feature = "signatures")]
pub(crate) mod signature;
#[cfg(feature = "signatures")]
mod signers;

#[cfg(all(any(test, fuzzing), feature = "signatures"))]
#[doc(hidden)]
pub mod fuzzing;

use crate::agent::{Refutation, UndecidedReason};

pub use self::address_class::PublicAddress;
pub use self::examination::{ClaimEvidence, ListEvidence};
pub use self::identify::{Identified, IdentityRequest};
#[cfg(feature = "identity")]
pub use self::published_list::{DocumentError, DocumentErrorKind, RangeList};
pub use self::range_set::RangeSet;
#[cfg(feature = "signatures")]
pub use self::signature::RequiredComponent;

// For the `Verifier` of `tower-robots`. No promise: any release may change these.
#[doc(hidden)]
pub use self::name_pattern::NamePattern;
#[cfg(feature = "identity")]
#[doc(hidden)]
pub use self::published_list::EmbeddedList;
#[doc(hidden)]
pub use self::rdns::{DnsAnswer, RdnsCheck, RdnsQuestion};
#[cfg(feature = "signatures")]
#[doc(hidden)]
pub use self::signature::{
    DirectoryUrl, DirectoryUrlError, FieldLines, KeySet, MessageHead, SignatureCandidate, SignatureCheck,
};
#[cfg(feature = "signatures")]
#[doc(hidden)]
pub use self::signers::Signers;

/// Outcome of one method for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodOutcome {
    /// The method confirms the claim.
    Verified,
    /// The request fails the method.
    Failed(Refutation),
    /// The method cannot decide.
    Undecided(UndecidedReason),
}
