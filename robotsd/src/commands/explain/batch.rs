//! `robotsd explain --batch`: reads JSON questions and writes JSON answers, one per line, in the
//! order of the questions. The sender of a request is identified only by the evidence in the
//! question: the command does not fetch lists or look up names.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use tower_robots::agent::{Agent, Crawler, Identity, Network, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, DirectoryUrl, DnsAnswer, EmbeddedList, IdentityRequest, KeySet, ListEvidence, MessageHead,
    MethodOutcome, PublicAddress, RangeSet, RdnsCheck, RdnsQuestion, Signers,
};
use tower_robots::policy::{Action, HumanEvidence};
use tower_robots::rules::{Access, PathForm, Reading, Rule};

use super::explanation::{Explanation, Requester};
use super::rows::text;
use crate::commands::agents::AgentSummary;
use crate::commands::arguments::site::{OtherFiles, RobotsFile, SelectedSite};
use crate::commands::claim::name_patterns;
use crate::evaluator::{Evaluator, KnownSender};
use crate::input::InputSource;
use crate::render::write_json;
use crate::target_url::TargetUrl;

/// Maximum total size of the cached robots.txt files, in bytes. If the next file would exceed the
/// limit, the cache is emptied first.
const MAX_CACHED_BYTES: usize = 64 << 20;

/// Estimated memory that a compiled file needs in addition to its text, in bytes.
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
    /// Action of the policy for the request; `None` if the answer has no `identity`.
    #[serde(skip_serializing_if = "Option::is_none")]
    action: Option<Action>,
}

#[derive(Serialize)]
struct BatchFailure<'a> {
    id: &'a Value,
    /// Line number of the question, from 1.
    line: usize,
    error: &'a str,
}

/// Answers the question in every line. Returns the number of questions that could not be answered.
pub(super) fn run(site: &SelectedSite, questions: impl Read, mut answers: impl Write) -> io::Result<usize> {
    let mut questions = BufReader::new(questions);
    let signers = Signers::of(&site.settings.registry);
    let mut evaluators = EvaluatorCache { site, evaluators: HashMap::new(), bytes: 0 };
    let mut line = Vec::new();
    let (mut number, mut failed) = (0, 0);
    loop {
        // The client may wait for an answer before it writes the next question.
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

/// Writes the answer, or returns the `id` of the question and the reason why there is no answer.
fn answer(
    evaluators: &mut EvaluatorCache<'_>,
    signers: &Signers,
    line: &[u8],
    answers: &mut impl Write,
) -> io::Result<Result<(), (Value, String)>> {
    let question: BatchQuestion = match serde_json::from_slice(line) {
        Ok(question) => question,
        Err(error) => {
            // A line that is not a valid question may still be a JSON object with an `id`.
            let id = serde_json::from_slice::<Value>(line).ok().and_then(|value| value.get("id").cloned());
            return Ok(Err((id.unwrap_or_default(), without_line_number(&error))));
        }
    };
    let parts = |evaluator| Ok::<_, String>((question.requester(evaluator)?, question.checked_url()?));
    match evaluators.get(&question).and_then(|evaluator| Ok((evaluator, parts(evaluator)?))) {
        Ok((evaluator, (requester, url))) => {
            let path = evaluator.path(&url);
            let (identity, signer) = question.identify(evaluator, &requester, &url, signers).unzip();
            // If only the signature names a crawler, the request counts as a request of that
            // crawler.
            let requester = signer.flatten().map_or(requester, |signer| Requester::user_agent(evaluator, &signer));
            let identified = identity.as_ref().map_or(Identity::Unclaimed, |summary| summary.identity);
            let known = KnownSender { identity: identified, address: question.address };
            let evidence = question.human_evidence();
            let explanation = Explanation::new(evaluator, &requester, known, &question.method, &path, &evidence);
            write_json(answers, &BatchAnswer::new(&question.id, &explanation, identity))?;
            Ok(Ok(()))
        }
        Err(error) => Ok(Err((question.id, error))),
    }
}

/// Removes the line number from the message. The message always contains the number 1, because each
/// question is parsed separately. The answer contains the real line number in a separate field.
fn without_line_number(error: &serde_json::Error) -> String {
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
            (None, None) if self.headers.is_some() => {
                Ok(Requester::from_field_lines(evaluator, self.lines("user-agent")))
            }
            _ => Err("a question must contain either \"token\" or \"user_agent\"".to_owned()),
        }
    }

    fn fields(&self) -> &[(String, String)] {
        self.headers.as_deref().unwrap_or_default()
    }

    /// Returns the values of a header field. Removes the white space around a value, because it is
    /// not part of the value (RFC 9110, section 5.5).
    fn lines<'q>(&'q self, wanted: &'static str) -> impl Iterator<Item = &'q str> {
        let lines = self.fields().iter().filter(move |(name, _)| name.eq_ignore_ascii_case(wanted));
        lines.map(|(_, value)| value.trim_matches([' ', '\t']))
    }

    /// Returns the evidence that a person sent the request, as `RobotsLayer` reads this evidence.
    /// `Referer` is left out, because no decision depends on it.
    fn human_evidence(&self) -> HumanEvidence<'_> {
        let first = |name| self.lines(name).next().unwrap_or_default().as_bytes();
        let cookies = self.lines("cookie").map(str::as_bytes);
        let evidence = cookies.fold(HumanEvidence::default(), HumanEvidence::cookies);
        evidence.fetch_metadata(first("sec-fetch-site"), first("sec-fetch-mode"), first("sec-fetch-dest"))
    }

    /// Identifies the sender. If only the signature names a crawler, also returns this crawler.
    /// Returns `None` if the question contains no evidence about the sender, or if the URL in the
    /// question is valid only for the reference parser.
    fn identify(
        &self,
        evaluator: &Evaluator,
        requester: &Requester,
        url: &[u8],
        signers: &Signers,
    ) -> Option<(IdentitySummary, Option<String>)> {
        let has_question =
            self.address.is_some() || self.headers.is_some() || self.now.is_some() || self.evidence.is_some();
        let url = TargetUrl::parse(url).ok().filter(|_| has_question)?;
        let named = self.token.as_ref().map(|token| evaluator.resolve(token).1);
        let agents = named.as_deref().unwrap_or(requester.agents());
        let now = self.now.and_then(|now| SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(now)));
        let now = now.unwrap_or_else(SystemTime::now);
        let address = PublicAddress::of(self.address, |_| false).ok();
        let fields = self.fields();
        let authority = url.host().and_then(|host| std::str::from_utf8(host).ok());
        let authority = authority.or(self.lines("host").next());
        // If the question contains only a path, the scheme is assumed to be https, because most
        // sites use it.
        let scheme = if url.host().is_none() || url.is_https() { "https" } else { "http" };
        let target = String::from_utf8_lossy(url.path());
        let message = MessageHead::new(&self.method, scheme, authority, &target, &fields);
        let request = IdentityRequest::new(agents, address).signed(&message, signers);
        let found = request.identify(self, now);
        let signer = found.signer.and_then(Agent::crawler).map(str::to_owned);
        Some((IdentitySummary { identity: found.identity, crawler: found.crawler.map(str::to_owned) }, signer))
    }

    /// Returns the URL, or an error if it is invalid. A URL for the reference parser is not
    /// checked, because that parser accepts arbitrary bytes.
    fn checked_url(&self) -> Result<Vec<u8>, String> {
        let url = match (&self.url, &self.url_base64) {
            (Some(url), None) => url.clone().into_bytes(),
            (None, Some(url)) => decoded("url_base64", url)?,
            _ => return Err("a question must contain either \"url\" or \"url_base64\"".to_owned()),
        };
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

/// Compiled robots.txt files from earlier questions, by source and [`Reading`].
struct EvaluatorCache<'s> {
    site: &'s SelectedSite,
    evaluators: HashMap<(Option<String>, Option<String>, Reading), Evaluator>,
    bytes: usize,
}

