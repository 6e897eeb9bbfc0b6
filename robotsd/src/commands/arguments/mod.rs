//! Arguments that several commands take.

pub(super) mod running;
pub(super) mod site;
