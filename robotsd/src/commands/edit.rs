//! `robotsd edit`: blocks crawlers from a site, or allows them, with the smallest edit of its
//! robots.txt.
//!
//! Before writing the file, the command proves that the edit changes the access of the selected
//! crawlers as requested, and changes nothing for other crawlers.
//!
//! Exit status:
//!
//! - 0 if the file has the requested effect;
//! - 1 if --diff shows a necessary edit;
//! - 2 if the file could not be read or written, or if the effect of the edit could not be proved.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use tower_robots::agent::{Agent, Category, Class, Crawler, NamedAs, Registry};
use tower_robots::check::EditedFile;
use tower_robots::rules::{Access, ProductToken, Reading};

use super::arguments::site::{OtherFiles, RobotsFile, SiteArgs};
use super::check::{replace, write_difference};
use super::diff::{ChangesText, DiffNames};
use crate::evaluator::{Evaluator, TimeBudget};
use crate::exit::{self, complain};
use crate::fetch::{is_url, shown_url};
use crate::input::{self, InputSource};
use crate::names::quoted_list;
use crate::render::{printable, stderr, stdout};
use crate::selector::Selector;

/// Block crawlers from a site, or allow them, with the smallest edit of its robots.txt
#[derive(Args, Debug)]
pub(crate) struct EditArgs {
    /// The robots.txt; with -, the text is read from standard input, and the edited text is written
    /// to standard output
    #[arg(value_name = "FILE", default_value = "robots.txt")]
    file: PathBuf,

    /// Block crawlers from the whole site: GPTBot, category:ai-training, operator:OpenAI, or index
    /// for the search engines that are not refused by default; may be repeated
    ///
    /// A name selects only that crawler. Other crawlers may obey the same group because they have
    /// no group of their own; the edit names them in the group whose rules they obeyed, so that
    /// these rules still apply to them. If several selectors match one crawler, its name takes
    /// precedence, then --disallow. `robotsd agents` lists crawlers, categories and operators.
    #[arg(long, value_name = "WHOM", value_parser = parse_selector)]
    disallow: Vec<Selector>,

    /// Allow crawlers: removes them from rules about the whole site, and keeps their narrower
    /// rules; may be repeated
    ///
    /// --allow is not the reverse of --disallow: it also allows crawlers that the file blocked
    /// before. Use version control to restore a file.
    #[arg(long, value_name = "WHOM", value_parser = parse_selector)]
    allow: Vec<Selector>,

    /// Show the edit and its effect without writing the file; exit with status 1 if the file would
    /// change
    #[arg(long)]
    diff: bool,

    #[command(flatten)]
    site: SiteArgs,
}

/// Parses a value of `--disallow` or `--allow`. Refuses a path, because these options apply to the
/// whole site.
fn parse_selector(text: &str) -> Result<Selector, String> {
    text.parse().map_err(|forms: String| match text.split_once(":/") {
        Some((_, path)) => format!(
            "{forms}. This command edits rules for whole sites: write a rule for /{path} by hand, and check it with \
             `robotsd diff`"
        ),
        None => forms,
    })
}

/// Returns the crawler with this name. Refuses an unknown name, because a misspelled name would not
/// block any crawler.
fn named(name: &str, evaluator: &Evaluator) -> Result<Agent, String> {
    let (named_as, agents) = evaluator.resolve(name);
    if let Some(unknown) = evaluator.unknown_name(name, None) {
        let fault = unknown.fault();
        // An unknown name is accepted if a `User-Agent` header with only this name would be
        // recognised as the header of a crawler.
        let is_token = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
        let is_word = name.parse() == Ok(Selector::Index);
        let is_crawler = !is_word && is_token && evaluator.agents(name.as_bytes()).first().class().is_crawler();
        let category = name.parse::<Category>().ok();
        match category.map(|_| format!("did you mean \"category:{name}\"?")).or_else(|| unknown.hint()) {
            Some(hint) => return Err(format!("{fault}: {hint}")),
            None if is_crawler => complain(&format_args!("{fault}: the name is treated as that of a crawler")),
            None => {
                return Err(format!(
                    "{fault}, and the name does not look like that of a crawler, such as \"HouseBot\": write a name \
                     that `robotsd agents` lists, \"category:WORD\", \"operator:NAME\" or \"index\"; or write the \
                     group into the file by hand"
                ));
            }
        }
    }
    let agent = agents.first();
    match named_as {
        NamedAs::Header if agent.class() == Class::Library => Err(format!(
            "{name:?} is a tool or library, not a crawler, so no group applies to it: block it in the config of your \
             server"
        )),
        NamedAs::Star | NamedAs::Header if !agent.is_registered() => {
            Err(format!("{name:?} is not a crawler's name: write one such as \"GPTBot\", or \"category:WORD\""))
        }
        _ => Ok(agent.clone()),
    }
}