impl EvaluatorCache<'_> {
    fn get(&mut self, question: &BatchQuestion) -> Result<&Evaluator, String> {
        let key = (question.robots.clone(), question.robots_base64.clone(), question.reading);
        if !self.evaluators.contains_key(&key) {
            let file = self.read(question)?;
            let cost = file.bytes.len() + OVERHEAD;
            self.bytes += cost;
            if self.bytes > MAX_CACHED_BYTES {
                self.evaluators.clear();
                self.bytes = cost;
            }
            let mut evaluator = file
                .evaluator(question.reading, &self.site.settings, OtherFiles::Accept)
                .map_err(|error| error.to_string())?;
            if question.robots.is_none() && question.robots_base64.is_none() {
                self.site.decide_as_served(&mut evaluator);
            }
            self.evaluators.insert(key.clone(), evaluator);
        }
        self.evaluators.get(&key).ok_or_else(|| "the robots.txt is not in the cache".to_owned())
    }

    /// Reads the robots.txt that a question names or contains. The name in the result is for error
    /// messages.
    fn read(&self, question: &BatchQuestion) -> Result<RobotsFile, String> {
        let (name, bytes) = match (&question.robots, &question.robots_base64) {
            // Standard input contains the questions, so the path `-` is the name of a file.
            (Some(path), None) => {
                let read = InputSource::File(path.into()).read();
                (path.clone(), read.map_err(|error| format!("{path}: {error}"))?)
            }
            (None, Some(text)) => ("\"robots_base64\"".to_owned(), decoded("robots_base64", text)?),
            (None, None) if self.site.is_configured() => {
                let file = self.site.robots(None).map_err(|error| error.to_string())?;
                ("the robots.txt of the site".to_owned(), file.bytes)
            }
            _ => return Err("a question must contain either \"robots\" or \"robots_base64\"".to_owned()),
        };
        Ok(RobotsFile { name, bytes })
    }
}

