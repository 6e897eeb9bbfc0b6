//! A document compiled for one [`Reading`].

use std::collections::HashMap;

use super::Access;
use super::Reading;
use super::delays::{self, CrawlDelay, SetDelay};
use super::document::{Group, Name, RobotsTxt, Rule};
use super::index::{Rank, RuleIndex};
use super::match_budget::MatchBudget;
use super::path::RequestPath;
use super::path_form::PathForm;
use super::pattern::{self, Costly};
use super::text::{Note, past_limit};
use super::token::{Folding, ProductToken};
use super::usage::UsageLines;

/// The rules of a robots.txt, compiled for one [`Reading`].
pub struct RuleSet {
    document: RobotsTxt,
    reading: Reading,
    index: RuleIndex,
    /// The sets of groups that apply together to a token or to `*`, as indexes into the document's
    /// groups.
    sets: Vec<Vec<usize>>,
    /// The names that match each token, as indexes into the document's names. A token has one name
    /// for each group of its set, in the order of these groups.
    names: Vec<usize>,
    named: HashMap<ProductToken, Section, Folding>,
    star: Option<Section>,
    notes: Vec<Note>,
    costly: Vec<Costly>,
    /// The enforced delay of each set of groups; empty if the file has no delays.
    delays: Vec<Option<SetDelay>>,
    /// The usage preferences and licences; `None` if the file has neither.
    pub(super) usage: Option<Box<UsageLines>>,
}

/// The groups that apply to one token, or to `*`.
#[derive(Clone, Copy)]
struct Section {
    /// Index in `RuleSet::sets`. Tokens with the same groups have the same set.
    number: usize,
    /// Start of the token's names in `RuleSet::names`.
    names: usize,
}

/// The groups of one token in the order of the file. Each pair contains the index of a group, and
/// the index of the name in this group that matches the token.
type Groups = Vec<(usize, usize)>;

/// Whether the groups for `*` apply to an agent that no group names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fallback {
    /// The groups for `*` apply (RFC 9309, section 2.2.1).
    Star,
    /// The groups for `*` do not apply, for example because the agent is known to ignore `*` or is
    /// not a crawler.
    Nothing,
}

/// The groups that apply to an agent; possibly none.
#[derive(Clone, Copy)]
pub struct Selection<'r> {
    pub(crate) rules: &'r RuleSet,
    section: Option<Section>,
    star: bool,
}

/// The decision on a path, allow or disallow, with the deciding rule and its group.
#[derive(Clone, Copy)]
pub struct Verdict<'r> {
    rules: &'r RuleSet,
    section: Option<Section>,
    best: Option<Rank>,
    form: PathForm,
}

impl RobotsTxt {
    /// Compiles the document for matching. Each name in the file matches only its own token.
    pub fn compile(&self, reading: Reading) -> RuleSet {
        self.compile_with(reading, |_| Vec::new())
    }

