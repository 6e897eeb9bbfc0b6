#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod rules;

pub mod agent;

pub mod check;
pub mod identity;
pub mod policy;
#[cfg(feature = "rate")]
pub mod rate;

/// Items for `tower-robots` and `robotsd`. No promise: any release may change it.
#[doc(hidden)]
pub mod internals {
    pub use crate::check::directives::distance;
    pub use crate::identity::address_class::AddressClass;
    #[cfg(feature = "signatures")]
    pub use crate::identity::signature::kept_checks::KeptChecks;
    pub use crate::policy::grace::Grace;
}
