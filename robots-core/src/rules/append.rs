//! Appends the groups of other files ([fragments](Fragment)) to a robots.txt.
//!
//! 1. The site's own file comes first and is not changed, so its line numbers stay valid.
//! 2. A crawler with a group in the site's own file obeys only that file. So a person who reads the
//!    file sees all rules for this crawler in one place.
//! 3. A crawler that is named only in fragments obeys the groups of the first fragment that names
//!    it, including the delays, usage preferences and licences in these groups.
//! 4. Everything else in a fragment is left out: lines about the whole site, such as sitemaps, and
//!    groups for `*`. A group for `*` would also apply to crawlers that the fragment does not name.
//!
//! Two names mean the same crawler if they are equal in every [`Reading`](super::Reading) (`GPTBot`
//! and `gptbot/1.0`). If two names are equal only in some readings (`Foobot 2` and `Foobot`), both
//! groups are kept. In these readings, the crawler obeys both groups, so no rule is lost.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::sync::Arc;

use super::document::{Name, RobotsTxt};
use super::keyword::{ValueError, first_few};
use super::line::{Directive, Field, bom_length};
use super::token::ProductToken;

/// Maximum number of crawler names in the comment about left-out crawlers.
const MAX_LISTED: usize = 20;

/// Maximum length of a name in the comment about left-out crawlers, in characters.
const MAX_TITLE_LETTERS: usize = 40;

/// Maximum total size of the merged groups, in bytes. In a crafted file, merging could repeat the
/// same rules for many names. If the total would be larger, the groups are appended unmerged.
const MAX_MERGED_BYTES: usize = 16 << 20;

/// The origin of each appended line of a file: a fragment, and the line number in this fragment.
#[derive(Clone, Debug, Default)]
pub struct LinePlaces {
    titles: Vec<Arc<str>>,
    /// The lines that were copied from fragments, in order. Each element contains the line number
    /// in the served file, the index of the fragment and the line number in the fragment.
    lines: Vec<(usize, usize, usize)>,
    /// Line number of the first line after the site's own file.
    begin: usize,
    /// Length of the site's own file, in bytes.
    own: usize,
}

/// Comment before the empty `Disallow` line that is appended to the last group of the site's own
/// file.
const ENDS_GROUP: &[u8] = b"# Ends the group above, in which some crawlers read no rule";

/// Start of the comment before the groups of a fragment.
const FROM: &[u8] = b"# From ";

/// The tokens for a name in [`Reading::Standard`](super::Reading::Standard) and in
/// [`Reading::Reference`](super::Reading::Reference).
type NameKey = (Option<ProductToken>, ProductToken);

/// A line of a group that is not a user-agent line.
#[derive(Debug)]
pub(crate) struct GroupLine {
    pub(crate) number: usize,
    pub(crate) content: Range<usize>,
    /// Whether every crawler treats the line as a rule.
    pub(crate) is_rule: bool,
}

/// The groups to append. Each element contains the indexes of the groups to merge, and the names
/// for the merged group.
type MergedGroups<'f> = Vec<(Vec<usize>, Vec<Name<'f>>)>;

