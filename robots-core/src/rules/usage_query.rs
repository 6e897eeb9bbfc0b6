//! Looks up usage preferences and licences in a compiled robots.txt.

#[cfg(feature = "check")]
use super::document::UsageRecord;
#[cfg(feature = "check")]
use super::line::Directive;
use super::match_budget::MatchBudget;
use super::usage::UsagePreferences;
#[cfg(feature = "check")]
use super::usage::path_and_preferences;
use super::{Access, RequestPath, RuleSet, Selection};

/// The preferences for a path, and the line that states them.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Usage {
    /// The preferences; never empty.
    pub preferences: UsagePreferences,
    /// Number of the first line that states the preferences.
    pub line: usize,
}

impl RuleSet {
    /// Reports whether the file has a content-usage line, inside or outside groups.
    pub fn has_usage(&self) -> bool {
        self.usage.as_ref().is_some_and(|usage| !usage.lines.is_empty())
    }

    /// Reports whether the file has a content-usage or content-signal line, in any group or before
    /// the first group.
    #[cfg(feature = "check")]
    pub(crate) fn states_usage(&self) -> bool {
        self.document().usage().iter().any(|record| record.directive != Directive::License)
    }

    /// Reports whether the licences depend on the crawler.
    pub fn licenses_differ(&self) -> bool {
        self.usage.as_ref().is_some_and(|usage| usage.licenses_differ)
    }

    /// Returns the URLs of all licences in the file, possibly with duplicates.
    pub fn licenses(&self) -> impl Iterator<Item = &str> {
        let usage = self.usage.iter();
        usage.flat_map(|usage| {
            let own = usage.sections.iter().filter_map(|section| section.licenses.as_ref()).flatten();
            usage.licenses.iter().chain(own).map(|url| &**url)
        })
    }

    /// Returns the usage preferences for a path if they are the same for all crawlers that may
    /// fetch the path; `None` if they differ. Also returns `None` if the file has no group for `*`,
    /// because such a file states no preferences for crawlers that are not named in any group.
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
    /// Returns the usage preferences of these groups for a path. If several lines match the path,
    /// the line with the longest pattern decides. `None` if the path is disallowed or there are no
    /// preferences.
    ///
    /// Only the first form of the path is compared with the content-usage lines.
    pub fn usage(self, path: &RequestPath<'_>) -> Option<Usage> {
        let (usage, work) = (self.rules.usage.as_ref()?, &mut MatchBudget::new());
        let (preferences, line) = usage.at(self.section_number()?, path, work)?;
        let is_allowed = self.verdict_within(path, work).access() == Access::Allow;
        (is_allowed && !work.is_spent()).then_some(Usage { preferences, line })
    }

