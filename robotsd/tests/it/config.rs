//! `robotsd config`: what is said of a config before it is served.

use super::process::{folder, robotsd, run};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

/// Exit status, standard output and standard error of `robotsd config WHAT`.
fn said(what: &str, config: &str, robots: &str) -> (Option<i32>, String, String) {
    let folder = folder(&[("robotsd.toml", config), ("robots.txt", robots)]);
    let output = run(robotsd().args(["config", what]).arg(folder.path().join("robotsd.toml")));
    let text = |octets: Vec<u8>| String::from_utf8(octets).unwrap().replace(folder.path().to_str().unwrap(), "");
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_good_config_with_good_files_can_be_served() {
    let (code, out, error) = said("check", CONFIG, "# open\n");
    assert_eq!((code, &*error), (Some(0), ""));
    assert_eq!(out, "/robotsd.toml: can be served; listeners: 1, sites: 1\n");
}

#[test]
fn a_file_that_cannot_be_served_or_has_errors_is_named() {
    let (code, _, error) = said("check", CONFIG, "<html>");
    assert_eq!(code, Some(1));
    let want = "error: site \"a\": /./robots.txt: the file is an HTML page, not a robots.txt\n --> /robotsd.toml:5:8\n";
    assert!(error.starts_with(want), "{error}");
    let (code, _, error) = said("check", CONFIG, "Disallow: /x\n");
    assert_eq!(code, Some(1));
    assert!(error.starts_with("robotsd: site \"a\": /./robots.txt:1:1: "), "{error}");
}

#[test]
fn a_fault_of_the_config_is_told_with_its_place() {
    let (code, out, error) = said("check", "mode = \"strict\"\n", "");
    assert_eq!((code, &*out), (Some(2), ""));
    let want = "error: \"strict\" is not a value of mode: write \"off\", \"observe\", \"tag\" or \"refuse\"\n \
                --> /robotsd.toml:1:8\n  |\n1 | mode = \"strict\"\n  |        ^^^^^^^^\n";
    assert!(error.starts_with(want), "{error}");
}

#[test]
fn a_config_is_shown_with_its_defaults() {
    let (code, out, error) = said("show", CONFIG, "# open\n");
    assert_eq!((code, &*error), (Some(0), ""));
    for line in ["mode = \"observe\"", "name = \"a\"", "paths = [\"/.well-known/\"]", "drain = \"30s\""] {
        assert!(out.lines().any(|shown| shown == line), "{line}: {out}");
    }
}
