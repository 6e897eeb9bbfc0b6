//! The key directories of operators, and the crawlers that sign with the keys in these directories.

use std::collections::HashMap;

use super::signature::DirectoryUrl;
use crate::agent::{Agent, Crawler, Registry};

/// The key directories in a registry. Maps each directory to the crawler that signs with the
/// directory's keys, and each operator to the operator's directories.
///
/// A directory belongs to an operator, so its keys verify claims for all crawlers of this operator.
/// If the `User-Agent` names no crawler, a signature is attributed to the first crawler that has
/// the directory in its row of the registry.
#[derive(Clone, Debug, Default)]
pub struct Signers {
    crawlers: HashMap<DirectoryUrl, Agent>,
    directories: HashMap<Box<str>, Vec<DirectoryUrl>>,
}

impl Signers {
    /// Collects the key directories from the rows of a registry. Skips invalid directory URLs.
    pub fn of(registry: &Registry) -> Self {
        let mut signers = Self::default();
        for agent in registry.agents() {
            let Some(crawler) = agent.registered() else { continue };
            let Some(directory) = crawler.signature.as_deref().and_then(|text| DirectoryUrl::parse(text).ok()) else {
                continue;
            };
            let of_operator = signers.directories.entry(operator(crawler).into()).or_default();
            if !of_operator.contains(&directory) {
                of_operator.push(directory.clone());
            }
            signers.crawlers.entry(directory).or_insert_with(|| agent.clone());
        }
        signers
    }

    /// Returns the crawler that signs with the keys of a directory.
    pub fn agent(&self, directory: &DirectoryUrl) -> Option<&Agent> {
        self.crawlers.get(directory)
    }

    /// Returns the directories whose keys verify the claim that a request is from `crawler`.
    pub(super) fn directories_of(&self, crawler: &Crawler) -> &[DirectoryUrl] {
        self.directories.get(operator(crawler)).map_or(&[], Vec::as_slice)
    }
}

/// Returns the operator of a crawler. If the operator is unknown, returns the crawler's name, so
/// that crawlers without a known operator do not share their keys.
fn operator(crawler: &Crawler) -> &str {
    if crawler.operator.is_empty() { &crawler.name } else { &crawler.operator }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::agent::Category;

    #[test]
    fn all_crawlers_of_an_operator_share_its_key_directories() {
        let row = |name: &str, operator: &str, keys: Option<&str>| {
            let signature = keys.map(str::to_owned);
            Crawler { operator: operator.to_owned(), signature, ..Crawler::new(name, Category::Other) }
        };
        let registry = Registry::builtin()
            .extended_with([
                row("One", "O", Some("https://o.example")),
                row("Two", "O", Some("https://o.example/")),
                row("Three", "O", Some("https://o.example/keys")),
                row("Four", "O", None),
                row("Five", "P", None),
                row("Six", "", Some("no URL")),
                row("Seven", "", Some("https://seven.example")),
            ])
            .expect("rows");
        let signers = Signers::of(&registry);
        let url = |text: &str| DirectoryUrl::parse(text).expect(text);
        let directories = |name: &str| signers.directories_of(registry.crawler(name).expect(name)).to_vec();
        for name in ["One", "Two", "Three", "Four"] {
            assert_eq!(directories(name), [url("https://o.example"), url("https://o.example/keys")], "{name}");
        }
        assert_eq!((directories("Five"), directories("Six")), (vec![], vec![]));
        assert_eq!(directories("Seven"), [url("https://seven.example")]);
        let crawler = |text: &str| signers.agent(&url(text)).and_then(Agent::crawler);
        assert_eq!(crawler("https://o.example"), Some("One"));
        assert_eq!(crawler("https://chatgpt.com"), Some("ChatGPT Agent"));
        assert_eq!(crawler("https://other.example"), None);
    }
}
