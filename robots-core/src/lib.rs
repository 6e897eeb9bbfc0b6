#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(not(test), warn(clippy::too_many_lines))]

/// Implements `Debug` with chosen values, for types whose fields are numerous, large, secret or
/// functions. The parameters of a generic type come first, in brackets: `|it| [S: std::fmt::Debug]
/// Robots::<S> { inner: it.inner }`.
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

/// Implements `Debug` for an error like its `Display`, because operators see the debug form of an
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

pub mod rules;

pub mod agent;

pub mod check;
pub mod identity;
pub mod policy;
#[cfg(feature = "rate")]
pub mod rate;

/// Items for `tower-robots` and `robotsd`, without any stability guarantee: every release may
/// change them.
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
