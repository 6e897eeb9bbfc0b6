//! Tests fragments that are appended to a file: which rules apply to each agent, in every reading.

use std::collections::HashSet;

use base64::Engine;
use proptest::prelude::*;
use tower_robots::rules::{Fallback, Fragment, LinePlaces, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet};

use crate::shared::cases;

const READINGS: [Reading; 3] = [Reading::Standard, Reading::Reference, Reading::Legacy];
const PATHS: [&str; 6] = ["/", "/a", "/private/x?y=1", "/wp-admin/", "/index.html", "/search?q=a"];

/// Maximum number of agents tried per file, to limit the duration of the test.
const AGENTS: usize = 8;

/// Numbers of agents that are named only in the site's file, only in the list, in both, or in
/// neither.
#[derive(Debug, Default)]
struct Counts {
    own: usize,
    listed: usize,
    both: usize,
    halfway: usize,
    neither: usize,
}

type Key = (Option<ProductToken>, ProductToken);

/// Returns the two forms of a name that the readings compare.
fn key(name: &[u8]) -> Key {
    (ProductToken::from_name(name), ProductToken::cut(name))
}

fn names(robots: &RobotsTxt) -> Vec<Vec<u8>> {
    let of = |group: tower_robots::rules::Group<'_>| {
        group.names().filter(|name| !name.is_star()).map(|name| name.value().to_vec()).collect::<Vec<_>>()
    };
    robots.groups().flat_map(of).collect()
}

fn spread(names: &[Vec<u8>], most: usize) -> impl Iterator<Item = &Vec<u8>> {
    names.iter().step_by((names.len() / most).max(1)).take(most)
}

/// The rules of the file, of the list, and of both combined, in one reading.
struct Readers {
    reading: Reading,
    own: RuleSet,
    list: RuleSet,
    both: RuleSet,
}

fn hold_the_rule(file: &[u8], list: &Fragment, counts: &mut Counts) {
    let own = RobotsTxt::parse(file);
    let (appended, places) = own.append(std::slice::from_ref(list));
    let both = RobotsTxt::parse(appended);
    assert!(both.bytes().starts_with(file), "the file itself stays as it is");
    assert_eq!(both.sitemaps().len(), own.sitemaps().len());
    let (own_names, list_names) = (names(&own), names(&list.robots));
    let own_keys: HashSet<Key> = own_names.iter().map(|name| key(name)).collect();
    let mut seen = HashSet::new();
    for name in &names(&both)[own_names.len()..] {
        let key = key(name);
        assert!(!own_keys.contains(&key) && seen.insert(key), "{:?} twice", String::from_utf8_lossy(name));
    }
    let others = [b"Mozilla".to_vec(), b"UnheardOfBot".to_vec()];
    let agents: Vec<_> = spread(&own_names, AGENTS)
        .chain(spread(&list_names, AGENTS))
        .chain(&others)
        .collect::<HashSet<_>>()
        .into_iter()
        .collect();
    // Some patterns are used as paths, so that their rules apply.
    let patterns = own.groups().flat_map(|group| group.rules().map(|rule| rule.pattern().to_vec()).collect::<Vec<_>>());
    let mut paths: Vec<Vec<u8>> = PATHS.iter().map(|path| path.as_bytes().to_vec()).collect();
    paths.extend(patterns.filter(|pattern| pattern.starts_with(b"/")).step_by(7).take(4));
    for reading in READINGS {
        let readers = Readers {
            reading,
            own: own.compile(reading),
            list: list.robots.compile(reading),
            both: both.compile(reading),
        };
        for agent in &agents {
            readers.compare(agent, &paths, &own_keys, &list_names, &places, counts);
        }
    }
}

impl Readers {
    fn token(&self, name: &[u8]) -> Option<ProductToken> {
        match self.reading {
            Reading::Reference => Some(ProductToken::cut(name)).filter(|token| !token.as_bytes().is_empty()),
            _ => ProductToken::from_name(name),
        }
    }

