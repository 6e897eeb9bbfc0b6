//! An agent as answers show it, in JSON and in words.

use std::fmt;

use serde::Serialize;
use tower_robots::agent::{Agent, Category, Class, Crawler};

use crate::render::printable;

/// Who a request says it is, and what it obeys.
#[derive(Debug, Serialize)]
pub(in crate::commands) struct AgentSummary<'a> {
    class: Class,
    crawler: Option<&'a str>,
    category: Option<Category>,
    tokens: Vec<String>,
    held_to_star: bool,
    #[serde(skip)]
    is_control: bool,
}

impl<'a> AgentSummary<'a> {
    pub(in crate::commands) fn new(agent: &'a Agent, held_to_star: bool) -> Self {
        Self {
            class: agent.class(),
            crawler: agent.crawler(),
            category: agent.category(),
            tokens: agent.tokens().iter().map(ToString::to_string).collect(),
            held_to_star,
            is_control: agent.registered().is_some_and(Crawler::is_control),
        }
    }
}

/// As in `registered GPTBot, ai-training; obeys gptbot; is held to *`.
impl fmt::Display for AgentSummary<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { class, crawler, category, tokens, held_to_star, is_control } = self;
        write!(f, "{class}")?;
        if let Some(crawler) = crawler {
            write!(f, " {}", printable(crawler.as_bytes()))?;
        }
        if let Some(category) = category {
            write!(f, ", {category}")?;
        }
        if !tokens.is_empty() {
            write!(f, "; obeys {}", printable(tokens.join(", then ").as_bytes()))?;
        }
        f.write_str(if *held_to_star { "; is held to *" } else { "; is not held to *" })?;
        f.write_str(if *is_control { "; a control token, which no request has" } else { "" })
    }
}
