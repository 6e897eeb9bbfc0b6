//! `robotsd explain --batch`: JSON questions in, JSON answers out, a line each, in order; and who sends the request of a question.

use std::borrow::Cow;
use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_robots::agent::{Agent, Identity, IdentityMethod, IdentityOutcome};
use tower_robots::identity::{Identified, IdentityRequest, MessageHead, PublicAddress, Signers};
use tower_robots::policy::{Action, HumanEvidence};
use tower_robots::rules::{Access, PathForm, Reading, Rule};

use super::explanation::{Explanation, Requester};
use super::offline_evidence::{EmbeddedEvidence, OfflineEvidence};
use super::rows::text;
use crate::commands::agents::AgentSummary;
use crate::commands::arguments::site::{RobotsFile, SelectedSite};
use crate::evaluator::{Evaluator, KnownSender};
use crate::input::InputSource;
use crate::render::write_json;
use crate::target_url::TargetUrl;

/// Octets of robots.txt files that are cached compiled; beyond it the cache is emptied.
const KEPT: usize = 64 << 20;

/// What a small file costs besides its octets, compiled.
const OVERHEAD: usize = 16 << 10;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchQuestion {
    #[serde(default)]
    id: Value,
    robots: Option<String>,
    robots_base64: Option<String>,
    token: Option<String>,
    user_agent: Option<String>,
    url: Option<String>,
    url_base64: Option<String>,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    reading: Reading,
    address: Option<IpAddr>,
    headers: Option<Vec<(String, String)>>,
    now: Option<u64>,
    evidence: Option<OfflineEvidence>,
}

fn get() -> String {
    "GET".to_owned()
}

#[derive(Serialize)]
struct BatchAnswer<'a> {
    id: &'a Value,
    access: Access,
    line: Option<usize>,
    pattern: Option<String>,
    group: Option<Vec<String>>,
    form: PathForm,
    agent: Option<AgentSummary<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    identity: Option<IdentitySummary>,
    /// What the policy does, where the sender is judged.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

#[derive(Serialize)]
struct BatchFailure<'a> {
    id: &'a Value,
    /// Of the question, from 1.
    line: usize,
    error: &'a str,
}

/// Answers every line; how many could not be answered.
pub(super) fn run(site: &SelectedSite, questions: impl Read, mut answers: impl Write) -> io::Result<usize> {
    let mut questions = BufReader::new(questions);
    let signers = Signers::of(&site.settings.registry);
    let mut evaluators = EvaluatorCache { site, evaluators: HashMap::new(), octets: 0 };
    let mut line = Vec::new();
    let (mut number, mut failed) = (0, 0);
    loop {
        // A client may wait for an answer before it writes the next question.
        if questions.buffer().is_empty() {
            answers.flush()?;
        }
        line.clear();
        if questions.read_until(b'\n', &mut line)? == 0 {
            answers.flush()?;
            return Ok(failed);
        }
        number += 1;
        if line.trim_ascii().is_empty() {
            continue;
        }
        if let Err(failure) = answer(&mut evaluators, &signers, &line, &mut answers)? {
            failed += 1;
            let (id, error) = &failure;
            write_json(&mut answers, &BatchFailure { id, line: number, error })?;
        }
    }
}

/// Writes the answer to a question, or returns its id and why there is none.
fn answer(
    evaluators: &mut EvaluatorCache<'_>,
    signers: &Signers,
    line: &[u8],
    answers: &mut impl Write,
) -> io::Result<Result<(), (Value, String)>> {
    let question: BatchQuestion = match serde_json::from_slice(line) {
        Ok(question) => question,
        Err(error) => {
            // A line that is no question may still be JSON with an id.
            let id = serde_json::from_slice::<Value>(line).ok().and_then(|value| value.get("id").cloned());
            return Ok(Err((id.unwrap_or_default(), without_line(&error))));
        }
    };
    let parts = |evaluator| Ok::<_, String>((question.requester(evaluator)?, question.checked_url()?));
    match evaluators.get(&question).and_then(|evaluator| Ok((evaluator, parts(evaluator)?))) {
        Ok((evaluator, (requester, url))) => {
            let path = evaluator.path(&url);
            let (identity, signer) = match question.sender(&url) {
                Some(sender) => {
                    let agents = question.claimed_agents(evaluator, &requester);
                    let (identity, signer) = sender.identify(&agents, signers);
                    (Some(identity), signer)
                }
                None => (None, None),
            };
            // A request that only its signature names is the crawler's that signed it.
            let requester = signer.map_or(requester, |signer| Requester::user_agent(evaluator, &signer));
            let identified = identity.as_ref().map_or(Identity::Unclaimed, |summary| summary.identity);
            let known = KnownSender { identity: identified, address: question.address };
            let evidence = human_evidence(question.fields());
            let explanation =
                Explanation::with_evidence(evaluator, &requester, known, &question.method, &path, &evidence);
            write_json(answers, &BatchAnswer::new(&question.id, &explanation, identity))?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err((question.id, error))),
    }
}