/// Reports whether a `User-agent` line can contain the name of this crawler. In a robots.txt, a
/// name ends before a slash, but the names of some crawlers contain a slash.
fn can_be_named(crawler: &Crawler) -> bool {
    crawler.tokens.first().is_some_and(|own| ProductToken::from_name(own.as_bytes()).as_ref() == Some(own))
}

impl EditArgs {
    /// Returns each selected crawler once, with the access that the options request for it.
    fn requested_access(&self, evaluator: &Evaluator) -> Result<Vec<(Agent, Access)>, String> {
        let allow = self.allow.iter().map(|selector| (selector, Access::Allow));
        let mut selectors: Vec<_> =
            allow.chain(self.disallow.iter().map(|selector| (selector, Access::Disallow))).collect();
        // If several selectors match a crawler, the last one counts. Names take precedence over
        // categories and operators.
        selectors.sort_by_key(|(selector, _)| matches!(selector, Selector::Agent(_)));
        let (mut requested_access, mut faults) = (BTreeMap::new(), Vec::new());
        for (selector, access) in selectors {
            let agents: Vec<_> = match selector {
                // All unknown names are reported together, because a list that was copied from
                // another site often contains several of them.
                Selector::Agent(name) => {
                    named(name, evaluator).map_err(|fault| faults.push(fault)).into_iter().collect()
                }
                _ => {
                    let crawlers = selector.of(&evaluator.settings.registry)?.into_iter();
                    let (named, nameless): (Vec<_>, Vec<_>) = crawlers.partition(|crawler| can_be_named(crawler));
                    if !nameless.is_empty() {
                        let names = quoted_list(nameless.iter().map(|crawler| &crawler.name));
                        complain(&format_args!(
                            "these crawlers are left out, because no line of a robots.txt can \
                             contain their names: {names}"
                        ));
                    }
                    named.into_iter().map(Agent::from).collect()
                }
            };
            for agent in agents {
                requested_access.insert(agent.crawler().unwrap_or_default().to_lowercase(), (agent, access));
            }
        }
        if faults.is_empty() { Ok(requested_access.into_values().collect()) } else { Err(faults.join("\nrobotsd: ")) }
    }
}

pub(crate) fn run(args: &EditArgs) -> io::Result<ExitCode> {
    if args.disallow.is_empty() && args.allow.is_empty() {
        let fault = "no crawlers are selected: add --disallow or --allow, such as --disallow category:ai-training";
        return Err(io::Error::other(fault));
    }
    let source = InputSource::of(&args.file);
    if let Some(url) = args.file.to_str().filter(|file| is_url(file)) {
        let fault = format!(
            "{}: this command edits local files and cannot edit a URL: give the path of the file",
            shown_url(url)
        );
        return Err(io::Error::other(fault));
    }
    let site = args.site.select_for(&[args.file.as_path()], &[])?;
    let (name, bytes) = (source.name(), input::read(&args.file)?);
    let robots = RobotsFile { name: name.clone(), bytes };
    let before = robots.evaluator(Reading::Standard, &site.settings, OtherFiles::Refuse)?;
    let requested_access = args.requested_access(&before).map_err(io::Error::other)?;
    let time = TimeBudget::start();
    let registry = &site.settings.registry;
    let edited = EditedFile::of_while(before.robots(), &requested_access, registry, &|| time.is_left());
    let edited = edited.map_err(|error| io::Error::other(format!("{}: {error}", printable(&name))))?;
    let (old, new) = (before.robots().bytes(), edited.robots.bytes());
    let mut out = stdout();
    match source.path() {
        _ if args.diff => write_difference(&mut out, &name, old, new)?,
        None => out.write_all(new)?,
        Some(path) if old != new => replace(path, old, new)?,
        Some(_) => {}
    }
    // Without this flush, the output would be in the wrong order if stdout and stderr go to the
    // same terminal.
    out.flush()?;
    if args.diff || source.path().is_none() {
        write_effect(&mut stderr(), &name, &edited, &requested_access, registry)?;
    } else {
        write_effect(&mut out, &name, &edited, &requested_access, registry)?;
        out.flush()?;
    }
    Ok(exit::exit_code_for(!args.diff || old == new))
}

