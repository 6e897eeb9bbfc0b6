//! Appending the groups of other files to a robots.txt.
//!
//! 1. The file stays as it is, octet for octet, and comes first: its line numbers hold.
//! 2. For a crawler that it names, it alone counts. An author's rules for a crawler win over a list made elsewhere, so the
//!    two need not be compared to know which apply.
//! 3. For a crawler that only a fragment names, that fragment's group counts, with its delays and preferences. Of several
//!    fragments the first one counts.
//! 4. Nothing else of a fragment counts: no group for `*`, which would speak of crawlers that it does not name, and no line
//!    about the whole site, such as a sitemap.
//!
//! Names are the same where every reading takes them for the same (`GPTBot` and `gptbot/1.0`). If only some readings do
//! (`Foobot 2` and `Foobot`), both groups stay: a reader that takes them for one crawler obeys both, so that no rule is lost.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::document::{Name, RobotsTxt};
use super::keyword::{ValueError, first_few};
use super::line::{Directive, Field, bom_length};
use super::token::ProductToken;

/// Names that a comment lists.
const MOST_LISTED: usize = 20;

/// Characters of a name that a comment lists.
const MOST_LETTERS: usize = 40;

/// Octets up to which groups for one crawler are merged. A file made for it could repeat its rules without end; one that
/// exceeds this is appended as it is written.
const MOST_MERGED: usize = 16 << 20;

/// The origin of the lines of an appended part.
#[derive(Clone, Debug, Default)]
pub struct LinePlaces {
    titles: Vec<Arc<str>>,
    /// The lines of the file that is served, in order, with fragment and line.
    lines: Vec<(usize, usize, usize)>,
    /// The first line that is not of the file itself.
    begin: usize,
    /// Length of the file itself, in bytes.
    own: usize,
}

/// The comment before a rule that ends the last group of the file itself.
const ENDS_GROUP: &[u8] = b"# Ends the group above: not every crawler reads a rule in it";

/// Begins the comment before a part, which its title follows.
const FROM: &[u8] = b"# From ";

/// The keys under which the readings find a name.
type NameKey = (Option<ProductToken>, ProductToken);

/// A line of a file that goes with its group.
#[derive(Debug)]
pub(crate) struct GroupLine {
    pub(crate) number: usize,
    pub(crate) content: Range<usize>,
    /// Every reader takes it for a rule.
    pub(crate) is_rule: bool,
}

/// The groups that are merged, by index, and the names they are for.
type MergedGroups<'f> = Vec<(Vec<usize>, Vec<Name<'f>>)>;

impl RobotsTxt {
    /// Appends the groups of fragments. Crawlers that this file names obey this file alone; those that only a fragment names
    /// obey that fragment; everything else a fragment says is left out. Comments say which lines are from where.
    ///
    /// The fragments are appended to any bytes: those that are no robots.txt do not become one by it.
    ///
    /// Returns the file to serve, and where its lines come from.
    ///
    /// ```
    /// use robots_core::rules::{Fragment, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(&b"User-agent: GPTBot\nAllow: /\n"[..]);
    /// let list = Fragment::parse("ai.txt", "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n").unwrap();
    /// let (file, places) = robots.append(&[list]);
    /// assert_eq!(
    ///     String::from_utf8_lossy(&file),
    ///     "User-agent: GPTBot\nAllow: /\n\n# From ai.txt\n\
    ///     \x23 Named above, so left out here: GPTBot\nUser-agent: CCBot\nDisallow: /\n"
    /// );
    /// assert_eq!(places.of(7), Some(("ai.txt", 3)));
    /// ```
    #[doc(hidden)]
    pub fn append(&self, fragments: &[Fragment]) -> (Arc<[u8]>, LinePlaces) {
        let mut named: HashSet<NameKey> =
            self.groups().flat_map(|group| group.names().map(key).collect::<Vec<_>>()).collect();
        let mut out = self.bytes().to_vec();
        // Behind a CR it makes a CRLF, which is one line end.
        if !matches!(out.last(), None | Some(b'\n')) {
            out.push(b'\n');
        }
        let mut writer = Writer { lines: line_ends(&out), out, places: LinePlaces::default() };
        writer.places.begin = writer.lines + 1;
        writer.places.own = self.bytes().len();
        if is_last_group_open(self) {
            writer.line(ENDS_GROUP);
            writer.line(b"Disallow:");
        }
        for (number, fragment) in fragments.iter().enumerate() {
            writer.places.titles.push(fragment.title.clone());
            writer.fragment(number, fragment, &mut named);
        }
        (writer.out.into(), writer.places)
    }
}

