//! Tests `robotsd check`: exit statuses, output, and the files that it reads.

use crate::harness::*;

fn checked(folder: impl AsRef<Path>, arguments: &[&str]) -> Ended {
    run(robotsd().current_dir(folder).arg("check").args(arguments))
}

fn site() -> Folder {
    folder(&[
        ("good.txt", "User-agent: *\nDisallow: /private/\n"),
        ("bad.txt", "User-agent: *\nDisallow: private/\n"),
        ("warn.txt", "User-agent: *\nDisallow: /\n"),
        ("tree/robots.txt", "User-agent: *\nfoo: x\nDisallow: /x\n"),
        ("tree/deep/robots.txt", "User-agent: *\nAllow: x\n"),
        ("tree/notes.txt", "not a robots.txt"),
        ("empty/README", "nothing here"),
    ])
}

/// With `--exit-zero`, the check only reports: the exit status is then 0 unless a file is missing.
#[test]
fn the_exit_status_of_check_distinguishes_clean_files_findings_and_failures() {
    let site = site();
    let good = "good.txt|warn.txt|--deny notes good.txt|--exit-zero bad.txt|--format sarif bad.txt|\
                --exit-zero --deny notes bad.txt|--deny notes --exit-zero --format sarif bad.txt";
    let bad = "bad.txt|good.txt bad.txt|--deny warnings warn.txt|--format sarif --deny errors bad.txt|\
               --format markdown bad.txt";
    // The empty command between two `|` names no file.
    let failed = "missing.txt||--deny nothing good.txt|--exit-zero bad.txt missing.txt|--format sarif bad.txt missing.txt|\
                  --exit-zero --deny errors bad.txt missing.txt";
    for (status, rows) in [(0, good), (1, bad), (2, failed)] {
        for arguments in rows.split('|') {
            let output = checked(site.path(), &arguments.split_whitespace().collect::<Vec<_>>());
            assert_eq!(output.code, Some(status), "{arguments:?}: {}", output.error);
        }
    }
}

/// Tests the text that Cloudflare adds in front of a site's own file.
#[test]
fn a_managed_file_with_all_content_signals_passes() {
    let managed = "User-agent: *\nContent-Signal: search=yes,ai-train=no,use=reference\nAllow: /\n\n\
                   User-agent: GPTBot\nDisallow: /\n\nUser-agent: *\nDisallow: /sandbox/\n";
    let folder = folder(&[("robots.txt", managed)]);
    let denied = |file: &str| {
        folder.replace("robots.txt", file);
        checked(folder.path(), &["--deny", "warnings", "robots.txt"])
    };
    denied(managed).succeeded();
    denied(&managed.replace("reference", "immediate")).succeeded();
    denied(&managed.replace("reference", "full")).succeeded();
    assert_has(denied(&managed.replace("reference", "yes")).ends_with(1).out, &["\"use=yes\" is not a content signal"]);
}

#[test]
fn check_of_a_directory_checks_the_files_in_it() {
    let site = site();
    let findings = checked(site.path(), &["--format=json", "tree"]).json_lines();
    let files: Vec<_> = findings.iter().map(|finding| finding["file"].as_str().expect("a file")).collect();
    assert_eq!(files, ["tree/deep/robots.txt", "tree/robots.txt"]);
    checked(site.at("tree"), &["deep/robots.txt"]).failed(1);
    fs::remove_dir_all(site.at("tree")).expect("a directory is removed");
    let output = checked(site.path(), &["."]);
    assert!(output.out.ends_with("\n3 files checked: 1 error, 1 warning\n"), "{}", output.out);
}

/// Creates a file with one error, five warnings with the same code, and notes: many with one code
/// and one with another code.
fn noisy() -> Folder {
    let stars: String = (0..428).map(|number| format!("Disallow: /a{number}/*\n")).collect();
    let slashes = "Disallow: xy\n".repeat(5);
    folder(&[
        ("noisy.txt", &format!("User-agent: *\n{stars}Disallow: /b/*\nDisallow: /b/*\n{slashes}")),
        ("clean.txt", "User-agent: *\nDisallow: /x/\n"),
        ("bad.txt", "User-agent: *\nDisallow: x/\n"),
    ])
}

