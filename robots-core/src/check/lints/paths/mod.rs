//! How paths of rules are spelled.

pub(super) mod dollar_inside;
pub(super) mod hash_in_path;
pub(super) mod needless_escape;
pub(super) mod path_without_slash;
pub(super) mod redundant_star;
pub(super) mod space_in_path;
pub(super) mod unescaped_non_ascii;
pub(super) mod url_as_path;
