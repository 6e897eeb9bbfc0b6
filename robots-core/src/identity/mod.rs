//! Verifies the identity of a crawler: combines a claim and the evidence into an
//! [`Identity`](crate::agent::Identity). This module is for programs that obtain the evidence
//! themselves. For a server on Tower, the `Verifier` of `tower-robots` obtains it.
//!
//! Three methods verify a claim: address ranges that the operator publishes, the reverse DNS names
//! of an address, and a signature on the request. This module does not fetch documents, resolve
//! names or read the clock: lists, DNS answers, keys and the time are arguments.
//!
//! 1. Only the client's own address is evidence. An unknown, private or reserved address, or the
//!    address of a trusted proxy, proves nothing ([`PublicAddress`]).
//! 2. Methods are tried in the order signature, range, reverse DNS. The first method that confirms
//!    the claim decides.
//! 3. A method is complete if all genuine requests of the crawler pass it. A claim is refuted only
//!    if every complete method that could be tried failed. If evidence is missing, old or doubtful,
//!    the claim is undecided.
//! 4. A list of any age can verify a claim. A list refutes a claim only if its server confirmed the
//!    list at most a day ago, or more than a day after the address was first seen
//!    ([`ListEvidence`]).
//! 5. A reverse DNS name of an address verifies a claim only if it is in the operator's domain and
//!    resolves back to that address. A failed check refutes the claim only if the resolver has
//!    lately verified an address of that operator.
//!
//! If very many claims fail, the addresses on the network path of the requests may be wrong, for
//! example because of an unknown proxy. The caller should then not refute any claim. The `Verifier`
//! counts failures to detect this case.
//!
//! Lists and signatures need features: `RangeList` and `DocumentError` need `identity`, and
//! everything about signatures and keys needs `signatures`. The feature `verify` of `tower-robots`
//! enables both. A [`RangeSet`] of your own prefixes needs no feature.
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

// The `Verifier` of `tower-robots` uses these items. These items have no stability guarantee: any
// release may change them.
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
    /// The method contradicts the claim.
    Failed(Refutation),
    /// The method cannot decide.
    Undecided(UndecidedReason),
}
