//! `diff`, as it is run before a change is published.

use serde_json::Value;

use super::process::{folder, robotsd, run};

const OLD: &str = "User-agent: *\nDisallow: /cart\n";
const NEW: &str = "User-agent: *\nDisallow: /cart\nDisallow: /*?page=\n\nUser-agent: GPTBot\nDisallow: /\n";

#[test]
fn the_effect_is_listed_by_crawler() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old.txt", "new.txt"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("Googlebot, bingbot, "), "{text}");
    assert!(text.contains("  - disallowed now  /?page=  new.txt:3: disallow /*?page=; was no rule\n"), "{text}");
    assert!(
        text.contains("\nGPTBot\n  - disallowed now  the whole site  new.txt:6: disallow /; was no rule\n"),
        "{text}"
    );
    let last = text.lines().last().unwrap();
    let (rules, rest) = last.split_once(" for ").unwrap();
    assert_eq!(rules, "2 rules change", "{last}");
    let known: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(known > 100 && known <= crawlers_of_the_registry(), "each crawler counts once: {last}");
    let want = " crawlers and every other that neither file names: the whole site is disallowed now for 1 crawler, 1 part of \
                the site is disallowed now";
    assert!(last.ends_with(want), "{last}");
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "new.txt", "old.txt"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().last().unwrap().ends_with("1 part of the site is allowed now"), "{text}");
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old.txt", "old.txt"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "nothing changes for any crawler\n");
}

fn crawlers_of_the_registry() -> usize {
    tower_robots::agent::Registry::builtin().crawlers().len()
}

#[test]
fn what_is_forbidden_fails() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    for (guard, code) in [
        ("Googlebot:/products/", 1),
        ("GPTBot:/", 1),
        ("Googlebot:/cart", 0),
        ("Googlebot", 2),
        ("Googlebot:products/", 2),
        ("Googlebot:https://shop.test/products/", 1),
        ("GPTBot: *", 1),
    ] {
        let arguments = ["diff", "old.txt", "new.txt", "--forbid", guard];
        let output = run(robotsd().current_dir(folder.path()).args(arguments));
        assert_eq!(output.status.code(), Some(code), "{guard}");
    }
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old.txt", "missing.txt"]));
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().starts_with("robotsd: missing.txt: "));
}

#[test]
fn a_site_that_closes_is_not_one_path() {
    for (old, new, row, last) in [
        (
            "Disallow:",
            "Disallow: /",
            "- disallowed now  the whole site  new:2: disallow /; was no rule",
            "the whole site is disallowed now",
        ),
        (
            "Disallow: /",
            "Disallow:",
            "+ allowed now     the whole site  no rule; was old:2: disallow /",
            "the whole site is allowed now",
        ),
        (
            "Disallow:",
            "Disallow: /\nAllow: /$",
            "- disallowed now  all that no other rule allows  new:2: disallow /; was no rule",
            "all but the exceptions is disallowed now",
        ),
    ] {
        let [old, new] = [old, new].map(|rules| format!("User-agent: *\n{rules}\n"));
        let folder = folder(&[("old", &old), ("new", &new)]);
        let output = run(robotsd().current_dir(folder.path()).args(["diff", "old", "new"]));
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.lines().any(|line| line.trim() == row), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with("  ")).count(),
            1,
            "what the site holds is not said again: {text}"
        );
        assert!(text.trim_end().ends_with(&format!("every other that neither file names: {last}")), "{text}");
    }
}

#[test]
fn a_line_that_crawlers_do_not_read_as_it_looks_is_said() {
    let old = "User-agent: *\nDisallow: /ok\nold words\n";
    for (line, want) in [
        (
            "Disallow /foo",
            "new:4:1: warning: no colon after \"Disallow\": not every crawler reads the line; write \"Disallow: /foo\"\n",
        ),
        (
            "Disallow /a /b",
            "new:4:1: error: \"Disallow /a /b\" is neither a field nor a comment: crawlers ignore the line; ",
        ),
        ("Disallow /wiki/Special:Search", "read the value \"Search\"; write \"Disallow: /wiki/Special:Search\"\n"),
        ("Disllow: /x", "new:4:1: warning: unknown directive \"Disllow\": crawlers ignore the line; did you mean"),
        ("Disallow: x", "it matches no path; write \"/x\"\n"),
    ] {
        let folder = folder(&[("old", old), ("new", &format!("{old}{line}\n"))]);
        let diff =
            |format: &str| run(robotsd().current_dir(folder.path()).args(["diff", "old", "new", "--format", format]));
        let text = String::from_utf8(diff("text").stdout).unwrap();
        assert!(
            text.contains(want) && text.matches("new:").count() == text.matches("new:4:").count(),
            "{line}: {text}"
        );
        assert_eq!(text.ends_with("\n\nnothing changes for any crawler\n"), line != "Disallow /foo", "{line}: {text}");
        let json = diff("json");
        assert!(serde_json::from_slice::<Value>(&json.stdout).is_ok());
        assert!(String::from_utf8(json.stderr).unwrap().starts_with("robotsd: new:4:"), "{line}");
    }
    let folder = folder(&[("old", old), ("new", &format!("{old}\nUser-agent: Googelbot\nDisallow: /\n"))]);
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old", "new"]));
    let text = String::from_utf8(output.stdout).unwrap();
    let want = "new:5:13: warning: no known crawler is called \"Googelbot\"; did you mean \"Googlebot\"?\n";
    assert!(text.contains(want), "{text}");
    // The same line was no better before.
    std::fs::write(folder.path().join("new"), format!("{old}# a comment\n")).unwrap();
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old", "new"]));
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "nothing changes for any crawler\n");
}

#[test]
fn a_guard_for_a_crawler_that_does_not_exist_is_an_error() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", &NEW.replace("GPTBot", "HouseBot"))]);
    let diff = |guard: &str| {
        let output = run(robotsd().current_dir(folder.path()).args(["diff", "old.txt", "new.txt", "--forbid", guard]));
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    let (code, error) = diff("Googelbot:/products/");
    let want = "robotsd: --forbid \"Googelbot:/products/\": no crawler of the registry and no group of the robots.txt is \
                called \"Googelbot\": did you mean \"Googlebot\"? Write \"*:/products/\" for the crawlers that no group names\n";
    assert_eq!((code, &*error), (Some(2), want));
    // Names of either file and headers are crawlers; control tokens and names that need more in a header are too.
    for (guard, code) in [
        ("HouseBot:/y", 1),
        ("housebot:/x", 1),
        ("Stripe:/cart", 0),
        ("Google-Extended:/cart", 0),
        ("NewBot/1.0:/cart", 0),
    ] {
        assert_eq!(diff(guard), (Some(code), String::new()), "{guard}");
    }
}

#[test]
fn programs_read_json() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    let arguments = ["diff", "--format", "json", "--forbid", "GPTBot:/x", "old.txt", "new.txt"];
    let output = run(robotsd().current_dir(folder.path()).args(arguments));
    let said: Value = serde_json::from_slice(&output.stdout).unwrap();
    let change = &said["effects"][0]["changes"][0];
    assert_eq!(
        (&change["path"], &change["access"], &change["after"]["line"]),
        (&"/?page=".into(), &"disallow".into(), &3.into())
    );
    assert_eq!(said["breaches"][0]["guard"]["crawler"], "GPTBot");
}
