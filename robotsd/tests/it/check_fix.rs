//! `robotsd check --fix`, `--diff` and `robots-check.toml`.

use std::fs;

use crate::harness::*;

const BAD: &str = "\u{feff}User-agent: *\r\nDissallow: /p # why\r\nDisallow: b\r\nDisallow: /p\r\n";

/// The status, standard output and standard error of a check.
fn run(folder: &Folder, arguments: &[&str], input: &str) -> (Option<i32>, String, String) {
    let Ended { code, out, error } = run_with(folder.robotsd().arg("check").args(arguments), input.as_bytes());
    (code, out, error)
}

/// A folder with these files; what stands above it does not count.
fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = crate::harness::folder(files);
    fs::create_dir(folder.at(".git")).unwrap();
    folder
}

#[test]
fn safe_fixes_are_made_in_place() {
    let folder = folder(&[("a/robots.txt", BAD), ("b/robots.txt", "User-agent: *\nDisallow: /p\n")]);
    let (status, out, complaints) = run(&folder, &["--fix", "."], "");
    assert_eq!((status, &*complaints), (Some(1), ""), "{out}");
    let want = "User-agent: *\r\nDisallow: /p # why\r\nDisallow: b\r\n";
    assert_eq!(folder.read("a/robots.txt"), want);
    assert_has(&out, &["fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"]);
    let (_, out, _) = run(&folder, &["--fix", "."], "");
    assert_has(&out, &["fixed 0 of 1 finding (1 needs --unsafe-fixes)\n"]);
    assert_eq!(folder.read("a/robots.txt"), want);
}

#[test]
fn unsafe_fixes_print_their_effect() {
    let folder = folder(&[("robots.txt", BAD)]);
    let (status, out, complaints) = run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "");
    assert_eq!(status, Some(0), "{out}{complaints}");
    let want = "User-agent: *\r\nDisallow: /p # why\r\nDisallow: /b\r\n";
    assert_eq!(folder.read("robots.txt"), want);
    assert_has(&out, &["fixed 4 of 4 findings\n"]);
    assert!(complaints.starts_with("the effect of the fixes in robots.txt:\n"), "{complaints}");
    assert_has(&complaints, &["- disallowed now  /b  robots.txt (fixed):3: disallow /b; was no rule"]);
}

#[test]
fn a_difference_changes_nothing_and_ends_with_1() {
    let folder = folder(&[("robots.txt", BAD), ("good.txt", "User-agent: *\nDisallow: /p\n")]);
    let (status, out, complaints) = run(&folder, &["--diff", "robots.txt", "good.txt"], "");
    let want = "--- robots.txt\n+++ robots.txt\n@@ -1,4 +1,3 @@\n-\u{feff}User-agent: *\r\n-Dissallow: /p # why\r\n\
                +User-agent: *\r\n+Disallow: /p # why\r\n Disallow: b\r\n-Disallow: /p\r\n";
    assert_eq!((status, &*out), (Some(1), want), "{complaints}");
    assert_eq!(complaints, "robotsd: would fix 3 of 4 findings (1 needs --unsafe-fixes)\n");
    assert_eq!(folder.read("robots.txt"), BAD);
    let (status, out, _) = run(&folder, &["--diff", "good.txt"], "");
    assert_eq!((status, &*out), (Some(0), ""));
}

#[test]
fn standard_input_is_corrected_to_standard_output() {
    let folder = folder(&[]);
    let (status, out, complaints) = run(&folder, &["--fix", "--stdin-filename", "x/robots.txt", "-"], BAD);
    assert_eq!((status, &*out), (Some(1), "User-agent: *\r\nDisallow: /p # why\r\nDisallow: b\r\n"), "{complaints}");
    assert_has(&complaints, &["x/robots.txt:3:11: error: "]);
    assert!(complaints.ends_with("robotsd: fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"), "{complaints}");
}

#[test]
fn what_cannot_be_fixed_is_refused() {
    let folder = folder(&[("robots.txt", BAD)]);
    for (arguments, want) in [
        (&["--fix", "https://example.com"][..], "--fix corrects files, not what a site serves"),
        (&["--fix", "-", "robots.txt"], "name - alone"),
        (&["--fix", "--diff", "robots.txt"], "cannot be used with"),
        (&["--unsafe-fixes", "robots.txt"], "required"),
        (&["--fix", "missing.txt"], "missing.txt"),
    ] {
        let (status, _, complaints) = run(&folder, arguments, BAD);
        assert_eq!(status, Some(2), "{arguments:?}: {complaints}");
        assert_has(&complaints, &[want]);
    }
    assert_eq!(folder.read("robots.txt"), BAD);
}

#[test]
fn every_format_says_what_can_be_fixed() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDissallow: /p\nDisallow: b\n")]);
    let of = |format: &str| run(&folder, &["--format", format, "robots.txt"], "").1;
    let text = of("text");
    let parts = [
        "= fix: --fix corrects it, and changes nothing for crawlers that read it now\n",
        "--fix corrects 1 of them, with --unsafe-fixes 1 more\n",
    ];
    assert_has(&text, &parts);
    let lines = of("concise");
    assert_has(&lines, &["[misspelled-directive] [--fix]\n", "[path-without-slash]\n"]);
    let records: Vec<Value> = of("json").lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let safeties: Vec<_> = records.iter().map(|record| record["fix"]["safety"].clone()).collect();
    assert_eq!(safeties, ["safe", "unsafe"]);
    let sarif: Value = serde_json::from_str(&of("sarif")).expect("JSON");
    let results = sarif["runs"][0]["results"].as_array().expect("results");
    let fixes: Vec<bool> = results.iter().map(|result| result.get("fixes").is_some()).collect();
    assert_eq!(fixes, [true, false]);
}

