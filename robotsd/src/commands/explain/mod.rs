//! `robotsd explain`: explains what a robots.txt means for the requests of a crawler, and why.

mod batch;
mod explanation;
mod rows;
mod text;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use tower_robots::agent::{Class, Registry};
use tower_robots::live::VersionHashPrefix;
use tower_robots::policy::HumanEvidence;
use tower_robots::rules::Reading;

use self::explanation::{ExplainedRequest, ExplainedSender, Explanation, Requester};
use super::arguments::site::{OtherFiles, SelectedSite, SiteArgs};
use super::claim::{self, Names};
use crate::evaluator::Evaluator;
use crate::exit::{FAILED, complain};
use crate::render::{printable, stdout};
use crate::selector::Selector;
use crate::target_url::{TargetUrl, listed};

#[derive(Debug, clap::Args)]
pub(crate) struct ExplainArgs {
    /// Read JSON questions from standard input, and write JSON answers, one per line
    ///
    /// A question names its robots.txt with "robots" (a path) or "robots_base64"; without either,
    /// it is about the robots.txt of the site. A question that cannot be answered gets an answer
    /// with "error" and "line", and the exit status is 2.
    #[arg(long, conflicts_with_all = ["robots", "user_agent", "token", "urls"])]
    batch: bool,

    /// Output format
    #[arg(long, value_enum, default_value_t = ExplainFormat::Text, conflicts_with = "batch")]
    format: ExplainFormat,

    /// Same as --format json
    #[arg(long, conflicts_with_all = ["format", "batch"])]
    json: bool,

    /// The robots.txt, instead of the site's: a file, or a URL such as https://example.com
    /// [default: robots.txt, without --config or --site]
    #[arg(long, value_name = "FILE")]
    robots: Option<PathBuf>,

    /// Use an earlier version of the site's file: its hash, or at least the first 12 digits of the
    /// hash, as in the log and in `status`. The state_dir of the config must contain the version
    #[arg(long, value_name = "HASH", conflicts_with_all = ["batch", "robots"])]
    version: Option<VersionHashPrefix>,

    #[command(flatten)]
    site: SiteArgs,

    /// The name of a crawler, or a whole User-Agent header; or several crawlers:
    /// category:ai-training, operator:OpenAI or index; may be repeated
    #[arg(long, value_name = "NAME", conflicts_with = "token")]
    user_agent: Vec<String>,

    /// A product token, as in robots.txt: explain what the file says, without the policy; may be
    /// repeated
    ///
    /// A token in the registry stands for all tokens that its crawler obeys (Googlebot-Image, then
    /// Googlebot).
    #[arg(long)]
    token: Vec<String>,

    /// Check the client's address against the published lists that are available, and show how the
    /// policy handles the result, including exempt networks. DNS names are not looked up
    #[arg(long, value_name = "ADDRESS", conflicts_with_all = ["batch", "token"])]
    address: Option<IpAddr>,

    /// The HTTP method of the request: rules for * apply only to some methods
    #[arg(long, default_value = "GET")]
    method: String,

    /// The way to interpret the file
    #[arg(long, value_parser = readings(), default_value = "standard")]
    reading: Reading,

    /// Paths that begin with /, or URLs that begin with http:// or https://; - for a list on
    /// standard input, one per line, with comments that begin with #
    #[arg(value_name = "URL")]
    urls: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum ExplainFormat {
    /// Human-readable text: the answer, and how it was determined
    Text,
    /// One JSON object per line, for each crawler and URL
    Json,
    /// One row for each crawler and URL, for a spreadsheet
    Csv,
    /// One row for each URL, with one column for each crawler
    Matrix,
}

fn readings() -> impl TypedValueParser<Value = Reading> {
    let words = [
        PossibleValue::new("standard").help("As RFC 9309 requires; robotsd enforces files in this way"),
        PossibleValue::new("reference").help("As Google's reference parser (google/robotstxt) reads the file"),
        PossibleValue::new("legacy").help("As older descriptions of robots.txt define it"),
    ];
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Reading>())
}

pub(crate) fn run(args: &ExplainArgs) -> io::Result<ExitCode> {
    let out = stdout();
    if args.batch { batch(args, out) } else { explain(args, out) }
}

fn batch(args: &ExplainArgs, out: impl Write) -> io::Result<ExitCode> {
    let failed = batch::run(&args.site.select()?, io::stdin().lock(), out)?;
    if failed == 0 {
        return Ok(ExitCode::SUCCESS);
    }
    let (questions, was) = if failed == 1 { ("question", "was") } else { ("questions", "were") };
    complain(&format_args!(
        "{failed} {questions} {was} not answered: the field \"error\" in the output contains the reason"
    ));
    Ok(ExitCode::from(FAILED))
}

