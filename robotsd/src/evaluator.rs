//! Judges requests and files without a server, with the same results as a server.
//!
//! The commands `check`, `diff`, `test`, `explain` and `replay` share the [`Evaluator`], so their
//! results agree. With the [`EvaluatorSettings`] of a configured site, their results also agree
//! with the decisions of `serve`.

use std::collections::HashSet;
use std::net::IpAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use rustix::time::{ClockId, clock_gettime};
use tower_robots::agent::{Agent, Agents, Identity, NamedAs, Recognizer, Registry};
use tower_robots::check::{self, Diff, DiffOptions, FileKind, Finding, Guard, Page, PageLoss, Report};
use tower_robots::internals::{Grace, RefusedRequest};
use tower_robots::policy::{Action, Decision, Policy, Reason, RequestFacts};
use tower_robots::rules::{Line, Reading, RequestPath, RobotsTxt, RuleSet};

use crate::config::{self, Config, ConfigError};
use crate::names::UnknownName;
use crate::refusal::{ExpectedRefusal, SiteRefusals};

/// Maximum processor time for comparing two files or correcting one file. When this time is used
/// up, the command reports its partial results as incomplete. Normal files need only milliseconds.
/// Parsing and checking are not included; for a file of 8 MiB, they take two seconds.
pub(crate) const MAX_TIME: Duration = Duration::from_secs(1);

/// Measures how much of [`MAX_TIME`] is left for this thread. Uses processor time instead of
/// elapsed time, because results must not depend on the load of the machine.
pub(crate) struct TimeBudget {
    end: Duration,
}

impl TimeBudget {
    pub(crate) fn start() -> Self {
        Self { end: processor_time() + MAX_TIME }
    }

    pub(crate) fn is_left(&self) -> bool {
        processor_time() < self.end
    }
}

fn processor_time() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    let (seconds, nanoseconds) = (u64::try_from(used.tv_sec), u32::try_from(used.tv_nsec));
    Duration::new(seconds.unwrap_or_default(), nanoseconds.unwrap_or_default())
}

/// Codes of lints that explain why crawlers find fewer rules in a file than a person would expect.
const FILE_LINTS: [&str; 3] = ["html-instead-of-text", "no-known-field", "over-500-kib"];

/// Codes of the lints in [`FILE_LINTS`] whose findings mean that a file is not a robots.txt.
pub(crate) const OTHER_FILE_LINTS: [&str; 2] = ["html-instead-of-text", "no-known-field"];

