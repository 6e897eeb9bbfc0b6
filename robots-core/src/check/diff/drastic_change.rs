//! Changes that are rarely intended, because they block the whole site or allow many paths that
//! were disallowed.
//!
//! If the robots.txt of a staging site is published by mistake, it blocks every crawler. A
//! truncated file, a file without line breaks, or the file of another site may allow paths that
//! were disallowed. All of these files are valid, and a person may overlook the important change in
//! a diff of hundreds of paths.

use std::collections::HashSet;
use std::fmt;

use super::compare::Pair;
use super::extent::{MAX_RULES, SiteExtent};
use super::subject::{self, Subject, first_crawlers, sorted};
use super::witness;
use crate::agent::{Category, Obeys, Registry};
use crate::check::directives::joined_lines;
use crate::check::file_kind::FileKind;
use crate::rules::{
    Access, Directive, Group, LineKind, Name, ProductToken, Reading, RequestPath, RobotsTxt, Rule, Selection,
};

/// Minimum number of lost disallow rules for [`DrasticChange::RulesLost`].
const MIN_LOST_RULES: usize = 10;

/// Minimum number of newly allowed crawlers for [`DrasticChange::CrawlersLetIn`].
const MIN_ALLOWED_CRAWLERS: usize = 5;

/// A change of a file that is so large that it is rarely intended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum DrasticChange {
    /// The new file blocks all search engines, and all crawlers that it does not name, from every
    /// path. If there is an old file, it did not block all of these crawlers.
    EveryoneShutOut,
    /// Crawlers that the file does not name can now fetch less: nothing, or only parts of the site
    /// instead of most of it.
    UnnamedShutOut,
    /// Some search engines can now fetch less: nothing, or only parts of the site instead of most
    /// of it.
    #[non_exhaustive]
    SearchEnginesShutOut {
        /// The search engines that can fetch less than before.
        engines: Vec<Subject>,
    },
    /// Crawlers that the file does not name can now fetch most of the site. Before, they could
    /// fetch nothing, or only parts of it.
    SiteOpened,
    /// The file had groups and now has none, for example because its text was replaced by accident.
    #[non_exhaustive]
    GroupsLost {
        /// Number of groups in the old file.
        of: usize,
    },
    /// No rule disallows paths any more, and the file does not explicitly allow everything with an
    /// `Allow` or an empty `Disallow:`.
    #[non_exhaustive]
    NoRuleInForce {
        /// Number of rules that disallowed paths in the old file.
        of: usize,
        /// Number of the first line that contains several directives; `None` if no lines were
        /// joined.
        joined: Option<usize>,
    },
    /// The new file seems to be truncated: it is only the beginning of the old file, and ends
    /// within a line, after a rule without a path, or after a user-agent line without rules. If
    /// only the last rules of the old file are missing, they are assumed to be removed on purpose.
    #[non_exhaustive]
    CutShort {
        /// Number of the last line of the new file.
        line: usize,
    },
    /// The paths of at least ten disallow rules, and of more than half of all disallow rules, are
    /// now allowed. Not reported if the new file gains at least half as many disallow rules as it
    /// loses, because a site that moves its pages also replaces its rules.
    #[non_exhaustive]
    RulesLost {
        /// Number of disallow rules whose paths are now allowed.
        lost: usize,
        /// Number of rules that disallowed paths in the old file.
        of: usize,
    },
    /// The old file blocked crawlers by name, and more than half of these crawlers (at least five)
    /// are now allowed.
    #[non_exhaustive]
    CrawlersLetIn {
        /// The crawlers that are now allowed.
        crawlers: Vec<Subject>,
        /// Number of crawlers that the old file blocked by name.
        of: usize,
    },
}

