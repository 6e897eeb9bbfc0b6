//! What each connection is doing, and which idle ones close when a new one needs their place.

pub(crate) mod registry;
pub(crate) mod state;
