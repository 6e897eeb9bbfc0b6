//! `whole-site-disallowed`: a group in which nothing is left to fetch.

use std::collections::HashMap;
use std::fmt;

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "whole-site-disallowed",
    severity: Severity::Warning,
    summary: "a crawler, or every crawler, is shut out of the whole site",
    why: "\"Disallow: /\" with nothing allowed, or the home page alone (\"Allow: /$\"), shuts a crawler out of the whole site. For \"*\" that is every crawler \
          without a group of its own, search engines included: a staging file that went live has cost many a site its \
          place in the index. For a named crawler that is no search engine with an index that people use, it is mostly meant, so it is only noted.",
    bad: Example::new(b"User-agent: *\nDisallow: /\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\n"),
    pass: Pass::File(run),
    fix: None,
};

fn run(file: &CheckedFile<'_>, sink: &mut Sink) {
    let mut everyone = Reach::default();
    let mut named: HashMap<ProductToken, (Name<'_>, Reach<'_>)> = HashMap::new();
    for group in file.robots.groups() {
        let reach = Reach::of(group);
        for name in group.names() {
            if name.is_star() {
                everyone = everyone.merge(reach);
            } else if let Some(token) = ProductToken::from_name(name.value()) {
                let (_, merged) = named.entry(token).or_insert_with(|| (name, Reach::default()));
                *merged = merged.merge(reach);
            }
        }
    }
    let everyone = everyone.shut_by();
    if let Some(everyone) = everyone {
        sink.report(
            everyone.rule.range(),
            format_args!("{} is disallowed for every crawler without a group of its own", everyone.extent),
        )
        .help(format_args!("\"Disallow:\" without a path disallows nothing"));
    }
    // One finding for all of them: a list of unwanted crawlers is ordinary, and often long.
    let mut shut: Vec<(Name<'_>, Shut<'_>)> = named
        .into_values()
        .filter_map(|(name, reach)| Some((name, reach.shut_by()?)))
        .filter(|(_, shut)| everyone.is_none_or(|everyone| everyone.rule.range() != shut.rule.range()))
        .collect();
    shut.sort_by_key(|(name, _)| name.range().start);
    let is_search = |(name, _): &(Name<'_>, Shut<'_>)| {
        let crawler = file.crawlers.named(*name);
        crawler.is_some_and(|crawler| crawler.category == Category::Search && crawler.is_index_engine)
    };
    let (search, shut): (Vec<_>, Vec<_>) = shut.into_iter().partition(is_search);
    if let Some((first, by)) = search.first() {
        sink.report(
            by.rule.range(),
            format_args!(
                "{} is disallowed for {}: the site will leave the index",
                extent(&search),
                QuotedList(search.iter().map(|(name, _)| name.value()))
            ),
        )
        .of_agent(first.value())
        .help(format_args!("\"Disallow:\" without a path disallows nothing"));
    }
    if let Some((first, by)) = shut.first() {
        sink.report_at(
            Severity::Note,
            by.rule.range(),
            format_args!(
                "{} is disallowed for {}",
                extent(&shut),
                QuotedList(shut.iter().map(|(name, _)| name.value()))
            ),
        )
        .of_agent(first.value());
    }
}

/// The rule that shuts a crawler out, and how much it covers.
#[derive(Clone, Copy)]
struct Shut<'r> {
    rule: Rule<'r>,
    extent: Extent,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Extent {
    All,
    /// `Allow: /$`.
    AllButHomePage,
}

impl fmt::Display for Extent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::All => "the whole site",
            Self::AllButHomePage => "the whole site but its home page",
        })
    }
}

/// The extent that holds for all of them.
fn extent(shut: &[(Name<'_>, Shut<'_>)]) -> Extent {
    let is_all = shut.iter().all(|(_, shut)| shut.extent == Extent::All);
    if is_all { Extent::All } else { Extent::AllButHomePage }
}

/// How much of the site the rules of one token close and open.
#[derive(Clone, Copy, Default)]
struct Reach<'r> {
    /// The disallow rule that matches every path, and its priority.
    closes: Option<(usize, Rule<'r>)>,
    /// The highest priority of an allow rule that matches any path but that of the home page alone.
    opens: usize,
    /// That of one for the home page alone.
    opens_home: usize,
}

impl<'r> Reach<'r> {
    fn of(group: Group<'r>) -> Self {
        let mut reach = Self::default();
        for rule in group.rules().filter(|rule| rule.range().end <= Reading::STANDARD_LIMIT) {
            let priority = || PathPattern::new(rule.pattern(), Reading::Standard).priority();
            let one = match rule.access() {
                Access::Disallow if is_every_path(rule.pattern()) => {
                    Self { closes: Some((priority(), rule)), ..Self::default() }
                }
                Access::Allow if rule.pattern() == b"/$" => Self { opens_home: priority(), ..Self::default() },
                Access::Allow if matches!(rule.pattern(), [b'/' | b'*', ..]) => {
                    Self { opens: priority(), ..Self::default() }
                }
                _ => continue,
            };
            reach = reach.merge(one);
        }
        reach
    }

    fn merge(self, other: Self) -> Self {
        let closes = match (self.closes, other.closes) {
            (Some((first, _)), Some((second, _))) if second > first => other.closes,
            (None, _) => other.closes,
            _ => self.closes,
        };
        Self { closes, opens: self.opens.max(other.opens), opens_home: self.opens_home.max(other.opens_home) }
    }

    /// The rule that leaves nothing to fetch but the home page: an allow rule of equal priority would win against it.
    fn shut_by(self) -> Option<Shut<'r>> {
        let (priority, rule) = self.closes.filter(|(priority, _)| self.opens < *priority)?;
        let extent = if self.opens_home < priority { Extent::All } else { Extent::AllButHomePage };
        Some(Shut { rule, extent })
    }
}

/// `/`, `*`, `/*`, `*/`, `/*$` and the like.
fn is_every_path(pattern: &[u8]) -> bool {
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
    fn patterns_that_match_every_path() {
        for pattern in ["/", "*", "/*", "*/", "**", "*/*", "/*$", "*$"] {
            assert!(is_every_path(pattern.as_bytes()), "{pattern}");
        }
        for pattern in ["", "/$", "$", "/a", "/*/", "//", "*a", "*/$", "?"] {
            assert!(!is_every_path(pattern.as_bytes()), "{pattern}");
        }
    }
}
