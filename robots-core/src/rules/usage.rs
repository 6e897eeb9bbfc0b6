//! The lines of a robots.txt about the use of its content: usage preferences (`Content-Usage`,
//! draft-ietf-aipref-attach-05) and licences (`License`, RSL 1.0).
//!
//! The labels of preferences are data, because their set is not final. A value other than `y` and
//! `n` states no preference. A line that cannot be parsed states nothing. If its path is the
//! longest, there is no preference, because a line with a shorter path could state the opposite.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::dictionary;
use super::document::{RobotsTxt, UsageRecord};
use super::index::MatchBudget;
use super::line::Directive;
use super::pattern::PathPattern;
use super::value::{first_word, is_absolute_url};
use super::{Access, Reading, RequestPath, RuleSet, Selection};

/// What a robots.txt says about the use of the content at a path, in the canonical form of a
/// `Content-Usage` field: `search=y, train-ai=n`. Labels are sorted, and every value is `y` or `n`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UsagePreferences(Arc<str>);

/// The preference for one use of the content.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Preference {
    /// The use is permitted (`y`).
    Allow,
    /// The use is not permitted (`n`).
    Disallow,
}

/// The preferences for a path, and the line that states them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The preferences; there is at least one.
    pub preferences: UsagePreferences,
    /// Line number of the first line that applies.
    pub line: usize,
}

/// The usage lines and licences of a file, compiled. Sections are sets of groups, as in
/// [`RuleSet`].
pub(super) struct UsageLines {
    /// Distinct lines. Several groups may contain the same line.
    lines: Vec<UsageLine>,
    sections: Vec<SectionUsage>,
    /// Sections with equal usage lines, by their numbers. The section of `*` is in the first class.
    classes: Vec<Vec<usize>>,
    /// Licences of crawlers whose groups have no licence.
    licenses: Vec<Box<str>>,
}

struct SectionUsage {
    /// Usage lines, longest path first: their indexes in `UsageLines::lines`, and their line
    /// numbers.
    lines: Vec<(u32, usize)>,
    /// Licences of the groups; `None` if the groups have no licences, so that the licences of the
    /// site apply.
    licenses: Option<Vec<Box<str>>>,
}

struct UsageLine {
    pattern: PathPattern,
    has_wildcard: bool,
    preferences: UsagePreferences,
}

/// Maximum number of usage lines of one crawler. A crawler with more lines has no preferences,
/// because every request would have to be compared with all these lines.
const MAX_LINES: usize = 1000;

/// Maximum number of usage lines of all sections together. If there are more, which only a crafted
/// file reaches, no preference is derived from any.
const MAX_OF_SECTIONS: usize = 1 << 20;

/// Maximum number of licences of one crawler; more licences are ignored.
const MAX_LICENSES: usize = 8;

/// Cost of comparing a path with a pattern without wildcards, in compared bytes.
const LOOK: usize = 4;

impl UsagePreferences {
    /// Parses the preferences of a line or a field: a dictionary (RFC 9651). If it is invalid, the
    /// result is empty. If a label is repeated, only its last value counts.
    pub fn parse(value: &[u8]) -> Self {
        let members = dictionary::members(value).unwrap_or_default();
        let last: BTreeMap<_, _> = members.iter().map(|member| (member.key, member.token)).collect();
        let preference = |token: Option<&str>| match token? {
            "y" => Some(Preference::Allow),
            "n" => Some(Preference::Disallow),
            _ => None,
        };
        Self::of(last.into_iter().filter_map(|(label, token)| Some((label, preference(token)?))))
    }

