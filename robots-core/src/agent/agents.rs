//! The agent of a request, and the list of all agents in a header.

use std::ops::Deref;
use std::slice;
use std::sync::Arc;

use super::claim::Claim;
use super::crawler::{Category, Class, Crawler, Obeys};
use crate::rules::{Fallback, ProductToken};

/// The agent that a request claims to be from. Cloning is cheap.
#[derive(Clone, Debug)]
pub struct Agent {
    class: Class,
    recognized: RecognizedAs,
}

#[derive(Clone, Debug)]
enum RecognizedAs {
    Registered(Arc<Crawler>),
    Claimed(Arc<Claimed>),
    Unnamed,
}

#[derive(Debug)]
struct Claimed {
    product: Option<String>,
    category: Option<Category>,
    tokens: Vec<ProductToken>,
}

/// The agents in one `User-Agent` line: the registered crawlers in the order of the line, and then
/// an unregistered agent, if any. Nearly every line names only one agent. Cloning is cheap.
///
/// Dereferences to a slice that is never empty. [`Policy::decide`](crate::policy::Policy::decide)
/// takes this slice.
#[derive(Clone, Debug)]
pub struct Agents(List);

#[derive(Clone, Debug)]
enum List {
    One(Agent),
    Several(Arc<[Agent]>),
}

impl Agent {
    /// Returns the agent of a request without a `User-Agent` field.
    pub const fn empty() -> Self {
        Self { class: Class::Empty, recognized: RecognizedAs::Unnamed }
    }

    pub(super) const fn of(crawler: Arc<Crawler>) -> Self {
        Self { class: Class::Registered, recognized: RecognizedAs::Registered(crawler) }
    }

    pub(super) fn named(product: Option<String>, tokens: Vec<ProductToken>) -> Self {
        Self::claimed(Claim { class: Class::Declared, category: None, product }, tokens)
    }

    pub(super) fn claimed(claim: Claim, tokens: Vec<ProductToken>) -> Self {
        let Claim { class, category, product } = claim;
        if tokens.is_empty() && product.is_none() && category.is_none() {
            return Self { class, recognized: RecognizedAs::Unnamed };
        }
        Self { class, recognized: RecognizedAs::Claimed(Arc::new(Claimed { product, category, tokens })) }
    }

    /// Returns the agent's class, which tells how the agent was recognised.
    pub const fn class(&self) -> Class {
        self.class
    }

    /// Returns the purpose of the agent's requests; `None` if neither the registry nor the header
    /// states a purpose.
    pub fn category(&self) -> Option<Category> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(crawler.category),
            RecognizedAs::Claimed(claimed) => claimed.category,
            RecognizedAs::Unnamed => None,
        }
    }

    /// Returns the crawler's name in the registry or, for an unregistered agent, the product name
    /// in the header. `None` if the agent has no name.
    pub fn crawler(&self) -> Option<&str> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(&crawler.name),
            RecognizedAs::Claimed(claimed) => claimed.product.as_deref(),
            RecognizedAs::Unnamed => None,
        }
    }

    /// Returns the product tokens whose groups the agent obeys, in the order that
    /// [`RuleSet::select`](crate::rules::RuleSet::select) expects.
    pub fn tokens(&self) -> &[ProductToken] {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => &crawler.tokens,
            RecognizedAs::Claimed(claimed) => &claimed.tokens,
            RecognizedAs::Unnamed => &[],
        }
    }

    /// Returns whether the agent obeys the groups for `*`, according to the registry;
    /// [`Obeys::Unknown`] if the agent is not registered.
    pub fn obeys_star(&self) -> Obeys {
        self.registered().map_or(Obeys::Unknown, |crawler| crawler.obeys_star)
    }

    /// Returns whether the groups for `*` apply to the agent if no group names it. They apply only
    /// to crawlers, except crawlers that ignore `*` according to their operators' documentation. A
    /// [`Policy`](crate::policy::Policy) may apply `*` to other agents.
    pub fn fallback(&self) -> Fallback {
        if self.class.is_crawler() { self.obeys_star().fallback() } else { Fallback::Nothing }
    }

    /// Reports whether the agent is registered as an index crawler or page tester of a search
    /// engine that people use ([`Crawler::is_index_engine`]).
    pub fn is_index_engine(&self) -> bool {
        self.registered().is_some_and(|crawler| crawler.is_index_engine)
    }

    /// Reports whether the registry contains the agent.
    pub const fn is_registered(&self) -> bool {
        matches!(self.recognized, RecognizedAs::Registered(_))
    }

    /// Returns the agent's row in the registry; `None` if the agent is not registered.
    pub fn registered(&self) -> Option<&Crawler> {
        match &self.recognized {
            RecognizedAs::Registered(crawler) => Some(crawler),
            _ => None,
        }
    }
}

impl From<&Crawler> for Agent {
    fn from(crawler: &Crawler) -> Self {
        Self::of(Arc::new(crawler.clone()))
    }
}

impl Agents {
    pub(super) fn new(first: Agent, further: impl IntoIterator<Item = Agent>) -> Self {
        let mut further = further.into_iter().peekable();
        match further.peek() {
            None => Self::from(first),
            Some(_) => Self(List::Several([first].into_iter().chain(further).collect())),
        }
    }

    /// Returns the first agent. Logs and reports show its name.
    pub fn first(&self) -> &Agent {
        &self[0]
    }
}

impl From<Agent> for Agents {
    fn from(agent: Agent) -> Self {
        Self(List::One(agent))
    }
}

impl Deref for Agents {
    type Target = [Agent];

    fn deref(&self) -> &[Agent] {
        match &self.0 {
            List::One(agent) => slice::from_ref(agent),
            List::Several(agents) => agents,
        }
    }
}