/// The message without its "line 1": every question is one line, and its number in the input is said.
fn without_line(error: &serde_json::Error) -> String {
    let message = error.to_string();
    match message.rsplit_once(" at line 1 column ") {
        Some((message, column)) => format!("{message} at column {column}"),
        None => message,
    }
}

impl BatchQuestion {
    fn requester(&self, evaluator: &Evaluator) -> Result<Requester, String> {
        match (&self.token, &self.user_agent) {
            (Some(token), None) => Ok(Requester::token(evaluator, token)),
            (None, Some(name)) => Ok(Requester::user_agent(evaluator, name)),
            (None, None) if self.headers.is_some() => Ok(Requester::of_lines(evaluator, self.user_agent_lines())),
            _ => Err("a question has a \"token\" or a \"user_agent\"".to_owned()),
        }
    }

    fn fields(&self) -> &[(String, String)] {
        self.headers.as_deref().unwrap_or_default()
    }

    /// As they arrive: the blanks around a value are no part of it (RFC 9110, section 5.5).
    fn user_agent_lines(&self) -> impl Iterator<Item = &str> {
        let lines = self.fields().iter().filter(|(name, _)| name.eq_ignore_ascii_case("user-agent"));
        lines.map(|(_, value)| value.trim_matches([' ', '\t']))
    }

    /// Who the request says it is from.
    fn claimed_agents<'r>(&self, evaluator: &Evaluator, requester: &'r Requester) -> Cow<'r, [Agent]> {
        match &self.token {
            Some(token) => evaluator.resolve(token).agents.to_vec().into(),
            None => requester.agents().into(),
        }
    }

    /// What is said about the sender, where anything is. A URL that only the reference parser reads has none.
    fn sender<'q>(&'q self, url: &'q [u8]) -> Option<Sender<'q>> {
        let is_said = self.address.is_some() || self.headers.is_some() || self.now.is_some() || self.evidence.is_some();
        let url = TargetUrl::parse(url).ok().filter(|_| is_said)?;
        let fields = self.fields();
        let (method, evidence) = (&self.method, self.evidence.as_ref());
        Some(Sender { method, url, address: self.address, fields, now: self.now, evidence })
    }

    fn url(&self) -> Result<Vec<u8>, String> {
        match (&self.url, &self.url_base64) {
            (Some(url), None) => Ok(url.clone().into_bytes()),
            (None, Some(url)) => BASE64.decode(url).map_err(|error| format!("\"url_base64\" is not base64: {error}")),
            _ => Err("a question has a \"url\" or a \"url_base64\"".to_owned()),
        }
    }

    /// The reference parser gives any octets a meaning, which is what questions in its reading are about.
    fn checked_url(&self) -> Result<Vec<u8>, String> {
        let url = self.url()?;
        if self.reading != Reading::Reference {
            TargetUrl::parse(&url)?;
        }
        Ok(url)
    }
}

impl<'a> BatchAnswer<'a> {
    fn new(id: &'a Value, answer: &'a Explanation<'_>, identity: Option<IdentitySummary>) -> Self {
        let rule = answer.verdict.and_then(|verdict| verdict.rule());
        let group = answer.verdict.and_then(|verdict| verdict.group());
        Self {
            id,
            access: answer.access,
            line: rule.map(Rule::line),
            pattern: rule.map(|rule| text(rule.pattern())),
            group: group.map(|group| group.names().map(|name| text(name.value())).collect()),
            form: answer.form,
            agent: answer.agent(),
            action: answer.action.filter(|_| identity.is_some()),
            identity,
        }
    }
}

/// Files that questions were about, compiled, by where they come from and how they are read.
struct EvaluatorCache<'s> {
    site: &'s SelectedSite,
    evaluators: HashMap<(RobotsOrigin, Reading), Evaluator>,
    octets: usize,
}

#[derive(Clone, PartialEq, Eq, Hash)]
enum RobotsOrigin {
    Path(String),
    Base64(String),
    Site,
}

impl RobotsOrigin {
    /// What errors call it.
    fn name(&self) -> String {
        match self {
            Self::Path(path) => path.clone(),
            Self::Base64(_) => "\"robots_base64\"".to_owned(),
            Self::Site => "the robots.txt of the site".to_owned(),
        }
    }
}

