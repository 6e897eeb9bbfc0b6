//! The file as a whole, and its lines.

pub(super) mod binary_file;
pub(super) mod byte_order_mark;
pub(super) mod cr_line_end;
pub(super) mod empty_file;
pub(super) mod html_instead_of_text;
pub(super) mod invalid_utf_8;
pub(super) mod long_line;
pub(super) mod no_known_field;
pub(super) mod nul_octet;
pub(super) mod over_500_kib;
pub(super) mod utf_16;