#[test]
fn findings_are_grouped_by_code_and_notes_are_counted() {
    let site = noisy();
    let shown = |arguments: &[&str]| checked(site.path(), arguments).out;
    let grouped = shown(&["noisy.txt"]);
    assert!(grouped.lines().count() < 60, "{grouped}");
    assert!(grouped.starts_with("error["), "the worst comes first: {grouped}");
    // The file has more findings than a report contains.
    let parts = [
        "430 × redundant-star, first at noisy.txt:2:15\n",
        "\n    = 4 more, in lines 433, 434, 435, 436; --verbose shows each\n",
    ];
    assert_has(&grouped, &parts);
    assert_lacks(&grouped, &["note[redundant-star]"]);
    assert_eq!(grouped.matches("error[path-without-slash]").count(), 1, "{grouped}");
    let notes = shown(&["--notes", "noisy.txt"]);
    assert_eq!(notes.matches("note[redundant-star]").count(), 1, "{notes}");
    let more = " = 429 more, in lines 3, 4, 5, 6, 7, 8, 9, 10 and others; --verbose shows each\n";
    assert_has(notes, &[more]);
    let verbose = shown(&["--verbose", "noisy.txt"]);
    assert_eq!(verbose.matches("note[redundant-star]").count(), 430, "all of them");
    let allowed = shown(&["--allow", "redundant-star,path-without-slash", "--allow", "duplicate-rule", "noisy.txt"]);
    assert_lacks(allowed, &["redundant-star", "path-without-slash"]);
    let error = checked(site.path(), &["--allow", "redundant-sta", "noisy.txt"]).failed(2);
    assert_has(error, &["did you mean \"redundant-star\"?"]);
}

#[test]
fn the_findings_of_several_files_are_shown_as_lines_and_a_table() {
    let site = noisy();
    let shown = checked(site.path(), &["clean.txt", "bad.txt", "noisy.txt"]).out;
    assert_lacks(&shown, &["-->"]);
    let first =
        "bad.txt:2:11: error: \"x/\" begins with neither \"/\" nor \"*\", so it matches no path [path-without-slash]\n";
    assert!(shown.starts_with(first), "{shown}");
    let parts = [
        "[path-without-slash; 4 more, in lines 433, 434, 435, 436]\n",
        "noisy.txt: notes: 430 × redundant-star, first at 2:15",
    ];
    assert_has(&shown, &parts);
    let (_, table) = shown.split_once("\n\n").expect("a table");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["file", "errors", "warnings", "notes", "most", "often"]);
    assert_eq!((rows[1][0], rows[1][1], rows[1][5], rows[1][6]), ("noisy.txt", "5", "×", "redundant-star"));
    assert_eq!(rows[2], ["bad.txt", "1", "0", "0", "path-without-slash"]);
    assert!(rows[3].is_empty(), "a clean file has no row: {table}");
    let fixes = "--fix corrects 101 of them or more, with --unsafe-fixes 6 more\n";
    assert!(shown.ends_with(&format!(" (--notes shows the notes)\n{fixes}")), "{shown}");
    // Machine-readable output must still contain every finding on a separate line, including notes.
    let lines = checked(site.path(), &["--format=json", "clean.txt", "bad.txt", "noisy.txt"]).json_lines();
    let of = |code: &str| lines.iter().filter(|line| line["code"] == code).count();
    assert_eq!((of("redundant-star"), of("path-without-slash")), (100, 6));
    assert_eq!(lines.last().expect("a line")["omitted"], 330);
}

#[test]
fn check_reads_a_file_from_standard_input() {
    let checked = |input: &[u8]| run_with(robotsd().args(["check", "-"]), input);
    assert_has(checked(b"User-agent: *\nDisallow: x\n").ends_with(1).out, &["--> <stdin>:2:11\n"]);
    assert_has(checked(&b"#".repeat((8 << 20) + 1)).failed(2), &["<stdin>: the input is larger than 8 MiB"]);
}

