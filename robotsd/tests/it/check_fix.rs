//! Tests `robotsd check --fix`, `--diff` and `robots-check.toml`.

use crate::harness::*;

const BAD: &str = "\u{feff}User-agent: *\r\nDissallow: /p # why\r\nDisallow: b\r\nDisallow: /p\r\n";

fn run(folder: &Folder, arguments: &[&str], input: &str) -> Ended {
    run_with(folder.robotsd().arg("check").args(arguments), input.as_bytes())
}

/// Creates a folder with these files. Settings in the folders above it must have no effect.
fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = crate::harness::folder(files);
    fs::create_dir(folder.at(".git")).unwrap();
    folder
}

#[test]
fn safe_fixes_are_made_in_place() {
    let folder = folder(&[("a/robots.txt", BAD), ("b/robots.txt", "User-agent: *\nDisallow: /p\n")]);
    let Ended { out, error, .. } = run(&folder, &["--fix", "."], "").ends_with(1);
    assert_eq!(error, "", "{out}");
    let want = "User-agent: *\r\nDisallow: /p # why\r\nDisallow: b\r\n";
    assert_eq!(folder.read("a/robots.txt"), want);
    assert_has(&out, &["fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"]);
    assert_has(run(&folder, &["--fix", "."], "").out, &["fixed 0 of 1 finding (1 needs --unsafe-fixes)\n"]);
    assert_eq!(folder.read("a/robots.txt"), want);
}

#[test]
fn unsafe_fixes_print_their_effect() {
    let folder = folder(&[("robots.txt", BAD)]);
    let Ended { out, error, .. } = run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "").ends_with(0);
    let want = "User-agent: *\r\nDisallow: /p # why\r\nDisallow: /b\r\n";
    assert_eq!(folder.read("robots.txt"), want);
    assert_has(&out, &["fixed 4 of 4 findings\n"]);
    assert!(error.starts_with("what the fixes in robots.txt change for crawlers:\n"), "{error}");
    assert_has(&error, &["- disallowed now  /b  robots.txt (fixed):3: disallow /b; was no rule"]);
    // In a regular expression, `^` at the beginning corresponds to the slash of a path.
    folder.replace("robots.txt", "User-agent: *\nDisallow: ^/y\n");
    run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "").ends_with(0);
    assert_eq!(folder.read("robots.txt"), "User-agent: *\nDisallow: /y\n");
}

/// A fix must write the path that the author meant. If the file does not show which of two paths
/// was meant, the help must name both, and the file must not be changed.
#[test]
fn a_fix_writes_the_intended_path_and_leaves_an_ambiguous_path_unchanged() {
    let folder = folder(&[("robots.txt", "")]);
    for (value, want) in [(".pdf$", "/*.pdf$"), ("/shop.example/wp-admin/", "/wp-admin/"), ("?sort=", "?sort=")] {
        let file = |value: &str| format!("Sitemap: https://shop.example/s.xml\nUser-agent: *\nDisallow: {value}\n");
        folder.replace("robots.txt", file(value));
        run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "");
        assert_eq!(folder.read("robots.txt"), file(want));
    }
    let advice =
        run(&folder, &["-"], "User-agent: *\nDisallow: .x\nDisallow: ?sort=\nDisallow: shop.example/old/\n").out;
    let parts = ["\"/*.x\"", "\"/.x\"", "\"/*?*sort=\"", "\"/?sort=\"", "\"/old/\"", "\"/shop.example/old/\""];
    assert_has(&advice, &parts);
}

#[test]
fn the_diff_option_changes_no_file_and_exits_with_status_1() {
    let folder = folder(&[("robots.txt", BAD), ("good.txt", "User-agent: *\nDisallow: /p\n")]);
    let Ended { out, error, .. } = run(&folder, &["--diff", "robots.txt", "good.txt"], "").ends_with(1);
    let want = "--- robots.txt\n+++ robots.txt\n@@ -1,4 +1,3 @@\n-\u{feff}User-agent: *\r\n-Dissallow: /p # why\r\n\
                +User-agent: *\r\n+Disallow: /p # why\r\n Disallow: b\r\n-Disallow: /p\r\n";
    assert_eq!((&*out, &*error), (want, "robotsd: would fix 3 of 4 findings (1 needs --unsafe-fixes)\n"));
    assert_eq!(folder.read("robots.txt"), BAD);
    assert_eq!(run(&folder, &["--diff", "good.txt"], "").succeeded(), "");
}

#[test]
fn a_corrected_standard_input_is_written_to_standard_output() {
    let folder = folder(&[]);
    let fixed = run(&folder, &["--fix", "--stdin-filename", "x/robots.txt", "-"], BAD).ends_with(1);
    assert_eq!(fixed.out, "User-agent: *\r\nDisallow: /p # why\r\nDisallow: b\r\n");
    assert_has(&fixed.error, &["x/robots.txt:3:11: error: "]);
    assert!(fixed.error.ends_with("robotsd: fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"), "{fixed:?}");
}

