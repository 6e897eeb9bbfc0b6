//! Tests that compare pairs of files.

use super::*;
use crate::rules::{Reading, RobotsTxt};

fn between(old: &str, new: &str) -> Diff {
    diff(&RobotsTxt::parse(old.as_bytes()), &RobotsTxt::parse(new.as_bytes()), &DiffOptions::new())
}

/// Returns the changes for the crawler with this name, each as `access path`.
fn changes_for(diff: &Diff, name: Option<&str>) -> Vec<String> {
    let about =
        diff.effects.iter().find(|effect| effect.crawlers.iter().any(|crawler| crawler.name.as_deref() == name));
    let said = |change: &Change| format!("{} {}", change.access, change.path);
    about.map_or_else(Vec::new, |effect| effect.changes.iter().map(said).collect())
}

#[test]
fn files_with_the_same_meaning_have_no_difference() {
    for (old, new) in [
        ("User-agent: *\nDisallow: /a\n", "# moved\nuser-agent: *\n\nDisallow: /a # yes\n"),
        ("User-agent: *\nDisallow: /a\nDisallow: /b\n", "User-agent: *\nDisallow: /b\nDisallow: /a\n"),
        ("User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /a\nDisallow: /a/b\n"),
        ("", "User-agent: *\nDisallow:\n"),
        ("User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow: /a\n\nUser-agent: Googlebot\nDisallow: /a\n"),
    ] {
        assert!(between(old, new).is_empty(), "{old} {new} {:?}", between(old, new));
    }
}

#[test]
fn crawlers_spared_by_a_change_for_all_are_listed_with_others_that_obey_their_group() {
    let old = "User-agent: *\nDisallow: /a\n\nUser-agent: Googlebot\nUser-agent: HouseBot\nDisallow: /b\n";
    let shut = old.replace("/a", "/");
    let named = |diff: &Diff| {
        let is_named = |class: &Vec<Subject>| class.iter().filter(|one| one.named).count();
        diff.spared.iter().map(|class| (is_named(class), class.len() > is_named(class))).collect::<Vec<_>>()
    };
    let diff = between(old, &shut);
    assert_eq!(named(&diff), [(2, true)], "with Applebot and others, that obey the group of Googlebot");
    assert!(diff.spared[0].iter().any(|one| one.name.as_deref() == Some("Applebot") && !one.named));
    assert!(between(old, &format!("{shut}User-agent: GPTBot\nDisallow: /\n")).spared.len() == 1, "GPTBot changes");
    for (new, why) in [
        (old.replace("/b", "/c"), "its group changes, and nothing for unnamed crawlers"),
        (shut.replace("/b", "/b\nCrawl-delay: 2"), "its delay changes"),
        (old.to_owned(), "nothing changes"),
    ] {
        assert_eq!(named(&between(old, &new)), [], "{why}");
    }
    let cut = Diff::of_while(&RobotsTxt::parse(old), &RobotsTxt::parse(shut), &DiffOptions::new(), &|| false);
    assert!(cut.is_cut && cut.spared.is_empty(), "what was not compared is not said to be the same");
}

#[test]
fn each_change_has_an_example_path() {
    for (old, new, want) in [
        ("Disallow: /a", "Disallow: /a\nDisallow: /b", &["disallow /b"][..]),
        ("Disallow: /a", "Allow: /", &["allow /a"]),
        ("Disallow: /", "Disallow: /\nAllow: /x$", &["allow /x"]),
        ("Disallow: /*.pdf$", "Disallow: /*.pdf$\nAllow: /docs/", &[]),
        ("Disallow: /*.pdf$", "Disallow: /*.pdf$\nAllow: /documents/", &["allow /documents/.pdf"]),
        ("Allow: /documents/", "Allow: /documents/\nDisallow: /*.pdf$", &["disallow /.pdf"]),
        ("Disallow: /a", "Disallow: /*?s=", &["disallow /?s=", "allow /a"]),
        ("Disallow:", "Disallow: /", &["disallow /"]),
    ] {
        let diff = between(&format!("User-agent: *\n{old}\n"), &format!("User-agent: *\n{new}\n"));
        assert_eq!(changes_for(&diff, None), want, "{old} | {new}");
    }
}