fn explain<W: Write>(args: &ExplainArgs, mut out: W) -> io::Result<ExitCode> {
    args.check_arguments().map_err(io::Error::other)?;
    // Rejects invalid arguments before the first answer is written.
    let urls = args.urls.iter().map(|word| (word != "-").then(|| TargetUrl::parse(word.as_bytes())).transpose());
    let urls: Vec<_> = urls.collect::<Result<_, _>>().map_err(io::Error::other)?;
    if args.robots.as_deref() == Some(Path::new("-")) && urls.contains(&None) {
        return Err(io::Error::other(
            "standard input cannot contain both the robots.txt and the URLs: pass the robots.txt as a file",
        ));
    }
    let words: Vec<_> = args.urls.iter().map(String::as_str).collect();
    let site = args.site.select_for(args.robots.as_deref().as_slice(), &words)?;
    let robots = match &args.version {
        Some(hash) => site.version(hash)?,
        None => site.robots(args.robots.as_deref())?,
    };
    let is_of_site = args.robots.is_none() && args.version.is_none();
    let live = is_of_site.then(|| site.live_version_compared_with(&robots)).flatten();
    let live = live.map(|(about, live)| (about, Evaluator::new(live.bytes, args.reading, &site.settings)));
    let file = robots.name.clone();
    let mut evaluator = robots.evaluator(args.reading, &site.settings, OtherFiles::Refuse)?;
    if args.robots.is_none() {
        site.decide_as_served(&mut evaluator);
    }
    let user_agents = args.user_agents(&site.settings.registry)?;
    let requesters = args.requesters(&evaluator, &user_agents);
    refuse_near_names(&user_agents, &evaluator)?;
    for name in args.token.iter().map(String::as_str).chain(user_agents) {
        if let Some(unknown) = evaluator.unknown_name(name, None) {
            complain(&unknown);
        }
    }
    let senders = args.senders(&requesters, &site)?;
    let format = if args.json { ExplainFormat::Json } else { args.format };
    let names: Vec<_> = requesters.iter().map(Requester::column).collect();
    match format {
        ExplainFormat::Csv => out.write_all(rows::CSV_HEAD.as_bytes())?,
        ExplainFormat::Matrix => rows::matrix_head(&mut out, names.iter().map(String::as_str))?,
        ExplainFormat::Text | ExplainFormat::Json => {}
    }
    let answer = |out: &mut W, url: TargetUrl<'_>| -> io::Result<()> {
        let path = &evaluator.path(url.as_bytes());
        let explain = |evaluator, requester: &Requester, sender: &ExplainedSender| {
            Explanation::new(evaluator, requester, sender.known(), &args.method, path, &HumanEvidence::default())
        };
        let answers: Vec<_> =
            requesters.iter().zip(&senders).map(|(who, sender)| explain(&evaluator, who, sender)).collect();
        let mut named = names.iter().map(String::as_str).zip(&answers);
        match format {
            ExplainFormat::Matrix => return rows::matrix_row(out, &url, named),
            ExplainFormat::Csv => return named.try_for_each(|(name, answer)| rows::write_csv(out, &url, name, answer)),
            ExplainFormat::Text | ExplainFormat::Json => {}
        }
        for ((requester, sender), explanation) in requesters.iter().zip(&senders).zip(&answers) {
            let (site, file, method, trace) = (&site, &*file, &*args.method, explanation.trace(path));
            let by_live = |live| explain(live, requester, sender).access.as_str();
            let live = live.as_ref().map(|(about, live)| format!("{about}, which answers {}", by_live(live)));
            let request =
                ExplainedRequest { file, site, live, requester, sender, method, url, path, explanation, trace };
            match format {
                ExplainFormat::Json => rows::json_row(out, &request)?,
                _ => request.write_text(out)?,
            }
        }
        Ok(())
    };
    let mut rejected = 0;
    for url in urls {
        match url {
            Some(url) => answer(&mut out, url)?,
            None => rejected += answer_list(&mut out, answer)?,
        }
    }
    if format == ExplainFormat::Matrix {
        writeln!(out, "no (N): line N of {file} disallows the URL", file = printable(&file))?;
    }
    out.flush()?;
    Ok(if rejected == 0 { ExitCode::SUCCESS } else { ExitCode::from(FAILED) })
}

impl ExplainArgs {
    /// Returns an error if an argument is missing. The message lists every way to give the
    /// argument. The most common mistake is a robots.txt in the position of a URL.
    fn check_arguments(&self) -> Result<(), String> {
        let is_file = |word: &&String| !word.starts_with('/') && Path::new(word).is_file();
        if let Some(file) = self.urls.iter().find(is_file).filter(|_| self.robots.is_none() && !self.site.has_config())
        {
            return Err(format!(
                "{file:?} is a file, not a URL: if this file is the robots.txt, write --robots {file}"
            ));
        }
        if self.user_agent.is_empty() && self.token.is_empty() {
            let fault = "no crawler is given: specify one with --user-agent NAME, or with --token TOKEN to leave out \
                         the policy of the site; to see the rules of a robots.txt for all crawlers, run `robotsd diff \
                         /dev/null robots.txt`";
            return Err(fault.to_owned());
        }
        if self.token.iter().any(|token| token.trim().is_empty()) {
            let fault = "the token is empty: write one such as GPTBot, or * for a crawler that is not named in any \
                         group";
            return Err(fault.to_owned());
        }
        if self.urls.is_empty() {
            return Err("no URL is given: write a path such as /, a URL, or - for a list on standard input".to_owned());
        }
        Ok(())
    }

