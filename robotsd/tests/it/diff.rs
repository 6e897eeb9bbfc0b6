//! `diff`, as somebody about to publish a change runs it.

use serde_json::Value;

use super::process::{folder, robotsd, run};

const OLD: &str = "User-agent: *\nDisallow: /cart\n";
const NEW: &str = "User-agent: *\nDisallow: /cart\nDisallow: /*?page=\n\nUser-agent: GPTBot\nDisallow: /\n";

#[test]
fn the_effect_is_told_by_crawler() {
    let folder = folder(&[("old.txt", OLD), ("new.txt", NEW)]);
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "old.txt", "new.txt"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    assert!(text.starts_with("Googlebot, bingbot, "), "{text}");
    assert!(text.contains("  - disallowed now  /?page=  new.txt:3: disallow /*?page=; was no rule\n"), "{text}");
    assert!(text.contains("\nGPTBot\n  - disallowed now  /  new.txt:6: disallow /; was no rule\n"), "{text}");
    let last = text.lines().last().unwrap();
    let (rules, rest) = last.split_once(" for ").unwrap();
    assert_eq!(rules, "2 rules change", "{last}");
    let known: usize = rest.split(' ').next().unwrap().parse().unwrap();
    assert!(known > 100 && known <= crawlers_of_the_registry(), "each crawler counts once: {last}");
    assert!(last.ends_with(" crawlers and every other that neither file names: 2 paths are disallowed now"), "{last}");
    let output = run(robotsd().current_dir(folder.path()).args(["diff", "new.txt", "old.txt"]));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.lines().last().unwrap().ends_with(": 2 paths are allowed now"), "{text}");
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
