//! Tests `robotsd test`, as CI runs it.

use crate::harness::*;

const ROBOTS: &str = "User-agent: *\nDisallow: /drafts/\n";
const FILE: &str = "robots = \"robots.txt\"\n\n[[allow]]\nagents = [\"Googlebot\", \"*\"]\npaths = [\"/\", \"/drafts/x\"]\n\n\
                    [[disallow]]\nagents = [\"GPTBot\"]\npaths = [\"/drafts/\", \"/open/\"]\n";

#[test]
fn unmet_expectations_are_reported_with_their_lines() {
    let folder =
        folder(&[("robots.txt", ROBOTS), ("robots.test.toml", FILE), ("good.txt", "User-agent: *\nAllow: /\n")]);
    let output = folder.run(["test", "robots.test.toml"]);
    assert_eq!(output.code, Some(1));
    let want = "robots.test.toml:5:15: Googlebot may not fetch /drafts/x: robots.txt:2: disallow /drafts/\n\
                robots.test.toml:5:15: * may not fetch /drafts/x: robots.txt:2: disallow /drafts/\n\
                robots.test.toml:9:22: GPTBot may fetch /open/: no rule in robots.txt matches\n6 expected, 3 not met\n";
    assert_eq!(output.out, want);
    let lines = folder.run(["test", "robots.test.toml", "--format", "json", "--robots", "good.txt"]).out;
    let said: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!((said.len(), &said[0]["line"], &said[0]["access"]), (2, &9.into(), &"allow".into()));
}

#[test]
fn the_exit_status_distinguishes_met_unmet_and_broken() {
    let met = "[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n";
    let folder = folder(&[("robots.txt", ROBOTS), ("met.toml", met), ("bad.toml", "[[allow]]\n")]);
    for (arguments, code) in [
        (&["met.toml", "--robots", "robots.txt"][..], 0),
        (&["met.toml"], 2),
        (&["bad.toml", "--robots", "robots.txt"], 2),
        (&["met.toml", "--robots", "missing.txt"], 2),
    ] {
        let output = run(folder.robotsd().arg("test").args(arguments));
        assert_eq!(output.code, Some(code), "{arguments:?}");
    }
}

#[test]
fn without_arguments_the_usual_files_are_compared() {
    let met = "[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n";
    let folder = folder(&[("robots.txt", ROBOTS), ("robots.test.toml", met), ("empty/x", "")]);
    assert_eq!(folder.run(["test"]).succeeded(), "1 expected, all met\n");
    let error = run(folder.robotsd().current_dir(folder.at("empty")).arg("test")).failed(2);
    assert_has(error, &["there is no robots.test.toml here: give a file of expectations"]);
}

#[test]
fn expectations_cannot_name_files_outside_the_folder() {
    let met = |robots: &str| format!("robots = \"{robots}\"\n[[allow]]\nagents = [\"*\"]\npaths = [\"/\"]\n");
    let folder = folder(&[("secret", "password = hunter2"), ("site/robots.txt", ROBOTS)]);
    let site = folder.at("site");
    let absolute = folder.at("secret");
    for (robots, fault) in [
        ("robots.txt", None),
        ("../site/robots.txt", None),
        ("../secret", Some("this path leads out of the folder")),
        (absolute.to_str().unwrap(), Some("this path leads out of the folder")),
        ("http://127.0.0.1:9/latest/meta-data", Some("this is a URL")),
    ] {
        std::fs::write(site.join("robots.test.toml"), met(robots)).unwrap();
        let Ended { code, error: said, .. } =
            run(robotsd().current_dir(&site).args(["test", "--within", ".", "robots.test.toml"]));
        assert_eq!(code, Some(if fault.is_some() { 2 } else { 0 }), "{robots}: {said}");
        assert!(said.contains(fault.unwrap_or_default()) && !said.contains("connection"), "{robots}: {said}");
    }
    let said = run(robotsd().current_dir(&site).args(["test", "--within", ".", "../secret"])).error;
    assert!(said.contains("../secret: this path leads out of the folder") && !said.contains("hunter2"), "{said}");
}

#[test]
fn an_unknown_crawler_is_reported_with_its_position() {
    let file = "[[disallow]]\nagents = [\"GPTBot\", \"Googelbot\"]\npaths = [\"/drafts/\"]\n";
    let folder = folder(&[("robots.txt", ROBOTS), ("e.toml", file)]);
    let Ended { code, out, error } = folder.run(["test", "e.toml", "--robots", "robots.txt"]);
    let last = "2 expected, all met; a name is misspelled, so its expectations test no crawler\n";
    assert!(code == Some(2) && out.ends_with(last), "{out}");
    let want = "robotsd: e.toml:2:21: error: no crawler of the registry and no group of the robots.txt is called \"Googelbot\": \
                did you mean \"Googlebot\"? ";
    assert!(error.starts_with(want) && error.lines().count() == 1, "{error}");
}

#[test]
fn unknown_names_and_patterns_are_reported_and_evaluated() {
    let file = "[[disallow]]\nagents = [\"HouseBot\"]\npaths = [\"/drafts/*\"]\n[[disallow]]\nagents = \
                [\"AdsBot-Google\"]\npaths = [\"/drafts/\"]\n";
    let folder = folder(&[("robots.txt", ROBOTS), ("e.toml", file)]);
    let Ended { code, out, error } = folder.run(["test", "e.toml", "--robots", "robots.txt"]);
    assert!(error.starts_with("robotsd: e.toml:2:11: warning: no crawler of the registry"), "{error}");
    assert_has(&error, &["\nrobotsd: e.toml:3:10: \"/drafts/*\" is read as a path, "]);
    let want =
        "e.toml:6:10: AdsBot-Google may fetch /drafts/: no group in robots.txt applies to it\n2 expected, 1 not met\n";
    assert_eq!((code, &*out), (Some(1), want), "{error}");
}

#[test]
fn a_mistake_in_the_file_is_shown_with_its_line_and_what_would_be_right() {
    let file = "[[allow]]\nagents = \"*\"\npaths = [\"drafts\"]\n\n[[disallow]]\nagents = [\"*\"]\n";
    let folder = folder(&[("robots.txt", ROBOTS), ("e.toml", file)]);
    let error = folder.run(["test", "e.toml", "--robots", "robots.txt"]).failed(2);
    let want = "error: \"agents\" must be a list, not a string\n --> e.toml:2:10\n  |\n2 | agents = \"*\"\n  |          ^^^\n  |\n  = help: write \
                agents = [\"*\"]\n\n";
    assert!(error.starts_with(want), "{error}");
    assert!(error.contains("error: this [[disallow]] lacks the key \"paths\"\n --> e.toml:5:1\n"), "{error}");
}

/// A word that is not a crawler's name would be read as a header without a crawler. It would meet
/// every expectation, whatever the file contains.
#[test]
fn a_word_that_is_not_a_crawler_is_reported() {
    let file =
        |agent: &str| format!("robots = \"robots.txt\"\n[[allow]]\nagents = [\"{agent}\"]\npaths = [\"/drafts/\"]\n");
    let cases = [("x", true), ("curl", true), ("Mozilla/5.0 (X11) Firefox/128.0", false), ("NeverSeenBot", false)];
    for (agent, is_said) in cases {
        let folder = folder(&[("robots.txt", ROBOTS), ("e.toml", &file(agent))]);
        let said = folder.run(["test", "e.toml"]).error;
        let wanted =
            format!("robotsd: e.toml:3:11: \"{agent}\" is read as the header of a client that is not a crawler");
        assert_eq!(said.contains(&wanted), is_said, "{agent}: {said}");
    }
}