#[test]
fn changes_on_paths_that_match_two_rules_are_found() {
    for (old, new, want) in [
        ("Disallow: /x", "Disallow: /\nAllow: /$", "disallow"),
        ("Disallow: /\nAllow: /shop/", "Disallow: /\nAllow: /shop/\nDisallow: /s*checkout", "disallow"),
        ("Disallow: /shop*sort=", "Disallow: /shop*sort=\nAllow: /shop*color=red", "allow"),
        ("Disallow: /blog*page=", "Disallow: /blog*page=\nAllow: /blog/category/", "allow"),
        ("Disallow: /a*b", "Disallow: /a*b\nAllow: /a*c", "allow"),
        ("Allow: /x\nDisallow: /*\nAllow: /*.p", "Disallow: /$", "allow"),
        // The escape `%61` makes the pattern longer, so this rule decides.
        ("Disallow: /a\nAllow: /ab", "Disallow: /a\nAllow: /ab\nDisallow: /%61", "disallow"),
    ] {
        let diff = between(&format!("User-agent: *\n{old}\n"), &format!("User-agent: *\n{new}\n"));
        let changes = changes_for(&diff, None);
        assert!(changes.iter().any(|change| change.starts_with(want)), "{old} | {new}: {changes:?}");
    }
    // The slash that `Legacy` adds does not increase the priority.
    for (old, new, want) in [
        ("Disallow: a", "Disallow: a\nAllow: /", "allow /a"),
        ("Disallow: a\nAllow: /", "Disallow: /a\nAllow: /", "disallow /a"),
    ] {
        let [old, new] = [old, new].map(|rules| RobotsTxt::parse(format!("User-agent: *\n{rules}\n")));
        let diff = diff(&old, &new, &DiffOptions::new().with_reading(Reading::Legacy));
        assert_eq!(changes_for(&diff, None), [want], "{}", String::from_utf8_lossy(new.bytes()));
    }
}

#[test]
fn a_change_is_classified_as_the_whole_site_the_rest_or_a_part() {
    use Breadth::{Part, Rest, Site};
    for (old, new, want) in [
        ("Disallow:", "Disallow: /", &[Site][..]),
        ("Disallow: /", "Disallow:", &[Site]),
        ("Disallow: /", "Allow: /", &[Site]),
        ("Disallow: /a", "Disallow: /", &[Site]),
        ("Disallow: /a", "Disallow: /*", &[Site]),
        ("Disallow:", "Disallow: /\nAllow: /$", &[Rest]),
        ("Disallow: /", "Disallow: /a", &[Rest]),
        ("Disallow: /\nAllow: /a", "Disallow: /", &[Part]),
        ("Disallow:", "Disallow: /a", &[Part]),
        ("Disallow:", "Disallow: /$", &[Part]),
    ] {
        let diff = between(&format!("User-agent: *\n{old}\n"), &format!("User-agent: *\n{new}\n"));
        let found: Vec<_> = diff.effects[0].changes.iter().map(|change| change.breadth).collect();
        assert_eq!(found, want, "{old} | {new}");
    }
}

#[test]
fn a_disallow_line_without_a_path_is_not_the_deciding_rule() {
    let diff = between("User-agent: *\nDisallow:\n", "User-agent: *\nDisallow: /\n");
    assert_eq!(diff.effects[0].changes[0].before.as_ref(), None);
}

#[test]
fn changes_are_listed_for_each_crawler_with_search_engines_first() {
    let old = "User-agent: *\nDisallow: /a\n";
    let new = "User-agent: *\nDisallow: /a\n\nUser-agent: Googlebot\nDisallow: /b\n\nUser-agent: GPTBot\nUser-agent: MyBot\n\
               Disallow: /\n";
    let diff = between(old, new);
    let first = &diff.effects[0].crawlers[0];
    assert_eq!((first.name.as_deref(), first.named), (Some("Googlebot"), true));
    assert_eq!(changes_for(&diff, Some("Googlebot")), ["disallow /b", "allow /a"]);
    assert_eq!(changes_for(&diff, Some("Googlebot-Image")), ["disallow /b", "allow /a"]);
    assert_eq!(changes_for(&diff, Some("GPTBot")), ["disallow /"]);
    assert_eq!(changes_for(&diff, Some("MyBot")), ["disallow /"]);
    assert_eq!(changes_for(&diff, None), [""; 0]);
    let change = &diff.effects[0].changes[1];
    assert_eq!(change.before.as_ref().map(|decider| decider.line), Some(2));
    assert_eq!(change.after.as_ref(), None);
}