/// Codes of lints about lines that crawlers ignore, that crawlers read differently than a person
/// would, or that contain the name of an unknown crawler.
const LINE_LINTS: [&str; 11] = [
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

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownSender {
    pub(crate) identity: Identity,
    pub(crate) address: Option<IpAddr>,
}

#[derive(Debug)]
pub(crate) struct Evaluator {
    pub(crate) rules: RuleSet,
    recognizer: Recognizer,
    pub(crate) reading: Reading,
    pub(crate) settings: EvaluatorSettings,
    /// The grace period, during which new rules are only observed; `None` if it has ended.
    pub(crate) grace: Option<Arc<Grace>>,
    pub(crate) is_off: bool,
    report: OnceLock<Report>,
}

impl Evaluator {
    pub(crate) fn new(bytes: Vec<u8>, reading: Reading, settings: &EvaluatorSettings) -> Self {
        Self::of(&RobotsTxt::parse(bytes), reading, settings)
    }

    pub(crate) fn of(robots: &RobotsTxt, reading: Reading, settings: &EvaluatorSettings) -> Self {
        let rules = compile(robots, reading, &settings.registry);
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

    /// Returns the path of a URL in all forms that the policy checks. With [`Reading::Reference`],
    /// there is only one form.
    pub(crate) fn path<'u>(&self, url: &'u [u8]) -> RequestPath<'u> {
        self.settings.policy.path_read_as(self.reading, url)
    }

    /// Returns the agents that a `User-Agent` field identifies. An empty field counts as a missing
    /// field.
    pub(crate) fn agents(&self, field: &[u8]) -> Agents {
        if field.is_empty() { Agent::empty().into() } else { self.recognizer.agents(field) }
    }

    /// Returns the agents for a name that a person has written: the name of a crawler, or a
    /// `User-Agent` value.
    pub(crate) fn resolve(&self, name: &str) -> (NamedAs, Agents) {
        self.recognizer.resolve(name)
    }

    pub(crate) fn unknown_name<'n>(&self, name: &'n str, other: Option<&Self>) -> Option<UnknownName<'n>> {
        let files: Vec<_> = [Some(self), other].into_iter().flatten().map(Self::robots).collect();
        UnknownName::of(name, &self.recognizer, &files)
    }

    /// Reports whether a name is a single word, such as `curl`, for a client that is not a crawler.
    /// In an expectation, a word of this kind is probably a mistake, because rules apply only to
    /// crawlers. A complete `User-Agent` header of a client that is not a crawler is not a mistake.
    pub(crate) fn is_non_crawler_word(&self, name: &str) -> bool {
        let (named_as, agents) = self.resolve(name);
        let is_crawler = agents.first().class().is_crawler();
        let is_header = name.trim().contains(|char: char| char.is_whitespace() || matches!(char, '/' | '('));
        named_as == NamedAs::Header && !is_crawler && !is_header
    }

    /// Reports whether the group `*` applies to an agent that no other group names.
    pub(crate) fn applies_star_to(&self, agent: &Agent) -> bool {
        self.settings.policy.holds_to_star(agent)
    }

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

    pub(crate) fn refusal(
        &self,
        agent: &Agent,
        sender: KnownSender,
        method: &str,
        path: &RequestPath<'_>,
    ) -> ExpectedRefusal {
        let Some(refusals) = &self.settings.refusals else { return ExpectedRefusal::USUAL };
        let identity = if self.settings.checks_senders { Some(sender.identity) } else { None };
        refusals.expected(&RefusedRequest { agent, identity, path, robots: self.robots() }, method)
    }

    pub(crate) fn check(&self) -> &Report {
        self.report.get_or_init(|| check::check(self.robots(), &self.settings.checks))
    }

    /// Returns the findings that explain why crawlers find fewer rules in the file than a person
    /// would expect. For speed, checks only suspicious files: files that have no groups, exceed the
    /// size limit, or begin with `<`.
    pub(crate) fn file_findings(&self) -> Vec<&Finding> {
        let robots = self.robots();
        let is_suspect = robots.groups().len() == 0
            || robots.bytes().len() > Reading::STANDARD_LIMIT
            || robots.bytes().trim_ascii_start().first() == Some(&b'<');
        if is_suspect { self.findings(&FILE_LINTS).collect() } else { Vec::new() }
    }

    /// Reports whether the file is obviously not a robots.txt, because it is binary data or an HTML
    /// page, or has no known field.
    pub(crate) fn is_other_file(&self) -> bool {
        FileKind::unreadable(self.robots()).is_some() || self.findings(&OTHER_FILE_LINTS).next().is_some()
    }

    /// Returns the findings about new lines (lines that the file `old` does not contain) that
    /// crawlers ignore, or read differently than a person would. A comparison of the paths that
    /// both files allow does not show these lines.
    pub(crate) fn new_line_findings(&self, old: &Self) -> Vec<&Finding> {
        let found: Vec<&Finding> = self.findings(&LINE_LINTS).collect();
        let known: HashSet<&[u8]> = old.robots().lines().map(|line| line.bytes().trim_ascii()).collect();
        let is_new = |line: &Line<'_>| !known.contains(line.bytes().trim_ascii());
        let added: HashSet<usize> = self.robots().lines().filter(is_new).map(|line| line.number).collect();
        found.into_iter().filter(|finding| added.contains(&finding.line)).collect()
    }

    fn findings<'e>(&'e self, codes: &'static [&'static str]) -> impl Iterator<Item = &'e Finding> {
        self.check().findings.iter().filter(|finding| codes.contains(&finding.code))
    }

    /// Returns the findings together with their fixes. Slower than [`check`](Self::check), which
    /// computes no fixes.
    pub(crate) fn check_with_fixes(&self) -> Report {
        self.check().clone().with_fixes(self.robots(), &self.settings.checks)
    }

    pub(crate) fn diff(&self, new: &Self, guards: impl IntoIterator<Item = Guard>) -> Diff {
        let options = DiffOptions::new().with_registry(self.settings.registry.clone());
        let options = guards.into_iter().fold(options, DiffOptions::guard);
        let time = TimeBudget::start();
        Diff::of_while(self.robots(), new.robots(), &options, &|| time.is_left())
    }

    pub(crate) fn page_losses(&self, new: &Self, pages: &[Page]) -> Vec<PageLoss> {
        PageLoss::between(self.robots(), new.robots(), pages, &self.settings.registry)
    }
}

/// The registry, the policy and the checks of a site. The `Default` settings are the settings of a
/// site with an empty config.
#[derive(Clone, Debug)]
pub(crate) struct EvaluatorSettings {
    pub(crate) registry: Arc<Registry>,
    pub(crate) policy: Policy,
    pub(crate) checks: check::Options,
    /// Responses to refused requests; `None` for the default response.
    pub(crate) refusals: Option<Arc<SiteRefusals>>,
    pub(crate) checks_senders: bool,
}

impl EvaluatorSettings {
    /// Like `serve`, reads the settings of a site from a config, including `registry_extra` and the
    /// last saved download from `registry_url`.
    pub(crate) fn of_site(config: &Config, site: &config::SiteConfig) -> Result<Self, ConfigError> {
        let registry = config::load_registry(&config.registry)?;
        let checks = site.checks(&registry).with_registry(registry.clone());
        let (policy, refusals) = (site.policy.clone(), site.refusal.clone());
        Ok(Self { registry, policy, checks, refusals, checks_senders: config.identity.is_some() })
    }

    /// Returns a copy of the settings for the robots.txt of `host`. The messages of the checks
    /// contain this host.
    pub(crate) fn for_host(&self, host: &str) -> Self {
        Self { checks: self.checks.clone().site_host(host), ..self.clone() }
    }
}

/// Compiles the rules of a robots.txt, as `serve` does.
pub(crate) fn compile(robots: &RobotsTxt, reading: Reading, registry: &Registry) -> RuleSet {
    robots.compile_with(reading, |name| registry.stands_for(name.value()))
}

impl Default for EvaluatorSettings {
    fn default() -> Self {
        let registry = Registry::builtin().clone();
        let (policy, checks) = (Policy::default(), check::Options::new());
        Self { registry, policy, checks, refusals: None, checks_senders: false }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_lint_code_of_the_evaluator_exists() {
        for code in FILE_LINTS.iter().chain(&OTHER_FILE_LINTS).chain(&LINE_LINTS) {
            assert!(check::Lint::of_code(code).is_some(), "{code}");
        }
    }
}