fn is_everyone_blocked(pair: &Pair, registry: &Registry) -> bool {
    // A search engine that ignores `*` and is not named in any group is not examined, because the
    // rules for `*` cannot block it.
    let is_shut = |subject: &Subject| {
        let [_, after] = pair.select(subject);
        !after.applies() || SiteExtent::of(after) == SiteExtent::Shut
    };
    SiteExtent::of(pair.select(&Subject::unnamed())[1]) == SiteExtent::Shut
        && engines(registry).all(|engine| is_shut(&engine))
}

fn engines(registry: &Registry) -> impl Iterator<Item = Subject> {
    let crawlers = registry.crawlers();
    let engines = crawlers.filter(|crawler| crawler.category == Category::Search && !crawler.is_control);
    engines.filter(|crawler| crawler.obeys_robots != Obeys::No).map(|crawler| Subject::of(crawler, false))
}

/// Counts the rules that disallow paths: disallow rules whose pattern can match a path and whose
/// line contains no other directive.
fn rules_in_force(robots: &RobotsTxt) -> usize {
    let joined: HashSet<usize> = joined_lines(robots).map(|(line, _)| line.number).collect();
    let is_in_force =
        |rule: &Rule<'_>| rule.access() == Access::Disallow && !joined.contains(&rule.line()) && matches_a_path(*rule);
    rules_for_crawlers(robots).filter(is_in_force).count()
}

/// Returns the rules of all groups that name a crawler or `*`. Ignores names that do not begin with
/// a letter or digit, such as `{{ bot }}` or a `*` after a no-break space.
fn rules_for_crawlers(robots: &RobotsTxt) -> impl Iterator<Item = Rule<'_>> {
    let is_token = |token: ProductToken| token.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric);
    let is_name = move |name: Name<'_>| name.is_star() || ProductToken::from_name(name.value()).is_some_and(is_token);
    robots.groups().filter(move |group| group.names().any(is_name)).flat_map(Group::rules)
}

fn matches_a_path(rule: Rule<'_>) -> bool {
    matches!(rule.pattern(), [b'/' | b'*', ..])
}

fn no_rule_in_force(old: &RobotsTxt, new: &RobotsTxt) -> Option<DrasticChange> {
    let of = rules_in_force(old);
    if of == 0 || rules_in_force(new) > 0 {
        return None;
    }
    let joined = joined_lines(new).next().map(|(line, _)| line.number);
    let opens = |rule: Rule<'_>| rule.pattern().is_empty() || rule.access() == Access::Allow && matches_a_path(rule);
    let is_explicit = joined.is_none() && rules_for_crawlers(new).any(opens);
    (!is_explicit).then_some(DrasticChange::NoRuleInForce { of, joined })
}

fn cut_short(old: &RobotsTxt, new: &RobotsTxt) -> Option<DrasticChange> {
    let rest = old.bytes().strip_prefix(&new.bytes()[..]).filter(|rest| !rest.trim_ascii().is_empty())?;
    let last = new.lines().filter(|line| line.kind() != LineKind::Blank).last()?;
    let is_within_line = last.ends_file() && !matches!(rest, [b'\n' | b'\r', ..]);
    let misses_rules = new.fields().last().is_some_and(|(line, field, _)| match field.directive {
        Directive::UserAgent => true,
        Directive::Allow | Directive::Disallow => line.ends_file() && field.value.is_empty(),
        _ => false,
    });
    (is_within_line || misses_rules).then_some(DrasticChange::CutShort { line: last.number })
}

/// Returns [`DrasticChange::RulesLost`] if too many disallow rules were lost. If several classes of
/// crawlers obey a rule, the rule is counted once per class.
fn rules_lost(pair: &Pair, old: &RobotsTxt, new: &RobotsTxt, registry: &Registry) -> Option<DrasticChange> {
    let (mut lost, mut of) = (0, 0);
    let (mut gained, mut tried) = (0, 0);
    for class in pair.classes(subject::all(Reading::Standard, old, new, registry)) {
        let [before, after] = pair.select(&class[0]);
        let (here, all) = count_opened_paths(before, after, MAX_RULES.saturating_sub(of));
        (lost, of) = (lost + here, of + all);
        let (here, all) = count_opened_paths(after, before, MAX_RULES.saturating_sub(tried));
        (gained, tried) = (gained + here, tried + all);
    }
    (lost >= MIN_LOST_RULES && lost * 2 > of && gained * 2 < lost).then_some(DrasticChange::RulesLost { lost, of })
}

