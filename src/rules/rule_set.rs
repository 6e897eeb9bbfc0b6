//! A document as one reading understands it, ready to be asked.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::fmt;

use super::Access;
use super::document::{Group, Name, RobotsTxt, Rule};
use super::path::{PathForm, RequestPath};
use super::pattern::PathPattern;
use super::reading::{Reading, STANDARD_LIMIT};
use super::token::ProductToken;

/// The rules of a robots.txt, compiled for one [`Reading`].
pub struct RuleSet {
    document: RobotsTxt,
    reading: Reading,
    sections: Vec<Section>,
    named: HashMap<ProductToken, usize>,
    star: Option<usize>,
}

/// The merged groups of one token (or of `*`), the rule that wins first.
struct Section {
    first_group: usize,
    rules: Vec<Candidate>,
    /// The line that counts as deciding where nothing but empty patterns "match".
    empty: Option<usize>,
}

struct Candidate {
    pattern: PathPattern,
    access: Access,
    rule: usize,
}

/// Whether the groups for `*` apply where no token is named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// They do (RFC 9309, section 2.2.1).
    Star,
    /// They do not: the agent is known to ignore `*`, or is no crawler.
    Nothing,
}

/// The groups that apply to an agent; empty where none does.
#[derive(Clone, Copy)]
pub struct Selection<'r> {
    rules: &'r RuleSet,
    section: Option<&'r Section>,
    star: bool,
}

/// What the rules say about a path, and why.
#[derive(Clone, Copy)]
pub struct Verdict<'r> {
    rules: &'r RuleSet,
    group: Option<usize>,
    rule: Option<usize>,
    access: Access,
    form: PathForm,
}

impl RuleSet {
    pub(super) fn compile(
        document: RobotsTxt,
        reading: Reading,
        stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>,
    ) -> Self {
        let (named, star) = groups_by_token(&document, reading, stands_for);
        // Tokens named in the same groups share a section.
        let mut sections = Vec::new();
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut section_of = |groups: Vec<usize>| {
            *known.entry(groups).or_insert_with_key(|groups| {
                sections.push(Section::compile(&document, reading, groups));
                sections.len() - 1
            })
        };
        let named = named.into_iter().map(|(token, groups)| (token, section_of(groups))).collect();
        let star = (!star.is_empty()).then(|| section_of(star));
        Self { document, reading, sections, named, star }
    }

    /// The document this was compiled from.
    #[must_use]
    pub const fn document(&self) -> &RobotsTxt {
        &self.document
    }

    /// How the document was read.
    #[must_use]
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    /// Whether a group names this token.
    #[must_use]
    pub fn names(&self, token: &ProductToken) -> bool {
        self.named.contains_key(token)
    }

    /// The groups an agent obeys: those of the first of its tokens that the file names, else those of `*` where
    /// `fallback` lets them apply (RFC 9309, section 2.2.1).
    ///
    /// Groups that name the agent, even without rules, switch `*` off.
    #[must_use]
    pub fn select(&self, tokens: &[ProductToken], fallback: Fallback) -> Selection<'_> {
        let named = tokens.iter().find_map(|token| self.named.get(token).copied());
        let star = match fallback {
            Fallback::Star => self.star,
            Fallback::Nothing => None,
        };
        let section = named.or(star).map(|index| &self.sections[index]);
        Selection { rules: self, section, star: named.is_none() && section.is_some() }
    }
}

impl fmt::Debug for RuleSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RuleSet")
            .field("document", &self.document)
            .field("reading", &self.reading)
            .finish_non_exhaustive()
    }
}

impl Section {
    fn compile(document: &RobotsTxt, reading: Reading, groups: &[usize]) -> Self {
        let mut candidates = Vec::new();
        let mut empty: Option<(Access, usize)> = None;
        for rule in groups.iter().flat_map(|group| document.group(*group).rules()).filter(|rule| counts(*rule, reading))
        {
            let candidate = |pattern| Candidate { pattern, access: rule.access(), rule: rule.index() };
            if rule.pattern().is_empty() {
                // An empty value never decides, but it is the matching line: an allow's before a disallow's.
                let better = match empty {
                    None => true,
                    Some((access, _)) => access == Access::Disallow && rule.access() == Access::Allow,
                };
                if better {
                    empty = Some((rule.access(), rule.index()));
                }
                continue;
            }
            candidates.push(candidate(PathPattern::new(rule.pattern(), reading)));
            if rule.access() == Access::Allow {
                candidates.extend(PathPattern::directory_of_index(rule.pattern(), reading).map(candidate));
            }
        }
        // Longest pattern, then allow before disallow, then the first line.
        candidates.sort_by_key(|candidate| {
            (Reverse(candidate.pattern.priority()), candidate.access == Access::Disallow, candidate.rule)
        });
        Self { first_group: groups[0], rules: candidates, empty: empty.map(|(_, rule)| rule) }
    }

