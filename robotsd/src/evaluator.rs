//! Judges requests and files without a server, as a server judges them.
//!
//! `check`, `diff`, `test`, `explain` and `replay` share one [`Evaluator`], so that they agree with each other, and, with
//! the settings of a configured site, with `serve`: same registry, same policy, same checks. The origin of the settings
//! is in [`EvaluatorSettings`]; which site is meant is a matter of the command line.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use tower_robots::agent::{Agent, Agents, Identity, NamedAs, Recognizer, Registry};
use tower_robots::check::{self, Diff, DiffOptions, FileKind, Finding, Guard, Page, PageLoss, Report};
use tower_robots::internals::Grace;
use tower_robots::policy::{Action, Decision, Policy, Reason, RequestFacts};
use tower_robots::rules::{Line, Reading, RequestPath, RobotsTxt, RuleSet};

use crate::config::{self, Config, ConfigError};
use crate::names::UnknownName;

/// Processor time for comparing two files, or for correcting one. The results by then count, and a message says that they are not all. Real
/// files take milliseconds; parsing and checking one of 8 MiB takes two seconds in addition.
pub(crate) const MOST_TIME: Duration = Duration::from_secs(1);

/// The [`MOST_TIME`] that this thread has for a file. It is processor time, so that a result does not depend on what else the machine does.
pub(crate) struct TimeBudget {
    end: Duration,
}

impl TimeBudget {
    pub(crate) fn start() -> Self {
        Self { end: processor_time() + MOST_TIME }
    }

    pub(crate) fn is_left(&self) -> bool {
        processor_time() < self.end
    }
}

/// Processor time that this thread has used.
fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(used.tv_sec), u32::try_from(used.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// Lints about a file in whose place a person sees more rules than crawlers do.
const OF_FILES: [&str; 3] = ["html-instead-of-text", "no-known-field", "over-500-kib"];

/// Those of them about a file that is no robots.txt.
pub(crate) const OF_OTHER_FILES: [&str; 2] = ["html-instead-of-text", "no-known-field"];

/// Lints about a line that crawlers ignore, or read otherwise than it looks, or that is for a crawler that does not exist.
const OF_LINES: [&str; 11] = [
    "not-a-field",
    "missing-colon",
    "misspelled-directive",
    "unknown-directive",
    "rule-before-group",
    "several-directives",
    "path-without-slash",
    "url-as-path",
    "several-paths",
    "invisible-character",
    "unknown-crawler",
];

/// The evidence about the sender of a request, besides its agents.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownSender {
    pub(crate) identity: Identity,
    pub(crate) address: Option<IpAddr>,
}

/// A robots.txt, compiled, with the settings of a site.
#[derive(Debug)]
pub(crate) struct Evaluator {
    pub(crate) rules: RuleSet,
    recognizer: Recognizer,
    pub(crate) reading: Reading,
    pub(crate) settings: EvaluatorSettings,
    /// The grace of its rules, where one runs.
    pub(crate) grace: Option<Arc<Grace>>,
    /// Whether enforcement is switched off.
    pub(crate) is_off: bool,
    /// Made on first use.
    report: OnceLock<Report>,
}

impl Evaluator {
    pub(crate) fn new(bytes: Vec<u8>, reading: Reading, settings: &EvaluatorSettings) -> Self {
        let rules = compile(bytes, reading, &settings.registry);
        Self {
            recognizer: Recognizer::new(settings.registry.clone(), rules.document()),
            rules,
            reading,
            settings: settings.clone(),
            grace: None,
            is_off: false,
            report: OnceLock::new(),
        }
    }

    pub(crate) const fn robots(&self) -> &RobotsTxt {
        self.rules.document()
    }

