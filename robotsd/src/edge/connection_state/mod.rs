//! What each connection is doing, and which idle ones close when a new connection needs their slot.

pub(crate) mod delivery;
pub(crate) mod reclaim;
pub(crate) mod state;

pub(crate) mod claims;
pub(crate) mod connection_registry;
pub(crate) mod slots;
