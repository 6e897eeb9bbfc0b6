//! Generates files from the definition of the command line, for packages: `robotsd completions
//! SHELL` prints a shell's completion script, and `robotsd man` writes the manual pages.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime};

use clap::{Args, Command};
use clap_complete::Shell;
use clap_mangen::Man;

use crate::date;
use crate::render::stdout;

/// Print a script that completes robotsd's commands and options in a shell
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// The shell that runs the script
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completion script. `command` is the definition of the whole command line, which only
/// the module `cli` can create.
pub(crate) fn completions(args: &CompletionsArgs, mut command: Command) -> io::Result<ExitCode> {
    let name = command.get_name().to_owned();
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut command, name, &mut script);
    let mut output = stdout();
    output.write_all(&script)?;
    output.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Write the manual pages of robotsd and its commands
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// The folder for the pages, such as /usr/local/share/man/man1; it must exist
    ///
    /// The pages have today's date, or that of $SOURCE_DATE_EPOCH.
    #[arg(value_name = "DIRECTORY")]
    directory: PathBuf,
}

/// Writes the manual pages. `command` is the definition of the whole command line, which only the
/// module `cli` can create.
pub(crate) fn man(args: &ManArgs, command: Command) -> io::Result<ExitCode> {
    let directory = &args.directory;
    let failed = |fault: &dyn Display| io::Error::other(format!("{}: {fault}", directory.display()));
    if !directory.is_dir() {
        return Err(failed(&"this is not a folder: create the folder first"));
    }
    let version = format!("robotsd {}", command.get_version().unwrap_or_default());
    // The page of a command lists its subcommands, so a page for `help` is not needed.
    let mut command = command.disable_help_subcommand(true);
    command.build();
    write(&command, directory, &date_of_pages(), &version).map_err(|error| failed(&error))?;
    Ok(ExitCode::SUCCESS)
}

fn write(command: &Command, directory: &Path, date: &str, version: &str) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        write(below, directory, date, version)?;
    }
    let page = Man::new(command.clone()).date(date).source(version).manual("robotsd");
    let mut text = Vec::new();
    page.render(&mut text)?;
    // In `--help`, this section is the last line, and has no heading.
    let text = String::from_utf8_lossy(&text).replace(".SH EXTRA\nExit status: ", ".SH \"EXIT STATUS\"\n");
    std::fs::write(directory.join(page.get_filename()), without_needless_breaks(text.as_bytes()))
}

/// Returns the date in `SOURCE_DATE_EPOCH`, a variable for reproducible builds. If it is not set,
/// returns today's date.
fn date_of_pages() -> String {
    let seconds = std::env::var("SOURCE_DATE_EPOCH").ok().and_then(|text| text.parse().ok());
    let time = seconds.and_then(|seconds| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)));
    let mut text = date::rfc3339(time.unwrap_or_else(SystemTime::now));
    text.truncate("2026-01-01".len());
    text
}

/// Removes line breaks next to blank lines, and spaces at the ends of lines, because mandoc warns
/// about them. `clap_mangen` writes such breaks and spaces.
fn without_needless_breaks(page: &[u8]) -> Vec<u8> {
    let lines: Vec<&[u8]> = page.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end).collect();
    let is_blank_line = |number: Option<usize>| {
        let line = number.and_then(|number| lines.get(number));
        line.is_some_and(|line| line.is_empty() || *line == b".sp")
    };
    let kept = lines.iter().enumerate().filter(|(number, line)| {
        **line != b".br" || !(is_blank_line(number.checked_sub(1)) || is_blank_line(number.checked_add(1)))
    });
    kept.map(|(_, line)| *line).collect::<Vec<_>>().join(&b'\n')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_breaks_next_to_blank_lines_are_removed_from_the_man_page() {
        let page = b"a \n.br\nb\n.br\n.sp\nc\n.br\n\n.br\n.SH D\n";
        assert_eq!(String::from_utf8(without_needless_breaks(page)).unwrap(), "a\n.br\nb\n.sp\nc\n\n.SH D\n");
    }
}
