//! `robotsd diff OLD NEW`: what a change of the file changes for crawlers.
//!
//! Exit status: 0 whether or not something changes, 1 where something changes that `--forbid` names, 2 where a file
//! could not be read.

mod text;

use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use tower_robots::check::{DiffOptions, Guard, diff};
use tower_robots::rules::RobotsTxt;

use crate::exit;
use crate::input;

/// Say what changes for crawlers from one robots.txt to another
#[derive(Args, Debug)]
pub(crate) struct DiffArgs {
    /// The robots.txt as it is; - for standard input
    #[arg(value_name = "OLD")]
    old: PathBuf,

    /// The robots.txt as it is to be
    #[arg(value_name = "NEW")]
    new: PathBuf,

    /// Fail if anything changes for this crawler on these paths, such as "Googlebot:/products/"; * is a crawler that
    /// nobody names
    #[arg(long, value_name = "CRAWLER:PATTERN", value_parser = guard)]
    forbid: Vec<Guard>,

    /// How changes are written
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    /// For people
    Text,
    /// One JSON object
    Json,
}

fn guard(text: &str) -> Result<Guard, String> {
    Guard::parse(text).ok_or_else(|| "write a crawler, a colon and a path, such as \"Googlebot:/products/\"".to_owned())
}

pub(crate) fn run(args: &DiffArgs) -> ExitCode {
    exit::written(compare(args))
}

fn compare(args: &DiffArgs) -> io::Result<ExitCode> {
    let (old, new) = (RobotsTxt::parse(input::read(&args.old)?), RobotsTxt::parse(input::read(&args.new)?));
    let options = args.forbid.iter().cloned().fold(DiffOptions::new(), DiffOptions::guard);
    let diff = diff(&old, &new, &options);
    let mut out = BufWriter::new(io::stdout().lock());
    match args.format {
        Format::Text => {
            let names = text::Names::new(&args.old.to_string_lossy(), &args.new.to_string_lossy());
            text::write(&mut out, &names, &diff)?;
        }
        Format::Json => {
            serde_json::to_writer(&mut out, &diff)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    Ok(exit::answer(diff.breaches().is_empty()))
}
