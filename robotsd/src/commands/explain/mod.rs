//! `robotsd explain`: what a robots.txt means for a crawler and a URL, and why.

mod batch;
mod book;
mod json;
mod text;

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use tower_robots::policy::Policy;
use tower_robots::rules::Reading;

use self::book::{Book, Who};
use crate::config::{Config, Site, Source};
use crate::exit;
use crate::input;

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Answer one JSON question a line from standard input, one JSON answer a line
    #[arg(long, conflicts_with_all = ["robots", "user_agent", "token", "config", "urls"])]
    batch: bool,

    /// Answer with a JSON object a line, one for each URL
    #[arg(long)]
    json: bool,

    /// The robots.txt; by default that of the site in the config
    #[arg(long, value_name = "FILE", required_unless_present_any = ["batch", "config"])]
    robots: Option<PathBuf>,

    /// Decide under the policy of this config file
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,

    /// Which site of the config; by default the first
    #[arg(long, value_name = "NAME", requires = "config")]
    site: Option<String>,

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
    exit::written(result.map(|()| ExitCode::SUCCESS))
}

fn explain(args: &ExplainArgs, mut out: impl Write) -> io::Result<()> {
    // The command line has made sure of it unless `--batch` was given.
    let Some(who) = args.who() else { return Ok(()) };
    let Subject { name, bytes, policy } = args.subject()?;
    let book = Book::with_policy(bytes, args.reading.into(), policy);
    for url in &args.urls {
        let asked = Asked { file: &name, who, method: &args.method, url };
        if args.json {
            json::write(&mut out, &book, &asked)?;
        } else {
            text::write(&mut out, &book, &asked)?;
        }
    }
    out.flush()
}

/// One question.
#[derive(Clone, Copy, Debug)]
struct Asked<'a> {
    file: &'a str,
    who: Who<'a>,
    method: &'a str,
    url: &'a str,
}

/// What is asked about.
struct Subject {
    name: String,
    bytes: Vec<u8>,
    policy: Policy,
}

impl ExplainArgs {
    fn subject(&self) -> io::Result<Subject> {
        let site = match &self.config {
            Some(path) => {
                Some(self.configured(Config::load(path).map_err(|error| io::Error::other(error.to_string()))?)?)
            }
            None => None,
        };
        let (name, bytes) = match (&self.robots, site.as_ref().map(|site| &site.robots)) {
            (Some(path), _) | (None, Some(Source::File(path))) => (path.display().to_string(), input::read(path)?),
            (None, Some(Source::Inline(text))) => ("<inline>".to_owned(), text.clone().into_bytes()),
            (None, Some(Source::Directory { path, .. })) => {
                let message = format!("{} has a file for each host: name one with --robots", path.display());
                return Err(io::Error::other(message));
            }
            (None, Some(Source::Upstream { .. } | Source::Url { .. })) => {
                return Err(io::Error::other("the site's robots.txt is fetched: name a copy of it with --robots"));
            }
            (None, None) => return Err(io::Error::other("name a robots.txt with --robots")),
        };
        Ok(Subject { name, bytes, policy: site.map_or_else(Policy::default, |site| site.policy) })
    }

    fn configured(&self, config: Config) -> io::Result<Site> {
        let named = |site: &Site| self.site.as_ref().is_none_or(|name| site.name == *name);
        config.sites.into_iter().find(named).ok_or_else(|| {
            io::Error::other(format!("the config has no site {:?}", self.site.as_deref().unwrap_or_default()))
        })
    }

    fn who(&self) -> Option<Who<'_>> {
        match (&self.token, &self.user_agent) {
            (Some(token), _) => Some(Who::Token(token)),
            (None, Some(field)) => Some(Who::UserAgent(field.as_bytes())),
            (None, None) => None,
        }
    }
}
