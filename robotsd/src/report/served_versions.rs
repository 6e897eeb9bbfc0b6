//! The versions that a replica serves, as stored in heartbeats and reports.
//!
//! Every replica stores the versions of every other replica, so memory matters. The versions of a
//! replica are stored in one string, which needs a third of the memory that a map would need.
//! Replicas that serve the same versions share one string.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The short hash of the live version of each site, by site name. The hash is empty if no version
/// is live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ServedVersions(Arc<str>);

impl ServedVersions {
    /// Returns the sites with their hashes, sorted by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.split_terminator('\n').filter_map(|line| line.split_once('\t'))
    }
}

impl From<BTreeMap<String, String>> for ServedVersions {
    fn from(sites: BTreeMap<String, String>) -> Self {
        let mut text = String::new();
        for (site, hash) in &sites {
            // Names with tabs or line feeds are left out. Only damaged heartbeats can contain these
            // names.
            if !site.contains(['\t', '\n']) && !hash.contains('\n') {
                text.extend([site, "\t", hash, "\n"]);
            }
        }
        Self(text.into())
    }
}

impl FromIterator<(String, String)> for ServedVersions {
    fn from_iter<I: IntoIterator<Item = (String, String)>>(sites: I) -> Self {
        sites.into_iter().collect::<BTreeMap<_, _>>().into()
    }
}

impl Serialize for ServedVersions {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.iter())
    }
}

impl<'de> Deserialize<'de> for ServedVersions {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        BTreeMap::deserialize(deserializer).map(Self::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn served_versions_survive_json_and_entries_with_control_characters_are_dropped() {
        let json = r#"{"a b":"0123456789abcdef","shop/x.test":"","é":"1"}"#;
        let versions: ServedVersions = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&versions).unwrap(), json);
        assert_eq!(versions.iter().nth(1), Some(("shop/x.test", "")));
        let odd: ServedVersions = serde_json::from_str(r#"{"a\tb":"1","a\nb":"2","c":"3\n4","d":"5"}"#).unwrap();
        assert_eq!(odd.iter().collect::<Vec<_>>(), [("d", "5")]);
    }
}
