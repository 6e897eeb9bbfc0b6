//! `robotsd agents`: lists the known crawlers, and identifies the agents in headers.

use std::io::{self, BufRead, Write};
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use askama::Template;
use clap::{Args, ValueEnum};
use serde::{Serialize, Serializer};
use serde_json::json;
use tower_robots::agent::{Agent, Category, Class, Crawler, Identity, NamedAs, Obeys, Registry};
use tower_robots::rules::Reading;

use super::arguments::site::{OtherFiles, SelectedSite, SiteArgs};
use super::claim::{self, CheckedClaim, Names};
use super::output::filters;
use crate::config::extended_registry;
use crate::evaluator::Evaluator;
use crate::exit::{NEGATIVE, complain};
use crate::names::did_you_mean;
use crate::render::{printable, stdout, write_json};
use crate::selector::Selector;

/// Maximum length of a header on standard input, in bytes.
const MAX_LINE: u64 = 1 << 20;

/// List and search the known crawlers, or identify User-Agent headers
#[derive(Debug, Args)]
pub(crate) struct AgentsArgs {
    /// Words that must all occur in a crawler's name, token, operator or category, or selectors as
    /// for `edit`: category:ai-training, operator:OpenAI, or index for the search engines that are
    /// not refused by default
    #[arg(value_name = "WORD", conflicts_with = "identify")]
    words: Vec<String>,

    /// Identify these User-Agent headers; with `-`, read them from standard input, one per line
    ///
    /// Each header is read as a server reads it in a request. A name that a crawler never sends
    /// alone, such as Stripe, therefore identifies no crawler. `explain` and `--verify` also accept
    /// names of crawlers; if the result would differ, a note is printed to stderr.
    #[arg(long, value_name = "HEADER", num_args = 1..)]
    identify: Vec<String>,

    /// Check whether requests from this address come from the crawler in --user-agent, and show the
    /// evidence
    ///
    /// Uses the published lists that a running robotsd saved in the state_dir of --config. If no
    /// list is saved there, uses the built-in list. Looks up the reverse DNS names of the address,
    /// which discloses the address to your resolver. Exit status: 0 verified, 1 refuted, 3 neither.
    #[arg(long, value_name = "ADDRESS", requires = "user_agent", conflicts_with_all = ["words", "identify"])]
    verify: Option<IpAddr>,

    /// The User-Agent header, or the name of a crawler, for --verify
    #[arg(long, value_name = "NAME", requires = "verify")]
    user_agent: Option<String>,

    /// With --verify: do not look up DNS names
    #[arg(long, requires = "verify")]
    offline: bool,

    /// A robots.txt: the names in its groups are also identified
    #[arg(long, value_name = "FILE", requires = "identify", conflicts_with_all = ["words", "verify"])]
    robots: Option<PathBuf>,

    /// A file of crawlers to add to the registry, change in it or remove from it
    #[arg(long, value_name = "FILE", conflicts_with = "config")]
    registry: Option<PathBuf>,

    #[command(flatten)]
    site: SiteArgs,

    /// Output format
    #[arg(long, value_enum, default_value_t = AgentsFormat::Table)]
    format: AgentsFormat,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AgentsFormat {
    /// Human-readable columns
    Table,
    /// One JSON object per line
    Json,
}

/// JSON object about a crawler: name, properties, and the source of these properties.
struct CrawlerListing<'a>(&'a Crawler);