fn decoded(key: &str, text: &str) -> Result<Vec<u8>, String> {
    BASE64.decode(text).map_err(|error| format!("{key:?} is not base64: {error}"))
}

#[derive(Serialize)]
struct IdentitySummary {
    #[serde(flatten)]
    identity: Identity,
    crawler: Option<String>,
}

/// The evidence in a question, for example `{"directories": …, "ranges": …, "names": …, "forward":
/// …, "allow_test_keys": …}`. Lists and directories count as fresh. If a directory is missing in
/// the evidence, it is treated as not configured. A missing list is treated as not loaded. If
/// `names` is missing, name look-ups fail as if no resolver were available. If `names` does not
/// contain an address, the address has no name.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OfflineEvidence {
    /// Directories by URL; `None` for a directory that cannot be fetched.
    #[serde(deserialize_with = "directories")]
    directories: HashMap<DirectoryUrl, Option<KeySet>>,
    #[serde(deserialize_with = "ranges")]
    ranges: HashMap<String, RangeSet>,
    names: Option<HashMap<IpAddr, Vec<String>>>,
    forward: HashMap<String, Vec<IpAddr>>,
    allow_test_keys: bool,
}

fn directories<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<DirectoryUrl, Option<KeySet>>, D::Error> {
    let entries = HashMap::<String, Option<Value>>::deserialize(deserializer)?;
    let read = |(url, keys): (String, Option<Value>)| {
        let wrong = |error: &dyn std::fmt::Display| serde::de::Error::custom(format!("directory {url:?}: {error}"));
        let directory = DirectoryUrl::parse(&url).map_err(|error| wrong(&error))?;
        let keys = keys.map(|keys| KeySet::parse(keys.to_string().as_bytes())).transpose();
        Ok((directory, keys.map_err(|error| wrong(&error))?))
    };
    entries.into_iter().map(read).collect()
}

fn ranges<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<String, RangeSet>, D::Error> {
    let entries = HashMap::<String, Vec<String>>::deserialize(deserializer)?;
    let read = |(url, texts): (String, Vec<String>)| {
        let networks: Result<RangeSet, _> = texts.iter().map(|text| text.parse::<Network>()).collect();
        let networks = networks.map_err(|error| serde::de::Error::custom(format!("list {url:?}: {error}")))?;
        Ok((url, networks))
    };
    entries.into_iter().map(read).collect()
}

/// Normalizes a DNS name, because comparisons must ignore case and a final dot.
fn normalized_name(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

/// Uses the evidence in the question. If the question contains no evidence, the built-in copies of
/// lists are used. Built-in copies can confirm that the client is the crawler, but cannot refute
/// this claim.
impl ClaimEvidence for BatchQuestion {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let list = |url: &String| match &self.evidence {
            Some(evidence) => evidence.ranges.get(url).map(|set| ListEvidence { set, confirmed: Some(now) }),
            None => {
                let list = EmbeddedList::all().iter().find(|list| list.url == url)?;
                Some(ListEvidence { set: &list.list.set, confirmed: None })
            }
        };
        (!crawler.ranges.is_empty()).then(|| ListEvidence::examine(crawler.ranges.iter().map(list), address, None, now))
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        let patterns = name_patterns(crawler)?;
        let Some(OfflineEvidence { names: Some(names), forward, .. }) = &self.evidence else {
            return Some(MethodOutcome::Undecided(UndecidedReason::UnprovenResolver));
        };
        let mut check = RdnsCheck::new(address, patterns);
        loop {
            let answer = match check.step() {
                ControlFlow::Break(outcome) => return Some(outcome),
                ControlFlow::Continue(RdnsQuestion::Ptr(address)) => {
                    names.get(&address).map_or(DnsAnswer::NoSuchName, |names| DnsAnswer::Names(names.clone()))
                }
                ControlFlow::Continue(RdnsQuestion::A(name) | RdnsQuestion::Aaaa(name)) => {
                    let is_meant = |(known, _): &(&String, _)| normalized_name(known) == normalized_name(name);
                    let addresses = forward.iter().find(is_meant);
                    addresses.map_or(DnsAnswer::NoSuchName, |(_, addresses)| DnsAnswer::Addresses(addresses.clone()))
                }
            };
            check.answer(answer);
        }
    }

    fn keys(&self, directory: &DirectoryUrl, _: &str, _: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        let evidence = self.evidence.as_ref().ok_or(UndecidedReason::DirectoryUnavailable)?;
        let keys = evidence.directories.get(directory).ok_or(UndecidedReason::DirectoryNotConfigured)?;
        let mut keys = keys.clone().ok_or(UndecidedReason::DirectoryUnavailable)?;
        keys.accepts_test_key = evidence.allow_test_keys;
        Ok(Arc::new(keys))
    }
}