#[test]
fn settings_stand_above_the_file() {
    let folder = folder(&[
        ("robots-check.toml", "ignore = [\"path-without-slash\"]\ndeny = \"warnings\"\n"),
        ("public/robots.txt", "User-agent: *\nDissallow: /p\nDisallow: b\n"),
        ("public/en/robots-check.toml", "select = [\"path-without-slash\"]\n"),
        ("public/en/robots.txt", "User-agent: *\nDissallow: /p\n"),
    ]);
    let (status, out, _) = run(&folder, &["--format", "concise", "public/robots.txt"], "");
    assert_eq!((status, out.lines().count()), (Some(1), 1), "{out}");
    let (status, out, _) = run(&folder, &["--format", "concise", "public/en/robots.txt"], "");
    assert_eq!((status, &*out), (Some(0), ""));
    // Options win, and the file can be left out.
    let (status, out, _) =
        run(&folder, &["--format", "concise", "--ignore", "misspelled-directive", "public/robots.txt"], "");
    assert!(status == Some(1) && out.contains("[path-without-slash]") && out.lines().count() == 1, "{out}");
    let (_, out, _) = run(&folder, &["--format", "concise", "--isolated", "public/robots.txt"], "");
    assert_eq!(out.lines().count(), 2, "{out}");
    // So for the name that standard input has.
    let arguments = ["--format", "concise", "--stdin-filename", "public/robots.txt", "-"];
    let (_, out, _) = run(&folder, &arguments, "User-agent: *\nDisallow: b\n");
    assert_eq!(out, "");
}

#[test]
fn mistakes_of_the_settings_have_a_place() {
    let folder = folder(&[
        ("robots-check.toml", "selekt = []\nignore = [\"secret-paths\"]\n"),
        ("public/robots.txt", "User-agent: *\nDisallow: /p\n"),
    ]);
    let (status, _, complaints) = run(&folder, &["public/robots.txt"], "");
    assert_eq!(status, Some(2), "{complaints}");
    assert!(complaints.starts_with("robotsd: robots-check.toml:1:1: "), "{complaints}");
    assert_has(&complaints, &["did you mean \"select\"?"]);
}

#[cfg(unix)]
#[test]
fn what_is_not_meant_to_be_corrected_stays_as_it_is() {
    let folder = folder(&[("site/robots.txt", BAD), ("site/en/robots.txt", BAD), ("other.txt", BAD)]);
    let path = |name: &str| folder.at(name);
    let is_left = |name: &str| fs::read_to_string(path(name)).expect("a file") == BAD;
    fs::create_dir(path("site/de")).expect("a folder");
    std::os::unix::fs::symlink("../../other.txt", path("site/de/robots.txt")).expect("a link");
    fs::hard_link(path("site/en/robots.txt"), path("linked.txt")).expect("a link");
    let (status, out, complaints) = run(&folder, &["--fix", "site"], "");
    assert_eq!(status, Some(2), "{out}{complaints}");
    let parts = [
        "site/de/robots.txt: this leads out of site, so it is not corrected",
        "site/en/robots.txt: it has another name (a hard link)",
    ];
    assert_has(&complaints, &parts);
    assert!(is_left("other.txt") && is_left("site/en/robots.txt") && !is_left("site/robots.txt"));
    // What was left is not counted as fixed.
    assert_has(&out, &["fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"]);
    // It is checked without --fix, and corrected where it is named.
    let (status, _, complaints) = run(&folder, &["site/de"], "");
    assert_eq!((status, &*complaints), (Some(1), ""));
    run(&folder, &["--fix", "site/de/robots.txt"], "");
    assert!(!is_left("other.txt"));
}

#[test]
fn options_that_cannot_hold_together_are_refused_or_hold() {
    let folder = folder(&[("a/robots.txt", BAD), ("b/robots.txt", BAD), ("robots-check.toml", "ignore = [\"x\"]\n")]);
    let (status, _, complaints) = run(&folder, &["."], "");
    assert_eq!((status, complaints.matches("no lint has the code \"x\"").count()), (Some(2), 1), "{complaints}");
    let (status, _, complaints) = run(&folder, &["--isolated", "--diff", "--format", "sarif", "a/robots.txt"], "");
    assert_eq!(status, Some(2));
    assert_has(&complaints, &["cannot be used with"]);
    let (status, out, _) = run(&folder, &["--isolated", "--diff", "--exit-zero", "a/robots.txt"], "");
    assert_eq!(status, Some(0), "{out}");
    let (status, _, complaints) = run(&folder, &["-", "-"], "User-agent: *\n");
    assert_eq!(status, Some(2));
    assert_has(&complaints, &["standard input can be read once only"]);
    let word = "ftp://user:hunter2@example.com/robots.txt?key=hunter2";
    for options in [&[word][..], &["--fix", word], &["--format", "sarif", word]] {
        let (status, out, complaints) = run(&folder, options, "");
        assert_eq!(status, Some(2));
        assert_has(&complaints, &["ftp://…@example.com/robots.txt"]);
        assert!(!format!("{out}{complaints}").contains("hunter2"), "{out}{complaints}");
    }
}