impl Serialize for CrawlerListing<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self(crawler) = self;
        let tokens: Vec<_> = crawler.tokens.iter().map(ToString::to_string).collect();
        serializer.collect_map([
            ("name", json!(crawler.name)),
            ("tokens", json!(tokens)),
            ("operator", json!(crawler.operator)),
            ("category", json!(crawler.category)),
            ("supplies", json!(crawler.supplies)),
            ("robots", json!(crawler.obeys_robots)),
            ("star", json!(crawler.obeys_star)),
            ("crawl_delay", json!(crawler.obeys_crawl_delay)),
            ("control", json!(crawler.is_control)),
            ("index", json!(crawler.is_index_engine)),
            ("checked", json!(crawler.checked_on)),
            ("framework", json!(crawler.is_framework)),
            ("ranges", json!(crawler.ranges)),
            ("rdns", json!(crawler.reverse_dns)),
            ("weak", json!(crawler.is_reverse_dns_weak)),
            ("referers", json!(crawler.referers)),
            ("signature", json!(crawler.signature)),
            ("source", json!(crawler.source)),
        ])
    }
}

#[derive(Serialize)]
struct HeaderListing<'a> {
    header: &'a str,
    #[serde(flatten)]
    agent: AgentSummary<'a>,
    /// Crawlers that the header names in addition to `agent`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    others: Vec<AgentSummary<'a>>,
}

impl AgentsArgs {
    /// Selects the site. With `--registry`, replaces the registry of the site with the built-in
    /// registry, extended by the given file.
    fn select(&self) -> io::Result<SelectedSite> {
        let mut selected = self.site.select()?;
        if let Some(path) = &self.registry {
            selected.settings.registry =
                extended_registry(Registry::builtin(), Some(path)).map_err(io::Error::other)?;
        }
        Ok(selected)
    }
}

pub(crate) fn run(args: &AgentsArgs) -> io::Result<ExitCode> {
    let mut out = stdout();
    if let (Some(address), Some(name)) = (args.verify, &args.user_agent) {
        return verify(&mut out, args, address, name);
    }
    if args.identify.is_empty() {
        let configured = if args.registry.is_none() { args.site.registry()? } else { None };
        let registry = configured.map_or_else(|| extended_registry(Registry::builtin(), args.registry.as_deref()), Ok);
        let registry = registry.map_err(io::Error::other)?;
        if list(&mut out, &registry, &args.words, args.format)? == 0 {
            out.flush()?;
            complain(&no_match_message(&args.words, &registry));
            return Ok(ExitCode::from(NEGATIVE));
        }
    } else {
        let site = args.select()?;
        let evaluator = match &args.robots {
            Some(path) => site.named(path)?.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse)?,
            None => Evaluator::new(Vec::new(), Reading::Standard, &site.settings),
        };
        identify(&mut out, &evaluator, &args.identify, args.format)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Exit status of `--verify` if the evidence does not show whether the address belongs to the
/// crawler.
const UNDECIDED: u8 = 3;

#[derive(Serialize)]
struct VerifiedClaim<'a> {
    address: IpAddr,
    user_agent: &'a str,
    crawler: Option<&'a str>,
    identity: CheckedClaim,
}

fn verify(out: &mut impl Write, args: &AgentsArgs, address: IpAddr, name: &str) -> io::Result<ExitCode> {
    let selected = args.select()?;
    let evaluator = Evaluator::new(Vec::new(), Reading::Standard, &selected.settings);
    let (_, agents) = evaluator.resolve(name);
    let names = if args.offline { Names::Skip } else { Names::LookUp };
    if let Some(unknown) = evaluator.unknown_name(name, None) {
        complain(&format_args!(
            "{}: {}",
            unknown.fault(),
            unknown.hint().as_deref().unwrap_or("an unknown crawler cannot be verified")
        ));
    }
    let claim = claim::check(&agents, address, &selected.evidence, names)?;
    let identity = claim.identity;
    let crawler = agents.iter().find_map(|agent| agent.crawler());
    if args.format == AgentsFormat::Json {
        write_json(out, &VerifiedClaim { address, user_agent: name, crawler, identity: claim })?;
    } else {
        let claimed = crawler.map_or_else(|| "no crawler".to_owned(), printable);
        writeln!(out, "{address} as {claimed}: {}", claim.identity)?;
        claim.steps.iter().try_for_each(|step| writeln!(out, "  {}", printable(step)))?;
    }
    out.flush()?;
    Ok(match identity {
        Identity::Verified(_) => ExitCode::SUCCESS,
        Identity::Refuted(_) => ExitCode::from(NEGATIVE),
        _ => ExitCode::from(UNDECIDED),
    })
}

