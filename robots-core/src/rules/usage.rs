//! The lines of a robots.txt about the use of the site's content: usage preferences
//! (`Content-Usage`, draft-ietf-aipref-attach-05) and licences (`License`, RSL 1.0).
//!
//! A preference is a label with a value, such as `train-ai=n`. Any label is accepted, because the
//! draft may still add labels. If several lines match a path, the line with the longest pattern
//! decides. If that line cannot be parsed, there is no preference, because a line with a shorter
//! pattern could state the opposite.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;

use super::dictionary;
use super::document::RobotsTxt;
use super::line::Directive;
use super::match_budget::MatchBudget;
use super::pattern::PathPattern;
use super::value::{first_word, is_absolute_url};
use super::{Reading, RequestPath};

/// The usage preferences for the content at a path, in the canonical form of a `Content-Usage`
/// field: `search=y, train-ai=n`. Labels are sorted, and every value is `y` or `n`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UsagePreferences(Arc<str>);

/// The compiled content-usage and license lines of a file. A section is a set of groups. Its number
/// is the index of the set in [`RuleSet`](super::RuleSet).
pub(super) struct UsageLines {
    /// The content-usage lines without duplicates.
    pub(super) lines: Vec<UsageLine>,
    pub(super) sections: Vec<SectionUsage>,
    /// The numbers of all sections. Sections with the same content-usage lines are in the same
    /// element. The section of `*`, if any, is in the first element.
    pub(super) classes: Vec<Vec<usize>>,
    /// The licences of the site, for crawlers whose groups have no licence.
    pub(super) licenses: Vec<Box<str>>,
    pub(super) licenses_differ: bool,
}

pub(super) struct SectionUsage {
    /// The content-usage lines, longest pattern first. Each pair contains an index in
    /// `UsageLines::lines` and a line number.
    pub(super) lines: Vec<(u32, usize)>,
    /// Licences of the groups. If `None`, the groups have no licence, and the site's licences
    /// apply.
    pub(super) licenses: Option<Vec<Box<str>>>,
}

pub(super) struct UsageLine {
    pattern: PathPattern,
    preferences: UsagePreferences,
}

/// Maximum number of content-usage lines for one crawler. A crawler with more lines has no
/// preferences, because comparing each request with all of these lines would be too expensive.
pub(super) const MAX_LINES: usize = 1000;

/// Maximum number of content-usage lines in all sections together. Sections beyond the limit have
/// no preferences. Only crafted files exceed this limit.
const MAX_OF_SECTIONS: usize = 1 << 20;

/// Maximum length of preferences in canonical form, in bytes. Longer preferences are ignored,
/// because a response field of this length could exceed the limits of proxies.
const MAX_PREFERENCES_LENGTH: usize = 2048;

/// Maximum length of the URL of a licence, in bytes. A longer URL is ignored.
const MAX_LICENSE_LENGTH: usize = 2048;

/// Maximum number of licences for one crawler. If a crawler has more licences, only the first ones
/// are used.
const MAX_LICENSES: usize = 8;

impl UsagePreferences {
    /// Parses usage preferences from a content-usage line or a response field. Preferences are
    /// written as a dictionary (RFC 9651). Returns no preferences if the value is invalid. If a
    /// label is repeated, its last value is used.
    pub fn parse(value: &[u8]) -> Self {
        let last: BTreeMap<_, _> = dictionary::members(value).unwrap_or_default().into_iter().collect();
        let known = |token: Option<_>| token.filter(|token| matches!(*token, "y" | "n"));
        Self::of(last.into_iter().filter_map(|(label, token)| Some((label, known(token)?))))
    }

    /// Creates preferences from labels and values. The pairs must be sorted by label.
    fn of<'l>(pairs: impl Iterator<Item = (&'l str, &'l str)>) -> Self {
        let text = pairs.map(|(label, value)| format!("{label}={value}")).collect::<Vec<_>>().join(", ");
        if text.len() > MAX_PREFERENCES_LENGTH { Self("".into()) } else { Self(text.into()) }
    }

    /// Returns the value of a `Content-Usage` field; empty if there is no preference.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Combines preferences for the same content. If the two values of a label differ, `n` wins
    /// over `y`.
    fn and(&self, other: &Self) -> Self {
        let mut all = BTreeMap::new();
        let pairs = self.0.split(", ").chain(other.0.split(", "));
        for (label, value) in pairs.filter_map(|pair| pair.split_once('=')) {
            let known = all.entry(label).or_insert(value);
            *known = value.min(*known);
        }
        Self::of(all.into_iter())
    }
}