/// Writes the effect of the edit, and notes about expected effects that the edit does not have.
fn write_effect(
    out: &mut impl Write,
    name: &str,
    edited: &EditedFile,
    requested_access: &[(Agent, Access)],
    registry: &Registry,
) -> io::Result<()> {
    let diff = &edited.diff;
    if diff.is_empty() {
        writeln!(out, "{}: nothing to edit: every selected crawler is already treated as requested", printable(name))?;
    } else {
        let names = DiffNames::new(&format!("{name} (before)"), name);
        writeln!(out, "{}", ChangesText { names: &names, diff, unread: &[] })?;
        list(out, "these crawlers are now named in the file, so that their rules do not change", &edited.kept)?;
        let crawlers = diff.effects.iter().flat_map(|effect| &effect.crawlers);
        let engines: BTreeSet<_> =
            crawlers.filter(|crawler| crawler.is_index_engine).filter_map(|one| one.name.as_ref()).collect();
        match engines.is_empty() {
            true => writeln!(out, "no search engine is affected")?,
            false => writeln!(out, "affected search engines: {}", quoted_list(engines))?,
        }
    }
    let changed = diff.effects.iter().flat_map(|effect| &effect.crawlers).filter_map(|subject| subject.name.as_deref());
    let changed: BTreeSet<_> = changed.map(str::to_lowercase).collect();
    let is_new = |agent: &Agent| agent.crawler().is_some_and(|name| changed.contains(&name.to_lowercase()));
    let already = requested_access.iter().filter(|(agent, access)| *access == Access::Disallow && !is_new(agent));
    let already: Vec<_> = already.filter_map(|(agent, _)| agent.crawler()).collect();
    if !diff.is_empty() {
        list(out, "already blocked", &already)?;
    }
    if requested_access.iter().any(|(agent, access)| *access == Access::Allow && is_new(agent)) {
        writeln!(
            out,
            "--allow does not undo an earlier edit, because it also allows crawlers that your own groups blocked: to \
             restore the file, use version control"
        )?;
    }
    let shut = || {
        requested_access
            .iter()
            .filter(|(_, access)| *access == Access::Disallow)
            .filter_map(|(agent, _)| agent.registered())
    };
    let tokens: Vec<_> = shut().filter(|crawler| crawler.is_control).map(|crawler| &crawler.name).collect();
    list(out, "these tokens never occur in requests, so a server cannot enforce their rules", &tokens)?;
    let categories: Vec<Category> = shut().map(|crawler| crawler.category).collect();
    for category in Category::ALL.iter().filter(|category| categories.contains(category)) {
        let is_left = |crawler: &&Crawler| {
            crawler.supplies.contains(category)
                && !requested_access.iter().any(|(agent, _)| agent.crawler() == Some(&crawler.name))
                && !edited.shuts_out(&Agent::from(*crawler), registry)
        };
        let others: Vec<_> = registry.crawlers().filter(is_left).map(|crawler| &crawler.name).collect();
        list(
            out,
            &format!("these crawlers are not selected, although other companies use their data for {category}"),
            &others,
        )?;
    }
    Ok(())
}

fn list(out: &mut impl Write, what: &str, names: &[impl AsRef<str>]) -> io::Result<()> {
    if names.is_empty() { Ok(()) } else { writeln!(out, "{what}: {}", quoted_list(names)) }
}
