//! The normal form of a file's content. Two files with equal normal forms have the same effect.
//!
//! The names of groups determine which rules apply to a crawler, and a verdict depends only on
//! these rules. The longest matching pattern decides; if patterns are equally long, an allow rule
//! decides. So two files have the same effect if, in every [`Reading`], they have the same rules
//! for each name, in the same order of precedence. Converting rules to the normal form changes no
//! verdict in any reading:
//!
//! - Bytes ≥ 0x80 are escaped, and the digits of escapes are in upper case. These changes affect
//!   neither the meaning nor the priority of a pattern.
//! - Consecutive `*` become one `*`, and a `*` at the end is dropped. The pattern still matches the
//!   same paths, and keeps its priority.
//! - If several rules match the same paths, only the rule with the highest priority is kept.
//! - Rules are sorted by priority. The order of consecutive rules that all allow, or all disallow,
//!   is ignored. Allow rules after the last disallow rule are dropped, because paths without a
//!   matching rule are allowed anyway.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::agent::Registry;
use crate::check::pattern::{with_normal_escapes, without_redundant_stars};
use crate::rules::{Access, Directive, Group, Host, Name, ProductToken, Reading, RobotsTxt, Rule, crawl_delay};

/// Maximum number of lines that are converted, to bound the cost. Crawlers combine all groups that
/// name them. If a group occurs in several combinations, its lines are counted once per
/// combination.
const MAX_LINES: usize = 2_000_000;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct EffectiveContent {
    rules: ByLines<Block>,
    /// The lines in groups that are not rules, such as delays and preferences.
    others: ByLines<OtherLine>,
    /// Sitemaps and other lines that apply to the whole site.
    of_site: Vec<OtherLine>,
    /// Value of the first valid host line. Later host lines have no effect.
    host: Option<Vec<u8>>,
    /// Whether the file is small enough that every [`Reading`] uses all of it.
    is_read_whole: bool,
}

/// Maps lines of groups to the names of the crawlers that obey these lines.
type ByLines<L> = BTreeMap<Vec<L>, BTreeSet<NameKey>>;

/// A block of consecutive rules that all allow (true) or all disallow, and their patterns in normal
/// form. The rules of a block take precedence over the rules of the next block.
type Block = (bool, BTreeSet<Vec<u8>>);

/// A directive and its value in normal form.
type OtherLine = (Vec<u8>, Vec<u8>);

/// A name in a `User-agent` line, in the form that a [`Reading`] compares with the tokens of
/// crawlers.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum NameKey {
    Star,
    /// The beginning of a name, up to the first byte that is not a letter, `-` or `_`.
    /// [`Reading::Reference`] uses this form.
    Cut(ProductToken),
    /// The token of the whole name, or an additional token that the registry assigns to the name.
    Whole(ProductToken),
}

/// Cache of the keys of names, shared by a file and its edited versions.
#[derive(Debug, Default)]
pub(super) struct NameKeys(HashMap<Vec<u8>, Vec<NameKey>>);

impl EffectiveContent {
    /// Returns the normal form of a file. `None` if more than [`MAX_LINES`] lines would be
    /// converted.
    pub(super) fn of(robots: &RobotsTxt, registry: &Registry, names: &mut NameKeys) -> Option<Self> {
        let groups: Vec<Group<'_>> = robots.groups().collect();
        let mut places: HashMap<NameKey, Vec<usize>> = HashMap::new();
        for (at, group) in groups.iter().enumerate() {
            for name in group.names() {
                for key in names.of(name, registry) {
                    let at_of = places.entry(key.clone()).or_default();
                    if at_of.last() != Some(&at) {
                        at_of.push(at);
                    }
                }
            }
        }
        let mut sets: HashMap<Vec<usize>, Vec<NameKey>> = HashMap::new();
        for (key, places) in places {
            sets.entry(places).or_default().push(key);
        }
        let (of_groups, of_site, host) = other_lines(robots);
        let mut left = MAX_LINES;
        let (mut rules, mut others) = (BTreeMap::new(), BTreeMap::new());
        for (set, names) in sets {
            let lines = set.iter().map(|at| groups[*at].rules().len() + of_groups[*at].len()).sum();
            left = usize::checked_sub(left, lines)?;
            let blocks = blocks(set.iter().flat_map(|at| groups[*at].rules()));
            rules.entry(blocks).or_insert_with(BTreeSet::new).extend(names.iter().cloned());
            let lines: BTreeSet<_> = set.iter().flat_map(|at| of_groups[*at].iter().cloned()).collect();
            if !lines.is_empty() {
                let lines: Vec<_> = lines.into_iter().collect();
                others.entry(lines).or_insert_with(BTreeSet::new).extend(names);
            }
        }
        let is_read_whole = robots.bytes().len() <= Reading::STANDARD_LIMIT;
        Some(Self { rules, others, of_site, host, is_read_whole })
    }

    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.is_read_whole && self == other
    }

    pub(super) fn is_same_besides_rules(&self, other: &Self) -> bool {
        self.others == other.others && self.of_site == other.of_site && self.host == other.host
    }
}

