//! A folder of robots.txt files, one for each host.

mod event;
mod handle;
mod scan;

pub use self::event::{DirectoryError, DirectoryEvent};
pub use self::handle::{Directory, DirectoryBuilder};
