//! Verifies the identity of a crawler: combines a claim and the evidence into an
//! [`Identity`](crate::agent::Identity). This module is for programs that collect the evidence
//! themselves. In a Tower server, the `Verifier` of `tower-robots` collects the evidence.
//!
//! Three methods verify a claim: address ranges that the operator publishes, the reverse DNS names
//! of an address, and a signature on the request. This module does not fetch documents, resolve
//! names or read the clock: lists, DNS answers, keys and the time are arguments.
//!
//! 1. An address can verify or refute a claim only if it is public and belongs to the client. An
//!    unknown, private or reserved address, or the address of a trusted proxy, proves nothing
//!    ([`PublicAddress`]).
//! 2. The methods are tried in this order: signature, range, reverse DNS. The first method that
//!    confirms the claim decides.
//! 3. A method is complete if it verifies all genuine requests of the crawler. A claim is refuted
//!    only if all complete methods with available data have failed. If the data for a check is
//!    missing, old or unreliable, the claim is undecided.
//! 4. An address list of any age can verify a claim. It can refute a claim only if the operator's
//!    server confirmed it within the last day, or more than a day after the first request with this
//!    claim from the address ([`ListEvidence`]).
//! 5. A reverse DNS name verifies a claim only if the name is in the operator's domain and resolves
//!    back to the client's address. A failed reverse DNS check refutes the claim only if the same
//!    resolver verified another address of this operator within the last hour.
//!
//! If very many claims fail, the addresses that the server sees may not be the addresses of the
//! clients, for example because of an unknown proxy. The caller should then not refute any claim.
//! To detect this situation, the `Verifier` counts the claims that fail.
//!
//! Some items need cargo features: `RangeList` and `DocumentError` need `identity`, and items for
//! signatures and keys need `signatures`. The feature `verify` of `tower-robots` enables `identity`
//! and `signatures`. [`RangeSet`], for a list of your own prefixes, needs no feature.
//!
//! [`IdentityRequest::identify`] combines the claim, the registry and the evidence. The layer of
//! `tower-robots` and the commands `robotsd explain` and `robotsd replay` call `identify`.

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

// The `Verifier` of `tower-robots` uses these items. The items have no stability guarantee: any
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

/// Outcome of one verification method for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodOutcome {
    /// The method confirms the claim.
    Verified,
    /// The method contradicts the claim.
    Failed(Refutation),
    /// The method cannot decide.
    Undecided(UndecidedReason),
}
