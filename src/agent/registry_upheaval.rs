//! What a registry changes at large when it takes the place of another.

use std::collections::HashMap;
use std::fmt;

use super::crawler::Crawler;
use super::registry::Registry;

/// A change of a registry that is rarely meant: half a file, a mistake in a row that much depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RegistryUpheaval {
    /// More than a tenth of the crawlers are gone.
    RowsGone {
        /// How many are.
        gone: usize,
        /// How many there were.
        of: usize,
    },
    /// A row of a search engine that is not refused by default has other tokens, another category, or is gone; or another
    /// row becomes one.
    SearchEngine {
        /// The name of the row.
        name: Box<str>,
        /// What is different about it.
        change: SearchEngineChange,
    },
}

/// What is different about the row of a search engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SearchEngineChange {
    /// There is no such row any more.
    Gone,
    /// The row was none of a search engine, or did not exist.
    New,
    /// The row is none of a search engine any more.
    Demoted,
    /// It obeys groups of other names.
    Tokens,
    /// It has another category.
    Category,
}

impl Registry {
    /// What is different at large in `next`; nothing where it may take the place of this one without a question.
    ///
    /// ```
    /// use tower_robots::agent::{Registry, RegistryRow};
    ///
    /// let next = Registry::builtin().extended_with([RegistryRow::remove("Googlebot")])?;
    /// let upheavals = Registry::builtin().upheavals(&next);
    /// assert_eq!(upheavals[0].to_string(), "the search engine \"Googlebot\" is gone");
    /// assert!(next.upheavals(&next).is_empty());
    /// # Ok::<(), tower_robots::agent::RegistryError>(())
    /// ```
    #[must_use]
    pub fn upheavals(&self, next: &Self) -> Vec<RegistryUpheaval> {
        let mut rows: HashMap<String, &Crawler> =
            next.crawlers().map(|crawler| (crawler.name().to_ascii_lowercase(), crawler)).collect();
        let (mut gone, of) = (0, self.crawlers().len());
        let mut upheavals = Vec::new();
        for before in self.crawlers() {
            let after = rows.remove(&before.name().to_ascii_lowercase());
            gone += usize::from(after.is_none());
            if let Some(change) = change_of_engine(before, after) {
                upheavals.push(RegistryUpheaval::SearchEngine { name: before.name().into(), change });
            }
        }
        let mut new: Vec<_> = rows.into_values().filter(|crawler| crawler.is_index_engine()).collect();
        new.sort_unstable_by_key(|crawler| crawler.name());
        upheavals.extend(new.iter().map(|crawler| RegistryUpheaval::SearchEngine {
            name: crawler.name().into(),
            change: SearchEngineChange::New,
        }));
        if gone * 10 > of {
            upheavals.insert(0, RegistryUpheaval::RowsGone { gone, of });
        }
        upheavals
    }
}

fn change_of_engine(before: &Crawler, after: Option<&Crawler>) -> Option<SearchEngineChange> {
    match (before.is_index_engine(), after) {
        (true, None) => Some(SearchEngineChange::Gone),
        (false, None) => None,
        (was, Some(after)) => match (was, after.is_index_engine()) {
            (false, false) => None,
            (false, true) => Some(SearchEngineChange::New),
            (true, false) => Some(SearchEngineChange::Demoted),
            (true, true) if before.tokens() != after.tokens() => Some(SearchEngineChange::Tokens),
            (true, true) if before.category() != after.category() => Some(SearchEngineChange::Category),
            (true, true) => None,
        },
    }
}

impl fmt::Display for RegistryUpheaval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RowsGone { gone, of } => write!(f, "{gone} of {of} crawlers are gone"),
            Self::SearchEngine { name, change } => {
                let what = match change {
                    SearchEngineChange::Gone => "is gone",
                    SearchEngineChange::New => "is new among those that are not refused by default",
                    SearchEngineChange::Demoted => "is none of those that are not refused by default any more",
                    SearchEngineChange::Tokens => "obeys groups of other names",
                    SearchEngineChange::Category => "has another category",
                };
                write!(f, "the search engine {name:?} {what}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::{Category, CrawlerRow, RegistryRow};

    fn with(rows: impl IntoIterator<Item = RegistryRow>) -> Registry {
        Registry::builtin().extended_with(rows).expect("a registry")
    }

    fn upheavals(rows: impl IntoIterator<Item = RegistryRow>) -> Vec<String> {
        Registry::builtin().upheavals(&with(rows)).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn more_than_a_tenth_of_the_rows_gone_is_an_upheaval() {
        let rows = Registry::builtin().crawlers().len();
        let others = || Registry::builtin().crawlers().filter(|crawler| !crawler.is_index_engine());
        let removed =
            |count| others().take(count).map(|crawler| RegistryRow::remove(crawler.name())).collect::<Vec<_>>();
        assert_eq!(upheavals(removed(rows / 10)), [""; 0]);
        assert_eq!(upheavals(removed(rows / 10 + 1)), [format!("{} of {rows} crawlers are gone", rows / 10 + 1)]);
        assert_eq!(Registry::default().upheavals(&Registry::default()), []);
    }

    #[test]
    fn what_search_engines_are_is_an_upheaval() {
        let google = || CrawlerRow::from(Registry::builtin().crawler("Googlebot").expect("a row"));
        let other = || CrawlerRow::new("HouseBot", Category::Search);
        let none = CrawlerRow::new("Googlebot", Category::Search).header_names(["Googlebot"]);
        for (row, want) in [
            (google().tokens(["Otherbot"]), Some("the search engine \"Googlebot\" obeys groups of other names")),
            (none, Some("the search engine \"Googlebot\" is none of those that are not refused by default any more")),
            (google().operator("Another"), None),
            (other(), None),
            (
                other().index_engine(),
                Some("the search engine \"HouseBot\" is new among those that are not refused by default"),
            ),
        ] {
            assert_eq!(upheavals([row.into()]), want.into_iter().map(str::to_owned).collect::<Vec<_>>());
        }
        assert_eq!(upheavals([RegistryRow::remove("bingbot")]), ["the search engine \"bingbot\" is gone"]);
        let training = with([CrawlerRow::new("HouseBot", Category::AiTraining).index_engine().into()]);
        let search = with([other().index_engine().into()]);
        assert_eq!(search.upheavals(&training)[0].to_string(), "the search engine \"HouseBot\" has another category");
    }
}
