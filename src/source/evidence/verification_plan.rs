//! What a registry says about verifying its crawlers, read.

use std::collections::{BTreeMap, HashMap};

use super::verifier_error::VerifierError;
use crate::agent::{Crawler, Registry};
use crate::identity::{DirectoryUrl, NamePattern};
use crate::source::fetch::FetchUrl;

/// The methods of all crawlers of a registry, each URL and pattern read.
#[derive(Debug)]
pub(super) struct VerificationPlan {
    pub(super) rows: Vec<CrawlerPlan>,
    /// Every list, by its URL as text.
    pub(super) lists: BTreeMap<String, FetchUrl>,
    pub(super) directories: HashMap<DirectoryUrl, FetchUrl>,
}

/// The methods of one crawler.
#[derive(Debug)]
pub(super) struct CrawlerPlan {
    pub(super) name: Box<str>,
    pub(super) lists: Vec<String>,
    pub(super) patterns: Vec<NamePattern>,
}

impl VerificationPlan {
    /// Reads the rows of a registry, with directories that are configured beside it.
    pub(super) fn of(registry: &Registry, directories: &[DirectoryUrl]) -> Result<Self, VerifierError> {
        let mut plan = Self { rows: Vec::new(), lists: BTreeMap::new(), directories: HashMap::new() };
        for directory in directories {
            plan.directory(directory)?;
        }
        for crawler in registry.crawlers() {
            plan.crawler(crawler)?;
        }
        Ok(plan)
    }

    fn crawler(&mut self, crawler: &Crawler) -> Result<(), VerifierError> {
        let wrong = |field: &str, value: &str, why: &dyn std::fmt::Display| {
            VerifierError::new(format!("crawler {:?}, {field} {value:?}: {why}", crawler.name()))
        };
        let mut row = CrawlerPlan { name: crawler.name().into(), lists: Vec::new(), patterns: Vec::new() };
        for text in crawler.ranges() {
            let url: FetchUrl = text.parse().map_err(|error| wrong("ranges", text, &error))?;
            row.lists.push(url.to_string());
            self.lists.insert(url.to_string(), url);
        }
        for text in crawler.reverse_dns() {
            row.patterns.push(text.parse().map_err(|error| wrong("rdns", text, &error))?);
        }
        if let Some(text) = crawler.signature() {
            let directory = DirectoryUrl::parse(text).map_err(|error| wrong("signature", text, &error))?;
            self.directory(&directory)?;
        }
        if !(row.lists.is_empty() && row.patterns.is_empty()) {
            self.rows.push(row);
        }
        Ok(())
    }

    fn directory(&mut self, directory: &DirectoryUrl) -> Result<(), VerifierError> {
        let url = directory.as_str().parse();
        let url = url.map_err(|error| VerifierError::new(format!("directory {:?}: {error}", directory.as_str())))?;
        self.directories.insert(directory.clone(), url);
        Ok(())
    }
}