    fn compare(
        &self,
        agent: &[u8],
        paths: &[Vec<u8>],
        own_keys: &HashSet<Key>,
        list_names: &[Vec<u8>],
        places: &LinePlaces,
        counts: &mut Counts,
    ) {
        let Some(token) = self.token(agent) else { return };
        let tokens = [token.clone()];
        let is_named = |rules: &RuleSet| rules.select(&tokens, Fallback::Nothing).applies();
        let by = (is_named(&self.own), is_named(&self.list));
        // The names in the list that count as the agent's name in this reading. Some, all or none
        // of these names are omitted from the appended part.
        let of_list = list_names.iter().filter(|name| self.token(name).as_ref() == Some(&token));
        let left_out: Vec<bool> = of_list.map(|name| own_keys.contains(&key(name))).collect();
        let is_left_out = left_out.iter().all(|is_left_out| *is_left_out);
        let is_appended = left_out.iter().all(|is_left_out| !is_left_out);
        *(match by {
            (true, false) => &mut counts.own,
            (false, true) => &mut counts.listed,
            (true, true) if is_left_out => &mut counts.both,
            (true, true) => &mut counts.halfway,
            (false, false) => &mut counts.neither,
        }) += 1;
        for path in paths {
            let path = RequestPath::new(path);
            let ask = |rules: &RuleSet| {
                let verdict = rules.select(&tokens, Fallback::Star).verdict(&path);
                ((verdict.access(), verdict.line()), verdict.rule().map(|rule| rule.pattern().to_vec()))
            };
            let [(own, _), (list, of_list), (both, of_both)] = [&self.own, &self.list, &self.both].map(ask);
            let what = || format!("{:?}: {:?} {path:?}", self.reading, String::from_utf8_lossy(agent));
            match by {
                // The list changes nothing, except that a group without rules gets an empty rule,
                // which may then be the deciding line.
                (_, false) => assert!(both == own || (both.0, own.1) == (own.0, None), "{}: {both:?} {own:?}", what()),
                (true, true) if is_left_out => {
                    assert!(both == own || (both.0, own.1) == (own.0, None), "{}: {both:?} {own:?}", what());
                }
                (false, true) => {
                    assert_eq!(both.0, list.0, "{}", what());
                    let place = both.1.and_then(|line| places.of(line)).map(|(_, line)| line);
                    // The line that ends a group is in neither file. Groups may be in another
                    // order, so another of two equal rules may decide.
                    let is_same = place == list.1 || of_both == of_list;
                    assert!(is_same || list.1.is_none(), "{}: {place:?} {list:?}", what());
                }
                // In this reading, several crawlers count as the same crawler. No rule is lost.
                (true, true) if is_appended => assert!(both.0 == own.0 || both.0 == list.0, "{}", what()),
                (true, true) => {}
            }
        }
    }
}

#[test]
fn an_appended_list_affects_only_crawlers_that_real_files_do_not_name() {
    let every = if crate::is_long() { 1 } else { 60 };
    let files: Vec<_> = cases("robots_files.jsonl.gz").into_iter().step_by(every).collect();
    let body = |case: &serde_json::Value| {
        base64::engine::general_purpose::STANDARD.decode(case["body_base64"].as_str().expect("a body")).expect("base64")
    };
    // The list has the names of a public list.
    let text = include_str!("../cases/ai_agents.txt");
    let mut list: String = text
        .lines()
        .filter(|name| !name.starts_with('#') && !name.is_empty())
        .map(|name| format!("User-agent: {name}\n"))
        .collect();
    list.push_str(
        "Disallow: /\nAllow: /index.html\n\nUser-agent: Googlebot\nUser-agent: SemrushBot\nDisallow: /private/\n",
    );
    let list = Fragment::parse("ai.txt", &list).expect("a list");
    let (mut counts, mut tried) = (Counts::default(), 0);
    for case in &files {
        let body = body(case);
        // Lines beyond the part that crawlers read have no effect; the check warns about them.
        if body.len() + 2 * list.robots.bytes().len() < Reading::STANDARD_LIMIT {
            tried += 1;
            hold_the_rule(&body, &list, &mut counts);
        }
    }
    assert!(tried + 40 > files.len(), "{tried} of {}", files.len());
    let Counts { own, listed, both, neither, .. } = counts;
    assert!([own, listed, both, neither].into_iter().all(|count| count > files.len() / 10), "{counts:?}");
    println!("{tried} files: {counts:?}");
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop_oneof![
        Just("User-agent: A"),
        Just("user-agent: a/2"),
        Just("User-agent: B bot"),
        Just("User-agent: B"),
        Just("User-agent: \"A\""),
        Just("User-agent: *"),
        Just("User-agent: * x"),
        Just("User-agent:"),
        Just("Disallow: /"),
        Just("Disallow:"),
        Just("Allow: /a # b"),
        Just("Disallow /private"),
        Just("Crawl-delay: 2"),
        Just("Content-Signal: ai-train=no"),
        Just("Sitemap: https://a.test/s"),
        Just("Host: a.test"),
        Just("License: https://a.test/l"),
        Just("nonsense"),
        Just("# comment"),
        Just(""),
    ];
    (prop::collection::vec(line, 0..14), prop_oneof![Just("\n"), Just("\r\n"), Just("\r")], any::<bool>())
        .prop_map(|(lines, end, has_end)| lines.join(end) + if has_end { end } else { "" })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if crate::is_long() { 800 } else { 250 }, ..ProptestConfig::default() })]

    #[test]
    fn an_appended_list_affects_only_crawlers_that_the_file_does_not_name(file in lines(), list in lines(), has_bom in any::<bool>()) {
        let file = if has_bom { format!("\u{feff}{file}") } else { file };
        if let Ok(list) = Fragment::parse("list", &list) {
            hold_the_rule(file.as_bytes(), &list, &mut Counts::default());
        }
    }

    #[test]
    fn appending_arbitrary_bytes_keeps_the_file_and_does_not_panic(file in prop::collection::vec(any::<u8>(), 0..200), list in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Ok(list) = Fragment::parse("list", &list) {
            let (appended, _) = RobotsTxt::parse(file.clone()).append(&[list]);
            prop_assert!(appended.starts_with(&file));
        }
    }
}

