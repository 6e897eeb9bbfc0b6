//! The lists of addresses that operators publish: their formats, what a new list has to hold, and the embedded copies.

mod embedded;
mod entries;
mod json;
mod media_type;
mod range_list;
mod range_list_error;
mod text;

pub use self::embedded::{EmbeddedList, embedded_lists};
pub use self::media_type::check_media_type;
pub use self::range_list::RangeList;
pub use self::range_list_error::{RangeListError, RangeListErrorKind};
