//! `robotsd completions SHELL`: the script by which a shell completes commands, options and their values.

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{Args, Command};
use clap_complete::Shell;

use crate::exit;

/// Print the script by which a shell completes robotsd's commands and options
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that reads the script
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// `command` is the whole command line, which only the binary's entry point knows.
pub(crate) fn run(args: &CompletionsArgs, mut command: Command) -> ExitCode {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut output = io::stdout().lock();
    exit::written(output.write_all(&script).and_then(|()| output.flush()).map(|()| ExitCode::SUCCESS))
}