/// Tries one path for each disallow rule of `shut`: the shortest path that the rule matches.
/// Returns how many of these paths `shut` disallows and `open` allows, and how many `shut`
/// disallows in all.
fn count_opened_paths(shut: Selection<'_>, open: Selection<'_>, most: usize) -> (usize, usize) {
    let (mut opened, mut of) = (0, 0);
    for path in witness::paths_of_rules(shut, Access::Disallow).take(most) {
        let request = RequestPath::new(&path);
        if shut.verdict(&request).access() == Access::Disallow {
            of += 1;
            opened += usize::from(open.verdict(&request).access() == Access::Allow);
        }
    }
    (opened, of)
}

fn newly_allowed_crawlers(pair: &Pair, old: &RobotsTxt, registry: &Registry) -> Option<DrasticChange> {
    let named = subject::all(Reading::Standard, old, old, registry).into_iter().filter(|subject| subject.named);
    let shut: Vec<Subject> = named.filter(|subject| pair.extents(subject)[0] == SiteExtent::Shut).collect();
    let of = shut.len();
    let crawlers: Vec<Subject> =
        shut.into_iter().filter(|subject| pair.extents(subject)[1] > SiteExtent::Shut).collect();
    let is_mass = crawlers.len() >= MIN_ALLOWED_CRAWLERS && crawlers.len() * 2 > of;
    is_mass.then(|| DrasticChange::CrawlersLetIn { crawlers: sorted(crawlers), of })
}

impl Pair {
    fn extents(&self, subject: &Subject) -> [SiteExtent; 2] {
        self.select(subject).map(SiteExtent::of)
    }

    fn restricts_more(&self, subject: &Subject) -> bool {
        let [was, is] = self.extents(subject);
        is < was
    }
}

impl DrasticChange {
    /// Returns the drastic changes from the old to the new version of a file. Without an old
    /// version, only [`EveryoneShutOut`](Self::EveryoneShutOut) can be found.
    ///
    /// ```
    /// use robots_core::agent::Registry;
    /// use robots_core::check::DrasticChange;
    /// use robots_core::rules::RobotsTxt;
    ///
    /// let staging = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
    /// let found = DrasticChange::between(None, &staging, Registry::builtin());
    /// assert_eq!(found, [DrasticChange::EveryoneShutOut]);
    /// ```
    pub fn between(old: Option<&RobotsTxt>, new: &RobotsTxt, registry: &Registry) -> Vec<Self> {
        let Some(old) = old else {
            // Without an old file, only the effect of the new file matters. So the new file is
            // compared with itself.
            let pair = Pair::new(Reading::Standard, new, new, registry);
            return Vec::from_iter(is_everyone_blocked(&pair, registry).then_some(Self::EveryoneShutOut));
        };
        let pair = Pair::new(Reading::Standard, old, new, registry);
        let [was, is] = pair.extents(&Subject::unnamed());
        let engines: Vec<Subject> = engines(registry).filter(|engine| pair.restricts_more(engine)).collect();
        let mut found = Self::losses(old, new);
        if is == SiteExtent::Shut
            && is_everyone_blocked(&pair, registry)
            && (was > SiteExtent::Shut || !engines.is_empty())
        {
            found.push(DrasticChange::EveryoneShutOut);
        } else {
            if pair.restricts_more(&Subject::unnamed()) {
                found.push(DrasticChange::UnnamedShutOut);
            }
            if !engines.is_empty() {
                found.push(DrasticChange::SearchEnginesShutOut { engines: sorted(engines) });
            }
        }
        if was < SiteExtent::Open && is == SiteExtent::Open {
            found.push(DrasticChange::SiteOpened);
        }
        found.extend(rules_lost(&pair, old, new, registry));
        found.extend(newly_allowed_crawlers(&pair, old, registry));
        found
    }

