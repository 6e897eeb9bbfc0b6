//! Writing an answer to standard output.

use std::io::Write;
use std::process::ExitCode;

use crate::exit::fail;
use crate::render::printable;

/// Writes an answer to standard output. A closed pipe is ignored.
pub(in crate::commands) fn say(text: &str) {
    let _ = std::io::stdout().lock().write_all(text.as_bytes());
}

/// Writes an answer as JSON.
pub(in crate::commands) fn say_json(value: &impl serde::Serialize) -> Option<ExitCode> {
    match serde_json::to_string_pretty(value) {
        Ok(text) => {
            say(&(text + "\n"));
            None
        }
        Err(error) => Some(fail(&error)),
    }
}

/// Escapes an answer, which may hold any character: names come from a config, messages quote files.
pub(in crate::commands) fn plain(text: &str) -> String {
    printable(text.as_bytes())
}
