//! What is wrong with a state directory, in the words of the status.

use super::error::StateError;

/// What is wrong with a site's part of a directory, the most pressing first.
#[derive(Clone, Debug, Default)]
pub(in crate::live) struct StateTroubles {
    pub(in crate::live) save: Option<String>,
    pub(in crate::live) switch: Option<String>,
    pub(in crate::live) append: Option<String>,
    pub(in crate::live) behind: Option<String>,
    pub(in crate::live) unread_switch: Option<String>,
    pub(in crate::live) damaged: Option<String>,
}

/// The kill switch cannot be written down.
pub(super) fn switch_trouble(error: &StateError) -> String {
    let StateError { path, cause } = error;
    format!("{}: cannot be written, so a restart forgets the kill switch: {cause}; it is tried again", path.display())
}
