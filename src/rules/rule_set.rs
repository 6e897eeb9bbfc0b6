//! A document compiled for one reading.

use std::collections::HashMap;
use std::fmt;

use super::Access;
use super::costly::{self, Costly};
use super::crawl_delay::{self, CrawlDelay, SetDelay};
use super::document::{Group, Name, RobotsTxt, Rule};
use super::hash::Folding;
use super::index::{MAX_READ, MatchBudget, Rank, RuleIndex};
use super::note::{Note, past_limit};
use super::path::RequestPath;
use super::path_form::PathForm;
use super::reading::{Reading, STANDARD_LIMIT};
use super::token::ProductToken;

/// The rules of a robots.txt, compiled for one [`Reading`].
pub struct RuleSet {
    document: RobotsTxt,
    reading: Reading,
    index: RuleIndex,
    /// The groups of each section, by its number.
    sets: Vec<Vec<usize>>,
    /// For every token, and for `*`, the name in each of its groups that makes the group one for it.
    names: Vec<usize>,
    named: HashMap<ProductToken, Section, Folding>,
    star: Option<Section>,
    notes: Vec<Note>,
    costly: Vec<Costly>,
    /// The delay of each section, by its number; empty where the file has none.
    delays: Vec<Option<SetDelay>>,
}

/// The groups of one token (or of `*`) that apply together.
#[derive(Clone, Copy)]
struct Section {
    /// Its number in the index.
    number: usize,
    /// Where the token's own names begin, one for each group.
    names: usize,
}

/// The groups of one token, in the order of the file, each with the name that makes it one.
type Groups = Vec<(usize, usize)>;

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
    section: Option<Section>,
    star: bool,
}

/// Allow or disallow for a path, with the rule and the group that decide.
#[derive(Clone, Copy)]
pub struct Verdict<'r> {
    rules: &'r RuleSet,
    section: Option<Section>,
    best: Option<Rank>,
    form: PathForm,
}

impl RobotsTxt {
    /// Compiles the document for matching, every name standing for itself.
    #[must_use]
    pub fn compile(&self, reading: Reading) -> RuleSet {
        self.compile_with(reading, |_| Vec::new())
    }

    /// Compiles the document for matching, where a name may stand for more tokens than itself.
    ///
    /// `stands_for` is called once for each name that is not `*`. It is how a registry of crawlers makes
    /// `User-agent: Googlebot 2.1` a group for `Googlebot`. [`Reading::Reference`] does not call it.
    #[must_use]
    pub fn compile_with(&self, reading: Reading, stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>) -> RuleSet {
        RuleSet::compile(self.clone(), reading, stands_for)
    }
}

impl RuleSet {
    fn compile(document: RobotsTxt, reading: Reading, stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>) -> Self {
        let limit = match reading {
            Reading::Reference => MAX_READ,
            Reading::Standard | Reading::Legacy => STANDARD_LIMIT,
        };
        let (named, star) = groups_by_token(&document, reading, limit, stands_for);
        // Tokens named in the same groups share a section.
        let (mut sets, mut names) = (Vec::new(), Vec::new());
        let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
        let mut section_of = |groups: Groups| {
            let (groups, own): (Vec<_>, Vec<_>) = groups.into_iter().unzip();
            let number = *known.entry(groups).or_insert_with_key(|groups| {
                sets.push(groups.clone());
                sets.len() - 1
            });
            let first = names.len();
            names.extend(own);
            Section { number, names: first }
        };
        let named = named.into_iter().map(|(token, groups)| (token, section_of(groups))).collect();
        let star = (!star.is_empty()).then(|| section_of(star));
        let index = RuleIndex::new(&document, reading, limit, &sets);
        let (notes, costly) = (past_limit(document.bytes(), limit), costly::find(&document, limit, &sets));
        let delays = crawl_delay::by_set(&document, limit, &sets);
        Self { document, reading, index, sets, names, named, star, notes, costly, delays }
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

    /// The parts of the file that this reading ignores, besides those that every reading does ([`RobotsTxt::notes`]): lines past the octets
    /// that count (RFC 9309, section 2.5).
    #[must_use]
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Rules with so many wildcards that verdicts can take long, in the order of the file.
    #[must_use]
    pub fn costly(&self) -> &[Costly] {
        &self.costly
    }

    /// How many octets of memory the compiled form takes, besides the document's.
    #[must_use]
    pub fn memory(&self) -> usize {
        let entry = size_of::<(ProductToken, Section)>() + 1;
        let tokens: usize = self.named.keys().map(|token| token.as_bytes().len() + 2 * size_of::<usize>()).sum();
        let groups: usize = self.sets.iter().map(|set| size_of_val(set) + size_of_val(set.as_slice())).sum();
        let lists = size_of_val(self.names.as_slice()) + size_of_val(self.delays.as_slice());
        self.index.memory() + self.named.capacity() * entry + tokens + groups + lists
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
        let section = named.or(star);
        Selection { rules: self, section, star: named.is_none() && section.is_some() }
    }

    /// The name that makes a group of a section one for the section's token.
    fn name_in(&self, section: Section, group: usize) -> Option<usize> {
        let place = self.sets[section.number].binary_search(&group).ok()?;
        self.names.get(section.names + place).copied()
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

    pub(crate) const fn rule_set(self) -> &'r RuleSet {
        self.rules
    }

    /// The groups that apply, in the order of the file.
    pub(super) fn group_indexes(self) -> &'r [usize] {
        self.section.map_or(&[], |section| &self.rules.sets[section.number])
    }