impl LinePlaces {
    /// The title of the fragment that a line is from, and its number there; `None` for the lines of the file itself, and for
    /// comments between the parts.
    pub fn of(&self, line: usize) -> Option<(&str, usize)> {
        let at = self.lines.binary_search_by_key(&line, |(line, ..)| *line).ok()?;
        let (_, fragment, line) = self.lines[at];
        Some((&*self.titles[fragment], line))
    }

    /// Whether a line is of the file itself, where it has the same number.
    pub const fn is_own(&self, line: usize) -> bool {
        line < self.begin
    }

    /// Returns the file itself, without what is appended to it.
    pub fn own_part(&self, served: &RobotsTxt) -> RobotsTxt {
        RobotsTxt::parse(&served.bytes()[..self.own.min(served.bytes().len())])
    }
}

/// Writes lines and counts them.
struct Writer {
    out: Vec<u8>,
    lines: usize,
    places: LinePlaces,
}

impl Writer {
    fn line(&mut self, text: &[u8]) {
        self.out.extend_from_slice(text);
        self.out.push(b'\n');
        self.lines += 1;
    }

    fn line_of(&mut self, fragment: usize, number: usize, text: &[u8]) {
        self.line(text);
        self.places.lines.push((self.lines, fragment, number));
    }

    fn fragment(&mut self, number: usize, fragment: &Fragment, named: &mut HashSet<NameKey>) {
        let robots = &fragment.robots;
        let (lines, others) = group_lines(robots);
        let (groups, left_out) = select(robots, &lines, named);
        if self.lines > 0 {
            self.line(b"");
        }
        // One line, whatever a caller has put there.
        let title = fragment.title.split(char::is_control).next().unwrap_or_default();
        self.line(&[FROM, title.as_bytes()].concat());
        if !left_out.is_empty() {
            self.line(format!("# Named above, so left out here: {}", listed(&left_out)).as_bytes());
        }
        if robots.groups().any(|group| group.is_global()) {
            self.line(b"# Left out: its group for every crawler, *");
        }
        if others > 0 {
            let lines = if others == 1 { "line that is" } else { "lines that are" };
            self.line(format!("# Left out: {others} {lines} of no group or of no known kind").as_bytes());
        }
        for (at, (merged, names)) in groups.iter().enumerate() {
            if at > 0 {
                self.line(b"");
            }
            for name in names {
                self.line_of(number, name.line(), &[b"User-agent: ", name.value()].concat());
            }
            let mut has_rule = false;
            for line in merged.iter().flat_map(|group| &lines[*group]) {
                has_rule |= line.is_rule;
                self.line_of(number, line.number, &robots.bytes()[line.content.clone()]);
            }
            if !has_rule {
                // Names without a rule would share the next group, to readers that know no rule there.
                self.line(b"Disallow:");
            }
        }
    }
}

/// The lines of each group besides its names, and how many lines belong to none.
pub(crate) fn group_lines(robots: &RobotsTxt) -> (Vec<Vec<GroupLine>>, usize) {
    let mut lines: Vec<Vec<GroupLine>> = robots.groups().map(|_| Vec::new()).collect();
    let mut others = 0;
    for (line, field, begun) in robots.fields() {
        let is_rule = match field.directive {
            Directive::UserAgent => continue,
            Directive::Allow | Directive::Disallow => is_rule_to_all(&field),
            Directive::CrawlDelay
            | Directive::ContentUsage
            | Directive::ContentSignal
            | Directive::RequestRate
            | Directive::VisitTime
            | Directive::Noindex => false,
            Directive::Sitemap | Directive::Host | Directive::CleanParam | Directive::License | Directive::Other => {
                others += 1;
                continue;
            }
        };
        match lines[..begun].last_mut() {
            Some(of_group) => of_group.push(GroupLine { number: line.number, content: line.content(), is_rule }),
            None => others += 1,
        }
    }
    (lines, others)
}