#[test]
fn a_guard_reports_a_breach_if_a_path_that_it_protects_becomes_disallowed() {
    let old = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\n"[..]);
    let new = RobotsTxt::parse(&b"User-agent: *\nDisallow: /cart\nDisallow: /*?page=\n"[..]);
    let breaches = |guard: &str| {
        let guard = Guard::parse(guard).expect("a guard");
        diff(&old, &new, &DiffOptions::new().guard(guard)).breaches.len()
    };
    assert_eq!(breaches("Googlebot:/products/"), 1);
    assert_eq!(breaches("*:/products/"), 1);
    assert_eq!(breaches("Googlebot:/cart"), 0);
    assert_eq!(breaches("AdsBot-Google:/"), 0);
    assert_eq!(breaches("nobody-knows-me:/products/shoes$"), 0);
    for text in ["Googlebot", "Googlebot:products", ":/x", "a:"] {
        assert_eq!(Guard::parse(text), None, "{text}");
    }
}

#[test]
fn changes_over_the_maximum_are_counted_as_omitted() {
    let rules: String = (0..500).map(|at| format!("Disallow: /p{at}/\n")).collect();
    let diff = between("User-agent: *\nDisallow:\n", &format!("User-agent: *\n{rules}"));
    let effect = &diff.effects[0];
    assert_eq!((effect.changes.len(), effect.omitted), (Effect::MAX_CHANGES, 400));
}

#[test]
fn the_alternate_form_names_every_change_and_every_crawler_that_a_file_names() {
    let old = "User-agent: *\nDisallow: /admin\n\nUser-agent: GPTBot\nDisallow: /\n\n\
               User-agent: CCBot\nUser-agent: Amazonbot\nUser-agent: ClaudeBot\nUser-agent: HouseBot\nDisallow: /\n";
    let new = "User-agent: *\nDisallow: /cart\nDisallow: /tmp/\n\n\
               User-agent: DelayBot\nCrawl-delay: 5\nDisallow: /admin\n";
    let diff = between(old, new);
    let (short, long) = (diff.to_string(), format!("{diff:#}"));
    assert!(short.contains(" more changes; ") && !short.contains("GPTBot"), "{short}");
    for part in [
        "\"/cart\" is disallowed for \"Googlebot\", \"bingbot\" and ",
        "\"/tmp/\" is disallowed for \"Googlebot\", \"bingbot\" and ",
        "\"/admin\" is allowed for \"Googlebot\", \"bingbot\" and ",
        "\"/\" is allowed for \"GPTBot\"",
        "\"/\" is allowed for \"Amazonbot\", \"CCBot\", \"ClaudeBot\", \"HouseBot\"",
        "\"DelayBot\": one request every 5 s instead of no delay",
    ] {
        assert!(long.contains(part), "{part}: {long}");
    }
    assert!(!long.contains("more change"), "{long}");
    let one = between("User-agent: *\nDisallow: /a\n", "User-agent: *\nDisallow:\n");
    assert_eq!(format!("{one:#}"), one.to_string(), "nothing is left out of the short form");
}

#[test]
fn a_changed_crawl_delay_is_reported_for_the_crawlers_that_obey_it() {
    let old = "User-agent: *\nDisallow: /a\n\nUser-agent: GPTBot\nCrawl-delay: 5\nDisallow: /a\n";
    let new = "User-agent: ClaudeBot\nCrawl-delay: 10\nDisallow: /a\n\nUser-agent: *\nDisallow: /a\n\n\
               User-agent: GPTBot\nCrawl-delay: 2.5\nDisallow: /a\n";
    let found = between(old, new);
    let said: Vec<_> = found.delays.iter().map(ToString::to_string).collect();
    let want = [
        "\"ClaudeBot\": one request every 10 s instead of no delay",
        "\"GPTBot\": one request every 2.5 s instead of every 5 s",
    ];
    assert_eq!(said, want);
    assert!(found.effects.is_empty() && !found.is_empty());
    assert_eq!(found.to_string(), want.join("; "));
    assert_eq!(found.delays[0].after.map(|delay| delay.line), Some(2));
    let back = between(new, old);
    assert_eq!(back.delays[0].to_string(), "\"ClaudeBot\": no delay instead of one request every 10 s");
    // The delay of a crawler that may not fetch any path is not compared. The delay of a crawler
    // that may fetch part of the site is compared.
    let shut = new.replace("Crawl-delay: 2.5\nDisallow: /a", "Crawl-delay: 2.5\nDisallow: /");
    let said = |diff: &Diff| diff.delays.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(said(&between(old, &shut)), want[..1]);
    assert_eq!(said(&between(old, &format!("{shut}Allow: /x\n"))), want);
    assert_eq!(said(&between(&shut, old))[1], "\"GPTBot\": one request every 5 s instead of every 2.5 s");
    // A line that only moved, or has only another spelling, is not a change.
    assert!(between("User-agent: a\nCrawl-delay: 1\n", "# a\nUser-agent: a\nCrawl-delay: 1.0\n").is_empty());
}
