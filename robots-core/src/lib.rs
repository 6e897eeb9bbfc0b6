#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// Implements `Debug` with the given values instead of all fields. Use this macro for a type that
/// has many, large or secret fields, or fields that are functions. For a generic type, write the
/// type parameters in brackets before the name of the type:
/// `|it| [S: std::fmt::Debug] Robots::<S> { inner: it.inner }`.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as {
    (|$this:ident| $([$($param:tt)+])? $type:ident $(::<$($arg:tt),+>)? { $($name:ident: $value:expr),* $(,)? }) => {
        impl $(<$($param)+>)? std::fmt::Debug for $type $(<$($arg),+>)? {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let $this = self;
                f.debug_struct(stringify!($type))$(.field(stringify!($name), &$value))*.finish_non_exhaustive()
            }
        }
    };
}

/// Implements `Debug` for an error type by calling `Display`, because Rust uses `Debug` to print an
/// error that `main` returns.
#[doc(hidden)]
#[macro_export]
macro_rules! debug_as_displayed {
    ($error:ident) => {
        impl std::fmt::Debug for $error {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                std::fmt::Display::fmt(self, f)
            }
        }
    };
}

// If a feature that this attribute names is off, some items of the module are unused.
#[cfg_attr(not(feature = "check"), allow(dead_code, unused_imports))]
pub mod rules;

#[cfg(feature = "registry")]
#[cfg_attr(not(all(feature = "check", feature = "signatures")), allow(dead_code, unused_imports))]
pub mod agent;

#[cfg(feature = "check")]
pub mod check;
#[cfg(feature = "registry")]
pub mod identity;
#[cfg(feature = "registry")]
pub mod policy;
#[cfg(feature = "rate")]
#[doc(hidden)]
pub mod rate;

#[cfg(feature = "registry")]
pub use self::agent::Agent;
#[cfg(feature = "check")]
pub use self::check::Report;
#[cfg(feature = "registry")]
pub use self::policy::Policy;
pub use self::rules::{Reading, RobotsTxt};

/// Items for `tower-robots` and `robotsd` only. These items have no stability guarantee: every
/// release may change them.
#[doc(hidden)]
pub mod internals {
    #[cfg(feature = "registry")]
    pub use crate::agent::network::bits;
    #[cfg(feature = "registry")]
    pub use crate::identity::address_class::AddressClass;
    #[cfg(feature = "signatures")]
    pub use crate::identity::signature::kept_checks::KeptChecks;
    #[cfg(feature = "registry")]
    pub use crate::policy::grace::Grace;
    #[cfg(feature = "registry")]
    pub use crate::policy::refusals::{RefusalCase, RefusalTable, RefusedRequest};
    pub use crate::rules::keyword::first_few;
    #[cfg(feature = "check")]
    pub use strsim::damerau_levenshtein;
}
