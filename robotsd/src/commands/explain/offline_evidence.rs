//! Who sends a request, by evidence that stands in the question: nothing is fetched or looked up.

use std::collections::HashMap;
use std::net::IpAddr;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::SystemTime;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tower_robots::agent::{Crawler, Network, UndecidedReason};
use tower_robots::identity::{
    ClaimEvidence, DirectoryUrl, DnsAnswer, EmbeddedList, KeySet, ListEvidence, MethodOutcome, PublicAddress, RangeSet,
    RdnsCheck, RdnsQuestion,
};

use crate::commands::claim::name_patterns;

/// The evidence of a question: `{"directories": …, "ranges": …, "names": …, "forward": …, "allow_test_keys": …}`.
///
/// Lists and directories count as fresh. A directory that is missing is one that is not configured, a list that is missing
/// one that is not loaded. Without `names` there is no resolver; in `names` an address that is missing has no name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct OfflineEvidence {
    /// `None` stands for a directory that cannot be fetched.
    #[serde(default, deserialize_with = "directories")]
    directories: HashMap<DirectoryUrl, Option<KeySet>>,
    #[serde(default, deserialize_with = "ranges")]
    ranges: HashMap<String, RangeSet>,
    #[serde(default)]
    names: Option<HashMap<IpAddr, Vec<String>>>,
    #[serde(default, deserialize_with = "forward")]
    forward: HashMap<String, Vec<IpAddr>>,
    #[serde(default)]
    allow_test_keys: bool,
}

/// The copies of lists that are compiled in, for a question without evidence: they verify and never refute.
#[derive(Debug)]
pub(super) struct EmbeddedEvidence;

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
        match networks {
            Ok(networks) => Ok((url, networks)),
            Err(error) => Err(serde::de::Error::custom(format!("list {url:?}: {error}"))),
        }
    };
    entries.into_iter().map(read).collect()
}

fn forward<'de, D: Deserializer<'de>>(deserializer: D) -> Result<HashMap<String, Vec<IpAddr>>, D::Error> {
    let entries = HashMap::<String, Vec<IpAddr>>::deserialize(deserializer)?;
    Ok(entries.into_iter().map(|(name, addresses)| (in_one_form(&name), addresses)).collect())
}

/// Names are compared without case and final dot.
fn in_one_form(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

impl ClaimEvidence for OfflineEvidence {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let lists =
            crawler.ranges.iter().map(|url| self.ranges.get(url).map(|set| ListEvidence { set, confirmed: Some(now) }));
        (!crawler.ranges.is_empty()).then(|| ListEvidence::examine(lists, address, None, now))
    }

    fn rdns(&self, crawler: &Crawler, address: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        let patterns = name_patterns(crawler)?;
        let Some(names) = &self.names else {
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
                    let addresses = self.forward.get(&in_one_form(name));
                    addresses.map_or(DnsAnswer::NoSuchName, |addresses| DnsAnswer::Addresses(addresses.clone()))
                }
            };
            check.answer(answer);
        }
    }

    fn keys(&self, directory: &DirectoryUrl, _: &str, _: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        let keys = self.directories.get(directory).ok_or(UndecidedReason::DirectoryNotConfigured)?;
        let mut keys = keys.clone().ok_or(UndecidedReason::DirectoryUnavailable)?;
        keys.accepts_test_key = self.allow_test_keys;
        Ok(Arc::new(keys))
    }
}

impl ClaimEvidence for EmbeddedEvidence {
    fn range(&self, crawler: &Crawler, address: PublicAddress, now: SystemTime) -> Option<MethodOutcome> {
        let list = |url: &str| EmbeddedList::all().iter().find(|list| list.url == url);
        let lists = crawler
            .ranges
            .iter()
            .map(|url| list(url).map(|list| ListEvidence { set: &list.list.set, confirmed: None }));
        (!crawler.ranges.is_empty()).then(|| ListEvidence::examine(lists, address, None, now))
    }

    fn rdns(&self, crawler: &Crawler, _: PublicAddress, _: SystemTime) -> Option<MethodOutcome> {
        let has_names = !crawler.reverse_dns.is_empty();
        has_names.then_some(MethodOutcome::Undecided(UndecidedReason::UnprovenResolver))
    }

    fn keys(&self, _: &DirectoryUrl, _: &str, _: SystemTime) -> Result<Arc<KeySet>, UndecidedReason> {
        Err(UndecidedReason::DirectoryUnavailable)
    }
}
