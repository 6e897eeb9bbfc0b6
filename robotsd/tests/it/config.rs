//! Tests `robotsd config`, which reports about a config before it is served.

use crate::harness::*;

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

/// Returns exit status, standard output and standard error of `robotsd config WHAT`.
fn said(what: &str, config: &str, robots: &str) -> (Option<i32>, String, String) {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", robots)]);
    let Ended { code, out, error } = folder.configured(["config", what]);
    let text = |text: String| text.replace(folder.path().to_str().unwrap(), "");
    (code, text(out), text(error))
}

#[test]
fn a_config_is_shown_with_its_defaults() {
    let (code, out, error) = said("show", CONFIG, "# open\n");
    assert_eq!((code, &*error), (Some(0), ""));
    for line in ["mode = \"observe\"", "name = \"a\"", "paths = []", "drain = \"30s\""] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }
}

#[test]
fn config_schema_prints_the_schemas_of_config_expectations_and_check_settings() {
    let schema = folder(&[]).run(["config", "schema"]).ends_with(0).json();
    assert_eq!(schema["properties"]["mode"]["enum"][3], "refuse");
    assert_eq!(schema["properties"]["listener"]["items"]["required"][0], "address");
    let schema = |of: &str| folder(&[]).run(["config", "schema", of]).ends_with(0).json();
    let expectation = &schema("expectations")["properties"]["disallow"]["items"];
    assert_eq!(expectation["required"], json!(["agents", "paths"]));
    assert_eq!(expectation["properties"]["paths"]["items"]["type"], "string");
    assert_eq!(schema("check")["properties"]["deny"]["enum"], json!(["errors", "warnings", "notes"]));
}

/// Each case consists of a config, `---`, and the place and beginning of the expected warning, if
/// any.
#[test]
fn a_probably_unintended_value_causes_a_warning_with_its_place() {
    let cases = fs::read_to_string(project("robotsd/tests/cases/config_warnings.txt")).unwrap();
    for case in cases.split("### ").skip(1) {
        let (config, warning) = case.split_once('\n').and_then(|(_, case)| case.split_once("---\n")).unwrap();
        let (code, out, error) = said("check", config, "# open\n");
        let Some((place, message)) = warning.trim_end().split_once(": ") else {
            assert_eq!(error, "", "{case}");
            continue;
        };
        assert!(error.starts_with(&format!("warning: {message}")), "{case}\n{error}");
        assert!(error.contains(&format!(" --> /robotsd.toml:{place}\n")), "{case}\n{error}");
        assert_eq!((code, out.contains("warnings: 1\n")), (Some(0), true), "{out}");
    }
}

/// The error must be reported for root, too, although root can create folders without permissions.
#[test]
fn a_state_directory_that_cannot_be_created_is_an_error() {
    let files = folder(&[("robots.txt", "# open\n")]);
    std::os::unix::fs::symlink("nowhere", files.at("leads-nowhere")).unwrap();
    std::os::unix::fs::symlink("circle", files.at("circle")).unwrap();
    let too_long = "x".repeat(300);
    let nowhere = files.at("leads-nowhere/state");
    let circle = files.at("circle");
    for (state_dir, why) in [
        ("/proc/nope", "/proc is on a file system of the kernel"),
        ("/proc/self/a/b", "/proc/self is on a file system of the kernel"),
        ("/proc/self", "/proc/self is on a file system of the kernel"),
        ("/sys/kernel/nope", "/sys/kernel is on a file system of the kernel"),
        (&too_long, "File name too long"),
        (nowhere.to_str().unwrap(), "leads-nowhere is a symbolic link whose target does not exist"),
        (circle.to_str().unwrap(), "Too many levels of symbolic links"),
    ] {
        files.configure(format!("state_dir = {state_dir:?}\n{CONFIG}"));
        let checked = files.configured(["config", "check"]).ends_with(2);
        assert_has(&checked.error, &[" cannot be a state_dir, because ", why, "robotsd.toml:1:13\n"]);
        assert_lacks(&checked.error, &["warning: "]);
        assert_has(files.configured(["serve", "--config"]).failed(2), &[" cannot be a state_dir, because ", why]);
    }
    for state_dir in ["state", "a/b/state", "."] {
        files.configure(format!("state_dir = {state_dir:?}\n{CONFIG}"));
        assert_lacks(files.configured(["config", "check"]).ends_with(0).error, &["state_dir"]);
    }
}