    /// The path of a URL, in the forms that the policy judges. The reference parser knows one form.
    pub(crate) fn path<'u>(&self, url: &'u [u8]) -> RequestPath<'u> {
        self.settings.policy.path_read_as(self.reading, url)
    }

    /// The agents that a `User-Agent` field names; an empty field is one that was not sent.
    pub(crate) fn agents(&self, field: &[u8]) -> Agents {
        if field.is_empty() { Agent::empty().into() } else { self.recognizer.agents(field) }
    }

    /// The agent that a person means by a name or a header.
    pub(crate) fn resolve(&self, name: &str) -> (NamedAs, Agents) {
        self.recognizer.resolve(name)
    }

    /// The message about a name that neither the registry nor this file has, nor another one.
    pub(crate) fn unknown_name<'n>(&self, name: &'n str, other: Option<&Self>) -> Option<UnknownName<'n>> {
        let files: Vec<_> = [Some(self), other].into_iter().flatten().map(Self::robots).collect();
        UnknownName::of(name, &self.recognizer, &files)
    }

    /// Whether a word, which is no whole header, is taken for the header of something that is no crawler: an expectation about
    /// it holds whatever the file says.
    pub(crate) fn is_word_of_no_crawler(&self, name: &str) -> bool {
        let (named_as, agents) = self.resolve(name);
        let is_crawler = agents.first().class().is_crawler();
        let is_header = name.trim().contains(|char: char| char.is_whitespace() || matches!(char, '/' | '('));
        named_as == NamedAs::Header && !is_crawler && !is_header
    }

    /// Whether the group of `*` applies to an agent that no group names.
    pub(crate) fn holds_to_star(&self, agent: &Agent) -> bool {
        self.settings.policy.holds_to_star(agent)
    }

    /// Whether a group of the file applies to an agent: if not, all its requests are allowed.
    pub(crate) fn has_group_for(&self, agent: &Agent) -> bool {
        self.settings.policy.has_group(&self.rules, agent)
    }

    /// The action of the policy for a request of these agents.
    pub(crate) fn decide_for_sender(
        &self,
        agents: &[Agent],
        sender: KnownSender,
        method: &str,
        path: &RequestPath<'_>,
    ) -> Decision<'_> {
        let address = || sender.address;
        let mut facts = RequestFacts::new(method, path);
        facts.identity = sender.identity;
        facts.address = Some(&address);
        facts.clock = Some(&SystemTime::now);
        let mut decision = self.settings.policy.decide_with_grace(&self.rules, self.grace.as_deref(), agents, facts);
        if self.is_off {
            decision.rate_limit = None;
            if decision.reason > Reason::Allowed {
                (decision.action, decision.reason) = (Action::Pass, Reason::KillSwitch);
            }
        }
        decision
    }

    pub(crate) fn check(&self) -> &Report {
        self.report.get_or_init(|| check::check(self.robots(), &self.settings.checks))
    }

    /// The findings about the whole file for which a person sees more rules than crawlers do. Only a file that may have one is checked:
    /// a check costs more than most answers.
    pub(crate) fn unread_of_file(&self) -> Vec<&Finding> {
        let robots = self.robots();
        let is_suspect = robots.groups().len() == 0
            || robots.bytes().len() > Reading::STANDARD_LIMIT
            || robots.bytes().trim_ascii_start().first() == Some(&b'<');
        if is_suspect { self.findings(&OF_FILES).collect() } else { Vec::new() }
    }

    /// Whether this is another file than a robots.txt, by its content: not text, a page, or without any field.
    pub(crate) fn is_other_file(&self) -> bool {
        FileKind::unreadable(self.robots()).is_some() || self.findings(&OF_OTHER_FILES).next().is_some()
    }

    /// The findings about lines that crawlers do not read as they look, and that an older file does not have: no effect shows them.
    pub(crate) fn unread_lines_since(&self, old: &Self) -> Vec<&Finding> {
        let found: Vec<&Finding> = self.findings(&OF_LINES).collect();
        let known: HashSet<&[u8]> = old.robots().lines().map(|line| line.bytes().trim_ascii()).collect();
        let is_new = |line: &Line<'_>| !known.contains(line.bytes().trim_ascii());
        let added: HashSet<usize> = self.robots().lines().filter(is_new).map(|line| line.number).collect();
        found.into_iter().filter(|finding| added.contains(&finding.line)).collect()
    }

    fn findings<'e>(&'e self, codes: &'static [&'static str]) -> impl Iterator<Item = &'e Finding> {
        self.check().findings.iter().filter(|finding| codes.contains(&finding.code))
    }

    /// The findings, and how each can be corrected, which costs more than finding them.
    pub(crate) fn check_with_fixes(&self) -> Report {
        self.check().clone().with_fixes(self.robots(), &self.settings.checks)
    }

    /// The changes for the crawlers of the registry if `new` takes the place of this file.
    pub(crate) fn diff(&self, new: &Self, guards: impl IntoIterator<Item = Guard>) -> Diff {
        let options = DiffOptions::new().with_registry(self.settings.registry.clone());
        let options = guards.into_iter().fold(options, DiffOptions::guard);
        let time = TimeBudget::start();
        Diff::of_while(self.robots(), new.robots(), &options, &|| time.is_left())
    }

    /// The pages among these that a change to another file takes from search engines.
    pub(crate) fn page_losses(&self, new: &Self, pages: &[Page]) -> Vec<PageLoss> {
        PageLoss::between(self.robots(), new.robots(), pages, &self.settings.registry)
    }
}

/// The registry, the policy and the checks of a site; by default those of a config that says nothing about them.
#[derive(Clone, Debug)]
pub(crate) struct EvaluatorSettings {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Policy,
    pub(crate) checks: check::Options,
}

impl EvaluatorSettings {
    /// As `serve` takes them from a config, `registry_extra` and what `registry_url` brought last included.
    pub(crate) fn of_site(config: &Config, site: &config::SiteConfig) -> Result<Self, ConfigError> {
        let registry = config::load_registry(&config.registry)?;
        let checks = site.checks(&registry).with_registry(registry.clone());
        Ok(Self { registry, policy: site.policy.clone(), checks })
    }

    /// The same for a file of this host, which help names.
    pub(crate) fn for_host(&self, host: &str) -> Self {
        Self { checks: self.checks.clone().site_host(host), ..self.clone() }
    }
}

/// The rules of a robots.txt, as a server compiles them.
pub(crate) fn compile(bytes: Vec<u8>, reading: Reading, registry: &Registry) -> RuleSet {
    RobotsTxt::parse(bytes).compile_with(reading, |name| registry.stands_for(name.value()))
}

impl Default for EvaluatorSettings {
    fn default() -> Self {
        Self { registry: Registry::builtin().clone(), policy: Policy::default(), checks: check::Options::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lints_exist() {
        for code in OF_FILES.iter().chain(&OF_OTHER_FILES).chain(&OF_LINES) {
            assert!(check::Lint::of_code(code).is_some(), "{code}");
        }
    }
}