    /// How long the agent shall wait between two requests, where its groups say so. No verdict depends on it.
    #[must_use]
    pub fn crawl_delay(self) -> Option<CrawlDelay<'r>> {
        let section = self.section?;
        let SetDelay { record, place } = self.rules.delays.get(section.number)?.as_ref()?;
        let name = *self.rules.names.get(section.names + place)?;
        Some(CrawlDelay::new(&self.rules.document, record, name))
    }

    /// Judges a path in every form it can be read in: any disallow counts; else what the form as sent gets.
    #[must_use]
    pub fn verdict(self, path: &RequestPath<'_>) -> Verdict<'r> {
        self.verdict_within(path, &mut MatchBudget::new())
    }

    /// The verdict, within the work that is left for a request.
    pub(crate) fn verdict_within(self, path: &RequestPath<'_>, work: &mut MatchBudget) -> Verdict<'r> {
        let sent = self.judge(path.form(), path.as_bytes(), work);
        if sent.access() == Access::Disallow || self.section.is_none() || path.is_canonical() {
            return sent;
        }
        self.disallowed_of(path.forms().skip(1), work).next().unwrap_or(sent)
    }

    /// The verdicts on those forms of a path that are disallowed.
    pub(crate) fn disallowing(
        self,
        path: &RequestPath<'_>,
        work: &mut MatchBudget,
    ) -> impl Iterator<Item = Verdict<'r>> {
        self.disallowed_of(path.forms(), work)
    }

    fn disallowed_of<'p>(
        self,
        forms: impl Iterator<Item = (PathForm, &'p [u8])>,
        work: &mut MatchBudget,
    ) -> impl Iterator<Item = Verdict<'r>> {
        let verdicts = forms.map(move |(form, path)| self.judge(form, path, work));
        verdicts.filter(|verdict| verdict.access() == Access::Disallow)
    }

    fn judge(self, form: PathForm, path: &[u8], work: &mut MatchBudget) -> Verdict<'r> {
        let best = self.section.and_then(|section| self.rules.index.decide(section.number, path, work));
        Verdict { rules: self.rules, section: self.section, best, form }
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
        match self.best {
            Some(rank) => rank.access(),
            None => Access::Allow,
        }
    }

    /// The rule that decided, or `None` where no rule matched.
    ///
    /// A rule with an empty pattern is reported where nothing else matched: it never disallows.
    #[must_use]
    pub fn rule(&self) -> Option<Rule<'r>> {
        self.best.map(|rank| self.rules.document.rule(self.rules.index.rule(rank)))
    }

    /// The line of the rule that decided.
    #[must_use]
    pub fn line(&self) -> Option<usize> {
        self.rule().map(Rule::line)
    }

    /// The group of the rule that decided, or the first of the groups that apply, or `None` where none does.
    #[must_use]
    pub fn group(&self) -> Option<Group<'r>> {
        let of_rule = self.rule().filter(|rule| !rule.pattern().is_empty()).map(Rule::group);
        of_rule.or_else(|| {
            let groups = &self.rules.sets[self.section?.number];
            Some(self.rules.document.group(*groups.first()?))
        })
    }

    /// The name that makes [`group`](Self::group) one for this agent: the first in it that stands for its token, or `*`.
    #[must_use]
    pub fn name(&self) -> Option<Name<'r>> {
        let name = self.rules.name_in(self.section?, self.group()?.index())?;
        Some(self.rules.document.name(name))
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
            .field("access", &self.access())
            .field("rule", &self.rule())
            .field("form", &self.form)
            .finish()
    }
}