#[test]
fn check_explain_explains_one_code_or_lists_all_codes() {
    let shown = checked(Path::new("."), &["--explain", "secret-path"]).succeeded();
    assert!(shown.starts_with("secret-path: ") && shown.contains("/backup/db.sql"), "{shown}");
    let listed = checked(Path::new("."), &["--explain"]).out;
    let codes: Vec<_> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    let of_files = tower_robots::check::Lint::all().iter().map(|lint| lint.code);
    assert!(of_files.chain(["answer-server-error", "sitemap-scope"]).all(|code| codes.contains(&code)), "{listed}");
    let shown = checked(Path::new("."), &["--explain", "answer-server-error"]).out;
    let want = "answer-server-error: the server fails (error)\n\nWhile robots.txt is answered with 5xx";
    assert!(shown.starts_with(want), "{shown}");
    checked(Path::new("."), &["--explain", "no-such-code"]).failed(2);
}

/// The pull request contains three symbolic links: one to a key outside of the checkout, one to a
/// file in `.git`, and one that replaces the settings file.
#[test]
fn check_within_reads_no_file_outside_the_folder() {
    use std::os::unix::fs::symlink;

    let folder = folder(&[
        ("secret", "password = hunter2"),
        ("site/.git/config", "password = hunter2"),
        ("site/plain.txt", "User-agent: *\nDisallow: x\n"),
        ("site/settings/robots.txt", "User-agent: *\nDisallow: x\n"),
    ]);
    let site = folder.at("site");
    for (link, target) in [
        ("out/robots.txt", "../../secret"),
        ("git/robots.txt", "../.git/config"),
        ("in/robots.txt", "../plain.txt"),
        ("settings/robots-check.toml", "../../secret"),
    ] {
        fs::create_dir_all(site.join(link).parent().expect("a folder")).expect("a directory is made");
        symlink(target, site.join(link)).expect("a link is made");
    }
    let refused = ["out/robots.txt", "git/robots.txt", "settings/robots.txt", "../secret", "http://127.0.0.1:9/x"];
    for path in refused {
        let output = checked(&site, &["--within", ".", "--format", "concise", path, "in/robots.txt"]).ends_with(2);
        assert_has(&output.error, &["but --within allows only files in .: specify a file in that folder"]);
        assert_lacks(output.error, &["hunter2", "connection"]);
        // Only `in/robots.txt` may be checked.
        assert!(output.out.starts_with("in/robots.txt:2:11: error: "), "{path}: {}", output.out);
        assert_lacks(output.out, &["hunter2"]);
    }
    let output = checked(&site, &["--within", "..", "--format", "concise", "out/robots.txt"]);
    assert!(output.out.starts_with("out/robots.txt:1:"), "it is read: {}", output.out);
    let error = checked(&site, &["--within", ".", "--config", "../secret", "plain.txt"]).failed(2);
    assert_has(error, &["../secret: this path leads to another folder"]);
    let output = checked(&site, &["--within", "missing", "plain.txt"]);
    assert_has(output.error, &["--within missing: No such file"]);
}

#[test]
fn sarif_output_is_one_document_for_all_files() {
    let site = site();
    let document = checked(site.path(), &["--format", "sarif", "bad.txt", "tree", "missing.txt"]).json();
    let run = &document["runs"][0];
    let place = |result: &Value| {
        let location = &result["locations"][0]["physicalLocation"];
        let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
        assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
        [&location["artifactLocation"]["uri"], &result["ruleId"]].map(|text| text.as_str().expect("text").to_owned())
    };
    let places: Vec<_> = run["results"].as_array().expect("results").iter().map(place).collect();
    let want = [
        ["bad.txt", "path-without-slash"],
        ["tree/deep/robots.txt", "path-without-slash"],
        ["tree/robots.txt", "unknown-directive"],
    ];
    assert_eq!(places, want);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let parts = ["missing.txt"];
    assert_has(invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().expect("a text"), &parts);
    assert!(!holds_empty_text(&document), "{document:#}");
}

/// Reports whether any string in a document is empty. Programs that read SARIF reject such strings.
fn holds_empty_text(value: &Value) -> bool {
    match value {
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.iter().any(holds_empty_text),
        Value::Object(fields) => fields.values().any(holds_empty_text),
        _ => false,
    }
}
