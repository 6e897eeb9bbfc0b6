//! Determines how much of a site the rules for a crawler allow: nothing, only the home page, or
//! more. Examines only the patterns, and does not try paths.

use std::fmt;

use super::pattern::is_of_robots_txt;
use crate::rules::{Access, Group, Reading, Rule, priority};

/// The disallowed part of a site. The variants are in descending order of size.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Extent {
    All,
    /// The whole site except for the home page, which `Allow: /$` allows.
    AllButHomePage,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "the whole site",
            Self::AllButHomePage => "the whole site except its home page",
        })
    }
}

#[derive(Clone, Copy, Default)]
pub(super) struct Reach<'r> {
    /// Among the disallow rules that match every path, the rule with the highest priority, and this
    /// priority.
    site_disallow: Option<(usize, Rule<'r>)>,
    /// Highest priority of the allow rules that are not only for the home page or `/robots.txt`.
    allow_priority: usize,
    /// Highest priority of the allow rules that are only for the home page.
    home_page_priority: usize,
}

impl<'r> Reach<'r> {
    pub(super) fn of(group: Group<'r>) -> Self {
        let mut reach = Self::default();
        for rule in group.rules().filter(|rule| rule.range().end <= Reading::STANDARD_LIMIT) {
            let priority = priority(rule.pattern());
            let one = match rule.access() {
                Access::Disallow if is_every_path(rule.pattern()) => {
                    Self { site_disallow: Some((priority, rule)), ..Self::default() }
                }
                Access::Allow if is_of_robots_txt(rule.pattern()) => continue,
                Access::Allow if rule.pattern() == b"/$" => Self { home_page_priority: priority, ..Self::default() },
                Access::Allow if matches!(rule.pattern(), [b'/' | b'*', ..]) => {
                    Self { allow_priority: priority, ..Self::default() }
                }
                _ => continue,
            };
            reach = reach.merge(one);
        }
        reach
    }

    pub(super) fn merge(self, other: Self) -> Self {
        let closing = [self.site_disallow, other.site_disallow].into_iter().flatten();
        let site_disallow = closing.reduce(|first, second| if second.0 > first.0 { second } else { first });
        Self {
            site_disallow,
            allow_priority: self.allow_priority.max(other.allow_priority),
            home_page_priority: self.home_page_priority.max(other.home_page_priority),
        }
    }

    /// Returns the rule that disallows the whole site, and how much of the site is disallowed.
    /// `None` if there is no such rule, or if an allow rule for more than the home page has at
    /// least the same priority.
    pub(super) fn blocking_rule(self) -> Option<(Rule<'r>, Extent)> {
        let (priority, rule) = self.site_disallow.filter(|(priority, _)| self.allow_priority < *priority)?;
        Some((rule, if self.home_page_priority < priority { Extent::All } else { Extent::AllButHomePage }))
    }
}

pub(super) fn disallows_site(rule: &Rule<'_>) -> bool {
    rule.access() == Access::Disallow && is_every_path(rule.pattern())
}

pub(super) fn disallows_part(rule: &Rule<'_>) -> bool {
    rule.access() == Access::Disallow && matches!(rule.pattern(), [b'/' | b'*', ..]) && !disallows_site(rule)
}

/// Reports whether a pattern matches every path: `/`, `*`, `/*`, `*/`, `/*$` and similar.
pub(super) fn is_every_path(pattern: &[u8]) -> bool {
    let open = match pattern {
        [body @ .., b'*', b'$'] => [body, b"*"].concat(),
        _ => pattern.to_vec(),
    };
    let mut literal = open.iter().filter(|byte| **byte != b'*');
    !open.is_empty() && literal.next().is_none_or(|byte| *byte == b'/') && literal.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_that_match_every_path_are_recognized() {
        for pattern in ["/", "*", "/*", "*/", "**", "*/*", "/*$", "*$"] {
            assert!(is_every_path(pattern.as_bytes()), "{pattern}");
        }
        for pattern in ["", "/$", "$", "/a", "/*/", "//", "*a", "*/$", "?"] {
            assert!(!is_every_path(pattern.as_bytes()), "{pattern}");
        }
    }
}