    /// Formats preferences, which are sorted by their labels.
    fn of<'l>(pairs: impl Iterator<Item = (&'l str, Preference)>) -> Self {
        let pair = |(label, preference)| match preference {
            Preference::Allow => format!("{label}=y"),
            Preference::Disallow => format!("{label}=n"),
        };
        Self(pairs.map(pair).collect::<Vec<_>>().join(", ").into())
    }

    /// Returns the value of a `Content-Usage` field.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Reports whether there is no preference.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the labels and their preferences.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Preference)> {
        let pairs = self.0.split(", ").filter_map(|pair| pair.split_once('='));
        pairs.map(|(label, value)| (label, if value == "n" { Preference::Disallow } else { Preference::Allow }))
    }

    /// Combines preferences that apply together. `n` wins over `y`.
    fn and(&self, other: &Self) -> Self {
        let mut all = BTreeMap::new();
        for (label, preference) in self.iter().chain(other.iter()) {
            let known = all.entry(label).or_insert(preference);
            *known = preference.max(*known);
        }
        Self::of(all.into_iter())
    }
}

impl fmt::Display for UsagePreferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl RuleSet {
    /// Reports whether a group states a usage preference.
    pub fn has_usage(&self) -> bool {
        let has_lines = |section: &SectionUsage| !section.lines.is_empty();
        self.usage.as_ref().is_some_and(|usage| usage.sections.iter().any(has_lines))
    }

    /// Reports whether the file has a licence.
    pub fn has_licenses(&self) -> bool {
        self.usage.as_ref().is_some_and(|usage| !usage.licenses.is_empty()) || self.has_group_licenses()
    }

    /// Reports whether a group has its own licence, so that not all crawlers have the same one.
    pub fn has_group_licenses(&self) -> bool {
        self.usage.as_ref().is_some_and(|usage| usage.sections.iter().any(|section| section.licenses.is_some()))
    }

    /// Returns the URLs of all licences, each possibly several times.
    pub fn licenses(&self) -> impl Iterator<Item = &str> {
        let usage = self.usage.iter();
        usage.flat_map(|usage| {
            let own = usage.sections.iter().filter_map(|section| section.licenses.as_ref()).flatten();
            usage.licenses.iter().chain(own).map(|url| &**url)
        })
    }

    /// Returns the usage preferences that all crawlers have in common. All groups that may fetch
    /// the path are compared; `None` if two of them differ. Also `None` if the file has no group
    /// for `*`, because it then states nothing for crawlers that no group names.
    pub fn unanimous_usage(&self, path: &RequestPath<'_>) -> Option<UsagePreferences> {
        let usage = self.usage.as_ref().filter(|_| self.has_star())?;
        let (work, mut agreed) = (&mut MatchBudget::new(), None);
        for class in &usage.classes {
            let stated = usage.at(*class.first()?, path, work).map(|(preferences, _)| preferences);
            let may_fetch = |number: &usize, work: &mut MatchBudget| {
                self.selection(*number).verdict_within(path, work).access() == Access::Allow
            };
            if agreed == stated && agreed.is_some() || !class.iter().any(|number| may_fetch(number, work)) {
                continue;
            }
            if agreed.is_some() || stated.is_none() {
                return None;
            }
            agreed = stated;
        }
        agreed.filter(|_| !work.is_spent())
    }
}

impl<'r> Selection<'r> {
    /// Returns the usage preferences of these groups for a path. The line with the longest path
    /// decides. `None` if the path is disallowed, or if no preference is known.
    ///
    /// Only the standard form of the path is compared with the lines.
    pub fn usage(self, path: &RequestPath<'_>) -> Option<Usage> {
        let (usage, work) = (self.rules.usage.as_ref()?, &mut MatchBudget::new());
        let (preferences, line) = usage.at(self.section_number()?, path, work)?;
        let is_allowed = self.verdict_within(path, work).access() == Access::Allow;
        (is_allowed && !work.is_spent()).then_some(Usage { preferences, line })
    }