/// The groups of every token the file names, and those of `*`, each in the order of the file.
///
/// A name that reaches past the limit would be read in half, so it is dropped (RFC 9309, section 2.5, requires 500 KiB).
fn groups_by_token(
    document: &RobotsTxt,
    reading: Reading,
    limit: usize,
    mut stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>,
) -> (HashMap<ProductToken, Groups>, Groups) {
    let mut named: HashMap<ProductToken, Groups> = HashMap::new();
    let mut star = Vec::new();
    for group in document.groups() {
        for name in group.names().filter(|name| name.range().end <= limit) {
            if name.is_star() {
                push_once(&mut star, group, name);
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
                push_once(named.entry(token).or_default(), group, name);
            }
        }
    }
    (named, star)
}

/// Group numbers only grow, so looking at the last one is enough.
fn push_once(groups: &mut Groups, group: Group<'_>, name: Name<'_>) {
    if groups.last().is_none_or(|(last, _)| *last != group.index()) {
        groups.push((group.index(), name.index()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_set_knows_the_tokens_that_its_groups_name() {
        let rules =
            RobotsTxt::parse(&b"User-agent: Foo/1.0\nUser-agent: *\nDisallow: /\n"[..]).compile(Reading::Standard);
        assert!(rules.names(&ProductToken::new("foo")));
        assert!(!rules.names(&ProductToken::new("bar")));
    }

    #[test]
    fn a_long_literal_behind_a_wildcard_is_found_wherever_its_rarest_octet_stands() {
        for length in [1, 2, 100, 125, 126, 127, 128, 129, 200, 300] {
            let literal = format!("{}~", "a".repeat(length));
            let file = format!("User-agent: *\nDisallow: /*{literal}/*x\n");
            let rules = RobotsTxt::parse(file.into_bytes()).compile(Reading::Standard);
            let access =
                |path: &str| rules.select(&[], Fallback::Star).verdict(&RequestPath::new(path.as_bytes())).access();
            assert_eq!(access(&format!("/b/{literal}/x")), Access::Disallow, "{length}");
            assert_eq!(access(&format!("/~a{literal}/b/x")), Access::Disallow, "{length}");
            assert_eq!(access(&format!("/b/{}/x", &literal[1..])), Access::Allow, "{length}");
            assert_eq!(access(&format!("/b/{literal}/b")), Access::Allow, "{length}");
        }
    }

    #[test]
    fn the_name_is_the_one_that_makes_the_deciding_group_ones_own() {
        let file = b"User-agent: Foo\nUser-agent: Bar/1.0\nUser-agent: * x\nDisallow: /a\n\n\
                     User-agent: Foo 2\nUser-agent: bar\nDisallow: /b\n";
        let stands_for = |name: Name<'_>| match name.value() {
            b"Foo 2" => vec![ProductToken::new("foo")],
            _ => Vec::new(),
        };
        let rules = RobotsTxt::parse(&file[..]).compile_with(Reading::Standard, stands_for);
        for (token, path, name) in [
            ("bar", "/a", "Bar/1.0"),
            ("bar", "/b", "bar"),
            ("bar", "/c", "Bar/1.0"),
            ("foo", "/a", "Foo"),
            ("foo", "/b", "Foo 2"),
            ("other", "/a", "* x"),
        ] {
            let selection = rules.select(&[ProductToken::new(token)], Fallback::Star);
            let verdict = selection.verdict(&RequestPath::new(path.as_bytes()));
            let said = verdict.name().map(|name| String::from_utf8_lossy(name.value()).into_owned());
            assert_eq!(said.as_deref(), Some(name), "{token} {path}");
        }
        assert!(rules.select(&[], Fallback::Nothing).verdict(&RequestPath::new(b"/a")).name().is_none());
    }

    #[test]
    fn a_selection_says_whether_it_is_that_of_the_star() {
        let rules = RobotsTxt::parse(&b"user-agent: a\ndisallow: /a\n\nuser-agent: *\ndisallow: /\n"[..])
            .compile(Reading::Standard);
        let select = |token: &str, fallback| {
            let selection = rules.select(&[ProductToken::new(token)], fallback);
            (selection.applies(), selection.is_star())
        };
        assert_eq!(select("a", Fallback::Star), (true, false));
        assert_eq!(select("b", Fallback::Star), (true, true));
        assert_eq!(select("b", Fallback::Nothing), (false, false));
        let none = RobotsTxt::parse(&b"user-agent: a\ndisallow: /a\n"[..]).compile(Reading::Standard);
        let selection = none.select(&[ProductToken::new("b")], Fallback::Star);
        assert!(!selection.applies() && !selection.is_star());
    }
}
