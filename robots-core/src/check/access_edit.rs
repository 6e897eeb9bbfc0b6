//! Blocks or allows crawlers with the smallest possible edit of a file. Returns an edit only if a
//! comparison proves that the edit has exactly the requested effect.
//!
//! 1. The edited crawlers are those that the caller blocks or allows. A blocked crawler may not
//!    fetch any path. For an allowed crawler, no rule disallows the whole site, but rules for parts
//!    of the site still apply.
//! 2. If a group names only edited crawlers, the rules of the group are changed. If a group also
//!    names other crawlers, it keeps its rules, but loses the names of the edited crawlers.
//! 3. An allowed crawler keeps the rules of its group, except rules that disallow the whole site.
//!    If no rule for a part of the site is left, the crawler gets the rules that it would obey
//!    without a group. The crawler always keeps the delays and usage preferences of the group.
//! 4. A crawler that is not edited may obey the group of an edited crawler (`Googlebot-Image` obeys
//!    the group of `Googlebot`). Such a crawler is added by name to the group that it obeys, so
//!    that it keeps its rules.
//! 5. If the last group of the file has no rules, it gets an empty rule before a new group is
//!    added. Without this rule, crawlers would read the two groups as one.
//! 6. The edited file is compared with the original. The edit is accepted only if every edited
//!    crawler has the requested access, and the verdicts and delays of all other crawlers are
//!    unchanged.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

use super::checked_file::{CheckedFile, compared};
use super::diff::{Diff, DiffOptions, SiteExtent};
use super::fixes::Edit;
use super::options::SiteContext;
use super::reach::{self, Reach, disallows_part, disallows_site};
use crate::agent::{Agent, Registry};
use crate::rules::append::{GroupLine, group_lines};
use crate::rules::{Access, Group, Name, ProductToken, Reading, RobotsTxt, Rule, RuleSet, Selection, ValueError};

/// The result of an edit that blocks or allows crawlers.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct EditedFile {
    /// The edited file. If every crawler already had the requested access, its bytes are unchanged.
    pub robots: RobotsTxt,
    /// The changes of verdicts and delays that the edit causes.
    pub diff: Diff,
    /// Names of crawlers that were not edited, but obeyed the group of an edited crawler. The
    /// edited file names these crawlers, so that they keep their rules.
    pub kept: Vec<String>,
}