#[cfg(feature = "watch")]
mod live {
    use tower_robots::internals::{Appendix, Condition};
    use tower_robots::live::{
        Cause, Gate, LiveRobots, RejectionKind, ReloadOutcome, ReloadOutcomeKind, StateDir, WhenMissing,
    };
    use tower_robots::rules::Fragment;

    use crate::waiting::served;

    const OWN: &str = "User-agent: *\nDisallow: /private/\n";
    const MORE: &str = "User-agent: *\nDisallow: /private/\nDisallow: /drafts/\n";
    const LIST: &str = "User-agent: GPTBot\nDisallow: /\n";

    fn list(text: &str) -> Fragment {
        Fragment::parse("ai.txt", text).expect("a list")
    }

    /// Opens the site of a folder as a newly started process does.
    fn start(folder: &std::path::Path, appendix: &Appendix) -> LiveRobots {
        let state = StateDir::open(folder.join("state")).expect("a state directory");
        let builder = LiveRobots::file(folder.join("robots.txt")).when_missing(WhenMissing::Unavailable);
        builder.append(appendix).state(&state, "site").open().expect("a site")
    }

    fn with(file: &str, list: &str) -> String {
        format!("{file}\n# From ai.txt\n{list}")
    }

    #[test]
    fn a_list_that_appears_later_or_changes_publishes_a_new_version() {
        let appendix = Appendix::new(["ai.txt"]);
        let live = LiveRobots::text(OWN).append(&appendix).open().expect("a robots.txt");
        assert_eq!(served(&live), OWN, "nothing was live before, so the file alone is served");
        // The operator publishes another version in the meantime.
        live.publish_blocking(MORE).expect("published");
        assert_eq!(served(&live), MORE);
        appendix.set(0, list(LIST), None);
        assert_eq!(served(&live), with(MORE, LIST));
        assert!(appendix.missing().is_empty());
        live.publish_blocking(OWN).expect("published");
        assert_eq!(served(&live), with(OWN, LIST));
        assert_eq!(live.publish_blocking(OWN).expect("published").outcome.kind(), ReloadOutcomeKind::Unchanged);
        assert_eq!(live.reload_blocking().outcome.kind(), ReloadOutcomeKind::Unchanged);
        let entries = live.history().len();
        appendix.set(0, list(LIST), None);
        assert_eq!(live.history().len(), entries, "a part of the same bytes is none that changed");
        let other = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n";
        appendix.set(0, list(other), None);
        assert_eq!(served(&live), with(OWN, other));
        let last = live.history().pop().expect("an entry");
        assert_eq!((last.cause, last.outcome), (Cause::Append, ReloadOutcomeKind::Published));
        // The new version can be rolled back like any other.
        live.rollback().expect("a version before");
        assert_eq!(served(&live), with(OWN, LIST));
        let places = live.snapshot().content.as_ref().expect("a robots.txt").places.clone();
        assert_eq!(places.expect("places").of(5), Some(("ai.txt", 1)));
    }

