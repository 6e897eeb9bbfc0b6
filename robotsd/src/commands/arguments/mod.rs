//! Arguments that several commands take.

mod retrieval;
pub(super) mod running;
pub(super) mod site;
pub(super) mod within;