impl fmt::Display for UsagePreferences {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl UsageLines {
    /// Compiles the content-usage and license lines of a file; `None` if the file has no such
    /// lines. `star` is the section of `*`.
    pub(super) fn new(
        document: &RobotsTxt,
        reading: Reading,
        sets: &[Vec<usize>],
        star: Option<usize>,
    ) -> Option<Box<Self>> {
        let mut lines = Vec::new();
        let of_groups = by_group(document, reading, &mut lines);
        if of_groups.is_empty() {
            return None;
        }
        let mut left = MAX_OF_SECTIONS;
        let mut section = |set: &Vec<usize>| {
            let groups = || set.iter().filter_map(|group| of_groups.get(&Some(*group)));
            let usage = || groups().flat_map(|group| &group.lines);
            let count = usage().take(MAX_LINES + 1).count();
            left = left.saturating_sub(count);
            let is_few = count <= MAX_LINES && left > 0;
            let mut own: Vec<(u32, usize)> = usage().copied().take(if is_few { count } else { 0 }).collect();
            own.sort_by_key(|(index, _)| Reverse(lines[*index as usize].pattern.priority()));
            let licenses: Vec<_> = groups().flat_map(|group| &group.licenses).take(MAX_LICENSES).cloned().collect();
            SectionUsage { lines: own, licenses: Some(licenses).filter(|own| !own.is_empty()) }
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
        let site = of_groups.get(&None).map_or(Vec::new(), |site| site.licenses.clone());
        let licenses_of = |number: usize| sections[number].licenses.as_deref().unwrap_or(&site);
        let of_unnamed = star.map_or(&*site, licenses_of);
        let licenses_differ = (0..sections.len()).any(|number| licenses_of(number) != of_unnamed);
        Some(Box::new(Self { lines, sections, classes, licenses_differ, licenses: site }))
    }

    /// Returns the preferences of a section for a path, and the line number of the first line that
    /// states them. `None` if there are no preferences, or if the work budget is used up.
    pub(super) fn at(
        &self,
        section: usize,
        path: &RequestPath<'_>,
        work: &mut MatchBudget,
    ) -> Option<(UsagePreferences, usize)> {
        let lines = self.sections[section].lines.iter();
        let mut lines = lines.map(|(index, number)| (&self.lines[*index as usize], *number));
        let (first, number) = lines.find(|(line, _)| line.matches(path.as_bytes(), work))?;
        let mut preferences = first.preferences.clone();
        for (line, _) in lines.take_while(|(line, _)| line.pattern.priority() == first.pattern.priority()) {
            if line.preferences != preferences && line.matches(path.as_bytes(), work) {
                preferences = preferences.and(&line.preferences);
            }
        }
        (!preferences.0.is_empty() && !work.is_spent()).then_some((preferences, number))
    }
}

impl UsageLine {
    fn new(value: &[u8], reading: Reading) -> Self {
        let (path, preferences) = path_and_preferences(value);
        Self { pattern: PathPattern::new(path, reading), preferences: UsagePreferences::parse(preferences) }
    }

    fn matches(&self, path: &[u8], work: &mut MatchBudget) -> bool {
        self.pattern.matches_within(path, work)
    }
}

/// The content-usage and license lines of a group, or of the part of the file outside groups.
#[derive(Default)]
struct GroupUsage {
    /// For each content-usage line, its index in `UsageLines::lines` and its line number; at most
    /// `MAX_LINES + 1` lines.
    lines: Vec<(u32, usize)>,
    /// The valid licences, at most [`MAX_LICENSES`].
    licenses: Vec<Box<str>>,
}

/// Compiles the lines of each group once, because thousands of sections may share a large group.
/// The key `None` stands for the part of the file outside groups.
fn by_group(document: &RobotsTxt, reading: Reading, lines: &mut Vec<UsageLine>) -> HashMap<Option<usize>, GroupUsage> {
    let mut of_groups: HashMap<Option<usize>, GroupUsage> = HashMap::new();
    let mut known = HashMap::new();
    for record in document.usage().iter().filter(|record| record.value.end <= reading.limit()) {
        let value = &document.bytes()[record.value.clone()];
        match record.directive {
            Directive::ContentUsage => {
                let group = of_groups.entry(record.group).or_default();
                if group.lines.len() <= MAX_LINES {
                    let index = *known.entry(value).or_insert_with(|| {
                        lines.push(UsageLine::new(value, reading));
                        lines.len() as u32 - 1
                    });
                    group.lines.push((index, record.line));
                }
            }
            Directive::License => {
                let group = of_groups.entry(record.group).or_default();
                if group.licenses.len() < MAX_LICENSES {
                    group.licenses.extend(license(value));
                }
            }
            _ => {}
        }
    }
    of_groups
}

/// Splits the value of a content-usage line into path and preferences. The default path is `/`.
pub(super) fn path_and_preferences(value: &[u8]) -> (&[u8], &[u8]) {
    if value.starts_with(b"/") { first_word(value) } else { (b"/", value) }
}

/// Returns the value of a license line; `None` if it is not an absolute URL that a `Link` field can
/// contain.
fn license(value: &[u8]) -> Option<Box<str>> {
    let is_sendable = value.len() <= MAX_LICENSE_LENGTH
        && value.iter().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"'));
    let url = std::str::from_utf8(value).ok().filter(|_| is_sendable && is_absolute_url(value))?;
    Some(url.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usage_preferences_are_y_or_n_and_unknown_labels_are_kept() {
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
}