    #[test]
    fn a_list_that_blocks_search_engines_is_held_by_the_gate() {
        let appendix = Appendix::new(["ai.txt"]);
        appendix.set(0, list(LIST), None);
        let builder = LiveRobots::text(OWN).append(&appendix).gate(Gate::new());
        let live = builder.open().expect("a robots.txt");
        appendix.set(0, list("User-agent: Googlebot\nUser-agent: bingbot\nDisallow: /\n"), None);
        assert_eq!(served(&live), with(OWN, LIST));
        assert_eq!(live.status().condition(), Condition::Gated);
    }

    #[test]
    fn a_restart_without_the_list_keeps_the_version_that_has_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("robots.txt");
        let open = |appendix: &Appendix| start(folder.path(), appendix);
        std::fs::write(&path, OWN).expect("written");
        let appendix = Appendix::new(["ai.txt"]);
        appendix.set(0, list(LIST), None);
        let live = open(&appendix);
        assert_eq!(served(&live), with(OWN, LIST));
        drop(live);

        std::fs::write(&path, MORE).expect("written");
        let appendix = Appendix::new(["ai.txt"]);
        let live = open(&appendix);
        assert_eq!(served(&live), with(OWN, LIST), "crawlers that the part names do not pass");
        let status = live.status();
        let ReloadOutcome::Kept { rejection, .. } = &status.last_reload.outcome else { panic!("{status:?}") };
        assert_eq!(rejection.kind, RejectionKind::NotAppended);
        assert!(rejection.to_string().contains("the appended list \"ai.txt\" has not been read yet"), "{rejection}");
        appendix.set(0, list(LIST), None);
        assert_eq!(served(&live), with(MORE, LIST));
        assert_eq!(live.status().condition(), Condition::Live);
    }

    #[test]
    fn an_unread_list_holds_edits_after_a_restart_only_if_the_live_version_contains_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("robots.txt");
        let open = |appendix: &Appendix| start(folder.path(), appendix);
        // The operator's own comment is not part of a fragment.
        let own = |text: &str| format!("# From the old site\n{text}");
        std::fs::write(&path, own(OWN)).expect("written");
        assert_eq!(served(&open(&Appendix::new(["ai.txt"]))), own(OWN));
        std::fs::write(&path, own(MORE)).expect("written");
        let appendix = Appendix::new(["ai.txt"]);
        let live = open(&appendix);
        assert_eq!(served(&live), own(MORE));
        appendix.set(0, list(LIST), None);
        assert_eq!(served(&live), with(&own(MORE), LIST));
        drop(live);
        // The fragment in the live version may have been appended under another title.
        std::fs::write(&path, own(OWN)).expect("written");
        let live = open(&Appendix::new(["list.txt"]));
        assert_eq!(served(&live), with(&own(MORE), LIST));
    }

    #[test]
    fn an_appended_list_does_not_make_an_invalid_file_valid() {
        let appendix = Appendix::new(["ai.txt"]);
        appendix.set(0, list(LIST), None);
        let live = LiveRobots::text(OWN).append(&appendix).open().expect("a robots.txt");
        for (text, kind) in [
            ("", RejectionKind::Empty),
            ("<html>", RejectionKind::Html),
            ("502 Bad Gateway\n", RejectionKind::NoField),
            ("\0\0\0\0", RejectionKind::Binary),
        ] {
            assert_eq!(live.publish_blocking(text).expect_err(text).kind, kind, "{text}");
            assert_eq!(served(&live), with(OWN, LIST));
        }
        // Without the fragment, the file has the maximum size.
        let start = "User-agent: *\n";
        let line = format!("#{}\n", "x".repeat(1022));
        let size = usize::try_from(LiveRobots::MAX_FILE).expect("a size");
        let lines = line.repeat((size - start.len()) / line.len());
        let large = format!("{start}{lines}");
        assert!(large.len() <= size && large.len() + line.len() > size);
        let large = format!("{large}{}", "#".repeat(size - large.len()));
        assert_eq!(live.publish_blocking(&large).expect_err("too large").kind, RejectionKind::TooLarge);
    }
}
