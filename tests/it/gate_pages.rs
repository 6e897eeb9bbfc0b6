//! The pages that a gate watches: reasonable edits of real files pass, accidents are held.

use std::fmt::Write as _;
use std::sync::Arc;

use base64::Engine as _;
use tower_robots::agent::Registry;
use tower_robots::check::{Options, Page, check};
use tower_robots::internals::WatchedPages;
use tower_robots::live::{Gate, LiveRobots, ObjectionKind, RejectionKind};
use tower_robots::rules::RobotsTxt;

use crate::shared::drawn;

const EDITS: &str = include_str!("../cases/gate_edits.txt");

#[derive(Debug, Default)]
struct Edit {
    file: String,
    why: String,
    pages: Vec<String>,
    /// The added lines, and the line after which each is inserted; `None` for the end of the file.
    added: Vec<(Option<String>, Vec<String>)>,
    without: Vec<String>,
    passes: bool,
}

fn edits() -> Vec<Edit> {
    let (mut edits, mut edit) = (Vec::new(), Edit::default());
    for line in EDITS.lines().filter(|line| !line.starts_with('#')) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        match word {
            "file" => rest.clone_into(&mut edit.file),
            "why" => rest.clone_into(&mut edit.why),
            "pages" => edit.pages.extend(rest.split(' ').flat_map(expanded)),
            "after" => edit.added.push((Some(rest.to_owned()), Vec::new())),
            "end" => edit.added.push((None, Vec::new())),
            "without" => edit.without.push(rest.to_owned()),
            "+" => edit.added.last_mut().expect("a place before").1.push(rest.to_owned()),
            "passes" | "waits" => {
                edit.passes = word == "passes";
                edits.push(std::mem::take(&mut edit));
            }
            "" => {}
            _ => panic!("no such word: {line}"),
        }
    }
    edits
}

/// Expands `/a/{1..3}` to `/a/1`, `/a/2` and `/a/3`.
fn expanded(pattern: &str) -> Vec<String> {
    let Some((before, rest)) = pattern.split_once('{') else { return vec![pattern.to_owned()] };
    let (range, after) = rest.split_once('}').expect("an end");
    let (first, last) = range.split_once("..").expect("a range");
    let (first, last): (u64, u64) = (first.parse().expect("a number"), last.parse().expect("a number"));
    (first..=last).map(|number| format!("{before}{number}{after}")).collect()
}

impl Edit {
    /// Returns the file after the edit. Every line that the edit refers to must exist.
    fn apply(&self, old: &str) -> String {
        let mut lines: Vec<String> = old.lines().map(str::to_owned).collect();
        let place = |lines: &[String], wanted: &str| {
            let found = lines.iter().position(|line| line.trim() == wanted.trim());
            found.unwrap_or_else(|| panic!("{}: no line {wanted:?}", self.file))
        };
        for without in &self.without {
            let at = place(&lines, without);
            lines.remove(at);
        }
        for (after, added) in &self.added {
            let at = after.as_ref().map_or(lines.len(), |after| place(&lines, after) + 1);
            lines.splice(at..at, added.iter().cloned());
        }
        lines.iter().fold(String::new(), |mut text, line| {
            let _ = writeln!(text, "{line}");
            text
        })
    }
}

fn objections(old: &str, new: &str, pages: &[String]) -> Vec<(ObjectionKind, String)> {
    let watched = WatchedPages::default();
    watched.set("of the sitemaps", pages.iter().map(Page::new));
    let gate = Gate::new().pages(&watched);
    let [old, new] = [old, new].map(|text| RobotsTxt::parse(text.as_bytes()));
    let report = check(&new, &Options::new());
    let found = gate.examine(&new, &report, Some(&old), None, Registry::builtin());
    found.iter().map(|objection| (objection.kind, objection.to_string())).collect()
}