    /// Returns only the drastic changes that suggest a damaged file: lost groups, lost rules or a
    /// lost end.
    #[doc(hidden)]
    pub fn losses(old: &RobotsTxt, new: &RobotsTxt) -> Vec<Self> {
        let groups = old.groups().len();
        let lost = if groups > 0 && new.groups().len() == 0 {
            Some(Self::GroupsLost { of: groups })
        } else {
            no_rule_in_force(old, new)
        };
        lost.into_iter().chain(cut_short(old, new)).collect()
    }

    /// Returns the crawlers that this change lists; empty if the variant has no list.
    #[doc(hidden)]
    pub fn crawlers(&self) -> &[Subject] {
        match self {
            Self::SearchEnginesShutOut { engines: crawlers } | Self::CrawlersLetIn { crawlers, .. } => crawlers,
            _ => &[],
        }
    }
}

/// Writes the effect as one clause of a sentence.
impl fmt::Display for DrasticChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::EveryoneShutOut => f.write_str("everyone is blocked: no crawler may fetch anything"),
            Self::UnnamedShutOut => f.write_str(
                "most of the site, or all of it, is now blocked for every crawler that the file does not name",
            ),
            Self::SearchEnginesShutOut { engines } => {
                write!(
                    f,
                    "most of the site, or all of it, is now blocked for search engines: {crawlers}",
                    crawlers = first_crawlers(f, engines)
                )
            }
            Self::SiteOpened => f.write_str("the whole site was disallowed, and is now allowed for every crawler"),
            Self::GroupsLost { of } => {
                write!(
                    f,
                    "the file no longer contains any group (before: {of}), so nothing is restricted any more; {right}",
                    right = FileKind::NO_RESTRICTIONS
                )
            }
            Self::NoRuleInForce { of, joined } => {
                write!(f, "the file no longer contains any rule (before: {of})")?;
                match joined {
                    Some(line) => write!(f, ": line {line} contains several directives; write one directive per line"),
                    None => write!(f, "; {}", FileKind::NO_RESTRICTIONS),
                }
            }
            Self::CutShort { line } => write!(
                f,
                "the file contains only the beginning of the previous version, up to line {line}, so it was probably \
                 cut off; if it is complete, end its last group with a rule and its last line with a line break"
            ),
            Self::RulesLost { lost, of } => write!(f, "the paths of {lost} of {of} Disallow rules are now allowed"),
            Self::CrawlersLetIn { crawlers, of } => {
                write!(
                    f,
                    "{count} of {of} crawlers that were blocked are now allowed: {crawlers}",
                    count = crawlers.len(),
                    crawlers = first_crawlers(f, crawlers)
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn say(old: &str, new: &str) -> Vec<String> {
        let [old, new] = [old, new].map(|text| RobotsTxt::parse(text.as_bytes()));
        DrasticChange::between(Some(&old), &new, Registry::builtin()).iter().map(ToString::to_string).collect()
    }

    fn first(new: &str) -> Vec<DrasticChange> {
        DrasticChange::between(None, &RobotsTxt::parse(new.as_bytes()), Registry::builtin())
    }

    const OPEN: &str = "User-agent: *\nDisallow: /cart\n";

    #[test]
    fn a_first_version_is_drastic_only_if_it_blocks_everyone() {
        for shut in [
            "User-agent: *\nDisallow: /\n",
            "User-agent: *\nDisallow: *\nUser-agent: bingbot\nDisallow: /\n",
            "User-agent: *\nAllow: /x\nDisallow: /x\nDisallow: /\nAllow:\n",
        ] {
            let want: &[DrasticChange] =
                if shut.contains("Allow: /x") { &[] } else { &[DrasticChange::EveryoneShutOut] };
            assert_eq!(first(shut), want, "{shut}");
        }
        for open in [
            OPEN,
            "# nothing\n",
            "User-agent: *\nDisallow: /\nAllow: /public/\n",
            "User-agent: *\nDisallow: /\nUser-agent: Googlebot\nDisallow:\n",
            "User-agent: GPTBot\nDisallow: /\n",
        ] {
            assert_eq!(first(open), [], "{open}");
        }
    }

    #[test]
    fn blocking_search_engines_or_unnamed_crawlers_that_were_allowed_is_drastic() {
        assert_eq!(say(OPEN, "User-agent: *\nDisallow: /\n"), ["everyone is blocked: no crawler may fetch anything"]);
        let bing = say(OPEN, "User-agent: *\nDisallow: /cart\nUser-agent: bingbot\nDisallow: /\n");
        assert!(
            bing[0].starts_with("most of the site, or all of it, is now blocked for search engines: \"bingbot\""),
            "{bing:?}"
        );
        let parts = say(OPEN, "User-agent: *\nDisallow: /\nAllow: /public/\n");
        assert_eq!(
            parts[0],
            "most of the site, or all of it, is now blocked for every crawler that the file does not name"
        );
        let want = "most of the site, or all of it, is now blocked for search engines: \"Googlebot\", \"bingbot\" and ";
        assert!(parts[1].starts_with(want));
        assert_eq!(say(OPEN, "User-agent: *\nDisallow: /cart\nDisallow: /w\nDisallow: /checkout\n"), [""; 0]);
        assert_eq!(say(OPEN, "User-agent: *\nDisallow: /cart\nUser-agent: GPTBot\nDisallow: /\n"), [""; 0]);
        let shut = "User-agent: *\nDisallow: /\n";
        assert_eq!(say(shut, "User-agent: *\nDisallow: /\nDisallow: /x\n"), [""; 0], "no crawler was allowed");
    }

    #[test]
    fn losing_every_group_is_drastic_only_if_the_old_version_had_groups() {
        let lost = "the file no longer contains any group (before: 1), so nothing is restricted any more; to restrict \
                    nothing, write \"User-agent: *\" \
                    with an empty \"Disallow:\"";
        for empty in ["# nothing\n", "Sitemap: https://example.com/s.xml\n", "Host: example.com\n", "Disallow: /x\n"] {
            assert_eq!(say(OPEN, empty), [lost], "{empty}");
            assert_eq!(first(empty), [], "{empty}");
            assert_eq!(say("Sitemap: https://example.com/s.xml\n", empty), [""; 0], "there was none: {empty}");
        }
        assert_eq!(say(OPEN, "User-agent: *\nDisallow:\n"), [""; 0]);
        assert_eq!(say("User-agent: *\nDisallow: /\n", "# nothing\n")[0], lost);
    }

    #[test]
    fn losing_every_rule_is_drastic_unless_the_new_version_opens_the_site_explicitly() {
        let old = "User-agent: *\nDisallow: /private/\nAllow: /p/\n\nUser-agent: GPTBot\nDisallow: /\n";
        let lost = format!("the file no longer contains any rule (before: 2); {}", FileKind::NO_RESTRICTIONS);
        for new in [
            "User-agent: *\n# generated\n",
            "User-agent: *\nUser-agent: GPTBot\n\nSitemap: https://a.test/s.xml\n",
            "User-agent: *\nDisallow: {{ private }}\nAllow: ${ALLOWED}\n",
            "User-agent:\nDisallow: /private/\n",
            "User-agent: \nDisallow: \n",
            "User-agent: ${BOT}\nAllow: /\n",
            "User-agent: {{bot}}\nDisallow: /\n",
            "User-agent: <bot>\nDisallow: /\n",
            "User-agent:\u{a0}*\nDisallow: /private/\n",
            "User-agent: \u{ff0a}\nDisallow: /private/\n",
            "Disallow: /private/\nUser-agent: *\n",
        ] {
            assert_eq!(say(old, new), [lost.as_str()], "{new}");
        }
        let joined = "the file no longer contains any rule (before: 2): line 1 contains several directives; write one directive per line";
        for end in
            [" ", "\\n", "\\r\\n", "<br>", "<br/>", "\u{2028}", "\u{85}", "", ";", "&#10;", "\t", "\u{b}", "%0A", "|"]
        {
            let new = old.replace('\n', end);
            assert_eq!(say(old, &new), [joined], "{new}");
            assert_eq!(say(old, &format!("# a\n{new}\n")), [joined.replace('1', "2")], "{new}");
        }
        let half = "User-agent: *\nDisallow: /private/\\nDisallow: /drafts/\n";
        assert_eq!(say(old, half), [joined.replace('1', "2")]);
        for new in [
            "User-agent: *\nDisallow:\n",
            "User-agent: *\nAllow: /\n",
            "User-agent: *\nDisallow: /wiki/Host:Setup\n",
            "User-agent: Xenu's Link Sleuth 1.1c\nDisallow: /private/\n",
            "User-agent: 008\nDisallow:\n",
            "User-agent: *\rDisallow: /private/\r",
        ] {
            assert_eq!(say(old, new), [""; 0], "{new}");
            assert_eq!(say("User-agent: *\nDisallow:\n", new), [""; 0], "{new}");
        }
        assert_eq!(say("User-agent: *\nAllow: /\n", "User-agent: *\n# none"), [""; 0], "nothing was restricted");
    }

    #[test]
    fn the_old_version_cut_off_within_a_line_or_before_its_rules_is_reported() {
        let old = "User-agent: *\nDisallow: /private/\nDisallow: /tmp/\n\nUser-agent: GPTBot\nDisallow:\n# end\n";
        let is_cut = |length: usize| say(old, &old[..length]).iter().any(|said| said.contains("only the beginning of"));
        let at = |text: &str| old.find(text).expect("it is there") + text.len();
        for text in [
            "Disallow:",
            "Disallow: /private",
            "/private/\nDisallow: /t",
            "User-agent: GPT",
            "GPTBot",
            "GPTBot\n",
            "GPTBot\nDisallow:",
            "# e",
        ] {
            assert!(is_cut(at(text)), "{text}");
        }
        for text in ["/private/", "/private/\n", "/tmp/\n\n", "# end", "# end\n"] {
            assert!(!is_cut(at(text)), "{text}");
        }
    }

    #[test]
    fn allowing_many_blocked_paths_or_crawlers_at_once_is_reported() {
        let rules = |from: usize, to: usize| -> String {
            let rules: String = (from..to).map(|number| format!("Disallow: /part{number}/\n")).collect();
            format!("User-agent: *\n{rules}")
        };
        assert_eq!(say(&rules(0, 19), &rules(9, 19)), [""; 0]);
        assert_eq!(say(&rules(0, 19), &rules(10, 19)), ["the paths of 10 of 19 Disallow rules are now allowed"]);
        assert_eq!(say(&rules(0, 9), &rules(8, 9)), [""; 0], "few rules");
        assert_eq!(say(&rules(0, 2000), &rules(2000, 4000)), [""; 0], "written anew");
        let want = ["the paths of 1500 of 2000 Disallow rules are now allowed"];
        assert_eq!(say(&rules(0, 2000), &rules(1500, 2200)), want);
        let names: String = (0..9).map(|number| format!("User-agent: Bot{number}\n")).collect();
        let shut = format!("{OPEN}\n{names}Disallow: /\n");
        let said = say(&shut, OPEN);
        assert_eq!(said, ["9 of 9 crawlers that were blocked are now allowed: \"Bot0\", \"Bot1\" and 7 more"]);
        assert_eq!(
            say("User-agent: *\nDisallow: /\n", OPEN),
            ["the whole site was disallowed, and is now allowed for every crawler"]
        );
    }
}