/// Whether a reader may be left that takes the names which follow for more names of the last group: one that reads no rule there.
fn is_last_group_open(robots: &RobotsTxt) -> bool {
    let mut is_open = false;
    for (_, field, _) in robots.fields() {
        match field.directive {
            Directive::UserAgent => is_open = true,
            _ => is_open &= !is_rule_to_all(&field),
        }
    }
    is_open
}

/// Whether a line is a rule by the letter of RFC 9309, section 2.2: strict readers know no other spelling and no path without `/`.
fn is_rule_to_all(field: &Field<'_>) -> bool {
    let is_spelled = |spelling: &str| field.name.eq_ignore_ascii_case(spelling.as_bytes());
    matches!(field.directive, Directive::Allow | Directive::Disallow)
        && field.directive.spelling().is_some_and(is_spelled)
        && field.has_colon
        && matches!(field.value, [] | [b'/', ..])
}

/// The appended groups: the names that are not yet `named`, each once, with the groups that are for each; and the names left out.
fn select<'f>(
    robots: &'f RobotsTxt,
    lines: &[Vec<GroupLine>],
    named: &mut HashSet<NameKey>,
) -> (MergedGroups<'f>, Vec<Name<'f>>) {
    let mut left_out = Vec::new();
    let mut left_keys = HashSet::new();
    // In the order of the file, each with the groups that are for it.
    let mut names: Vec<(Name<'f>, Vec<usize>)> = Vec::new();
    let mut known: HashMap<NameKey, usize> = HashMap::new();
    for (index, group) in robots.groups().enumerate() {
        for name in group.names().filter(|name| !name.is_star()) {
            let key = key(name);
            if key.0.is_none() && key.1.as_bytes().is_empty() {
                continue;
            }
            if named.contains(&key) {
                if left_keys.insert(key) {
                    left_out.push(name);
                }
                continue;
            }
            let at = *known.entry(key).or_insert_with(|| {
                names.push((name, Vec::new()));
                names.len() - 1
            });
            let groups = &mut names[at].1;
            if groups.last() != Some(&index) {
                groups.push(index);
            }
        }
    }
    named.extend(known.into_keys());
    (merge(names, lines), left_out)
}

/// Names that are for the same groups share one.
fn merge<'f>(names: Vec<(Name<'f>, Vec<usize>)>, lines: &[Vec<GroupLine>]) -> MergedGroups<'f> {
    let sizes: Vec<usize> = lines.iter().map(|lines| lines.iter().map(|line| line.content.len() + 1).sum()).collect();
    let mut groups: MergedGroups<'f> = Vec::new();
    let mut known: HashMap<Vec<usize>, usize> = HashMap::new();
    let mut size = 0;
    for (name, of) in &names {
        if let Some(at) = known.get(of) {
            groups[*at].1.push(*name);
            continue;
        }
        size += of.iter().map(|index| sizes[*index]).sum::<usize>();
        if size > MOST_MERGED {
            return as_written(&names, lines.len());
        }
        known.insert(of.clone(), groups.len());
        groups.push((of.clone(), vec![*name]));
    }
    groups
}

/// Every group once, with its names.
fn as_written<'f>(names: &[(Name<'f>, Vec<usize>)], count: usize) -> MergedGroups<'f> {
    let mut groups: MergedGroups<'f> = (0..count).map(|index| (vec![index], Vec::new())).collect();
    for (name, of) in names {
        of.iter().for_each(|index| groups[*index].1.push(*name));
    }
    groups.retain(|(_, names)| !names.is_empty());
    groups
}

fn key(name: Name<'_>) -> NameKey {
    (ProductToken::from_name(name.value()), ProductToken::cut(name.value()))
}