    /// Compiles the document for matching. A name in the file may match additional tokens.
    ///
    /// `stands_for` is called once per name other than `*` and returns the additional tokens. For
    /// example, a registry of crawlers can make `User-agent: Googlebot 2.1` a group for
    /// `Googlebot`. With [`Reading::Reference`], `stands_for` is not called.
    pub fn compile_with(&self, reading: Reading, mut stands_for: impl FnMut(Name<'_>) -> Vec<ProductToken>) -> RuleSet {
        self.compiled(reading, &mut stands_for)
    }

    /// Compiles the document. `stands_for` is a trait object so that the program contains this
    /// function only once, not once for each closure type.
    fn compiled(&self, reading: Reading, stands_for: &mut dyn FnMut(Name<'_>) -> Vec<ProductToken>) -> RuleSet {
        let limit = reading.limit();
        let (named, star) = groups_by_token(self, reading, limit, stands_for);
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
        let usage = UsageLines::new(self, reading, &sets, star.map(|section| section.number));
        let index = RuleIndex::new(self, reading, limit, &sets);
        let (notes, costly) = (past_limit(self.bytes(), limit), pattern::find(self, limit, &sets));
        let delays = delays::by_set(self, limit, &sets);
        let document = self.clone();
        RuleSet { document, reading, index, sets, names, named, star, notes, costly, delays, usage }
    }
}

impl RuleSet {
    /// Returns the compiled document.
    pub const fn document(&self) -> &RobotsTxt {
        &self.document
    }

    /// Returns the [`Reading`] that was used to compile the document.
    pub const fn reading(&self) -> Reading {
        self.reading
    }

    /// Returns notes on lines that this [`Reading`] ignores because they are past its size limit
    /// (RFC 9309, section 2.5). [`RobotsTxt::notes`] reports the lines that every reading ignores.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the rules with so many wildcards that verdicts can be slow, in the order of the
    /// file.
    #[doc(hidden)]
    pub fn costly(&self) -> &[Costly] {
        &self.costly
    }

    /// Returns the size of the compiled form in memory, in bytes, without the parsed document.
    #[doc(hidden)]
    pub fn memory(&self) -> usize {
        let entry = size_of::<(ProductToken, Section)>() + 1;
        let tokens: usize = self.named.keys().map(|token| token.as_bytes().len() + 2 * size_of::<usize>()).sum();
        let groups: usize = self.sets.iter().map(|set| size_of_val(set) + size_of_val(set.as_slice())).sum();
        let lists = size_of_val(self.names.as_slice()) + size_of_val(self.delays.as_slice());
        self.index.memory() + self.named.capacity() * entry + tokens + groups + lists
    }

    pub(super) const fn has_star(&self) -> bool {
        self.star.is_some()
    }

    #[cfg(feature = "check")]
    pub(super) fn groups_of(&self, section: usize) -> &[usize] {
        &self.sets[section]
    }

    /// Returns a selection with the groups of one set. Do not call [`Verdict::name`] on its
    /// verdicts, because the selection does not contain the names that matched.
    pub(super) const fn selection(&self, number: usize) -> Selection<'_> {
        Selection { rules: self, section: Some(Section { number, names: 0 }), star: false }
    }

    /// Reports whether a group names this token.
    pub fn names(&self, token: &ProductToken) -> bool {
        self.named.contains_key(token)
    }

    /// Returns the groups that an agent obeys: the groups for the first of its tokens that occurs
    /// in the file. If none of its tokens occurs and `fallback` is [`Fallback::Star`], returns the
    /// groups for `*` (RFC 9309, section 2.2.1).
    ///
    /// If a group names the agent, `*` does not apply, even if that group has no rules.
    pub fn select(&self, tokens: &[ProductToken], fallback: Fallback) -> Selection<'_> {
        let named = tokens.iter().find_map(|token| self.named.get(token).copied());
        let star = match fallback {
            Fallback::Star => self.star,
            Fallback::Nothing => None,
        };
        let section = named.or(star);
        Selection { rules: self, section, star: named.is_none() && section.is_some() }
    }

    /// Reports whether any group has a delay that a server enforces.
    #[doc(hidden)]
    pub fn has_crawl_delay(&self) -> bool {
        self.delays.iter().any(Option::is_some)
    }
}

crate::debug_as!(|it| RuleSet { document: it.document, reading: it.reading });

impl<'r> Selection<'r> {
    /// Reports whether any group applies.
    pub const fn applies(&self) -> bool {
        self.section.is_some()
    }

    pub(super) fn section_number(self) -> Option<usize> {
        self.section.map(|section| section.number)
    }

    /// Reports whether these are the groups for `*`.
    pub const fn is_star(&self) -> bool {
        self.star
    }