    fn decide(&self, path: &[u8]) -> Option<&Candidate> {
        self.rules.iter().find(|candidate| candidate.pattern.matches(path))
    }
}

impl<'r> Selection<'r> {
    /// Whether any group applies at all.
    #[must_use]
    pub const fn applies(&self) -> bool {
        self.section.is_some()
    }

    /// Whether the groups were selected as those of `*`.
    #[must_use]
    pub const fn is_star(&self) -> bool {
        self.star
    }

    /// Judges a path in every form it can be read in: any disallow counts; else what the form as sent gets.
    #[must_use]
    pub fn verdict(self, path: &RequestPath<'_>) -> Verdict<'r> {
        let mut forms = path.forms();
        // `forms` starts with the path as sent; there is always that one.
        let (form, sent) = forms.next().unwrap_or((PathForm::Standard, b"/"));
        let verdict = self.judge(form, sent);
        if verdict.access == Access::Disallow {
            return verdict;
        }
        forms
            .map(|(form, path)| self.judge(form, path))
            .find(|verdict| verdict.access == Access::Disallow)
            .unwrap_or(verdict)
    }

    fn judge(self, form: PathForm, path: &[u8]) -> Verdict<'r> {
        let allow = Verdict { rules: self.rules, group: None, rule: None, access: Access::Allow, form };
        let Some(section) = self.section else { return allow };
        match section.decide(path) {
            Some(candidate) => Verdict {
                group: Some(self.rules.document.rule(candidate.rule).group().index()),
                rule: Some(candidate.rule),
                access: candidate.access,
                ..allow
            },
            None => Verdict { group: Some(section.first_group), rule: section.empty, ..allow },
        }
    }
}

impl fmt::Debug for Selection<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Selection").field("applies", &self.applies()).field("star", &self.star).finish()
    }
}

impl<'r> Verdict<'r> {
    /// Allow or disallow.
    #[must_use]
    pub const fn access(&self) -> Access {
        self.access
    }

    /// The rule that decided, or `None` where no rule matched.
    ///
    /// A rule with an empty pattern is reported where nothing else matched: it never disallows.
    #[must_use]
    pub fn rule(&self) -> Option<Rule<'r>> {
        self.rule.map(|index| self.rules.document.rule(index))
    }

    /// The line of the rule that decided.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.rule().map(Rule::line)
    }

    /// The group of the rule that decided, or the first of the groups that apply, or `None` where none does.
    #[must_use]
    pub fn group(&self) -> Option<Group<'r>> {
        self.group.map(|index| self.rules.document.group(index))
    }

    /// The form of the path that decided.
    #[must_use]
    pub const fn form(&self) -> PathForm {
        self.form
    }
}

impl fmt::Debug for Verdict<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verdict")
            .field("access", &self.access)
            .field("rule", &self.rule())
            .field("form", &self.form)
            .finish()
    }
}

/// The groups of every token the file names, and those of `*`, each in the order of the file.
fn groups_by_token(
    document: &RobotsTxt,
    reading: Reading,
    mut stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>,
) -> (HashMap<ProductToken, Vec<usize>>, Vec<usize>) {
    let mut named: HashMap<ProductToken, Vec<usize>> = HashMap::new();
    let mut star = Vec::new();
    for group in document.groups() {
        for name in group.names().filter(|name| within_limit(name.range().end, reading)) {
            if name.is_star() {
                push_once(&mut star, group.index());
                continue;
            }
            let tokens = match reading {
                Reading::Reference => vec![ProductToken::cut(name.value())],
                Reading::Standard | Reading::Legacy => {
                    let mut tokens = stands_for(name);
                    tokens.extend(ProductToken::from_name(name.value()));
                    tokens
                }
            };
            for token in tokens {
                push_once(named.entry(token).or_default(), group.index());
            }
        }
    }
    (named, star)
}

/// Group numbers only grow, so looking at the last one is enough.
fn push_once(groups: &mut Vec<usize>, group: usize) {
    if groups.last() != Some(&group) {
        groups.push(group);
    }
}

fn counts(rule: Rule<'_>, reading: Reading) -> bool {
    within_limit(rule.range().end, reading)
}

/// RFC 9309, section 2.5, asks for 500 KiB; a line that reaches past it would be read in half, so it is dropped.
fn within_limit(end: usize, reading: Reading) -> bool {
    reading == Reading::Reference || end <= STANDARD_LIMIT
}