/// Converts rules to blocks in the order of precedence, without rules that never decide.
fn blocks<'r>(rules: impl Iterator<Item = Rule<'r>>) -> Vec<Block> {
    let mut rules: Vec<_> = rules
        .filter(|rule| !rule.pattern().is_empty())
        .map(|rule| (with_normal_escapes(rule.pattern()), rule.access() == Access::Allow))
        .collect();
    rules.sort_unstable_by_key(|(pattern, allows)| Reverse((pattern.len(), *allows)));
    let mut seen = HashSet::new();
    let mut blocks: Vec<Block> = Vec::new();
    for (pattern, allows) in rules {
        // An allow rule for an index page may also apply to the page's folder, depending on how the
        // pattern is written. So no `*` is removed from patterns with `/index.htm`.
        let is_index = memchr::memmem::find(&pattern, b"/index.htm").is_some();
        let pattern = if is_index { pattern } else { without_redundant_stars(pattern) };
        if !seen.insert(pattern.clone()) {
            continue;
        }
        match blocks.last_mut() {
            Some((access, patterns)) if *access == allows => {
                patterns.insert(pattern);
            }
            _ => blocks.push((allows, BTreeSet::from([pattern]))),
        }
    }
    blocks.pop_if(|(allows, _)| *allows);
    blocks
}

impl NameKeys {
    fn of(&mut self, name: Name<'_>, registry: &Registry) -> &[NameKey] {
        self.0.entry(name.value().to_vec()).or_insert_with(|| {
            if name.is_star() {
                return vec![NameKey::Star];
            }
            let cut = Some(ProductToken::cut(name.value())).filter(|token| !token.as_bytes().is_empty());
            let whole = ProductToken::from_name(name.value()).into_iter().chain(registry.stands_for(name.value()));
            cut.map(NameKey::Cut).into_iter().chain(whole.map(NameKey::Whole)).collect()
        })
    }
}