/// Prints the crawlers that match all words, and returns their number.
fn list(out: &mut impl Write, registry: &Registry, words: &[String], format: AgentsFormat) -> io::Result<usize> {
    let (chosen, words): (Vec<_>, Vec<_>) = words.iter().partition(|word| is_selector(word));
    let words: Vec<_> = words.iter().map(|word| word.to_lowercase()).collect();
    let mut rows: Vec<_> =
        registry.crawlers().filter(|crawler| words.iter().all(|word| mentions(crawler, word))).collect();
    for word in chosen {
        let selector = word.parse::<Selector>().map_err(|error| format!("{word:?}: {error}"));
        let selector =
            selector.and_then(|selector| selector.of(registry).map(|_| selector)).map_err(io::Error::other)?;
        rows.retain(|crawler| selector.has(crawler));
    }
    // A crawler whose name consists of exactly the given words comes first.
    let wanted = words.join(" ");
    rows.sort_by_key(|crawler| {
        let name = crawler.name.to_lowercase();
        (name != wanted, name)
    });
    match format {
        AgentsFormat::Json => rows.iter().try_for_each(|row| write_json(out, &CrawlerListing(row)))?,
        AgentsFormat::Table if rows.is_empty() => {}
        AgentsFormat::Table => writeln!(out, "{}", CrawlersText { rows: &rows, all: registry.crawlers().len() })?,
    }
    Ok(rows.len())
}

#[derive(Template)]
#[template(path = "commands/agents.txt", whitespace = "preserve")]
struct CrawlersText<'a> {
    rows: &'a [&'a Crawler],
    all: usize,
}

impl CrawlersText<'_> {
    fn width(&self) -> usize {
        self.rows.iter().map(|row| printable(&row.name).chars().count()).max().unwrap_or(0)
    }

    fn has_unknown(&self) -> bool {
        self.rows.iter().any(|row| [row.obeys_robots, row.obeys_star].contains(&Obeys::Unknown))
    }

    fn checked_share(&self) -> String {
        let days: Vec<_> = self.rows.iter().filter_map(|row| row.checked_on.as_deref()).collect();
        checked_share(self.rows.len(), days.len(), days.into_iter().max())
    }
}

/// Lists the product tokens that a crawler obeys, in order of precedence.
fn tokens(crawler: &Crawler) -> String {
    crawler.tokens.iter().map(ToString::to_string).collect::<Vec<_>>().join(", then ")
}

/// Returns the error message for a search that found no crawler. It suggests a known word that is
/// similar to a given word.
fn no_match_message(words: &[String], registry: &Registry) -> String {
    let is_known = |word: &String| registry.crawlers().any(|crawler| mentions(crawler, &word.to_lowercase()));
    let unknown: Vec<_> = words.iter().filter(|word| !is_selector(word) && !is_known(word)).collect();
    let known: Vec<_> = registry.crawlers().flat_map(words_of).collect();
    let hint = match unknown.iter().find_map(|word| did_you_mean(word, known.iter().map(String::as_str))) {
        _ if unknown.is_empty() => {
            "each word matches some crawlers, but no crawler matches all words: use fewer words".to_owned()
        }
        Some(hint) => hint,
        None => "`robotsd agents` lists all crawlers; use `--identify` for a User-Agent header".to_owned(),
    };
    format!("no crawler in the registry matches {words:?}: {hint}", words = words.join(" "))
}

/// Reports whether a word is a selector, such as `operator:OpenAI`, and not a search term.
fn is_selector(word: &str) -> bool {
    word.contains(':') || word == "index"
}

fn mentions(crawler: &Crawler, word: &str) -> bool {
    words_of(crawler).any(|text| text.to_lowercase().contains(word))
}