    /// Returns the URLs of the licences of these groups or, if the groups have none, of the whole
    /// site. Values that cannot be sent in a `Link` field are left out.
    pub fn licenses(self) -> &'r [Box<str>] {
        let Some(usage) = &self.rules.usage else { return &[] };
        let own = self.section_number().and_then(|number| usage.sections[number].licenses.as_deref());
        own.unwrap_or(&usage.licenses)
    }

    /// Returns the paths of the usage lines of these groups, as written.
    #[cfg(feature = "check")]
    pub(crate) fn usage_paths(self) -> impl Iterator<Item = &'r [u8]> {
        let groups = self.section_number().map_or(&[][..], |number| self.rules.groups_of(number));
        let document = self.rules.document();
        let is_own = move |record: &&UsageRecord| {
            let is_of_group = record.group.is_some_and(|group| groups.binary_search(&group).is_ok());
            is_of_group && record.directive == Directive::ContentUsage
        };
        let records = document.usage().iter().filter(is_own);
        records.map(move |record| path_and_preferences(&document.bytes()[record.value.clone()]).0)
    }
}

impl UsageLines {
    /// Compiles the usage lines within the size limit of the [`Reading`](super::Reading); `None` if
    /// there are no usage lines. `star` is the section of `*`.
    pub(super) fn new(
        document: &RobotsTxt,
        reading: Reading,
        sets: &[Vec<usize>],
        star: Option<usize>,
    ) -> Option<Box<Self>> {
        let mut of_groups: HashMap<Option<usize>, Vec<&UsageRecord>> = HashMap::new();
        for record in document.usage().iter().filter(|record| record.value.end <= reading.limit()) {
            of_groups.entry(record.group).or_default().push(record);
        }
        if of_groups.is_empty() {
            return None;
        }
        let (mut lines, mut known, mut left) = (Vec::<UsageLine>::new(), HashMap::new(), MAX_OF_SECTIONS);
        let mut section = |set: &Vec<usize>| {
            let records = || set.iter().filter_map(|group| of_groups.get(&Some(*group))).flatten();
            let usage = || records().filter(|record| record.directive == Directive::ContentUsage);
            let count = usage().take(MAX_LINES + 1).count();
            left = left.saturating_sub(count);
            let is_few = count <= MAX_LINES && left > 0;
            let mut own: Vec<(u32, usize)> = Vec::new();
            for record in usage().take(if is_few { count } else { 0 }) {
                let value = &document.bytes()[record.value.clone()];
                let index = *known.entry(value).or_insert_with(|| {
                    lines.push(UsageLine::new(value, reading));
                    lines.len() as u32 - 1
                });
                own.push((index, record.line));
            }
            own.sort_by_key(|(index, _)| Reverse(lines[*index as usize].pattern.priority()));
            SectionUsage { lines: own, licenses: Some(licenses(document, records())).filter(|own| !own.is_empty()) }
        };
        let sections: Vec<_> = sets.iter().map(&mut section).collect();
        let mut class_of: HashMap<Vec<u32>, usize> = HashMap::new();
        let mut classes: Vec<Vec<usize>> = Vec::new();
        for number in star.into_iter().chain((0..sections.len()).filter(|number| Some(*number) != star)) {
            let lines = sections[number].lines.iter().map(|(index, _)| *index).collect();
            let class = *class_of.entry(lines).or_insert(classes.len());
            match classes.get_mut(class) {
                Some(class) => class.push(number),
                None => classes.push(vec![number]),
            }
        }
        let of_site = of_groups.get(&None).into_iter().flatten();
        Some(Box::new(Self { lines, sections, classes, licenses: licenses(document, of_site) }))
    }

    /// Returns the preferences of a section for a path, and the first line that states them. `None`
    /// if no preference is known, or if the budget is used up.
    fn at(&self, section: usize, path: &RequestPath<'_>, work: &mut MatchBudget) -> Option<(UsagePreferences, usize)> {
        let lines = self.sections[section].lines.iter();
        let mut lines = lines.map(|(index, number)| (&self.lines[*index as usize], *number));
        let (first, number) = lines.find(|(line, _)| line.matches(path.as_bytes(), work))?;
        let mut preferences = first.preferences.clone();
        for (line, _) in lines.take_while(|(line, _)| line.pattern.priority() == first.pattern.priority()) {
            if line.preferences != preferences && line.matches(path.as_bytes(), work) {
                preferences = preferences.and(&line.preferences);
            }
        }
        (!preferences.is_empty() && !work.is_spent()).then_some((preferences, number))
    }
}

