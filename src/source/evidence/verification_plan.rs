//! How the crawlers of a registry are verified: the parsed URLs and patterns of each crawler, and
//! the reverse DNS names of each operator.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::lookups::OperatorNames;
use crate::agent::{Crawler, Registry};
use crate::identity::{DirectoryUrl, NamePattern, PublicAddress, RangeList};
use crate::live::Mutex;
use crate::source::fetch::FetchUrl;
use crate::source::follow::{FollowError, FollowedDocument};

#[derive(Debug)]
pub(super) struct VerificationPlan {
    pub(super) rows: Vec<CrawlerPlan>,
    /// The lists of all crawlers, by URL with the query.
    pub(super) lists: BTreeMap<String, FetchUrl>,
    pub(super) directories: HashMap<DirectoryUrl, FetchUrl>,
}

#[derive(Debug)]
pub(super) struct CrawlerPlan {
    pub(super) name: Box<str>,
    pub(super) lists: Vec<String>,
    pub(super) patterns: Vec<NamePattern>,
}

impl VerificationPlan {
    pub(super) fn of(registry: &Registry, directories: &[DirectoryUrl]) -> Result<Self, FollowError> {
        let mut plan = Self { rows: Vec::new(), lists: BTreeMap::new(), directories: HashMap::new() };
        for directory in directories {
            plan.directory(directory)?;
        }
        for crawler in registry.crawlers() {
            plan.crawler(crawler)?;
        }
        Ok(plan)
    }

    fn crawler(&mut self, crawler: &Crawler) -> Result<(), FollowError> {
        let wrong = |field: &str, value: &str, why: &dyn std::fmt::Display| {
            FollowError::new(format!("crawler {:?}, {field} {value:?}: {why}", &crawler.name))
        };
        let mut row = CrawlerPlan { name: crawler.name.as_str().into(), lists: Vec::new(), patterns: Vec::new() };
        for text in &crawler.ranges {
            let url: FetchUrl = text.parse().map_err(|error| wrong("ranges", text, &error))?;
            row.lists.push(url.unredacted());
            self.lists.insert(url.unredacted(), url);
        }
        for text in &crawler.reverse_dns {
            row.patterns.push(text.parse().map_err(|error| wrong("rdns", text, &error))?);
        }
        if let Some(text) = crawler.signature.as_deref() {
            let directory = DirectoryUrl::parse(text).map_err(|error| wrong("signature", text, &error))?;
            self.directory(&directory)?;
        }
        if !(row.lists.is_empty() && row.patterns.is_empty()) {
            self.rows.push(row);
        }
        Ok(())
    }

    fn directory(&mut self, directory: &DirectoryUrl) -> Result<(), FollowError> {
        let url = directory.as_str().parse();
        let url = url.map_err(|error| FollowError::new(format!("directory {:?}: {error}", directory.as_str())))?;
        self.directories.insert(directory.clone(), url);
        Ok(())
    }
}

/// Maximum number of [`ResolverProof`]s that are read from a file. The built-in registry contains
/// fewer operators.
const MAX_PROOFS: usize = 1_024;

#[derive(Debug, Default)]
pub(super) struct OperatorTable(Mutex<Operators>);

#[derive(Debug, Default)]
struct Operators {
    /// The reverse DNS names of the operators in all registries that this process has used. Entries
    /// are never removed, because the numbers of the operators are part of cache keys.
    names: Vec<Arc<OperatorNames>>,
    /// The verified addresses from an earlier process.
    proofs: Vec<ResolverProof>,
}

/// An address that was verified by its reverse DNS name. Before a failed lookup of another address
/// refutes a claim, the verified address is looked up again to test whether the resolver answers.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(super) struct ResolverProof {
    address: IpAddr,
    /// The operator's patterns for reverse DNS names, separated by spaces.
    patterns: String,
}

impl OperatorTable {
    pub(super) fn new(mut proofs: Vec<ResolverProof>) -> Self {
        proofs.truncate(MAX_PROOFS);
        Self(Mutex::new(Operators { names: Vec::new(), proofs }))
    }

    pub(super) fn names_of(&self, patterns: Vec<NamePattern>) -> Arc<OperatorNames> {
        let mut operators = self.0.lock();
        if let Some(names) = operators.names.iter().find(|names| *names.patterns == patterns[..]) {
            return names.clone();
        }
        let number = u32::try_from(operators.names.len()).unwrap_or(u32::MAX);
        let text = written(&patterns);
        let proof = operators.proofs.iter().find(|proof| proof.patterns == text);
        let proof = proof.and_then(|proof| PublicAddress::of(Some(proof.address), |_| false).ok());
        let names = Arc::new(OperatorNames::new(number, patterns.into(), proof));
        operators.names.push(names.clone());
        names
    }

    pub(super) fn proofs(&self) -> Vec<ResolverProof> {
        let proof = |names: &Arc<OperatorNames>| {
            Some(ResolverProof { address: names.proof()?.get(), patterns: written(&names.patterns) })
        };
        self.0.lock().names.iter().filter_map(proof).collect()
    }
}

fn written(patterns: &[NamePattern]) -> String {
    let patterns: Vec<String> = patterns.iter().map(ToString::to_string).collect();
    patterns.join(" ")
}

#[derive(Debug)]
pub(super) struct CrawlerMethods {
    pub(super) lists: Box<[FollowedDocument<RangeList>]>,
    pub(super) names: Option<Arc<OperatorNames>>,
}

pub(super) type MethodTable = HashMap<Box<str>, CrawlerMethods, foldhash::fast::RandomState>;