    /// Returns the values of `--user-agent`. Replaces a selection, such as a category, by the names
    /// of its crawlers.
    fn user_agents<'a>(&'a self, registry: &'a Registry) -> io::Result<Vec<&'a str>> {
        let mut names = Vec::new();
        for word in &self.user_agent {
            let selected = Selector::names(word, registry)
                .map_err(|error| io::Error::other(format!("--user-agent {:?}: {error}", printable(word))))?;
            names.extend(selected);
        }
        Ok(names)
    }

    /// Returns the evidence about each sender, in the order of the requesters.
    fn senders(&self, requesters: &[Requester], site: &SelectedSite) -> io::Result<Vec<ExplainedSender>> {
        let sender = |requester: &Requester| match self.address {
            None => Ok(ExplainedSender::default()),
            Some(address) => {
                let claim = claim::check(requester.agents(), address, &site.evidence, Names::Skip)?;
                Ok(ExplainedSender { address: Some(address), claim: Some(claim) })
            }
        };
        requesters.iter().map(sender).collect()
    }

    fn requesters(&self, evaluator: &Evaluator, user_agents: &[&str]) -> Vec<Requester> {
        let tokens = self.token.iter().map(|token| Requester::token(evaluator, token));
        tokens.chain(user_agents.iter().map(|name| Requester::user_agent(evaluator, name))).collect()
    }
}

/// Refuses a name that is similar to the name of a crawler, and a value that is only part of a
/// header, because the user may have meant another client.
fn refuse_near_names(user_agents: &[&str], evaluator: &Evaluator) -> io::Result<()> {
    for name in user_agents {
        let shown = printable(name);
        let token = "use --token to explain what the file means for this name";
        let unknown = evaluator.unknown_name(name, None);
        if let Some((unknown, hint)) = unknown.as_ref().and_then(|unknown| Some((unknown, unknown.hint()?))) {
            return Err(io::Error::other(format!("--user-agent {shown:?}: {}: {hint} Or {token}", unknown.fault())));
        }
        if evaluator.is_non_crawler_word(name) && evaluator.resolve(name).1.first().class() == Class::NonBrowser {
            return Err(io::Error::other(format!(
                "--user-agent {shown:?}: this is neither the name of a crawler nor a whole User-Agent header: write \
                 the whole header, or {token}"
            )));
        }
    }
    Ok(())
}

/// Maximum length of a line, in bytes. Servers do not accept longer URLs.
const MAX_LINE_LENGTH: u64 = 1 << 20;

/// Reads URLs from standard input, and writes the answer for each URL before the next URL is read,
/// because the list may be larger than memory. Reports invalid lines on stderr, and returns their
/// number.
fn answer_list<W: Write>(out: &mut W, answer: impl Fn(&mut W, TargetUrl<'_>) -> io::Result<()>) -> io::Result<usize> {
    let mut lines = BufReader::new(io::stdin());
    let (mut line, mut number, mut rejected, mut has_urls) = (Vec::new(), 0, 0, false);
    loop {
        if lines.buffer().is_empty() {
            // The writer of the list may wait for this answer before it writes the next line.
            out.flush()?;
        }
        line.clear();
        number += 1;
        let named = |error: io::Error| io::Error::new(error.kind(), format!("<stdin>: {error}"));
        if lines.by_ref().take(MAX_LINE_LENGTH).read_until(b'\n', &mut line).map_err(named)? == 0 {
            break;
        }
        if line.len() as u64 == MAX_LINE_LENGTH && !line.ends_with(b"\n") {
            return Err(io::Error::other(format!("<stdin>:{number}: the line is longer than 1 MiB")));
        }
        if line.starts_with(b"\xFF\xFE") || memchr::memchr(0, &line).is_some() {
            let message = format!("<stdin>:{number}: the list is not text in UTF-8: save it as UTF-8");
            return Err(io::Error::other(message));
        }
        let text = line.strip_prefix(b"\xEF\xBB\xBF").filter(|_| number == 1).unwrap_or(&line);
        let Some(target) = listed(text) else {
            continue;
        };
        has_urls = true;
        match TargetUrl::parse(target) {
            Ok(url) => answer(out, url)?,
            Err(error) => {
                rejected += 1;
                complain(&format_args!("<stdin>:{number}: {error}"));
            }
        }
    }
    if !has_urls {
        complain(&"<stdin>: the list is empty: write one URL per line");
    }
    Ok(rejected)
}
