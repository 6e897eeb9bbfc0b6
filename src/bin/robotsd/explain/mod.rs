//! `robotsd explain`: what a robots.txt means for a crawler and a URL, and why.

mod batch;
mod book;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tower_robots::rules::Reading;

use self::book::{Book, Who};
use crate::cli::fail;

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Answer one JSON question a line from standard input, one JSON answer a line
    #[arg(long, conflicts_with_all = ["robots", "user_agent", "token", "urls"])]
    batch: bool,

    /// The robots.txt
    #[arg(long, value_name = "FILE", required_unless_present = "batch")]
    robots: Option<PathBuf>,

    /// A User-Agent header, as sent
    #[arg(long, value_name = "HEADER", conflicts_with = "token", required_unless_present_any = ["batch", "token"])]
    user_agent: Option<String>,

    /// A product token, as in robots.txt
    #[arg(long)]
    token: Option<String>,

    /// The request's method
    #[arg(long, default_value = "GET")]
    method: String,

    /// How the file is read
    #[arg(long, value_enum, default_value = "standard")]
    reading: ReadingArg,

    /// URLs or paths with query
    #[arg(value_name = "URL", required_unless_present = "batch")]
    urls: Vec<String>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum ReadingArg {
    /// RFC 9309 as a server reads it
    Standard,
    /// What the reference parser answers
    Reference,
    /// With the readings of the older pages
    Legacy,
}

impl From<ReadingArg> for Reading {
    fn from(reading: ReadingArg) -> Self {
        match reading {
            ReadingArg::Standard => Self::Standard,
            ReadingArg::Reference => Self::Reference,
            ReadingArg::Legacy => Self::Legacy,
        }
    }
}

pub(crate) fn run(args: &ExplainArgs) -> ExitCode {
    let out = io::BufWriter::new(io::stdout().lock());
    let result = if args.batch { batch::run(io::stdin().lock(), out) } else { explain(args, out) };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever read our output has enough of it.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(error) => fail(&error),
    }
}

fn explain(args: &ExplainArgs, mut out: impl Write) -> io::Result<()> {
    // The command line has made sure of both unless `--batch` was given.
    let (Some(path), Some(who)) = (&args.robots, args.who()) else { return Ok(()) };
    let bytes = std::fs::read(path).map_err(|error| io::Error::other(format!("{}: {error}", path.display())))?;
    let book = Book::new(bytes, args.reading.into());
    for url in &args.urls {
        text::write(&mut out, &path.display().to_string(), &book, &who, &args.method, url)?;
    }
    out.flush()
}

impl ExplainArgs {
    fn who(&self) -> Option<Who<'_>> {
        match (&self.token, &self.user_agent) {
            (Some(token), _) => Some(Who::Token(token)),
            (None, Some(field)) => Some(Who::UserAgent(field.as_bytes())),
            (None, None) => None,
        }
    }
}