#[test]
fn reasonable_edits_pass_and_accidents_are_held() {
    let files: std::collections::HashMap<String, String> = drawn("robots_files.jsonl.gz")
        .iter()
        .map(|case| {
            let body = base64::engine::general_purpose::STANDARD.decode(case["body_base64"].as_str().unwrap()).unwrap();
            (case["robots"].as_str().unwrap().to_owned(), String::from_utf8_lossy(&body).into_owned())
        })
        .collect();
    let edits = edits();
    let count = |passes| edits.iter().filter(|edit| edit.passes == passes).count();
    assert!(count(true) >= 40 && count(false) >= 8, "{} and {}", count(true), count(false));
    let mut wrong = String::new();
    for edit in &edits {
        let old = files.get(&edit.file).unwrap_or_else(|| panic!("no file {}", edit.file));
        let new = edit.apply(old);
        assert_ne!(old.trim_end(), new.trim_end(), "{}: nothing is edited", edit.file);
        let found = objections(old, &new, &edit.pages);
        if found.is_empty() != edit.passes {
            let _ = writeln!(wrong, "{} ({}): {found:?}", edit.file, edit.why);
        }
        if !edit.passes {
            assert!(found.iter().any(|(kind, _)| *kind == ObjectionKind::Pages), "{}: {found:?}", edit.file);
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// A file before and after an accident that the gate must find, although no single rule blocks a
/// crawler entirely.
const OLD: &str = "User-agent: *\nDisallow: /cart/\n";
const ACCIDENT: &str =
    "User-agent: *\nDisallow: /cart/\nDisallow: /news/\nDisallow: /2026/\nDisallow: /*?\nDisallow: /assets/\n";

#[test]
fn an_edit_that_disallows_most_pages_is_held_with_ten_examples_and_their_rules() {
    let pages: Vec<String> = ["/", "/about", "/news/{1..40}", "/2026/{1..30}", "/shop?item={1..900}", "/guide/{1..29}"]
        .into_iter()
        .flat_map(expanded)
        .collect();
    assert!(objections(OLD, ACCIDENT, &[]).is_empty(), "nothing else of the gate objects");
    let found = objections(OLD, ACCIDENT, &pages);
    let texts: Vec<&str> = found.iter().map(|(_, text)| &**text).collect();
    assert!(found.iter().all(|(kind, _)| *kind == ObjectionKind::Pages), "{texts:#?}");
    assert!(texts[0].starts_with("\"Googlebot\", \"bingbot\" and "), "{texts:#?}");
    assert!(texts[0].ends_with("lose 970 of 1001 pages of the sitemaps (97 %)"), "{texts:#?}");
    assert_eq!(texts.len(), 1 + 10 + 1, "{texts:#?}");
    assert_eq!(texts[1], "\"/news/1\" by line 3, \"/news/\"");
    for rule in ["by line 3, \"/news/\"", "by line 4, \"/2026/\"", "by line 5, \"/*?\""] {
        assert!(texts[1..11].iter().any(|text| text.ends_with(rule)), "{rule}: {texts:#?}");
    }
    assert_eq!(texts[11], "and 960 more of these pages");
}

#[test]
fn already_disallowed_pages_do_not_count_as_lost_and_each_list_counts_separately() {
    let pages: Vec<String> = expanded("/cart/{1..50}");
    assert!(objections(OLD, "User-agent: *\nDisallow: /cart\nDisallow: /cart/\n", &pages).is_empty());

    let watched = WatchedPages::default();
    let live = LiveRobots::text(OLD).gate(Gate::new().pages(&watched)).open().unwrap();
    watched.set("of the sitemaps", expanded("/shop/{1..20000}").iter().map(Page::new));
    watched.set("of urls.txt", ["/news/", "/news/today", "/contact"].map(Page::new));
    assert_eq!(watched.counts(), [("of the sitemaps".to_owned(), 20_000), ("of urls.txt".to_owned(), 3)]);
    let rejection =
        live.publish_blocking("User-agent: *\nDisallow: /cart/\nDisallow: /news/\n").expect_err("two of three");
    assert_eq!(rejection.kind, RejectionKind::Gated);
    let why = live.status().pending.as_ref().unwrap().to_string();
    assert!(why.contains(" lose 2 of 3 pages of urls.txt (67 %); \"/news/\" by line 3, \"/news/\""), "{why}");
    // A replaced list applies from the next version on.
    watched.set("of urls.txt", []);
    assert!(live.publish_blocking("User-agent: *\nDisallow: /cart/\nDisallow: /news/\nDisallow: /x\n").is_ok());
}

#[test]
fn the_gate_compares_with_a_baseline_instead_of_the_last_accepted_version() {
    let gate = |baseline: &str| {
        let watched = WatchedPages::default();
        watched.set("of urls.txt", expanded("/news/{1..9}").iter().map(Page::new));
        Gate::new().pages(&watched).baseline(RobotsTxt::parse(baseline.as_bytes()))
    };
    let examine = |gate: &Gate, text: &str, accepted: Option<&str>| {
        let robots = RobotsTxt::parse(text.as_bytes());
        let accepted = accepted.map(|text| RobotsTxt::parse(text.as_bytes()));
        let registry: &Arc<Registry> = Registry::builtin();
        gate.examine(&robots, &check(&robots, &Options::new()), accepted.as_ref(), None, registry).len()
    };
    assert!(examine(&gate(OLD), ACCIDENT, None) > 0, "there is no other version to compare with");
    assert_eq!(examine(&gate(ACCIDENT), ACCIDENT, Some(OLD)), 0, "these very bytes are in version control");
    assert!(examine(&gate(OLD), ACCIDENT, Some(ACCIDENT)) > 0, "what is accepted locally does not count");
    assert!(examine(&gate(OLD), "User-agent: *\nDisallow: /\n", None) > 0);

    // A pending version goes live if it becomes the baseline.
    let live = LiveRobots::text(OLD).gate(gate(OLD)).open().unwrap();
    assert!(live.publish_blocking(ACCIDENT).is_err());
    live.set_gate(gate(ACCIDENT));
    assert!(live.publish_blocking(ACCIDENT).is_ok());
}
