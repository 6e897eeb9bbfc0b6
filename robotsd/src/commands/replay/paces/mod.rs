//! Requests that a server would have found to come too soon: as the layer counts, with the same policy, keys and buckets.
//!
//! Whether a request comes too soon depends on those before it, while chunks of a log are counted apart. So a chunk notes what
//! is held to a delay ([`notes`]), and when it joins those before it, its requests are put in the order of their times
//! ([`time_order`]) and take from the buckets of their senders ([`counts`]).

mod counts;
mod limit;
mod notes;
mod time_order;

pub(super) use self::counts::{PaceCount, PaceCounts};
pub(super) use self::limit::PacedSenders;
pub(super) use self::notes::{PaceNotes, PacedLogLine};

#[cfg(test)]
mod tests;