impl EvaluatorCache<'_> {
    fn get(&mut self, question: &BatchQuestion) -> Result<&Evaluator, String> {
        let origin = match (&question.robots, &question.robots_base64) {
            (Some(path), None) => RobotsOrigin::Path(path.clone()),
            (None, Some(text)) => RobotsOrigin::Base64(text.clone()),
            (None, None) if self.site.is_configured() => RobotsOrigin::Site,
            _ => return Err("a question has a \"robots\" or a \"robots_base64\"".to_owned()),
        };
        let key = (origin, question.reading);
        if !self.evaluators.contains_key(&key) {
            let bytes = self.read(&key.0)?;
            let cost = bytes.len() + OVERHEAD;
            self.octets += cost;
            if self.octets > KEPT {
                self.evaluators.clear();
                self.octets = cost;
            }
            let name = key.0.name();
            let evaluator = RobotsFile { name, bytes }
                .of_any(question.reading, &self.site.settings)
                .map_err(|error| error.to_string())?;
            self.evaluators.insert(key.clone(), evaluator);
        }
        self.evaluators.get(&key).ok_or_else(|| "the robots.txt is not in the cache".to_owned())
    }

    fn read(&self, origin: &RobotsOrigin) -> Result<Vec<u8>, String> {
        match origin {
            // Not `-`: standard input holds the questions.
            RobotsOrigin::Path(path) => {
                InputSource::File(path.into()).read().map_err(|error| format!("{path}: {error}"))
            }
            RobotsOrigin::Base64(text) => {
                BASE64.decode(text).map_err(|error| format!("\"robots_base64\" is not base64: {error}"))
            }
            RobotsOrigin::Site => {
                self.site.robots(None).map(|RobotsFile { bytes, .. }| bytes).map_err(|error| error.to_string())
            }
        }
    }
}

/// What a question says about its sender, besides the agent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sender<'q> {
    pub(super) method: &'q str,
    pub(super) url: TargetUrl<'q>,
    pub(super) address: Option<IpAddr>,
    pub(super) fields: &'q [(String, String)],
    /// In seconds since the epoch.
    pub(super) now: Option<u64>,
    pub(super) evidence: Option<&'q OfflineEvidence>,
}

/// Who sent the request, as an answer shows it.
#[derive(Debug, Serialize)]
pub(super) struct IdentitySummary {
    outcome: IdentityOutcome,
    method: Option<IdentityMethod>,
    reason: Option<&'static str>,
    crawler: Option<String>,
    #[serde(skip)]
    pub(super) identity: Identity,
}

/// The fields that suggest a person, as the layer reads them. A `Referer` adds nothing that a decision depends on.
fn human_evidence(fields: &[(String, String)]) -> HumanEvidence<'_> {
    let lines = |wanted: &'static str| {
        let lines = fields.iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        lines.map(|(_, value)| value.as_bytes().trim_ascii())
    };
    let first = |name| lines(name).next().unwrap_or_default();
    let evidence = lines("cookie").fold(HumanEvidence::new(), HumanEvidence::cookies);
    evidence.fetch_metadata(first("sec-fetch-site"), first("sec-fetch-mode"), first("sec-fetch-dest"))
}

impl Sender<'_> {
    /// Who it is. The second part is the crawler whose request it is by its signature alone.
    pub(super) fn identify(&self, agents: &[Agent], signers: &Signers) -> (IdentitySummary, Option<String>) {
        let now = self.now.map_or_else(SystemTime::now, |now| {
            SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(now)).unwrap_or_else(SystemTime::now)
        });
        let address = PublicAddress::of(self.address, |_| false).ok();
        let host = self.fields.iter().find(|(name, _)| name.eq_ignore_ascii_case("host"));
        let authority = self.url.host().and_then(|host| std::str::from_utf8(host).ok());
        let authority = authority.or(host.map(|(_, value)| value.as_str()));
        // A path is that of a site as it is usually served.
        let scheme = if self.url.host().is_none() || self.url.is_https() { "https" } else { "http" };
        let target = String::from_utf8_lossy(self.url.path());
        let message = MessageHead::new(self.method, scheme, authority, &target, &self.fields);
        let request = IdentityRequest::new(agents, address).signed(&message, signers);
        let found = match self.evidence {
            Some(evidence) => request.identify(evidence, now),
            None => request.identify(&EmbeddedEvidence, now),
        };
        let signer = found.signer.and_then(Agent::crawler).map(str::to_owned);
        (IdentitySummary::new(&found), signer)
    }
}

impl IdentitySummary {
    fn new(found: &Identified<'_>) -> Self {
        let identity = found.identity;
        Self {
            outcome: identity.outcome(),
            method: identity.method(),
            reason: identity.reason(),
            crawler: found.crawler.map(str::to_owned),
            identity,
        }
    }
}
