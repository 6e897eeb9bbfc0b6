//! Selects crawlers. `edit`, `agents`, `explain`, `diff` and `[site.modes]` use the same syntax:
//! `agent:GPTBot`, `category:ai-training`, `operator:OpenAI` or `index`.

use std::str::FromStr;

use tower_robots::agent::{Category, Crawler, Registry};
use tower_robots::policy::Crawlers;
use tower_robots::rules::ValueError;

use crate::names::did_you_mean;

/// A selection of crawlers. A value without a key is the name of a crawler, or `index`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selector {
    Agent(String),
    Category(Category),
    Operator(String),
    /// Search engines with a public index.
    Index,
}

impl FromStr for Selector {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (key, value) = text.split_once(':').map_or((None, text), |(key, value)| (Some(key), value));
        let value = value.trim();
        match key {
            None if value.is_empty() => Err(format!("the selector is empty: {FORMS}")),
            Some(key) if value.is_empty() => Err(format!("\"{key}:\" needs a value: write it after the colon")),
            None if value == "index" => Ok(Self::Index),
            None | Some("agent") => Ok(Self::Agent(value.to_owned())),
            Some("operator") => Ok(Self::Operator(value.to_owned())),
            Some("category") => value.parse().map(Self::Category).map_err(|error| {
                let hint = did_you_mean(value, Category::ALL.iter().map(|category| category.as_str()));
                hint.map_or_else(|| error.to_string(), |hint| format!("{error}; {hint}"))
            }),
            Some(_) => Err(FORMS.to_owned()),
        }
    }
}

const FORMS: &str = "write a name, \"category:WORD\", \"operator:NAME\" or \"index\"";

impl Selector {
    /// Returns the names of the crawlers that a word selects. If the word is not `index`, a
    /// category or an operator, it is the name of a crawler or a whole `User-Agent` header, and is
    /// returned unchanged.
    ///
    /// # Errors
    ///
    /// Returns an error if the category does not exist, or if the operator has no crawler in the
    /// registry.
    pub(crate) fn names<'w>(word: &'w str, registry: &'w Registry) -> Result<Vec<&'w str>, String> {
        if word != "index" && !word.starts_with("category:") && !word.starts_with("operator:") {
            return Ok(vec![word]);
        }
        let crawlers = word.parse::<Self>()?.of(registry)?;
        Ok(crawlers.into_iter().map(|crawler| &*crawler.name).collect())
    }

    pub(crate) fn crawlers(&self) -> Result<Crawlers, ValueError> {
        Ok(match self {
            Self::Agent(name) => Crawlers::agent(name)?,
            Self::Category(category) => Crawlers::Category(*category),
            Self::Operator(operator) => Crawlers::Operator(operator.as_str().into()),
            Self::Index => Crawlers::IndexEngines,
        })
    }

    pub(crate) fn has(&self, crawler: &Crawler) -> bool {
        match self {
            Self::Agent(name) => crawler.name.eq_ignore_ascii_case(name),
            Self::Category(category) => crawler.category == *category,
            Self::Operator(operator) => crawler.operator.eq_ignore_ascii_case(operator),
            Self::Index => crawler.is_index_engine,
        }
    }

    pub(crate) fn of<'r>(&self, registry: &'r Registry) -> Result<Vec<&'r Crawler>, String> {
        let crawlers: Vec<_> = registry.crawlers().filter(|crawler| self.has(crawler)).collect();
        match self {
            Self::Operator(operator) if crawlers.is_empty() => {
                let hint = did_you_mean(operator, registry.crawlers().map(|crawler| crawler.operator.as_str()));
                let hint = hint.unwrap_or_else(|| "`robotsd agents` lists the operators".to_owned());
                Err(format!("no crawler of the registry has the operator {operator:?}: {hint}"))
            }
            _ => Ok(crawlers),
        }
    }
}
