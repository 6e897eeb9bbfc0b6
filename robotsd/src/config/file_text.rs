//! The text of a file that a person writes in TOML.

use std::path::Path;

use super::error::{ConfigError, Fault};

/// The text of a config file.
pub(super) fn read(path: &Path) -> Result<String, ConfigError> {
    let octets = std::fs::read(path).map_err(|error| ConfigError::unreadable(path, &error))?;
    as_utf8(path, octets)
}

/// The text that octets are, or where they are none.
pub(crate) fn as_utf8(path: &Path, octets: Vec<u8>) -> Result<String, ConfigError> {
    String::from_utf8(octets).map_err(|error| {
        let start = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes());
        Fault::new(start..start, "the file is not UTF-8, which TOML is: save it as UTF-8").at(path, &text)
    })
}
