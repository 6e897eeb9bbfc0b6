//! The lists of addresses that operators publish: their formats, what a new list has to hold, and the embedded copies.

mod embedded;
mod entries;
mod range_list;
mod text;

pub use self::embedded::EmbeddedList;
pub use self::entries::{DocumentError, DocumentErrorKind};
pub use self::range_list::RangeList;
