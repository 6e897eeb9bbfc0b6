//! A claim and its evidence to an [`Identity`](crate::agent::Identity): is the crawler who it says it is? For programs that have
//! evidence of their own; a server on Tower has a `Verifier` of `tower-robots`, which does all of this.
//!
//! Three methods check a claim: address ranges that the operator publishes, the names of an address, and a signature on the
//! request. Nothing here is fetched, looked up or timed: lists, answers of a resolver, keys and the time are arguments.
//!
//! 1. A claim is judged by the client's own address. One that is missing, private, reserved or a trusted proxy's decides
//!    nothing ([`PublicAddress`]).
//! 2. Methods are tried in the order signature, range, reverse DNS; the first that confirms the claim ends it.
//! 3. A claim is refuted only where every complete method that could be tried failed. Evidence that is missing, too old or
//!    doubtful makes it undecided.
//! 4. A list verifies at any age. It refutes only if it was confirmed after the address was first seen, or at most a day
//!    ago ([`ListEvidence`]).
//! 5. A name of an address counts only if it is the operator's and resolves back to that address: the same name, both
//!    times. A failure counts only while the resolver is known to answer for that operator.
//!
//! If so many claims fail that the path of the requests is in doubt, a caller that counts them refutes nothing; `Verifier` does.
//!
//! Lists and signatures are behind features: `RangeList` and `DocumentError` behind `identity`, everything about signatures behind
//! `signatures`. `tower-robots` has both with `verify`. A [`RangeSet`] of prefixes of your own needs neither.
//!
//! [`IdentityRequest::identify`] puts claim, registry and evidence together; the layer, `explain` and `replay` all ask it.

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

/// The outcome of one method for a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MethodOutcome {
    /// It confirms the claim.
    Verified,
    /// The request fails it.
    Failed(Refutation),
    /// It cannot tell.
    Undecided(UndecidedReason),
}
