//! `robotsd edit`: keeps crawlers out of a site, or lets them in, by the smallest edit of its robots.txt.
//!
//! The file is written only once the edit is proved: every crawler that is meant is as wanted, and no other is treated otherwise.
//!
//! Exit status: 0 where the file is as wanted, 1 where --diff shows that it is not yet, 2 where the file could not be read or written,
//! or the edit is not proved.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Instant;

use clap::Args;
use tower_robots::agent::{Agent, Category, Crawler, NamedAs};
use tower_robots::check::EditedFile;
use tower_robots::rules::{Access, Reading};

use super::arguments::site::{OtherFiles, RobotsFile, SiteArgs};
use super::check::{replace, write_difference};
use super::diff::{DiffNames, write_effects};
use crate::evaluator::{Evaluator, MOST_TIME};
use crate::exit::{self, complain};
use crate::input::{self, InputSource};
use crate::names::{QuotedList, did_you_mean};
use crate::render::{printable, stderr, stdout};

/// Keep crawlers out of a site, or let them in, by the smallest edit of its robots.txt
#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// The robots.txt, or - for standard input, whose edited text goes to standard output
    #[arg(value_name = "FILE", default_value = "robots.txt")]
    file: PathBuf,

    /// Keep crawlers out of the whole site: GPTBot, category:ai-training, operator:OpenAI, or index for the search engines that
    /// are not refused by default; may be repeated
    ///
    /// A name means that crawler alone: others that obey its group for want of one of their own are named where their rules were.
    /// Of two that mean a crawler the one that names it counts, and then --disallow. `robotsd agents` lists crawlers, categories and operators.
    #[arg(long, value_name = "WHOM", required_unless_present = "allow")]
    disallow: Vec<Selector>,

    /// Let crawlers in: no rule is about the whole site for them any more, and the narrower rules that they have stay; may be
    /// repeated
    #[arg(long, value_name = "WHOM")]
    allow: Vec<Selector>,

    /// Show the edit and its effect, and write nothing; end with 1 if there is one
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    site: SiteArgs,
}

/// The subjects of an edit, written as the keys of `[site.modes]`, where a name needs no `agent:`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Selector {
    Agent(String),
    Category(Category),
    Operator(String),
    Index,
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.split_once(':') {
            Some(("agent", name)) => Ok(Self::Agent(name.trim().to_owned())),
            Some(("operator", name)) => Ok(Self::Operator(name.trim().to_owned())),
            Some(("category", word)) => word.trim().parse().map(Self::Category).map_err(|error| format!("{error}")),
            None if text == "index" => Ok(Self::Index),
            None => Ok(Self::Agent(text.trim().to_owned())),
            Some(_) => Err("write a name, \"category:WORD\", \"operator:NAME\" or \"index\"".to_owned()),
        }
    }
}

impl Selector {
    fn agents(&self, evaluator: &Evaluator) -> Result<Vec<Agent>, String> {
        let crawlers = || evaluator.settings.registry.crawlers();
        let is_meant = |crawler: &&Crawler| match self {
            Self::Agent(_) => false,
            Self::Category(category) => crawler.category == *category,
            Self::Operator(operator) => crawler.operator.eq_ignore_ascii_case(operator),
            Self::Index => crawler.is_index_engine,
        };
        match self {
            Self::Agent(name) => Ok(vec![named(name, evaluator)?]),
            Self::Operator(operator) if !crawlers().any(|crawler| is_meant(&crawler)) => {
                let hint = did_you_mean(operator, crawlers().map(|crawler| crawler.operator.as_str()));
                let hint = hint.unwrap_or_else(|| "`robotsd agents` lists them".to_owned());
                Err(format!("no crawler of the registry has the operator {operator:?}: {hint}"))
            }
            _ => Ok(crawlers().filter(is_meant).map(Agent::from).collect()),
        }
    }
}

/// The crawler of this name. A misspelled one would keep no crawler out.
fn named(name: &str, evaluator: &Evaluator) -> Result<Agent, String> {
    let (named_as, agents) = evaluator.resolve(name);
    if let Some(unknown) = evaluator.unknown_name(name, None) {
        let fault = unknown.fault();
        match unknown.hint() {
            Some(hint) => return Err(format!("{fault}: {hint}")),
            None => complain(&format_args!("{fault}: it is taken as one")),
        }
    }
    let agent = agents.first();
    match named_as {
        NamedAs::Star | NamedAs::Header if !agent.is_registered() => {
            Err(format!("{name:?} is not a crawler's name: write one such as \"GPTBot\", or \"category:WORD\""))
        }
        _ => Ok(agent.clone()),
    }
}

impl EditArgs {
    /// Each crawler once, and what becomes of it.
    fn wanted(&self, evaluator: &Evaluator) -> Result<Vec<(Agent, Access)>, String> {
        let allow = self.allow.iter().map(|selector| (selector, Access::Allow));
        let mut selectors: Vec<_> = allow.chain(self.disallow.iter().map(|whom| (whom, Access::Disallow))).collect();
        // The last one counts.
        selectors.sort_by_key(|(selector, _)| matches!(selector, Selector::Agent(_)));
        let mut wanted = BTreeMap::new();
        for (selector, access) in selectors {
            for agent in selector.agents(evaluator)? {
                wanted.insert(agent.crawler().unwrap_or_default().to_lowercase(), (agent, access));
            }
        }
        Ok(wanted.into_values().collect())
    }
}

pub(crate) fn run(args: &EditArgs) -> io::Result<ExitCode> {
    let source = InputSource::of(&args.file);
    let site = args.site.select()?;
    let (name, bytes) = (source.name(), input::read(&args.file)?);
    let robots = RobotsFile { name: name.clone(), bytes };
    let before = robots.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse)?;
    let wanted = args.wanted(&before).map_err(io::Error::other)?;
    let over = Instant::now() + MOST_TIME;
    let registry = &site.settings.registry;
    let edited = EditedFile::of_while(before.robots(), &wanted, registry, &|| Instant::now() < over);
    let edited = edited.map_err(|error| io::Error::other(format!("{}: {error}", printable(&name))))?;
    let (old, new) = (before.robots().bytes(), edited.robots.bytes());
    let mut out = stdout();
    match source.path() {
        _ if args.diff => write_difference(&mut out, &name, old, new)?,
        None => out.write_all(new)?,
        Some(path) if old != new => replace(path, old, new)?,
        Some(_) => {}
    }
    // Before the effect, so that both are in order where they go to one place.
    out.flush()?;
    if args.diff || source.path().is_none() {
        write_effect(&mut stderr(), &name, &edited, old != new)?;
    } else {
        write_effect(&mut out, &name, &edited, old != new)?;
        out.flush()?;
    }
    Ok(exit::answer(!args.diff || old == new))
}

fn write_effect(out: &mut impl Write, name: &str, edited: &EditedFile, is_changed: bool) -> io::Result<()> {
    if !is_changed {
        return writeln!(out, "{}: nothing to edit: every crawler that is meant is as wanted", printable(name));
    }
    write_effects(out, &DiffNames::new(&format!("{name} (before)"), name), &edited.diff, &[])?;
    if !edited.kept.is_empty() {
        let kept = QuotedList::of(&edited.kept);
        writeln!(out, "named, so that they keep the rules that they had: {kept}")?;
    }
    Ok(())
}
