//! Exit codes that all commands share, and messages on stderr.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

pub(crate) use crate::render::complain;

/// The command ran, and its result is negative: findings, unmet expectations, a rejected reload.
pub(crate) const NEGATIVE: u8 = 1;

/// The command could not run: bad arguments, a bad config, an unreadable file, a port in use.
pub(crate) const FAILED: u8 = 2;

/// Prints the reason to stderr and returns [`FAILED`].
pub(crate) fn fail(reason: &dyn Display) -> ExitCode {
    complain(reason);
    ExitCode::from(FAILED)
}

/// Returns 0, or [`NEGATIVE`] if the result is negative.
pub(crate) fn answer(is_positive: bool) -> ExitCode {
    ExitCode::from(if is_positive { 0 } else { NEGATIVE })
}

/// Ends a command that writes to standard output. A closed pipe is not an error: its reader has
/// seen enough.
pub(crate) fn written(result: io::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}