    /// Returns the delay that a server enforces: the shortest one in these groups. `None` if the
    /// groups have no delay. Verdicts do not depend on delays.
    pub fn crawl_delay(self) -> Option<CrawlDelay<'r>> {
        let section = self.section?;
        let SetDelay { record, place } = self.rules.delays.get(section.number)?.as_ref()?;
        let name = *self.rules.names.get(section.names + place)?;
        Some(CrawlDelay { document: &self.rules.document, record, name })
    }

    /// Returns the delay that a crawler should obey: the longest one in these groups.
    pub(super) fn longest_crawl_delay(self) -> Option<CrawlDelay<'r>> {
        let (document, section) = (&self.rules.document, self.section?);
        let set = &self.rules.sets[section.number];
        let (record, place) = delays::longest(document, self.rules.reading.limit(), set)?;
        Some(CrawlDelay { document, record, name: self.rules.names[section.names + place] })
    }

    /// Compares all forms of a path with the rules. The first disallowed form decides. If all forms
    /// are allowed, the first form decides.
    pub fn verdict(self, path: &RequestPath<'_>) -> Verdict<'r> {
        self.verdict_within(path, &mut MatchBudget::new())
    }

    pub(crate) fn verdict_within(self, path: &RequestPath<'_>, work: &mut MatchBudget) -> Verdict<'r> {
        let sent = self.judge(path.form(), path.as_bytes(), work);
        if sent.access() == Access::Disallow || self.section.is_none() || path.is_canonical() {
            return sent;
        }
        self.disallowing(path.forms().skip(1), work).next().unwrap_or(sent)
    }

    pub(crate) fn disallowing<'p>(
        self,
        forms: impl Iterator<Item = (PathForm, &'p [u8])>,
        work: &mut MatchBudget,
    ) -> impl Iterator<Item = Verdict<'r>> {
        let verdicts = forms.map(move |(form, path)| self.judge(form, path, work));
        verdicts.filter(|verdict| verdict.access() == Access::Disallow)
    }

    /// Returns the groups, in the order of the file.
    pub fn groups(self) -> impl ExactSizeIterator<Item = Group<'r>> + Clone {
        let (document, section) = (self.rules.document(), self.section);
        let groups = section.map_or(&[][..], |section| &self.rules.sets[section.number]);
        groups.iter().map(move |index| document.group(*index))
    }

    fn judge(self, form: PathForm, path: &[u8], work: &mut MatchBudget) -> Verdict<'r> {
        let best = self.section.and_then(|section| self.rules.index.decide(section.number, path, work));
        Verdict { rules: self.rules, section: self.section, best, form }
    }
}

crate::debug_as!(|it| Selection::<'_> { applies: it.applies(), star: it.star });

impl<'r> Verdict<'r> {
    /// Returns whether the path may be fetched.
    pub const fn access(&self) -> Access {
        match self.best {
            Some(rank) => rank.access(),
            None => Access::Allow,
        }
    }

    /// Returns the rule that decided; `None` if no rule matches.
    ///
    /// If all matching rules have an empty pattern, returns one of them. A rule with an empty
    /// pattern never disallows.
    pub fn rule(&self) -> Option<Rule<'r>> {
        self.best.map(|rank| self.rules.document.rule(self.rules.index.rule(rank)))
    }

    /// Returns the line of the rule that decided; `None` if no rule matches.
    pub fn line(&self) -> Option<usize> {
        self.rule().map(Rule::line)
    }

    /// Returns the group of the rule that decided. If no rule with a non-empty pattern matches,
    /// returns the first group that applies to the agent; `None` if no group applies.
    pub fn group(&self) -> Option<Group<'r>> {
        let of_rule = self.rule().filter(|rule| !rule.pattern().is_empty()).map(Rule::group);
        of_rule.or_else(|| {
            let groups = &self.rules.sets[self.section?.number];
            Some(self.rules.document.group(*groups.first()?))
        })
    }

    /// Returns the `User-agent` value that names the agent in [`group`](Self::group): the first
    /// value with the agent's token, or `*`.
    pub fn name(&self) -> Option<Name<'r>> {
        let Section { number, names } = self.section?;
        let place = self.rules.sets[number].binary_search(&self.group()?.index).ok()?;
        self.rules.names.get(names + place).map(|name| self.rules.document.name(*name))
    }

    /// Returns the deciding form of the path.
    pub const fn form(&self) -> PathForm {
        self.form
    }
}