impl UsageLine {
    fn new(value: &[u8], reading: Reading) -> Self {
        let (path, preferences) = path_and_preferences(value);
        Self {
            pattern: PathPattern::new(path, reading),
            has_wildcard: path.contains(&b'*'),
            preferences: UsagePreferences::parse(preferences),
        }
    }

    fn matches(&self, path: &[u8], work: &mut MatchBudget) -> bool {
        let cost = if self.has_wildcard { path.len() + self.pattern.priority() } else { LOOK };
        work.take(cost) && self.pattern.matches(path)
    }
}

/// Returns the URLs of the licence lines among these lines.
fn licenses<'r>(document: &RobotsTxt, records: impl Iterator<Item = &'r &'r UsageRecord>) -> Vec<Box<str>> {
    let licenses = records.filter(|record| record.directive == Directive::License);
    licenses.filter_map(|record| license(&document.bytes()[record.value.clone()])).take(MAX_LICENSES).collect()
}

/// Splits the value of a usage line. If it has no path, the path is `/`.
fn path_and_preferences(value: &[u8]) -> (&[u8], &[u8]) {
    if value.starts_with(b"/") { first_word(value) } else { (b"/", value) }
}

/// Returns the value of a licence line if it is an absolute URL that a `Link` field can contain.
fn license(value: &[u8]) -> Option<Box<str>> {
    let is_sendable = value.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"'));
    let url = std::str::from_utf8(value).ok().filter(|_| is_sendable && is_absolute_url(value))?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Fallback, ProductToken};

    #[test]
    fn preferences_are_known_tokens_and_labels_are_data() {
        for (value, want) in [
            ("train-ai=n, search=y", "search=y, train-ai=n"),
            ("train-ai", ""),
            ("train-ai=\"n\"", ""),
            ("train-ai=no", ""),
            ("train-ai;allow=n, train-ai=y", "train-ai=y"),
            ("TRAIN-AI=n", ""),
            ("train-ai=n,", ""),
            ("train-ai = n", ""),
            ("train-ai=y, train-ai, search=n, search=\"n\"", ""),
            ("train-ai;has;parameters=\"?\";", ""),
            ("x.new_use=n, ai-use=y;x=1, search=maybe", "ai-use=y, x.new_use=n"),
            ("", ""),
        ] {
            assert_eq!(UsagePreferences::parse(value.as_bytes()).as_str(), want, "{value}");
        }
    }

    fn rules(file: &str) -> RuleSet {
        RobotsTxt::parse(file).compile(Reading::Standard)
    }

    fn by_agent(rules: &RuleSet, token: &str, path: &str) -> Option<String> {
        let selection = rules.select(&[ProductToken::new(token)], Fallback::Star);
        selection.usage(&RequestPath::new(path)).map(|usage| usage.preferences.to_string())
    }

    fn unanimous(rules: &RuleSet, path: &str) -> Option<String> {
        rules.unanimous_usage(&RequestPath::new(path)).map(|usage| usage.to_string())
    }

    /// The example of draft-ietf-aipref-attach.
    const DRAFT: &str = "User-agent: *\nAllow: /\nDisallow: /never/\nContent-Usage: train-ai=n\n\
                         Content-Usage: /ai-ok/ train-ai=y\n\nUser-agent: ExampleBot\nContent-Usage: train-ai=y\n\
                         Allow: /\n";

    #[test]
    fn the_table_of_the_draft() {
        let rules = rules(DRAFT);
        for (path, other, example, all) in [
            ("/test", Some("train-ai=n"), Some("train-ai=y"), None),
            ("/never/test", None, Some("train-ai=y"), Some("train-ai=y")),
            ("/ai-ok/test", Some("train-ai=y"), Some("train-ai=y"), Some("train-ai=y")),
        ] {
            assert_eq!(by_agent(&rules, "OtherBot", path).as_deref(), other, "{path}");
            assert_eq!(by_agent(&rules, "ExampleBot", path).as_deref(), example, "{path}");
            assert_eq!(unanimous(&rules, path).as_deref(), all, "{path}");
        }
    }

    #[test]
    fn the_longest_path_decides_and_no_wins_among_equal_paths() {
        let rules = rules(
            "User-agent: *\nContent-Usage: train-ai=y, search=y\nContent-Usage: / train-ai=n\nContent-Usage: /*.pdf$ x=n\n\
             Content-Usage: /%61b x=y\nContent-Usage: /a/ TRAIN-AI=y\nContent-Usage: /two words x=n\nDisallow: /no\n",
        );
        for (path, want) in [
            ("/", Some("search=y, train-ai=n")),
            ("/x.pdf", Some("x=n")),
            ("/x.pdf?", Some("search=y, train-ai=n")),
            ("/abc", Some("x=y")),
            // A line that cannot be parsed states nothing, and still decides.
            ("/a/b", None),
            ("/two", None),
            ("/no.pdf", None),
        ] {
            assert_eq!(by_agent(&rules, "a", path).as_deref(), want, "{path}");
            assert_eq!(unanimous(&rules, path).as_deref(), want, "{path}");
        }
    }

    #[test]
    fn groups_are_unanimous_if_all_that_may_fetch_the_path_say_the_same() {
        let star = "User-agent: *\nContent-Usage: train-ai=n\nDisallow: /x\n\n";
        for (file, path, want) in [
            (String::from(star), "/", Some("train-ai=n")),
            (String::from(star), "/x", None),
            (format!("{star}User-agent: a\nDisallow: /\n"), "/", Some("train-ai=n")),
            (format!("{star}User-agent: a\nDisallow:\n"), "/", None),
            (format!("{star}User-agent: a\nContent-Usage: train-ai=n, x=y\nAllow: /\n"), "/", None),
            (format!("{star}User-agent: a\nContent-Usage: / train-ai=n\nAllow: /\n"), "/x", Some("train-ai=n")),
            // The file states nothing for crawlers that no group names, which may fetch everything.
            (String::from("User-agent: a\nContent-Usage: train-ai=n\nAllow: /\n"), "/", None),
            (String::from("Content-Usage: train-ai=n\nUser-agent: *\nAllow: /\n"), "/", None),
        ] {
            assert_eq!(unanimous(&rules(&file), path).as_deref(), want, "{file} {path}");
        }
    }

    #[test]
    fn the_licences_of_a_group_replace_those_of_the_site() {
        let rules = rules(
            "License: https://a.test/l.xml\nLicense: MIT\nLicense: https://a.test/<x>\nUser-agent: a\nDisallow: /x\n\
             License: https://a.test/a.xml\nLicense: https://a.test/b.xml\nUser-agent: *\nLicense: /relative\nDisallow: /y\n",
        );
        let of = |token: &str| rules.select(&[ProductToken::new(token)], Fallback::Star).licenses().join(" ");
        assert_eq!(of("a"), "https://a.test/a.xml https://a.test/b.xml");
        assert_eq!(of("b"), "https://a.test/l.xml");
        assert!(rules.has_licenses() && rules.has_group_licenses() && !rules.has_usage());
    }

    #[test]
    fn more_lines_than_the_limit_state_nothing() {
        let file = |lines: usize| format!("User-agent: *\n{}", "Content-Usage: train-ai=n\n".repeat(lines));
        assert_eq!(by_agent(&rules(&file(MAX_LINES)), "a", "/").as_deref(), Some("train-ai=n"));
        assert_eq!(by_agent(&rules(&file(MAX_LINES + 1)), "a", "/"), None);
    }
}
