//! How the program ends: exit codes that every command shares, and the messages on standard error.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

pub(crate) use crate::render::complain;

/// The command ran, and its answer is no: findings, unmet expectations, a rejected reload.
pub(crate) const NEGATIVE: u8 = 1;

/// The command could not run: bad arguments, a bad config, an unreadable file, a port in use.
pub(crate) const FAILED: u8 = 2;

/// Writes the reason to standard error, and ends with [`FAILED`].
pub(crate) fn fail(reason: &dyn Display) -> ExitCode {
    complain(reason);
    ExitCode::from(FAILED)
}

/// 0, or [`NEGATIVE`] where the answer is no.
pub(crate) fn answer(is_positive: bool) -> ExitCode {
    ExitCode::from(if is_positive { 0 } else { NEGATIVE })
}

/// Ends a command that writes to standard output. A closed pipe is a reader that has seen enough.
pub(crate) fn written(result: io::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}