impl RobotsTxt {
    /// Appends the fragments' groups for crawlers that this file does not name. All other lines of
    /// the fragments are left out. A comment with the title of a fragment precedes its groups.
    ///
    /// The site's own file may contain any bytes. The result is a valid robots.txt only if this
    /// file is valid.
    ///
    /// Returns the file to serve, and the origin of each appended line.
    ///
    /// ```
    /// use robots_core::rules::{Fragment, RobotsTxt};
    ///
    /// let robots = RobotsTxt::parse(&b"User-agent: GPTBot\nAllow: /\n"[..]);
    /// let list = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";
    /// let list = Fragment::parse("ai.txt", list).unwrap();
    /// let (file, places) = robots.append(&[list]);
    /// assert_eq!(
    ///     String::from_utf8_lossy(&file),
    ///     "User-agent: GPTBot\nAllow: /\n\n# From ai.txt\n\
    ///     \x23 These crawlers are named above, so they are left out here: GPTBot\n\
    ///     User-agent: CCBot\nDisallow: /\n"
    /// );
    /// assert_eq!(places.of(7), Some(("ai.txt", 3)));
    /// ```
    #[doc(hidden)]
    pub fn append(&self, fragments: &[Fragment]) -> (Arc<[u8]>, LinePlaces) {
        let mut named: HashSet<NameKey> =
            self.groups().flat_map(|group| group.names().map(key).collect::<Vec<_>>()).collect();
        let mut out = self.bytes().to_vec();
        // If the file ends with a CR, this LF completes a CRLF.
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
    /// Returns the origin of a line: the title of its fragment, and the line number in the
    /// fragment. `None` if the line was not copied from a fragment.
    pub fn of(&self, line: usize) -> Option<(&str, usize)> {
        let at = self.lines.binary_search_by_key(&line, |(line, ..)| *line).ok()?;
        let (_, fragment, line) = self.lines[at];
        Some((&*self.titles[fragment], line))
    }

    /// Reports whether a line belongs to the site's own file. Such a line has the same number in
    /// that file.
    pub const fn is_own(&self, line: usize) -> bool {
        line < self.begin
    }

    /// Returns the site's own file, without the appended groups.
    pub fn own_part(&self, served: &RobotsTxt) -> RobotsTxt {
        RobotsTxt::parse(&served.bytes()[..self.own.min(served.bytes().len())])
    }
}

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
        // A caller may have set a title with line ends. The comment must be one line, so the title
        // is cut at its first control character.
        let title = fragment.title.split(char::is_control).next().unwrap_or_default();
        self.line(&[FROM, title.as_bytes()].concat());
        if !left_out.is_empty() {
            self.line(
                format!("# These crawlers are named above, so they are left out here: {}", listed(&left_out))
                    .as_bytes(),
            );
        }
        if robots.groups().any(|group| group.is_global()) {
            self.line(b"# The list's group for every crawler (*) is left out");
        }
        if others > 0 {
            let (lines, are) = if others == 1 { ("line", "is") } else { ("lines", "are") };
            self.line(format!("# {others} {lines} outside groups or of an unknown kind {are} left out").as_bytes());
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
                // Some crawlers find no rule in this group. Without an empty rule, they would also
                // apply the rules of the next group to the names of this group.
                self.line(b"Disallow:");
            }
        }
    }
}

/// Returns the lines of each group without its user-agent lines, and the number of lines outside
/// groups.
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
            | Directive::License
            | Directive::RequestRate
            | Directive::VisitTime
            | Directive::Noindex => false,
            Directive::Sitemap | Directive::Host | Directive::CleanParam | Directive::Other => {
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

/// Reports whether some crawlers may find no rule in the last group of the file. Such crawlers
/// would also apply the rules of an appended group to the names in the last group.
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

/// Reports whether every crawler treats a line as a rule. Strict crawlers accept only the spellings
/// in RFC 9309, section 2.2, and only patterns that are empty or begin with `/`.
fn is_rule_to_all(field: &Field<'_>) -> bool {
    let is_spelled = |spelling: &str| field.name.eq_ignore_ascii_case(spelling.as_bytes());
    matches!(field.directive, Directive::Allow | Directive::Disallow)
        && field.directive.spelling().is_some_and(is_spelled)
        && field.has_colon
        && matches!(field.value, [] | [b'/', ..])
}

/// Returns the groups to append, which contain only names that are not yet in `named`. Also returns
/// the left-out names, which are already in `named`. Adds the new names to `named`, so that each
/// name is appended only once.
fn select<'f>(
    robots: &'f RobotsTxt,
    lines: &[Vec<GroupLine>],
    named: &mut HashSet<NameKey>,
) -> (MergedGroups<'f>, Vec<Name<'f>>) {
    let mut left_out = Vec::new();
    let mut left_keys = HashSet::new();
    // The names that are not in `named`, each with the indexes of its groups.
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

/// Merges the groups of each name. Names with the same groups share a merged group.
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
        if size > MAX_MERGED_BYTES {
            return as_written(&names, lines.len());
        }
        known.insert(of.clone(), groups.len());
        groups.push((of.clone(), vec![*name]));
    }
    groups
}

