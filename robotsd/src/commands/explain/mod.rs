//! `robotsd explain`: what a robots.txt means for a crawler and a URL, and why.

mod batch;
mod explanation;
mod json;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tower_robots::rules::Reading;

use self::explanation::{ExplainedRequest, Requester};
use super::site::SiteArgs;
use crate::evaluator::Evaluator;
use crate::exit;

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Answer one JSON question a line from standard input, one JSON answer a line
    ///
    /// A question names its robots.txt with "robots" (a path) or "robots_base64"; without either it is about the
    /// robots.txt of the site.
    #[arg(long, conflicts_with_all = ["robots", "user_agent", "token", "urls"])]
    batch: bool,

    /// Answer with a JSON object a line, one for each URL
    #[arg(long)]
    json: bool,

    /// The robots.txt, in place of that of the site
    #[arg(long, value_name = "FILE", required_unless_present_any = ["batch", "config"])]
    robots: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

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
    let result = if args.batch { batch(args, out) } else { explain(args, out) };
    exit::written(result.map(|()| ExitCode::SUCCESS))
}

fn batch(args: &ExplainArgs, out: impl Write) -> io::Result<()> {
    batch::run(&args.site.select()?, io::stdin().lock(), out)
}

fn explain(args: &ExplainArgs, mut out: impl Write) -> io::Result<()> {
    // The command line has made sure of it unless `--batch` was given.
    let Some(requester) = args.requester() else { return Ok(()) };
    let site = args.site.select()?;
    let robots = site.robots(args.robots.as_deref())?;
    let evaluator = Evaluator::new(robots.bytes, args.reading.into(), &site.settings);
    for url in &args.urls {
        let request = ExplainedRequest { file: &robots.name, requester, method: &args.method, url };
        if args.json {
            json::write(&mut out, &evaluator, &request)?;
        } else {
            text::write(&mut out, &evaluator, &request)?;
        }
    }
    out.flush()
}

impl ExplainArgs {
    fn requester(&self) -> Option<Requester<'_>> {
        match (&self.token, &self.user_agent) {
            (Some(token), _) => Some(Requester::Token(token)),
            (None, Some(field)) => Some(Requester::UserAgent(field.as_bytes())),
            (None, None) => None,
        }
    }
}
