//! Tests of the crate as its users see it.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, missing_docs)]

mod shared;

mod check;
mod reference;
mod spec;
