//! The status a line has.

use crate::edge::AccessRecord;

/// A client that left before it was answered, as nginx writes it: no answer of ours has this status.
const CLIENT_LEFT: u16 = 499;

pub(super) fn status(record: &AccessRecord) -> u16 {
    record.status.map_or(CLIENT_LEFT, |status| status.as_u16())
}