crate::debug_as!(|it| Verdict::<'_> { access: it.access(), rule: it.rule(), form: it.form });

/// Returns the groups of every token in the file, and the groups of `*`, in the order of the file.
/// Ignores a name that extends past the first `limit` bytes, because it may be incomplete.
fn groups_by_token(
    document: &RobotsTxt,
    reading: Reading,
    limit: usize,
    stands_for: &mut dyn FnMut(Name<'_>) -> Vec<ProductToken>,
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

/// Adds a group unless it is already in the list. Groups are added in ascending order, so only the
/// last group in the list can be equal to the added group.
fn push_once(groups: &mut Groups, group: Group<'_>, name: Name<'_>) {
    if groups.last().is_none_or(|(last, _)| *last != group.index) {
        groups.push((group.index, name.index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Fallback, ProductToken, RobotsTxt};

    #[test]
    fn a_rule_set_knows_the_tokens_that_its_groups_name() {
        let rules =
            RobotsTxt::parse(&b"User-agent: Foo/1.0\nUser-agent: *\nDisallow: /\n"[..]).compile(Reading::Standard);
        assert!(rules.names(&ProductToken::new("foo")));
        assert!(!rules.names(&ProductToken::new("bar")));
    }

    #[test]
    fn reported_memory_grows_with_the_number_of_rules() {
        let of = |rules: usize| {
            let rules = (0..rules).map(|n| format!("Disallow: /shop/{n}/\nAllow: /*/item-{n}-*.html\n"));
            let file = format!("User-agent: *\n{}", rules.collect::<String>());
            RobotsTxt::parse(file.into_bytes()).compile(Reading::Standard).memory()
        };
        let (few, many) = (of(100), of(1000));
        // Each of the 200 rules takes at least 16 bytes (rank and index), and less than 1 KiB.
        assert!((100 * 2 * 16..100 * 2 * 1024).contains(&few), "{few}");
        assert!((5 * few..20 * few).contains(&many), "{few} {many}");
    }

    #[test]
    fn a_long_literal_after_a_wildcard_is_found_at_any_offset_of_its_rarest_byte() {
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
    fn a_verdict_contains_the_name_through_which_the_deciding_group_applies() {
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
    fn a_selection_reports_whether_it_fell_back_to_the_star_group() {
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

    #[cfg(feature = "check")]
    fn lines(file: &str, token: &str, path: &str) -> Vec<(PathForm, Vec<usize>)> {
        let rules = RobotsTxt::parse(file.as_bytes()).compile(Reading::Standard);
        let path = RequestPath::new(path.as_bytes());
        let selection = rules.select(&[ProductToken::new(token)], Fallback::Star);
        let trace = selection.trace(&path);
        // The index must find the rule that the trace lists first for the deciding form.
        let decided = trace.forms.iter().find(|form| form.form == trace.verdict.form()).expect("the form");
        let verdict = trace.verdict.rule().filter(|rule| !rule.pattern().is_empty());
        assert_eq!(decided.rules.first().map(|rule| rule.line()), verdict.map(Rule::line), "{file}");
        assert_eq!(decided.access(), trace.verdict.access());
        trace.forms.iter().map(|form| (form.form, form.rules.iter().map(|rule| rule.line()).collect())).collect()
    }

    #[cfg(feature = "check")]
    #[test]
    fn matching_rules_are_traced_in_the_order_of_their_precedence() {
        let file = "User-agent: a\nDisallow: /\nAllow: /x\nDisallow: /x\nDisallow: /x/*\nAllow:\nDisallow: /y\n\n\
                    User-agent: *\nDisallow: /x/z\n\nUser-agent: A\nAllow: /x/index.html\nAllow: /x/z/\n";
        assert_eq!(lines(file, "a", "/x/z/1"), [(PathForm::Standard, vec![14, 5, 3, 4, 2])]);
        assert_eq!(lines(file, "a", "/x/"), [(PathForm::Standard, vec![13, 5, 3, 4, 2])]);
        assert_eq!(lines(file, "b", "/x/z/1"), [(PathForm::Standard, vec![10])]);
        assert_eq!(lines(file, "b", "/q"), [(PathForm::Standard, vec![])]);
    }

    #[cfg(feature = "check")]
    #[test]
    fn every_form_is_traced() {
        let file = "User-agent: *\nDisallow: /private/\nAllow: /open/\n";
        let want = [(PathForm::Standard, vec![3]), (PathForm::Resolved, vec![2])];
        assert_eq!(lines(file, "a", "/open/../private/x"), want);
    }

    #[test]
    fn a_selection_lists_all_groups_that_apply_together() {
        let rules =
            RobotsTxt::parse(&b"User-agent: a\nAllow: /\nUser-agent: b\nAllow: /\nUser-agent: A\nAllow: /\n"[..])
                .compile(Reading::Standard);
        let selection = rules.select(&[ProductToken::new("a")], Fallback::Star);
        assert_eq!(selection.groups().map(Group::line).collect::<Vec<_>>(), [1, 5]);
        assert_eq!(rules.select(&[], Fallback::Star).groups().len(), 0);
    }
}