    /// Returns the licence URLs of these groups. If the groups have no licence, returns the licence
    /// URLs of the whole site. URLs that cannot be sent in a `Link` field are left out.
    pub fn licenses(self) -> &'r [Box<str>] {
        let Some(usage) = &self.rules.usage else { return &[] };
        let own = self.section_number().and_then(|number| usage.sections[number].licenses.as_deref());
        own.unwrap_or(&usage.licenses)
    }

    #[cfg(feature = "check")]
    pub(crate) fn usage_paths(self) -> impl Iterator<Item = &'r [u8]> {
        self.usage_values(Directive::ContentUsage).map(|value| path_and_preferences(value).0)
    }

    /// Returns the values, as written, of all lines in these groups that have the given directive:
    /// `ContentUsage`, `ContentSignal` or `License`.
    #[cfg(feature = "check")]
    pub(crate) fn usage_values(self, directive: Directive) -> impl Iterator<Item = &'r [u8]> {
        let groups = self.section_number().map_or(&[][..], |number| self.rules.groups_of(number));
        let document = self.rules.document();
        let is_own = move |record: &&UsageRecord| {
            let is_of_group = record.group.is_some_and(|group| groups.binary_search(&group).is_ok());
            is_of_group && record.directive == directive
        };
        document.usage().iter().filter(is_own).map(move |record| &document.bytes()[record.value.clone()])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::usage::MAX_LINES;
    use crate::rules::{Fallback, ProductToken, Reading, RobotsTxt};

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
    fn usage_preferences_equal_those_in_the_example_of_the_aipref_draft() {
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
    fn the_longest_path_decides_and_n_wins_among_equal_paths() {
        let rules = rules(
            "User-agent: *\nContent-Usage: train-ai=y, search=y\nContent-Usage: / train-ai=n\nContent-Usage: /*.pdf$ x=n\n\
             Content-Usage: /%61b x=y\nContent-Usage: /a/ TRAIN-AI=y\nContent-Usage: /two words x=n\nDisallow: /no\n",
        );
        for (path, want) in [
            ("/", Some("search=y, train-ai=n")),
            ("/x.pdf", Some("x=n")),
            ("/x.pdf?", Some("search=y, train-ai=n")),
            ("/abc", Some("x=y")),
            // If the line with the longest path cannot be parsed, it decides, but states no
            // preference.
            ("/a/b", None),
            ("/two", None),
            ("/no.pdf", None),
        ] {
            assert_eq!(by_agent(&rules, "a", path).as_deref(), want, "{path}");
            assert_eq!(unanimous(&rules, path).as_deref(), want, "{path}");
        }
    }

    #[test]
    fn groups_that_allow_a_path_are_unanimous_if_their_preferences_are_equal() {
        let star = "User-agent: *\nContent-Usage: train-ai=n\nDisallow: /x\n\n";
        for (file, path, want) in [
            (String::from(star), "/", Some("train-ai=n")),
            (String::from(star), "/x", None),
            (format!("{star}User-agent: a\nDisallow: /\n"), "/", Some("train-ai=n")),
            (format!("{star}User-agent: a\nDisallow:\n"), "/", None),
            (format!("{star}User-agent: a\nContent-Usage: train-ai=n, x=y\nAllow: /\n"), "/", None),
            (format!("{star}User-agent: a\nContent-Usage: / train-ai=n\nAllow: /\n"), "/x", Some("train-ai=n")),
            // Crawlers that are not named in any group may fetch everything, but the file states no
            // preference for them.
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
        assert!(rules.licenses_differ() && !rules.has_usage());
    }

    #[test]
    fn licences_differ_if_some_crawler_has_other_licences_than_the_rest() {
        let (star, own) = ("User-agent: *\nDisallow: /x\n", "User-agent: a\nDisallow: /y\n");
        let (one, two) = ("License: https://a.test/1\n", "License: https://a.test/2\n");
        for (file, differ) in [
            ([one, star, "", own, ""], false),
            (["", star, one, "", ""], false),
            ([one, star, one, own, ""], false),
            (["", star, one, own, one], false),
            (["", star, one, own, ""], true),
            (["", star, one, own, two], true),
            ([one, star, "", own, two], true),
            (["", "", "", own, one], true),
            ([one, "", "", own, one], false),
        ] {
            assert_eq!(rules(&file.concat()).licenses_differ(), differ, "{file:?}");
        }
    }

    #[test]
    fn values_that_are_too_long_for_a_response_header_field_are_ignored() {
        let long = "l".repeat(3000);
        let rules = rules(&format!("License: https://a.test/{long}\nUser-agent: *\nContent-Usage: {long}=n\n"));
        assert_eq!(by_agent(&rules, "a", "/"), None);
        assert_eq!(rules.licenses().count(), 0);
    }

    #[test]
    fn preferences_with_more_lines_than_the_limit_are_ignored() {
        let file = |lines: usize| format!("User-agent: *\n{}", "Content-Usage: train-ai=n\n".repeat(lines));
        assert_eq!(by_agent(&rules(&file(MAX_LINES)), "a", "/").as_deref(), Some("train-ai=n"));
        assert_eq!(by_agent(&rules(&file(MAX_LINES + 1)), "a", "/"), None);
    }
}
