//! Hosts that another config gives to another site: what a crawler read there before is not known at the site that answers now.

use std::collections::{BTreeSet, HashMap, HashSet};

use tower_robots::source::HostMap;

use super::served_site::ServedSite;
use super::site_list::Sites;
use super::site_name::SiteName;

impl Sites {
    /// Notes for the board which of these sites answer for other hosts than those before did: for the moment at which they take
    /// their place.
    pub(crate) fn note_moved_hosts(&self, before: &Self) {
        let changed = changed(&patterns(before), &patterns(self));
        self.iter().filter(|site| changed.contains(&site.name)).for_each(ServedSite::has_other_hosts);
    }
}

/// The host patterns of each site.
type SitePatterns<'s> = HashMap<SiteName, BTreeSet<&'s str>>;

fn patterns(sites: &Sites) -> SitePatterns<'_> {
    sites.iter().map(|site| (site.name.clone(), site.host_patterns().collect())).collect()
}

/// The sites whose patterns are others, and those whose patterns are the next to fit what a site has given up.
fn changed(were: &SitePatterns<'_>, are: &SitePatterns<'_>) -> HashSet<SiteName> {
    let all = |sites: &SitePatterns<'_>| -> HashSet<String> {
        sites.values().flatten().map(|pattern| (*pattern).to_owned()).collect()
    };
    let given_up: Vec<String> = all(were).difference(&all(are)).cloned().collect();
    let is_other = |(name, patterns): &(&SiteName, &BTreeSet<&str>)| were.get(*name) != Some(*patterns);
    let mut changed: HashSet<SiteName> = are.iter().filter(is_other).map(|(name, _)| SiteName::clone(name)).collect();
    if given_up.is_empty() {
        return changed;
    }
    let mut map = HostMap::new();
    for (name, patterns) in are {
        for pattern in patterns {
            // The config was refused if a host was malformed or belonged to two sites.
            let _ = map.insert(pattern, SiteName::clone(name));
        }
    }
    for pattern in &given_up {
        // Of the names below a wildcard any will do.
        let host = pattern.strip_prefix("*.").map_or_else(|| pattern.clone(), |below| format!("any-name.{below}"));
        changed.extend(map.get(host).cloned());
    }
    changed
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn sites_that_answer_for_other_hosts_are_found() {
        type Hosts = &'static [(&'static str, &'static [&'static str])];
        const CASES: &[(Hosts, Hosts, &str)] = &[
            (&[("a", &["a.test", "b.test"])], &[("a", &["b.test", "a.test"])], ""),
            (&[("a", &["a.test"])], &[("a", &["a.test", "b.test"])], "a"),
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"])], "a"),
            // A host that moves, and a site that is new.
            (&[("a", &["a.test", "b.test"])], &[("a", &["a.test"]), ("b", &["b.test"])], "a b"),
            // A site for every host, or for all below a name, answers for what no other has any more.
            (&[("a", &["a.test"]), ("b", &["*"])], &[("b", &["*"])], "b"),
            (&[("a", &["a.x.test"]), ("b", &["*.x.test"]), ("c", &["*"])], &[("b", &["*.x.test"]), ("c", &["*"])], "b"),
            (&[("a", &["*.x.test"]), ("b", &["*"])], &[("a", &["y.test"]), ("b", &["*"])], "a b"),
            // What is taken from it is nothing that it answers for.
            (&[("b", &["*"])], &[("a", &["a.test"]), ("b", &["*"])], "a"),
        ];
        for (were, are, want) in CASES {
            let patterns = |sites: Hosts| -> SitePatterns<'static> {
                sites.iter().map(|(name, hosts)| (Arc::from(*name), hosts.iter().copied().collect())).collect()
            };
            let changed = changed(&patterns(were), &patterns(are));
            let mut changed: Vec<&str> = changed.iter().map(|name| &**name).collect();
            changed.sort_unstable();
            assert_eq!(changed.join(" "), *want, "{were:?} {are:?}");
        }
    }
}