impl EditedFile {
    /// Blocks each crawler in `wanted` from the whole site ([`Access::Disallow`]) or allows it to
    /// fetch the site ([`Access::Allow`]). Crawlers with the same token are edited together,
    /// because a robots.txt cannot distinguish them. The edit keeps comments, line ends and all
    /// lines that need not change.
    ///
    /// `goes_on` is called often, so it can check a deadline. If it returns false, the effect
    /// cannot be proved, and the method returns an error.
    ///
    /// # Errors
    ///
    /// Returns an error with the name of a crawler if the requested effect cannot be proved.
    ///
    /// ```
    /// use robots_core::agent::{Agent, Registry};
    /// use robots_core::check::EditedFile;
    /// use robots_core::rules::{Access, RobotsTxt};
    ///
    /// let file = "User-agent: GPTBot\nUser-agent: bingbot\nDisallow: /cart/\n";
    /// let robots = RobotsTxt::parse(file);
    /// let gptbot = Registry::builtin().crawler("GPTBot").map(Agent::from).unwrap();
    /// let wanted = [(gptbot, Access::Disallow)];
    /// let edited = EditedFile::of_while(&robots, &wanted, Registry::builtin(), &|| true)?;
    /// let want = "User-agent: bingbot\nDisallow: /cart/\n\nUser-agent: GPTBot\nDisallow: /\n";
    /// assert_eq!(&**edited.robots.bytes(), want.as_bytes());
    /// # Ok::<(), robots_core::rules::ValueError>(())
    /// ```
    #[doc(hidden)]
    pub fn of_while(
        robots: &RobotsTxt,
        wanted: &[(Agent, Access)],
        registry: &Arc<Registry>,
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Self, ValueError> {
        let site = SiteContext { registry: registry.clone(), ..SiteContext::default() };
        let (mut edited, mut kept) = (robots.clone(), BTreeSet::new());
        for access in [Access::Disallow, Access::Allow] {
            let file = CheckedFile::new(&edited, &site, &[]);
            let agents = wanted.iter().filter(|(_, wanted)| *wanted == access).map(|(agent, _)| agent);
            let draft = Draft::of(&file, access, agents.collect());
            kept.extend(draft.unedited_followers.values().flatten().cloned());
            let bytes = draft.write();
            drop(file);
            edited = RobotsTxt::parse(bytes);
        }
        let options = DiffOptions::new().with_registry(registry.clone());
        let diff = Diff::of_while(robots, &edited, &options, goes_on);
        check_edit(&CheckedFile::new(&edited, &site, &[]), &diff, wanted)?;
        Ok(Self { robots: edited, diff, kept: kept.into_iter().collect() })
    }

    /// Reports whether the edited file blocks a crawler from every path.
    pub fn shuts_out(&self, agent: &Agent, registry: &Registry) -> bool {
        let rules = self.robots.compile_with(Reading::Standard, |name| registry.stands_for(name.value()));
        is_as_wanted(select(&rules, agent), Access::Disallow)
    }
}

fn check_edit(edited: &CheckedFile<'_>, diff: &Diff, wanted: &[(Agent, Access)]) -> Result<(), ValueError> {
    let unproved = |name: &str, fault: &str| Err(ValueError::new(name, format_args!("{fault}: edit the file by hand")));
    let is_missed = |(agent, access): &&(Agent, Access)| !is_as_wanted(select(edited.rules(), agent), *access);
    if let Some((agent, access)) = wanted.iter().find(is_missed) {
        let still = match access {
            _ if edited.bytes().len() > Reading::STANDARD_LIMIT => {
                "cannot be edited safely, because the file would be larger than 500 KiB, and crawlers need not read \
                 more than that"
            }
            Access::Allow => "would still be blocked from most of the site",
            Access::Disallow => "would still be allowed",
        };
        return unproved(agent.crawler().unwrap_or_default(), still);
    }
    let meant: HashSet<&ProductToken> = wanted.iter().filter_map(|(agent, _)| agent.tokens().first()).collect();
    let changed = diff.effects.iter().flat_map(|effect| &effect.crawlers);
    let mut changed = changed.chain(diff.delays.iter().flat_map(|delay| &delay.crawlers));
    if let Some(other) = changed.find(|subject| !subject.own_token().is_some_and(|own| meant.contains(own))) {
        return unproved(
            other.name.as_deref().unwrap_or("*"),
            "was not selected, but would obey other rules than before",
        );
    }
    if diff.is_cut {
        return unproved("robots.txt", "cannot be compared with the new file in time");
    }
    Ok(())
}

fn select<'r>(rules: &'r RuleSet, agent: &Agent) -> Selection<'r> {
    rules.select(agent.tokens(), agent.fallback())
}

/// Reports whether a crawler that obeys these groups has the requested access. Sample paths alone
/// do not prove that a crawler is blocked, because an allow rule may allow other paths. So this
/// function also examines the patterns of the rules.
fn is_as_wanted(selection: Selection<'_>, access: Access) -> bool {
    let shut = || selection.groups().map(Reach::of).reduce(Reach::merge).and_then(Reach::blocking_rule);
    match access {
        Access::Allow => SiteExtent::allows_unmentioned_paths(selection),
        Access::Disallow => {
            SiteExtent::of(selection) == SiteExtent::Shut && matches!(shut(), Some((_, reach::Extent::All)))
        }
    }
}

/// Empty rule that ends a group without rules. Its comment is for people who read the file.
const GROUP_END: &[u8] = b"Disallow: # nothing; without a rule, these names would join the next group";