/// The audit file, and its folder, are created when they are needed.
#[test]
fn an_unwritable_audit_file_causes_a_warning() {
    for (audit, why) in [
        ("/proc/nope/audit.jsonl", "/proc is on a file system of the kernel"),
        ("robots.txt/audit.jsonl", "the current user cannot create a file in "),
        (".", "it is a folder"),
        ("audit.jsonl", ""),
        ("made/then/audit.jsonl", ""),
        ("robots.txt", ""),
    ] {
        let (code, _, error) = said("check", &format!("{CONFIG}[admin]\naudit = {audit:?}\n"), "# open\n");
        let is_warned = !why.is_empty();
        assert_eq!((code, error.contains("warning: ")), (Some(0), is_warned), "{audit}{error}");
        assert_eq!(error.contains(": the audit file cannot be written: ") && error.contains(why), is_warned, "{error}");
    }
}

#[test]
fn an_off_switch_of_an_unknown_site_causes_a_warning() {
    let config = format!("state_dir = \"state\"\n{CONFIG}");
    let off = "off\n";
    let files = [
        ("robotsd.toml", &*config),
        ("robots.txt", "# open\n"),
        ("state/sites/old%20shop/enforcement", off),
        ("state/sites/on/enforcement", "on\n"),
        ("state/sites/a%2fhost.test/enforcement", off),
    ];
    let folder = folder(&files);
    let Ended { code, error, .. } = folder.configured(["config", "check"]);
    let want = "robotsd: the state directory contains an off switch for \"old shop\", but no site has this name";
    assert!(error.starts_with(want), "{error}");
    assert_eq!((code, error.lines().count()), (Some(0), 1), "{error}");
    let running = folder.start();
    let line = running.event("enforcement");
    assert!(message(&line).starts_with("the state directory contains an off switch for \"old shop\""), "{line}");
}

/// After a syntax error, the meaning of the rest of the file may differ from what the author
/// intended.
#[test]
fn a_syntax_error_is_reported_without_any_other_error() {
    let limits = "[limits]\nfields = 0\n";
    let cases =
        ["mode \"refuse\"", "mode = refuse", "name = [\"a\"", "[gate", "[[listener]", "[[site", "[site.rate", "["];
    for case in cases {
        let config = CONFIG.replace("[[site]]", &format!("{case}\n[[site]]")) + limits;
        for command in [&["config", "check"][..], &["serve"]] {
            let folder = folder(&[("robotsd.toml", &*config), ("robots.txt", "Disallow: /x\n")]);
            let error = folder.configured(command).failed(2);
            assert_eq!((error.matches("error: ").count(), error.matches(".toml:").count()), (1, 1), "{case}: {error}");
            let line = if case.contains("= [") { " --> /robotsd.toml:4:" } else { " --> /robotsd.toml:3:" };
            assert_has(error.replace(folder.path().to_str().unwrap(), ""), &[line, "^"]);
        }
    }
    // Once the syntax is correct, all other problems must be reported together.
    let config = format!("{CONFIG}{limits}drain = 5\n");
    for command in [&["config", "check"][..], &["serve"]] {
        let folder = folder(&[("robotsd.toml", &*config), ("robots.txt", "# open\n")]);
        assert_has(folder.configured(command).failed(2), &["robotsd.toml:7:", "robotsd.toml:8:"]);
    }
}