/// Returns every group once, unmerged, with those of its names that are in `names`. Leaves out
/// groups without such names.
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
    let short =
        |name: &Name<'_>| String::from_utf8_lossy(name.value()).chars().take(MAX_TITLE_LETTERS).collect::<String>();
    first_few(names.iter().map(short), MAX_LISTED)
}

/// Maximum length of a title, in characters.
const MAX_TITLE_LENGTH: usize = 120;

/// A list of groups, maintained by a third party, that [`RobotsTxt::append`] appends to a
/// robots.txt.
///
/// A list must be UTF-8 without control characters, must not be HTML, and must name at least one
/// crawler. So an error page or a wrong file is not accepted as a list.
///
/// ```
/// use robots_core::rules::Fragment;
///
/// let list = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";
/// let list = Fragment::parse("ai.txt", list).unwrap();
/// assert_eq!(&*list.title, "ai.txt");
/// let error = Fragment::parse("ai.txt", "<!doctype html>").unwrap_err();
/// assert_eq!(error.to_string(), "this is an HTML page, not a robots.txt");
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Fragment {
    /// Title of the fragment in comments of the served file.
    pub title: Arc<str>,
    /// The parsed list.
    pub robots: RobotsTxt,
}

impl Fragment {
    /// Returns the titles of the fragments that were appended to a served file, as found in its
    /// comments.
    #[doc(hidden)]
    pub fn titles_in(served: &[u8]) -> impl Iterator<Item = &[u8]> {
        served.split(|byte| *byte == b'\n').filter_map(|line| line.strip_prefix(FROM))
    }

    /// Returns a served file without the appended groups. The appended groups begin with the first
    /// comment that [`RobotsTxt::append`] wrote. `own` is another version of the site's own file. A
    /// comment that also occurs in `own` is assumed to be part of the site's own file.
    #[doc(hidden)]
    pub fn without_parts<'s>(served: &'s [u8], own: &[u8]) -> &'s [u8] {
        let is_mark = |line: &&[u8]| *line == ENDS_GROUP || line.starts_with(FROM);
        let of_own: HashSet<&[u8]> = own.split(|byte| *byte == b'\n').filter(is_mark).collect();
        let mut end = 0;
        for line in served.split(|byte| *byte == b'\n') {
            if is_mark(&line) && !of_own.contains(line) {
                return &served[..end];
            }
            end += line.len() + 1;
        }
        served
    }

    /// Parses a list. `title` appears in comments of the served file, and is cut to one line of at
    /// most 120 characters.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be a list of rules for crawlers.
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
                "line {line} contains bytes that are not text: save the file as UTF-8 without control characters"
            ));
        }
        let robots = RobotsTxt::parse(text);
        if !robots.groups().any(|group| group.names().any(|name| !name.is_star() && !name.value().is_empty())) {
            return wrong(
                "no group contains the name of a crawler: begin the list with a line such as \"User-agent: GPTBot\"",
            );
        }
        let title = title.chars().map(|char| if char.is_control() { ' ' } else { char }).take(MAX_TITLE_LENGTH);
        Ok(Self { title: title.collect::<String>().trim().into(), robots })
    }
}

/// Counts the line ends (CR, LF or CRLF).
fn line_ends(text: &[u8]) -> usize {
    let is_end = |(at, byte): (usize, &u8)| match byte {
        b'\n' => true,
        b'\r' => text.get(at + 1) != Some(&b'\n'),
        _ => false,
    };
    text.iter().enumerate().filter(|pair| is_end(*pair)).count()
}

/// Returns the offset of the first byte that is a control character or is not valid UTF-8. Clients
/// might treat a served file with such bytes as binary.
fn first_unclean(text: &[u8]) -> Option<usize> {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0E..=0x1F | 0x7F);
    let valid = std::str::from_utf8(text).err().map(|error| error.valid_up_to());
    let control = text.iter().position(is_control);
    valid.into_iter().chain(control).min()
}

#[cfg(test)]
mod tests;