fn has_partial_rule(groups: &[Group<'_>]) -> bool {
    groups.iter().any(|group| group.rules().any(|rule| disallows_part(&rule)))
}

/// Returns the name to write in robots.txt for the crawler with the token `own`: the crawler's
/// usual name if crawlers read it as this token, otherwise the token itself. If the name were read
/// as another token, the crawler would ignore the group.
fn name_to_write(name: &str, own: &ProductToken) -> String {
    let is_own = ProductToken::from_name(name.as_bytes()).as_ref() == Some(own);
    if is_own { name.to_owned() } else { own.to_string() }
}

/// The edits of one file, which either block or allow all crawlers in `own`.
struct Draft<'f, 'a> {
    file: &'f CheckedFile<'a>,
    access: Access,
    /// The lines of each group, without its user-agent lines.
    lines: Vec<Vec<GroupLine>>,
    /// The first token of each edited crawler, except crawlers that already have the requested
    /// access.
    own: HashSet<ProductToken>,
    /// Maps the index of a group to names of crawlers that are not edited, but obey the group
    /// because it names an edited crawler. The edit adds these names to the group.
    unedited_followers: BTreeMap<usize, BTreeSet<String>>,
    /// Maps the index of each group whose rules are changed to whether the group still exists after
    /// the edit. Such a group names only edited crawlers.
    changed: BTreeMap<usize, bool>,
    /// Maps the lines of each new group to the names in its user-agent lines.
    new: BTreeMap<Vec<Vec<u8>>, Vec<String>>,
    edits: Vec<Edit>,
    removed: BTreeSet<usize>,
    /// Lines to insert, by their byte offset in the file.
    added: BTreeMap<usize, Vec<u8>>,
}

impl<'f, 'a> Draft<'f, 'a> {
    fn of(file: &'f CheckedFile<'a>, access: Access, mut agents: Vec<&Agent>) -> Self {
        let mut seen = HashSet::new();
        agents
            .retain(|agent| seen.insert(agent.tokens().first()) && !is_as_wanted(select(file.rules(), agent), access));
        let mut draft = Self {
            file,
            access,
            lines: group_lines(file.robots).0,
            own: agents.iter().filter_map(|agent| agent.tokens().first().cloned()).collect(),
            unedited_followers: BTreeMap::new(),
            changed: BTreeMap::new(),
            new: BTreeMap::new(),
            edits: Vec::new(),
            removed: BTreeSet::new(),
            added: BTreeMap::new(),
        };
        draft.find_followers();
        agents.into_iter().for_each(|agent| draft.set_access(agent));
        draft
    }

    fn find_followers(&mut self) {
        let rules = self.file.rules();
        let mut seen = HashSet::new();
        for crawler in self.file.crawlers.registry.crawlers() {
            let Some((own, family)) = crawler.tokens.split_first() else { continue };
            let leader = family.iter().find(|token| self.own.contains(*token) || rules.names(token));
            let is_led = leader.is_some_and(|leader| self.own.contains(leader));
            if !is_led || self.own.contains(own) || rules.names(own) || !seen.insert(own) {
                continue;
            }
            let (name, selection) = (name_to_write(&crawler.name, own), select(rules, &Agent::from(crawler)));
            for group in selection.groups() {
                self.unedited_followers.entry(self.place_of(group)).or_default().insert(name.clone());
            }
            if !selection.applies() {
                self.new.entry(vec![b"Disallow:".to_vec()]).or_default().push(name);
            }
        }
    }

    fn place_of(&self, group: Group<'_>) -> usize {
        self.file.groups().at(group.line()).unwrap_or_default()
    }

    fn tokens_of(&self, name: Name<'_>) -> Vec<ProductToken> {
        match self.file.crawlers.registry.stands_for(name.value()) {
            declared if declared.is_empty() => compared(name).into_iter().collect(),
            declared => declared,
        }
    }

    fn names_only_edited_crawlers(&self, name: Name<'_>) -> bool {
        let tokens = self.tokens_of(name);
        !tokens.is_empty() && tokens.iter().all(|token| self.own.contains(token))
    }

    /// Gives a crawler the requested access. If a group that names the crawler is only for edited
    /// crawlers, changes the rules of this group. Removes the crawler's name from all other groups.
    /// Then adds a new group for the crawler, unless it has a changed group or needs no group.
    fn set_access(&mut self, agent: &Agent) {
        let Some((own, family)) = agent.tokens().split_first() else { return };
        let (mut is_placed, mut shared) = (false, Vec::new());
        for (at, group) in self.file.robots.groups().enumerate() {
            let names: Vec<_> = group.names().filter(|name| self.tokens_of(*name).contains(own)).collect();
            if names.is_empty() {
                continue;
            }
            if self.unedited_followers.contains_key(&at)
                || !group.names().all(|name| self.names_only_edited_crawlers(name))
            {
                shared.push(group);
                // A name that also stands for a crawler that is not edited stays in the group. If
                // the edit therefore does not have the requested effect, `check_edit` rejects it.
                for name in names {
                    if self.names_only_edited_crawlers(name) {
                        self.removed.insert(line_of(name));
                    }
                }
            } else {
                is_placed |= match self.changed.get(&at) {
                    Some(is_placed) => *is_placed,
                    None => self.change_group(at, group, self.selection_if_unnamed(agent, family)),
                };
            }
        }
        if is_placed {
            return;
        }
        let lines = match self.access {
            Access::Disallow => vec![b"Disallow: /".to_vec()],
            Access::Allow => {
                let selection_if_unnamed = self.selection_if_unnamed(agent, family);
                let has_own = has_partial_rule(&shared) || shared.iter().any(|group| !self.others(*group).is_empty());
                if !has_own && is_as_wanted(selection_if_unnamed, Access::Allow) {
                    return;
                }
                self.lines_for_allowed(&shared, selection_if_unnamed)
            }
        };
        self.new.entry(lines).or_default().push(name_to_write(agent.crawler().unwrap_or_default(), own));
    }

    /// Returns the groups that a crawler would obey if no group named it or any other edited
    /// crawler.
    fn selection_if_unnamed(&self, agent: &Agent, family: &[ProductToken]) -> Selection<'f> {
        let family: Vec<_> = family.iter().filter(|token| !self.own.contains(*token)).cloned().collect();
        self.file.rules().select(&family, agent.fallback())
    }

    /// Changes the rules of a group that names only edited crawlers. Returns false if the whole
    /// group is removed.
    fn change_group(&mut self, at: usize, group: Group<'_>, selection_if_unnamed: Selection<'_>) -> bool {
        let is_left = match self.access {
            Access::Disallow => {
                self.block_site(group);
                true
            }
            Access::Allow => self.allow_site(at, group, selection_if_unnamed),
        };
        self.changed.insert(at, is_left);
        is_left
    }

    /// Removes the allow rules and empty disallow rules of a group. If the group does not disallow
    /// the whole site yet, `Disallow: /` replaces the first removed rule.
    fn block_site(&mut self, group: Group<'_>) {
        let opens = |rule: &Rule<'_>| rule.access() == Access::Allow || rule.pattern().is_empty();
        let mut opening = group.rules().filter(opens).map(|rule| rule.line() - 1);
        if !group.rules().any(|rule| disallows_site(&rule)) {
            if let Some(line) = opening.next()
                && let Some(field) = self.file.field(line)
            {
                let end = self.file.lines()[line].content().end;
                self.edits.push(Edit::new(field.name_range.start..end, "Disallow: /"));
            } else {
                let last_rule = group.rules().last().map(|rule| rule.line() - 1);
                let last = last_rule.or(group.names().last().map(line_of));
                self.add_after(last.unwrap_or_default(), b"Disallow: /");
            }
        }
        self.removed.extend(opening);
    }

    /// Removes the rules that disallow the whole site. If the group has no rules for parts of the
    /// site, but other lines such as delays, it gets the rules of `selection_if_unnamed`, which its
    /// crawlers would obey without the group. If the group has neither, it is removed. Returns
    /// whether the group still exists.
    fn allow_site(&mut self, at: usize, group: Group<'_>, selection_if_unnamed: Selection<'_>) -> bool {
        if group.rules().any(|rule| disallows_part(&rule)) {
            self.removed.extend(group.rules().filter(disallows_site).map(|rule| rule.line() - 1));
            return true;
        }
        if !self.others(group).is_empty() {
            let last = group.rules().last().map_or(group.line(), |rule| rule.line()) - 1;
            for rule in self.rules(selection_if_unnamed.groups()) {
                self.add_after(last, &rule);
            }
            self.removed.extend(group.rules().map(|rule| rule.line() - 1));
            return true;
        }
        self.removed.extend(group.names().map(line_of));
        self.removed.extend(self.lines[at].iter().map(|line| line.number - 1));
        false
    }

    /// Returns the lines of a new group for an allowed crawler whose current groups are `own`. If
    /// the current groups have no rules for parts of the site, the new group gets the rules of
    /// `selection_if_unnamed`.
    fn lines_for_allowed(&self, own: &[Group<'_>], selection_if_unnamed: Selection<'_>) -> Vec<Vec<u8>> {
        let has_own = has_partial_rule(own);
        let mut lines =
            if has_own { self.rules(own.iter().copied()) } else { self.rules(selection_if_unnamed.groups()) };
        let mut others: Vec<_> = own.iter().flat_map(|group| self.others(*group)).collect();
        if others.is_empty() && !has_own {
            others = selection_if_unnamed.groups().flat_map(|group| self.others(group)).collect();
        }
        lines.extend(others);
        lines
    }

    /// Returns the rules of these groups, except rules that disallow the whole site. If no rule
    /// disallows a part of the site, returns an empty `Disallow:`.
    fn rules<'g>(&self, groups: impl Iterator<Item = Group<'g>>) -> Vec<Vec<u8>> {
        let groups: Vec<_> = groups.collect();
        if !has_partial_rule(&groups) {
            return vec![b"Disallow:".to_vec()];
        }
        let kept = groups.iter().flat_map(|group| group.rules()).filter(|rule| !disallows_site(rule));
        kept.map(|rule| self.text(rule.line() - 1)).collect()
    }

    /// Returns the lines of a group that are not rules: delays, usage preferences and licences.
    fn others(&self, group: Group<'_>) -> Vec<Vec<u8>> {
        let rules: HashSet<usize> = group.rules().map(|rule| rule.line()).collect();
        let lines = self.lines[self.place_of(group)].iter().filter(|line| !rules.contains(&line.number));
        lines.map(|line| self.text(line.number - 1)).collect()
    }

    fn text(&self, line: usize) -> Vec<u8> {
        self.file.bytes()[self.file.lines()[line].content()].to_vec()
    }

    /// Finds a group whose only effect is to block its crawlers from the whole site. Returns the
    /// index of the line with the last name of this group.
    fn blocking_group_line(&self) -> Option<usize> {
        let mut groups = self.file.robots.groups().enumerate();
        let (_, group) = groups.find(|(at, group)| {
            let is_plain = self.lines[*at].iter().all(|line| line.is_rule) && !group.is_global();
            let is_shut = group.rules().any(|rule| disallows_site(&rule))
                && group.rules().all(|rule| rule.access() == Access::Disallow);
            is_plain && is_shut && !self.changed.contains_key(at)
        })?;
        group.names().last().map(line_of)
    }

    fn add_after(&mut self, line: usize, text: &[u8]) {
        self.add(self.file.whole_line(line).end, text);
    }

    fn add(&mut self, at: usize, text: &[u8]) {
        let end = self.file.line_end();
        let is_open = !matches!(self.file.bytes()[..at].last(), None | Some(b'\n' | b'\r'));
        let added = self.added.entry(at).or_insert_with(|| if is_open { end.to_vec() } else { Vec::new() });
        added.extend_from_slice(text);
        added.extend_from_slice(end);
    }

    /// If the removal of lines leaves two adjacent blank lines, or a blank line at the end of the
    /// file, removes one blank line.
    fn remove_double_blanks(&mut self) {
        let lines = self.file.lines();
        let is_blank = |line: usize| lines.get(line).is_none_or(|line| line.bytes().trim_ascii().is_empty());
        let goes = |line: &usize| self.removed.contains(line);
        let mut blanks = Vec::new();
        for last in self.removed.iter().copied().filter(|line| !goes(&(line + 1)) && is_blank(line + 1)) {
            let first = (0..=last).rev().take_while(goes).last().unwrap_or(last);
            let (start, end) = (self.file.whole_line(first).start, self.file.whole_line(last).end);
            let is_whole = self.added.range(start..=end).all(|(at, _)| *at == self.file.bytes().len())
                && (first..=last).all(|line| !self.file.bytes()[self.file.whole_line(line)].contains(&b'#'));
            if is_whole && (first == 0 || is_blank(first - 1)) {
                // If the removed lines are the last lines of the file, the blank line before them
                // is removed. If a new group is added there, a blank line is added before it.
                let is_end = self.file.whole_line(last + 1).is_empty();
                blanks.extend(if is_end { first.checked_sub(1) } else { Some(last + 1) });
            }
        }
        self.removed.extend(blanks);
    }

    fn name_followers(&mut self) {
        for (at, names) in std::mem::take(&mut self.unedited_followers) {
            let last = self.file.robots.groups().nth(at).and_then(|group| group.names().last());
            let last = last.map_or(0, line_of);
            names.iter().for_each(|name| self.add_after(last, format!("User-agent: {name}").as_bytes()));
        }
    }

    /// Adds the new groups at the end of the file. But if the file has a group whose only effect is
    /// to block its crawlers from the whole site, adds the names of newly blocked crawlers to it.
    fn add_new_groups(&mut self) {
        let end = self.file.bytes().len();
        let blank = self.file.lines().iter().rev().take_while(|line| line.bytes().trim_ascii().is_empty());
        let mut is_parted = blank.count() > 1 || end == 0;
        let blocking_group_line = self.blocking_group_line();
        let mut unfinished_group_line = self.unfinished_group_line();
        for (lines, names) in std::mem::take(&mut self.new) {
            let names = names.into_iter().map(|name| format!("User-agent: {name}").into_bytes());
            if let Some(line) = blocking_group_line
                && *lines == [b"Disallow: /"]
            {
                names.for_each(|name| self.add_after(line, &name));
                continue;
            }
            if let Some(line) = unfinished_group_line.take() {
                self.add_after(line, GROUP_END);
            }
            if !std::mem::take(&mut is_parted) {
                self.add(end, b"");
            }
            names.chain(lines).for_each(|line| self.add(end, &line));
        }
    }

    /// If the file's last group has no rules, returns the index of its last line. Crawlers would
    /// read this group and a new group after it as one.
    fn unfinished_group_line(&self) -> Option<usize> {
        let (at, group) = self.file.robots.groups().enumerate().last()?;
        let has_name = group.names().any(|name| !self.removed.contains(&line_of(name)));
        if group.rules().len() > 0 || self.changed.contains_key(&at) || !has_name {
            return None;
        }
        let own = self.lines[at].iter().map(|line| line.number);
        own.chain(group.names().map(Name::line)).max().map(|number| number - 1)
    }

    fn write(mut self) -> Vec<u8> {
        self.name_followers();
        self.add_new_groups();
        self.remove_double_blanks();
        let mut edits = self.edits;
        edits.extend(self.added.into_iter().map(|(at, text)| Edit::insert(at, text)));
        edits.extend(self.removed.into_iter().map(|line| {
            // A comment after a removed field is kept, unless a comment turns a lint off for the
            // line.
            self.file.without_field(line).unwrap_or_else(|| Edit::remove(self.file.whole_line(line)))
        }));
        Edit::apply(self.file.bytes(), &edits)
    }
}

/// Returns the index of a name's line in the file, from 0.
fn line_of(name: Name<'_>) -> usize {
    name.line() - 1
}

#[cfg(test)]
mod tests;
