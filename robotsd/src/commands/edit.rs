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
    /// One that is named counts over its category or operator. `robotsd agents` lists crawlers, categories and operators.
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

/// Whom an edit is for, written as the keys of `[site.modes]`, where a name needs no `agent:`.
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
        let all =
            |is_meant: &dyn Fn(&Crawler) -> bool| crawlers().filter(|row| is_meant(row)).map(Agent::from).collect();
        let found: Vec<Agent> = match self {
            Self::Agent(name) => return named(name, evaluator).map(|agent| vec![agent]),
            Self::Category(category) => all(&|crawler| crawler.category == *category),
            Self::Operator(operator) => all(&|crawler| crawler.operator.eq_ignore_ascii_case(operator)),
            Self::Index => all(&|crawler| crawler.is_index_engine),
        };
        match self {
            Self::Operator(operator) if found.is_empty() => {
                let hint = did_you_mean(operator, crawlers().map(|crawler| crawler.operator.as_str()));
                let hint = hint.unwrap_or_else(|| "`robotsd agents` lists them".to_owned());
                Err(format!("no crawler of the registry has the operator {operator:?}: {hint}"))
            }
            _ => Ok(found),
        }
    }
}

/// The crawler of this name. A slip would keep nobody out.
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
        NamedAs::Registered | NamedAs::Unregistered => Ok(agent.clone()),
        _ if agent.is_registered() => Ok(agent.clone()),
        _ => Err(format!("{name:?} is not a crawler's name: write one such as \"GPTBot\", or \"category:WORD\"")),
    }
}

impl EditArgs {
    /// Each crawler once, and what becomes of it; of two selectors the one that names it counts.
    fn wanted(&self, evaluator: &Evaluator) -> Result<Vec<(Agent, Access)>, String> {
        let mut wanted: BTreeMap<String, (bool, Agent, Access)> = BTreeMap::new();
        let selectors = self.disallow.iter().map(|selector| (selector, Access::Disallow));
        for (selector, access) in selectors.chain(self.allow.iter().map(|selector| (selector, Access::Allow))) {
            let is_named = matches!(selector, Selector::Agent(_));
            for agent in selector.agents(evaluator)? {
                let name = agent.crawler().unwrap_or_default().to_lowercase();
                match wanted.get(&name) {
                    Some((was_named, _, other)) if *was_named == is_named && *other != access => {
                        let name = agent.crawler().unwrap_or_default();
                        return Err(format!("{name:?} is meant by --allow and by --disallow: name it in one of them"));
                    }
                    Some((true, ..)) if !is_named => {}
                    _ => drop(wanted.insert(name, (is_named, agent, access))),
                }
            }
        }
        Ok(wanted.into_values().map(|(_, agent, access)| (agent, access)).collect())
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
