//! Caches `User-Agent` headers with the agents that they name, and judges requests by a robots.txt
//! and the policy that `serve` would enforce.

use std::collections::HashMap;
use std::net::IpAddr;
use std::slice;

use foldhash::fast::RandomState;
use tower_robots::agent::{Agent, Agents, Category, Class, Identity};
use tower_robots::policy::Decision;
use tower_robots::rules::{Access, RequestPath};

use super::identity::{ClaimMethods, LogEvidence};
use crate::evaluator::{Evaluator, KnownSender};

/// Maximum number of headers in the cache; when the cache is full, it is emptied.
const MAX_HEADERS: usize = 8192;

/// Maximum length of a cached header, in bytes.
pub(super) const MAX_HEADER_LENGTH: usize = 512;

#[derive(Debug, Default)]
pub(super) struct HeaderCache {
    pub(super) known: KnownHeaders,
    pub(super) version_headers: VersionHeaders,
}

/// Headers with their agents, evaluated with one version of robots.txt. All headers are dropped
/// when another version is needed.
#[derive(Debug, Default)]
pub(super) struct VersionHeaders {
    version: usize,
    known: KnownHeaders,
}

impl VersionHeaders {
    /// Returns the agents that a header names, evaluated with one version of robots.txt. `version`
    /// is the index of the version that `evaluator` was compiled from.
    pub(super) fn of(&mut self, version: usize, evaluator: &Evaluator, header: &[u8]) -> &JudgedAgents {
        if self.version != version {
            *self = Self { version, known: KnownHeaders::default() };
        }
        &self.known.identify(slice::from_ref(evaluator), &LogEvidence::default(), header).agents[0]
    }
}

#[derive(Debug, Default)]
pub(super) struct KnownHeaders {
    headers: HashMap<Box<[u8]>, usize, RandomState>,
    identified: Vec<IdentifiedHeader>,
}

#[derive(Debug)]
pub(super) struct IdentifiedHeader {
    /// The crawler or the class of agents that the header names. The row of this crawler or class
    /// counts the requests with this header.
    pub(super) kind: AgentKind,
    /// Agents of the header, evaluated with each robots.txt of the replay.
    pub(super) agents: Vec<JudgedAgents>,
    /// Methods that check a client's address, to verify that the client is the crawler that the
    /// header names. `None` if there is no method.
    pub(super) methods: Option<ClaimMethods>,
    /// Whether none of the agents in the header is a crawler.
    pub(super) has_no_crawler: bool,
}

#[derive(Clone, Debug)]
pub(super) struct AgentKind {
    pub(super) name: String,
    pub(super) class: Class,
    pub(super) category: Option<Category>,
    /// Whether `name` is the name of a crawler, or of the row for all crawlers without their own
    /// row; `false` for a class of agents that are not crawlers.
    pub(super) is_crawler: bool,
    /// Whether the crawler belongs to a search engine that people use.
    pub(super) is_index_engine: bool,
    pub(super) operator: Option<String>,
}

impl KnownHeaders {
    pub(super) fn identify(
        &mut self,
        evaluators: &[Evaluator],
        evidence: &LogEvidence,
        header: &[u8],
    ) -> &IdentifiedHeader {
        if let Some(at) = self.headers.get(header) {
            return &self.identified[*at];
        }
        if self.identified.len() >= MAX_HEADERS {
            self.headers.clear();
            self.identified.clear();
        }
        let agents: Vec<_> = evaluators.iter().map(|evaluator| JudgedAgents::identify(evaluator, header)).collect();
        let kind = AgentKind::of(agents.last().map(|judged| judged.agents.first()));
        let methods = agents.last().and_then(|judged| evidence.methods_of(&judged.agents));
        let has_no_crawler =
            agents.iter().flat_map(|judged| judged.agents.iter()).all(|agent| !agent.class().is_crawler());
        let at = self.identified.len();
        self.identified.push(IdentifiedHeader { kind, agents, methods, has_no_crawler });
        if header.len() <= MAX_HEADER_LENGTH {
            self.headers.insert(header.into(), at);
        }
        &self.identified[at]
    }
}

impl IdentifiedHeader {
    pub(super) fn sender(&self, evidence: &LogEvidence, address: Option<IpAddr>, time: Option<i64>) -> Identity {
        match (self.agents.last(), &self.methods) {
            (Some(judged), Some(methods)) => evidence.identify(&judged.agents, methods, address, time, None),
            _ if self.kind.is_crawler => Identity::Unverifiable,
            _ => Identity::Unclaimed,
        }
    }
}

impl AgentKind {
    fn of(agent: Option<&Agent>) -> Self {
        let class = agent.map_or(Class::Empty, Agent::class);
        let own = agent.filter(|agent| !agent.tokens().is_empty() || agent.is_registered());
        match own.and_then(|agent| Some((agent, agent.crawler()?))) {
            Some((agent, name)) => Self {
                name: name.to_owned(),
                class,
                category: agent.category(),
                is_crawler: true,
                is_index_engine: agent.is_index_engine(),
                operator: agent.registered().map(|crawler| crawler.operator.to_owned()),
            },
            None => Self::unnamed(class.as_str(), class, false),
        }
    }

    /// Returns the kind of the row that all crawlers without their own row share.
    pub(super) fn other_crawlers() -> Self {
        Self::unnamed("other crawlers", Class::Declared, true)
    }

    fn unnamed(name: &str, class: Class, is_crawler: bool) -> Self {
        let name = name.to_owned();
        Self { name, class, category: None, is_crawler, is_index_engine: false, operator: None }
    }
}

/// The agents of a header. `is_judged` is `true` if a group of the robots.txt applies to at least
/// one of the agents.
#[derive(Clone, Debug)]
pub(super) struct JudgedAgents {
    pub(super) agents: Agents,
    pub(super) is_judged: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestJudgement {
    Allowed,
    /// The line of the rule that disallows the request; `None` if no rule decides.
    Disallowed(Option<usize>),
}

impl JudgedAgents {
    pub(super) fn identify(evaluator: &Evaluator, field: &[u8]) -> Self {
        let agents = evaluator.agents(field);
        let is_judged = agents.iter().any(|agent| evaluator.settings.policy.has_group(&evaluator.rules, agent));
        Self { agents, is_judged }
    }

    /// Returns the decision of the policy about a request; `None` if no group applies to the
    /// agents.
    pub(super) fn decide<'e>(
        &self,
        evaluator: &'e Evaluator,
        sender: KnownSender,
        method: &str,
        path: &RequestPath<'_>,
    ) -> Option<Decision<'e>> {
        self.is_judged.then(|| evaluator.decide_for_sender(&self.agents, sender, method, path))
    }
}

impl RequestJudgement {
    pub(super) fn of(decision: Option<&Decision<'_>>) -> Self {
        match decision.and_then(|decision| decision.verdict) {
            Some(verdict) if verdict.access() == Access::Disallow => Self::Disallowed(verdict.line()),
            _ => Self::Allowed,
        }
    }

    pub(super) const fn is_disallowed(self) -> bool {
        matches!(self, Self::Disallowed(_))
    }
}
