#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// Debugs a value by what a reader wants to know of it, because its fields are many, large, secret or functions. The parameters of a
/// generic type stand in brackets: `|it| [S: std::fmt::Debug] Robots::<S> { inner: it.inner }`.
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

/// Debugs an error as it is displayed, because that is what the operator sees of one that `main` returns.
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

pub mod rules;

pub mod agent;

pub mod check;
pub mod identity;
pub mod policy;
#[cfg(feature = "rate")]
pub mod rate;

pub use self::agent::Agent;
pub use self::check::Report;
pub use self::policy::Policy;
pub use self::rules::{Reading, RobotsTxt};

/// Items for `tower-robots` and `robotsd`. No promise: any release may change it.
#[doc(hidden)]
pub mod internals {
    pub use crate::agent::network::bits;
    pub use crate::identity::address_class::AddressClass;
    #[cfg(feature = "signatures")]
    pub use crate::identity::signature::kept_checks::KeptChecks;
    pub use crate::policy::grace::Grace;
    pub use crate::rules::keyword::first_few;
    pub use strsim::damerau_levenshtein;
}