/// Returns the lines that are not rules: one list for each group, one list for the whole site, and
/// the value of the first valid host line.
fn other_lines(robots: &RobotsTxt) -> (Vec<Vec<OtherLine>>, Vec<OtherLine>, Option<Vec<u8>>) {
    let mut of_groups = vec![Vec::new(); robots.groups().len()];
    let (mut of_site, mut host) = (Vec::new(), None);
    for (_, field, begun) in robots.fields() {
        let name = match field.directive {
            Directive::UserAgent | Directive::Allow | Directive::Disallow => continue,
            // A line with two words and no colon is a field only if the first word is a known
            // directive.
            Directive::Other if !field.has_colon => continue,
            directive => directive.spelling().map_or_else(|| field.name.to_vec(), |name| name.as_bytes().to_vec()),
        };
        let name = name.to_ascii_lowercase();
        let value = match (field.directive, crawl_delay(field.value)) {
            // A delay of zero has no effect, so its line is left out.
            (Directive::CrawlDelay, Some(delay)) if delay.is_zero() => continue,
            (Directive::CrawlDelay, Some(delay)) => format!("every {} ns", delay.as_nanos()).into_bytes(),
            _ => field.value.to_vec(),
        };
        match field.directive {
            Directive::Host if Host::parse(field.value).is_some() => host = host.or(Some(value)),
            Directive::Sitemap | Directive::CleanParam | Directive::Host => of_site.push((name, value)),
            _ => match begun.checked_sub(1) {
                Some(group) => of_groups[group].push((name, value)),
                None => of_site.push((name, value)),
            },
        }
    }
    of_site.sort_unstable();
    (of_groups, of_site, host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_with_the_same_effective_rules_compare_as_the_same() {
        let of = |file: &str| {
            let robots = RobotsTxt::parse(file.as_bytes());
            EffectiveContent::of(&robots, Registry::builtin(), &mut NameKeys::default()).expect("a small file")
        };
        for (one, other, want) in [
            ("user-agent: *\nDisallow: /a", "\u{feff}User-Agent : *\r\rdissallow /a # x", true),
            ("User-agent: *\nDisallow: /a\nAllow: /b", "User-agent: *\nAllow: /b\nDisallow: /a\nDisallow: /a", true),
            ("User-agent: *\nDisallow: /\u{e9}%c3", "User-agent: *\nDisallow: /%C3%A9%C3\nDisallow:", true),
            ("User-agent: a\nAllow: /a\nUser-agent: a\nAllow: /b", "User-agent: a\nAllow: /a\nAllow: /b", true),
            ("User-agent: a\nUser-agent: b\nAllow: /a", "User-agent: b\nAllow: /a\nUser-agent: a\nAllow: /a", true),
            ("User-agent: Googlebot/2.1\nAllow: /a", "User-agent: googlebot\nAllow: /a", true),
            ("User-agent: * x\nAllow: /a", "User-agent: *\nAllow: /a", true),
            ("User-agent: a\nUser-agent:\nAllow: /a", "User-agent: a\nAllow: /a", true),
            ("User-agent: a\nCrawl-delay: 1.0\nAllow: /", "User-agent: a\nCrawl-delay: 1\nAllow: /", true),
            ("User-agent: a\nCrawl-delay: 0\nHost: a.b\nHost: c.d", "User-agent: a\nHost: a.b", true),
            ("Host: a b\nHost: c.d\nHost: e.f", "Host: a b\nHost: c.d", true),
            ("Host: a b\nHost: c.d", "Host: a b", false),
            ("User-agent: a\nDisallow: /a\nAllow: /bbbb", "User-agent: a\nDisallow: /a**\nAllow: /bbbb", true),
            ("User-agent: a\nDisallow: /a\nAllow: /a*", "User-agent: a\nAllow: /", true),
            ("User-agent: a\nDisallow: /a\nAllow: /bb", "User-agent: a\nDisallow: /a**\nAllow: /bb", false),
            (
                "User-agent: a\nDisallow: /\nAllow: /b/index.html",
                "User-agent: a\nDisallow: /\nAllow: /b/index.html*",
                false,
            ),
            ("User-agent: a\nDisallow: /a$*", "User-agent: a\nDisallow: /a$", false),
            ("User-agent: a\nDisallow: /a$*$", "User-agent: a\nDisallow: /a$", false),
            ("User-agent: a\nAllow: /a", "User-agent: a\nDisallow: /a", false),
            // [`Reading::Reference`](crate::rules::Reading::Reference) compares the name `a b` only
            // up to the space, so both groups apply to `a`.
            (
                "User-agent: a b\nAllow: /a\nUser-agent: a\nDisallow: /a*",
                "User-agent: a b\nAllow: /a\nUser-agent: a\nDisallow: /a",
                false,
            ),
            ("User-agent: a\nDisallow: /%61", "User-agent: a\nDisallow: /a", false),
            ("User-agent: a\nDisallow: /a", "User-agent: b\nDisallow: /a", false),
            ("User-agent: *\nDisallow: /\nUser-agent: a", "User-agent: *\nDisallow: /", false),
            ("User-agent: a\nCrawl-delay: 1\nAllow: /", "User-agent: a\nAllow: /", false),
            ("User-agent: a\nCrawl-delay: 1\nAllow: /", "User-agent: a\nCrawl-delay: 1s\nAllow: /", false),
            ("User-agent: a\nContent-Usage: ai=n\nAllow: /", "Content-Usage: ai=n\nUser-agent: a\nAllow: /", false),
            ("Sitemap: https://a.test/a", "", false),
            ("License: https://a.test/a", "License: https://a.test/b", false),
            ("User-agent: a\nLicense: https://a.test/a", "License: https://a.test/a\nUser-agent: a", false),
            ("User-agent: a\nfoo: 1", "User-agent: a\nfoo: 2", false),
        ] {
            assert_eq!(of(one).is_same(&of(other)), want, "{one:?} {other:?}");
        }
    }
}