#[test]
fn every_format_shows_which_findings_can_be_fixed() {
    let folder = folder(&[("robots.txt", "User-agent: *\nDissallow: /p\nDisallow: b\n")]);
    let of = |format: &str| run(&folder, &["--format", format, "robots.txt"], "").out;
    let text = of("text");
    let parts = [
        "= fix: --fix corrects the line, and changes nothing for crawlers that read the line\n",
        "= fix: --fix --unsafe-fixes corrects the line, and changes what some crawlers may fetch\n",
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
fn linked_files_in_a_folder_are_not_corrected() {
    let folder = folder(&[("site/robots.txt", BAD), ("site/en/robots.txt", BAD), ("other.txt", BAD)]);
    let path = |name: &str| folder.at(name);
    let is_left = |name: &str| fs::read_to_string(path(name)).expect("a file") == BAD;
    fs::create_dir(path("site/de")).expect("a folder");
    std::os::unix::fs::symlink("../../other.txt", path("site/de/robots.txt")).expect("a link");
    fs::hard_link(path("site/en/robots.txt"), path("linked.txt")).expect("a link");
    let Ended { out, error, .. } = run(&folder, &["--fix", "site"], "").ends_with(2);
    let parts = [
        "site/de/robots.txt: this link leads out of site, so its target is not corrected",
        "site/en/robots.txt: the file has a second name (a hard link)",
    ];
    assert_has(&error, &parts);
    assert!(is_left("other.txt") && is_left("site/en/robots.txt") && !is_left("site/robots.txt"));
    // A finding that was not fixed must not be counted as fixed.
    assert_has(&out, &["fixed 3 of 4 findings (1 needs --unsafe-fixes)\n"]);
    // Without `--fix`, the linked file is checked. `--fix` corrects it only if the command names
    // the link.
    assert_eq!(run(&folder, &["site/de"], "").failed(1), "");
    run(&folder, &["--fix", "site/de/robots.txt"], "");
    assert!(!is_left("other.txt"));
}

#[test]
fn invalid_options_are_refused_without_printing_a_password_in_a_url() {
    let folder = folder(&[("a/robots.txt", BAD), ("b/robots.txt", BAD), ("robots-check.toml", "ignore = [\"x\"]\n")]);
    let error = run(&folder, &["."], "").failed(2);
    assert_eq!(error.matches("no lint has the code \"x\"").count(), 1, "{error}");
    let error = run(&folder, &["--isolated", "--diff", "--format", "sarif", "a/robots.txt"], "").failed(2);
    assert_has(error, &["cannot be used with"]);
    run(&folder, &["--isolated", "--diff", "--exit-zero", "a/robots.txt"], "").succeeded();
    assert_has(run(&folder, &["-", "-"], "User-agent: *\n").failed(2), &["standard input can be read only once"]);
    let word = "ftp://user:hunter2@example.com/robots.txt?key=hunter2";
    for options in [&[word][..], &["--fix", word], &["--format", "sarif", word]] {
        let refused = run(&folder, options, "").ends_with(2);
        assert_has(&refused.error, &["ftp://…@example.com/robots.txt"]);
        assert_lacks(refused.said(), &["hunter2"]);
    }
}

#[test]
fn a_possible_loss_of_rules_is_an_error_and_no_fix_changes_the_file() {
    let good = "User-agent: *\nDisallow: /private/\nAllow: /private/open\n\nUser-agent: GPTBot\nDisallow: /\n";
    let joined = ["\\n", "\\r\\n", " ", "<br>", "\u{2028}", "\u{85}", "", "&#10;"].map(|end| good.replace('\n', end));
    let half = "User-agent: *\nDisallow: /one\\nDisallow: /two\n".to_owned();
    let several = joined.into_iter().chain([half]).map(|file| (file, "one line contains several directives"));
    let others = [
        ("User-agent: *\n", "so it contains no rules"),
        ("User-agent: *\nUser-agent: GPTBot", "so it contains no rules"),
        ("User-agent: *\nDisallow: /x\nDisal", "the file ends within a field"),
        ("User-agent: *\nDisallow: /x\nDisallow", "end the file with a line break"),
    ];
    for (file, said) in several.chain(others.map(|(file, said)| (file.to_owned(), said))) {
        let folder = folder(&[("robots.txt", &file)]);
        assert_has(run(&folder, &["robots.txt"], "").ends_with(1).out, &[said]);
        run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "").ends_with(1);
        assert_eq!(folder.read("robots.txt"), file);
    }
}

#[test]
fn a_byte_order_mark_inside_a_file_is_an_error_that_needs_an_unsafe_fix() {
    let shared = "User-agent: GPTBot\nDisallow: /\n\n";
    let own = "User-agent: *\nDisallow: /private/\nAllow: /\n";
    let file = format!("{shared}\u{feff}{own}");
    let folder = folder(&[("robots.txt", &file)]);
    let checked = run(&folder, &["--format", "concise", "robots.txt"], "").ends_with(1).out;
    assert_has(checked, &["robots.txt:4:1: error: a byte order mark hides the directive in "]);
    run(&folder, &["--fix", "robots.txt"], "").ends_with(1);
    assert_eq!(folder.read("robots.txt"), file, "what the mark makes of the rules is no reason to change them");
    run(&folder, &["--fix", "--unsafe-fixes", "robots.txt"], "").ends_with(0);
    assert_eq!(folder.read("robots.txt"), format!("{shared}{own}"));
}
