//! `robotsd explain --batch`: JSON questions in, JSON answers out, a line each, in order.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower_robots::agent::{Agent, Identity};
use tower_robots::identity::Signers;
use tower_robots::policy::Action;
use tower_robots::rules::{Access, PathForm, Reading, Rule};

use super::explanation::{Explanation, Requester};
use super::offline_evidence::OfflineEvidence;
use super::sender::{IdentitySummary, Sender};
use crate::commands::arguments::site::{RobotsFile, SelectedSite};
use crate::commands::output::agent_summary::AgentSummary;
use crate::evaluator::{Evaluator, KnownSender};
use crate::input::InputSource;
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
            serde_json::to_writer(&mut answers, &BatchFailure { id, line: number, error })?;
        }
        answers.write_all(b"\n")?;
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
                    let (identity, signer) = sender.identify(&question.agents(evaluator), signers);
                    (Some(identity), signer)
                }
                None => (None, None),
            };
            // A request that only its signature names is the crawler's that signed it.
            let requester = signer.map_or(requester, |signer| Requester::user_agent(evaluator, &signer));
            let identified = identity.as_ref().map_or(Identity::Unclaimed, |summary| summary.identity);
            let sender = KnownSender { identity: identified, address: question.address };
            let explanation = Explanation::for_sender(evaluator, &requester, sender, &question.method, &path);
            serde_json::to_writer(answers, &BatchAnswer::new(&question.id, &explanation, identity))?;
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
            (None, Some(field)) => Ok(Requester::user_agent(evaluator, field)),
            (None, None) if self.headers.is_some() => {
                Ok(Requester::user_agent(evaluator, self.user_agent_lines().next().unwrap_or_default()))
            }
            _ => Err("a question has a \"token\" or a \"user_agent\"".to_owned()),
        }
    }

    fn user_agent_lines(&self) -> impl Iterator<Item = &str> {
        let headers = self.headers.as_deref().unwrap_or_default().iter();
        headers.filter(|(name, _)| name.eq_ignore_ascii_case("user-agent")).map(|(_, value)| value.as_str())
    }

    /// Who the request says it is from.
    fn agents(&self, evaluator: &Evaluator) -> Vec<Agent> {
        match self.token.as_ref().or(self.user_agent.as_ref()) {
            Some(name) => evaluator.resolve(name).agents().to_vec(),
            None => self.user_agent_lines().flat_map(|line| evaluator.agents(line.as_bytes()).to_vec()).collect(),
        }
    }

    /// What is said about the sender, where anything is. A URL that only the reference parser reads has none.
    fn sender<'q>(&'q self, url: &'q [u8]) -> Option<Sender<'q>> {
        let is_said = self.address.is_some() || self.headers.is_some() || self.now.is_some() || self.evidence.is_some();
        let url = TargetUrl::parse(url).ok().filter(|_| is_said)?;
        let fields = self.headers.as_deref().unwrap_or_default();
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
            TargetUrl::parse(&url).map_err(|error| error.to_string())?;
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

fn text(octets: &[u8]) -> String {
    String::from_utf8_lossy(octets).into_owned()
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
