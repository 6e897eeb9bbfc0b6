//! Exit codes that all commands share, and messages on stderr.

use std::fmt::Display;
use std::io;
use std::process::ExitCode;

pub(crate) use crate::render::complain;

/// Exit code of a command that ran and has a negative result, such as findings, unmet expectations
/// or a rejected reload.
pub(crate) const NEGATIVE: u8 = 1;

/// Exit code of a command that could not run, for example because of invalid arguments, an invalid
/// config, an unreadable file or a port in use.
pub(crate) const FAILED: u8 = 2;

pub(crate) fn fail(reason: &dyn Display) -> ExitCode {
    complain(reason);
    ExitCode::from(FAILED)
}

pub(crate) fn exit_code_for(is_positive: bool) -> ExitCode {
    ExitCode::from(if is_positive { 0 } else { NEGATIVE })
}

/// Returns the exit code of a command that has written to standard output. A closed pipe is not an
/// error, because the reader, such as `head`, needed no more output.
pub(crate) fn output_exit_code(result: io::Result<ExitCode>) -> ExitCode {
    match result {
        Ok(code) => code,
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}