fn listed(names: &[Name<'_>]) -> String {
    let short = |name: &Name<'_>| String::from_utf8_lossy(name.value()).chars().take(MOST_LETTERS).collect::<String>();
    first_few(names.iter().map(short), MOST_LISTED)
}

/// Characters of a title that are kept.
const MOST_TITLE: usize = 120;

/// The groups of a file that others keep, to be appended to a robots.txt with [`RobotsTxt::append`].
///
/// It comes from elsewhere, so it has to be clean: UTF-8 without control characters, no HTML, and at least one crawler
/// that is named. A truncated or mistaken file never takes the place of a list.
///
/// ```
/// use robots_core::rules::Fragment;
///
/// let list = Fragment::parse("ai.txt", "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n").unwrap();
/// assert_eq!(&*list.title, "ai.txt");
/// let error = Fragment::parse("ai.txt", "<!doctype html>").unwrap_err();
/// assert_eq!(error.to_string(), "this is an HTML page, not a robots.txt");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fragment {
    /// The title in comments.
    pub title: Arc<str>,
    /// Its document.
    pub robots: RobotsTxt,
}

impl Fragment {
    /// The titles of the parts that a file has which is served, as its comments say them.
    #[doc(hidden)]
    pub fn titles_in(served: &[u8]) -> impl Iterator<Item = &[u8]> {
        served.split(|octet| *octet == b'\n').filter_map(|line| line.strip_prefix(FROM))
    }

    /// Returns a file that was served without the parts, as far as its comments tell. Those that `own`, another version of the file
    /// itself, has too are not of a part.
    #[doc(hidden)]
    pub fn without_parts<'s>(served: &'s [u8], own: &[u8]) -> &'s [u8] {
        let is_mark = |line: &&[u8]| *line == ENDS_GROUP || line.starts_with(FROM);
        let of_own: HashSet<&[u8]> = own.split(|octet| *octet == b'\n').filter(is_mark).collect();
        let mut end = 0;
        for line in served.split(|octet| *octet == b'\n') {
            if is_mark(&line) && !of_own.contains(line) {
                return &served[..end];
            }
            end += line.len() + 1;
        }
        served
    }

    /// Reads a file that others keep. The title names it in comments of the file that is served: one line, up to 120
    /// characters.
    ///
    /// # Errors
    ///
    /// If it cannot be a list of rules for crawlers.
    pub fn parse(title: &str, bytes: impl AsRef<[u8]>) -> Result<Self, ValueError> {
        let bytes = bytes.as_ref();
        let text = &bytes[bom_length(bytes)..];
        let wrong = |message: &str| Err(ValueError::of_message(title, message));
        if text.trim_ascii_start().starts_with(b"<") {
            return wrong("this is an HTML page, not a robots.txt");
        }
        if let Some(at) = first_unclean(text) {
            let line = line_ends(&text[..at]) + 1;
            return wrong(&format!(
                "line {line} holds octets that are no text: write the file as UTF-8 without control characters"
            ));
        }
        let robots = RobotsTxt::parse(text);
        if !robots.groups().any(|group| group.names().any(|name| !name.is_star() && !name.value().is_empty())) {
            return wrong("no group of it names a crawler: a list begins with a line such as \"User-agent: GPTBot\"");
        }
        let title = title.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MOST_TITLE);
        Ok(Self { title: title.collect::<String>().trim().into(), robots })
    }
}

/// CR, LF and CRLF each end a line.
fn line_ends(text: &[u8]) -> usize {
    let is_end = |(at, octet): (usize, &u8)| match octet {
        b'\n' => true,
        b'\r' => text.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    text.iter().enumerate().filter(|pair| is_end(*pair)).count()
}

/// The place of the first octet that is not text. A file with such octets could make a binary file of what it is appended to.
fn first_unclean(text: &[u8]) -> Option<usize> {
    let is_control = |octet: &u8| matches!(octet, 0..=8 | 0x0E..=0x1F | 0x7F);
    let valid = std::str::from_utf8(text).err().map(|error| error.valid_up_to());
    let control = text.iter().position(is_control);
    valid.into_iter().chain(control).min()
}

#[cfg(test)]
mod tests;