/// Returns the crawler's name, operator, category and tokens, which a search compares with the
/// search terms.
fn words_of(crawler: &Crawler) -> impl Iterator<Item = String> {
    let own = [&*crawler.name, &*crawler.operator, crawler.category.as_str()].map(str::to_owned);
    own.into_iter().chain(crawler.tokens.iter().map(ToString::to_string))
}

fn identify(out: &mut impl Write, evaluator: &Evaluator, headers: &[String], format: AgentsFormat) -> io::Result<()> {
    let mut one = |header: &[u8]| -> io::Result<()> {
        let agents = evaluator.agents(header);
        let header = String::from_utf8_lossy(header);
        let summary = |agent| AgentSummary::new(agent, evaluator.applies_star_to(agent));
        let others = agents.iter().skip(1).map(summary).collect();
        let identified = HeaderListing { header: &header, agent: summary(agents.first()), others };
        if format == AgentsFormat::Json {
            return write_json(out, &identified);
        }
        writeln!(out, "{}\n  {}", printable(identified.header), identified.agent)?;
        identified.others.iter().try_for_each(|agent| writeln!(out, "  {agent}"))
    };
    for header in headers.iter().filter(|header| *header != "-") {
        one(header.as_bytes())?;
        if let Some(note) = name_note(evaluator, header) {
            complain(&note);
        }
    }
    if headers.iter().any(|header| header == "-") {
        let (mut input, mut line) = (io::stdin().lock(), Vec::new());
        while io::Read::take(&mut input, MAX_LINE).read_until(b'\n', &mut line)? > 0 {
            one(line.strip_suffix(b"\n").unwrap_or(&line))?;
            line.clear();
        }
    }
    Ok(())
}

/// Returns a note if other commands accept this value as the name of a crawler, but a `User-Agent`
/// header with this value does not identify that crawler.
fn name_note(evaluator: &Evaluator, header: &str) -> Option<String> {
    let (named_as, agents) = evaluator.resolve(header);
    let crawler = agents.first().crawler();
    let is_same = match named_as {
        NamedAs::Header => true,
        NamedAs::Star => false,
        _ => crawler == evaluator.agents(header.as_bytes()).first().crawler(),
    };
    if is_same {
        return None;
    }
    let crawler = match (named_as, crawler) {
        (NamedAs::Registered, Some(crawler)) => format!("the name of the crawler {}", printable(crawler)),
        (NamedAs::Star, _) => "every crawler that is not named in any group".to_owned(),
        _ => "the name of an unregistered crawler".to_owned(),
    };
    Some(format!(
        "this command reads {header:?} as a whole User-Agent header, but `explain --user-agent` reads it as {crawler}"
    ))
}

#[derive(Debug, Serialize, Template)]
#[template(path = "commands/agent.txt", whitespace = "preserve")]
pub(in crate::commands) struct AgentSummary<'a> {
    class: Class,
    crawler: Option<&'a str>,
    category: Option<Category>,
    tokens: Vec<String>,
    held_to_star: bool,
    #[serde(skip)]
    is_control: bool,
}

impl<'a> AgentSummary<'a> {
    pub(in crate::commands) fn new(agent: &'a Agent, held_to_star: bool) -> Self {
        Self {
            class: agent.class(),
            crawler: agent.crawler(),
            category: agent.category(),
            tokens: agent.tokens().iter().map(ToString::to_string).collect(),
            held_to_star,
            is_control: agent.registered().is_some_and(|crawler| crawler.is_control),
        }
    }
}

/// Formats text such as `54 (7 %) were checked against the pages of their operators, the last on
/// 2026-11-22`.
pub(in crate::commands) fn checked_share(rows: usize, checked: usize, last: Option<&str>) -> String {
    let last = last.map_or_else(String::new, |day| format!(", the last on {day}"));
    format!(
        "{checked} ({percent} %) were checked against the pages of their operators{last}",
        percent = checked * 100 / rows.max(1)
    )
}
