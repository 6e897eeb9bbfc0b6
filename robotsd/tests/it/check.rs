//! `robotsd check`: statuses, output, what is read.

use crate::harness::{Ended, Folder, folder, robotsd, run_with};

use std::fs;
use std::path::Path;

/// The last line of a check that names no site, for people.
const WITHOUT_SITE: &str =
    "without --config: what mode, overrides, exemptions and crawlers of a site make of it is not checked\n";

fn checked(folder: impl AsRef<Path>, arguments: &[&str], input: &[u8]) -> Ended {
    run_with(robotsd().current_dir(folder).arg("check").args(arguments), input)
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

#[test]
fn the_exit_status_tells_good_from_bad() {
    let site = site();
    for (arguments, status) in [
        (&["good.txt"][..], 0),
        (&["bad.txt"], 1),
        (&["good.txt", "bad.txt"], 1),
        (&["warn.txt"], 0),
        (&["--deny", "warnings", "warn.txt"], 1),
        (&["--deny", "notes", "good.txt"], 0),
        (&["missing.txt"], 2),
        (&[], 2),
        (&["--deny", "nothing", "good.txt"], 2),
    ] {
        let output = checked(site.path(), arguments, b"");
        assert_eq!(output.code, Some(status), "{arguments:?}: {}", output.error);
    }
}

#[test]
fn a_finding_is_shown_with_the_line_of_the_file() {
    let output = checked(site().path(), &["bad.txt"], b"");
    let want = "error[path-without-slash]: \"private/\" begins with neither \"/\" nor \"*\": it matches no path\n \
                --> bad.txt:2:11\n  |\n2 | Disallow: private/\n  |           ^^^^^^^^\n  |\n  = help: write \
                \"/private/\"\n\n1 file checked: 1 error\n";
    assert_eq!(output.out, format!("{want}{WITHOUT_SITE}"));
    assert_eq!(output.error, "");
}

/// What a site's settings find is known with its config only, and a check without one says so.
#[test]
fn a_check_without_a_config_says_what_it_leaves_out() {
    let site = site();
    let config = "mode = \"refuse\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n\
                  robots.path = \"good.txt\"\n[[site.override]]\nindex = true\nmode = \"refuse\"\n";
    site.write("robotsd.toml", config);
    let alone = checked(site.path(), &["good.txt"], b"").out;
    assert_eq!(alone, format!("1 file checked: nothing found\n{WITHOUT_SITE}"));
    let configured = checked(site.path(), &["--config", "robotsd.toml"], b"").out;
    assert!(configured.starts_with("warning[search-engine-refused]: "), "{configured}");
    assert!(configured.ends_with("1 file checked: 1 warning\n"), "{configured}");
    for format in ["json", "github"] {
        assert_eq!(checked(site.path(), &["--format", format, "good.txt"], b"").out, "", "{format}");
    }
}

#[test]
fn what_cannot_be_read_does_not_stop_the_rest() {
    let output = checked(site().path(), &["missing.txt", "empty", "bad.txt"], b"");
    assert_eq!(output.code, Some(2));
    let want = format!("1 file checked: 1 error\n{WITHOUT_SITE}");
    assert!(output.out.ends_with(&want), "{}", output.out);
    let complaints = output.error;
    assert!(complaints.starts_with("robotsd: missing.txt: "), "{complaints}");
    assert!(complaints.contains("robotsd: empty: the directory holds neither"), "{complaints}");
}

#[test]
fn a_directory_stands_for_the_files_in_it() {
    let site = site();
    let output = checked(site.path(), &["--format=json", "tree"], b"");
    let files: Vec<String> = output.out.lines().map(|line| value(line)["file"].to_string()).collect();
    assert_eq!(files, ["\"tree/deep/robots.txt\"", "\"tree/robots.txt\""]);
    checked(site.at("tree"), &["deep/robots.txt"], b"").failed(1);
    fs::remove_dir_all(site.at("tree")).expect("a directory is removed");
    let output = checked(site.path(), &["."], b"");
    let want = format!("\n3 files checked: 1 error, 1 warning\n{WITHOUT_SITE}");
    assert!(output.out.ends_with(&want), "{}", output.out);
}

/// One error, five warnings of one code, many notes of one code and one of another.
fn noisy() -> Folder {
    let directory = folder(&[]);
    let stars: String = (0..428).map(|number| format!("Disallow: /a{number}/*\n")).collect();
    let slashes = "Disallow: x y\n".repeat(5);
    let file = format!("User-agent: *\n{stars}Disallow: /b/*\nDisallow: /b/*\n{slashes}");
    directory.write("noisy.txt", file);
    directory.write("clean.txt", "User-agent: *\nDisallow: /x/\n");
    directory.write("bad.txt", "User-agent: *\nDisallow: x/\n");
    directory
}

#[test]
fn findings_are_grouped_by_code_and_notes_are_counted() {
    let site = noisy();
    let shown = |arguments: &[&str]| checked(site.path(), arguments, b"").out;
    let grouped = shown(&["noisy.txt"]);
    assert!(grouped.lines().count() < 60, "{grouped}");
    assert!(grouped.starts_with("error["), "the worst comes first: {grouped}");
    assert!(grouped.contains(" × redundant-star, first at noisy.txt:2:15\n"), "{grouped}");
    assert!(!grouped.contains("note[redundant-star]"), "{grouped}");
    assert!(grouped.contains("430 × redundant-star"), "counted past what a report holds: {grouped}");
    assert_eq!(grouped.matches("error[path-without-slash]").count(), 1, "{grouped}");
    assert!(grouped.contains("\n    = 4 more, in lines 433, 434, 435, 436; --verbose shows each\n"), "{grouped}");
    let notes = shown(&["--notes", "noisy.txt"]);
    assert_eq!(notes.matches("note[redundant-star]").count(), 1, "{notes}");
    assert!(
        notes.contains(" = 429 more, in lines 3, 4, 5, 6, 7, 8, 9, 10 and others; --verbose shows each\n"),
        "{notes}"
    );
    let verbose = shown(&["--verbose", "noisy.txt"]);
    assert_eq!(verbose.matches("note[redundant-star]").count(), 430, "all of them");
    let allowed = shown(&["--allow", "redundant-star,path-without-slash", "--allow", "duplicate-rule", "noisy.txt"]);
    assert!(!allowed.contains("redundant-star") && !allowed.contains("path-without-slash"), "{allowed}");
    let error = checked(site.path(), &["--allow", "redundant-sta", "noisy.txt"], b"").failed(2);
    assert!(error.contains("did you mean \"redundant-star\"?"), "{error}");
}

#[test]
fn several_files_are_lines_and_a_table() {
    let site = noisy();
    let shown = checked(site.path(), &["clean.txt", "bad.txt", "noisy.txt"], b"").out;
    assert!(!shown.contains("-->"), "no snippets: {shown}");
    let first =
        "bad.txt:2:11: error: \"x/\" begins with neither \"/\" nor \"*\": it matches no path [path-without-slash]\n";
    assert!(shown.starts_with(first), "{shown}");
    assert!(shown.contains("[path-without-slash; 4 more, in lines 433, 434, 435, 436]\n"), "{shown}");
    assert!(shown.contains("noisy.txt: notes: 430 × redundant-star, first at 2:15"), "{shown}");
    let (_, table) = shown.split_once("\n\n").expect("a table");
    let rows: Vec<Vec<&str>> = table.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(rows[0], ["file", "errors", "warnings", "notes", "most", "often"]);
    assert_eq!((rows[1][0], rows[1][1], rows[1][5], rows[1][6]), ("noisy.txt", "5", "×", "redundant-star"));
    assert_eq!(rows[2], ["bad.txt", "1", "0", "0", "path-without-slash"]);
    assert!(rows[3].is_empty(), "a clean file has no row: {table}");
    let fixes = "--fix corrects 101 of them or more, with --unsafe-fixes 6 more\n";
    assert!(shown.ends_with(&format!(" (--notes shows the notes)\n{fixes}{WITHOUT_SITE}")), "{shown}");
    // What programs read stays one finding a line, notes included.
    let output = checked(site.path(), &["--format=json", "clean.txt", "bad.txt", "noisy.txt"], b"");
    let lines: Vec<_> = output.out.lines().map(value).collect();
    let of = |code: &str| lines.iter().filter(|line| line["code"] == code).count();
    assert_eq!((of("redundant-star"), of("path-without-slash")), (100, 6));
    assert_eq!(lines.last().expect("a line")["omitted"], 330);
}

#[test]
fn standard_input_is_a_file_too() {
    let output = checked(Path::new("."), &["-"], b"User-agent: *\nDisallow: x\n");
    assert_eq!(output.code, Some(1));
    assert!(output.out.contains("--> <stdin>:2:11\n"));
    let error = checked(Path::new("."), &["-"], &b"#".repeat((8 << 20) + 1)).failed(2);
    assert!(error.contains("<stdin>: larger than 8 MiB"), "{error}");
}

#[test]
fn programs_read_json_and_github_commands() {
    let site = site();
    let output = checked(site.path(), &["--format", "json", "good.txt", "bad.txt"], b"");
    let lines: Vec<_> = output.out.lines().map(value).collect();
    let want = serde_json::json!({
        "file": "bad.txt", "code": "path-without-slash", "severity": "error", "line": 2, "column": 11,
        "span": {"start": 24, "end": 32}, "message": "\"private/\" begins with neither \"/\" nor \"*\": it matches no path",
        "help": "write \"/private/\"",
        "url": "https://docs.rs/tower-robots/latest/tower_robots/docs/lints/#path-without-slash",
        "fix": {"safety": "unsafe", "edits": [{"start": 24, "end": 24, "text": "/"}]},
    });
    assert_eq!(lines, [want]);
    let output = checked(site.path(), &["--format", "github", "warn.txt"], b"");
    assert!(output.out.starts_with("::warning file=warn.txt,line=2,col=11,title=whole-site-disallowed::"));
}

#[test]
fn a_code_is_explained() {
    let out = checked(Path::new("."), &["--explain", "secret-path"], b"").succeeded();
    let shown = out;
    assert!(shown.starts_with("secret-path: ") && shown.contains("/backup/db.sql"), "{shown}");
    let listed = checked(Path::new("."), &["--explain"], b"").out;
    let codes: Vec<_> = listed.lines().filter_map(|line| line.split(' ').next()).collect();
    let of_files = tower_robots::check::lints().iter().map(|lint| lint.code);
    assert!(of_files.chain(["answer-server-error", "sitemap-scope"]).all(|code| codes.contains(&code)), "{listed}");
    let shown = checked(Path::new("."), &["--explain", "answer-server-error"], b"").out;
    assert!(shown.starts_with("answer-server-error: the server fails (error)\n\nRFC 9309 "), "{shown}");
    checked(Path::new("."), &["--explain", "no-such-code"], b"").failed(2);
}

fn value(line: &str) -> serde_json::Value {
    serde_json::from_str(line).expect("a line is an object")
}

#[test]
fn a_code_with_a_slip_in_it_is_answered_with_the_one_that_was_meant() {
    let output = checked(Path::new("."), &["--explain", "missingcolon"], b"");
    assert_eq!(output.error, "robotsd: no lint has the code \"missingcolon\": did you mean \"missing-colon\"?\n");
}

#[test]
fn a_file_that_cannot_be_read_is_not_a_clean_one() {
    let output = checked(Path::new("."), &["check", "no-such-file"], b"");
    let text = output.out;
    assert!(text.starts_with("no file was checked\n") && !text.contains("nothing found"), "{text}");
    assert_eq!(output.code, Some(2));
}

#[test]
fn lints_are_chosen() {
    let site = site();
    let codes = |arguments: &[&str]| -> Vec<String> {
        let output =
            checked(site.path(), &[&["--format", "json"], arguments, &["tree/robots.txt", "bad.txt"]].concat(), b"");
        let findings = output.out;
        let code = |line: &str| {
            let finding: serde_json::Value = serde_json::from_str(line).expect("JSON");
            finding["code"].as_str().expect("a code").to_owned()
        };
        findings.lines().map(code).collect()
    };
    assert_eq!(codes(&[]), ["unknown-directive", "path-without-slash"]);
    assert_eq!(codes(&["--select", "path-without-slash,utf-16"]), ["path-without-slash"]);
    assert_eq!(codes(&["--ignore", "path-without-slash"]), ["unknown-directive"]);
    assert_eq!(codes(&["--select", "path-without-slash", "--ignore", "path-without-slash"]), [""; 0]);
    let output = checked(site.path(), &["--select", "path-without-slas", "bad.txt"], b"");
    assert_eq!(output.code, Some(2));
    assert!(output.error.contains("no lint has this code: did you mean \"path-without-slash\"?"), "{output:?}");
}

#[test]
fn standard_input_has_the_name_it_is_given() {
    let site = site();
    let arguments = ["--format", "concise", "--stdin-filename", "public/robots.txt", "-"];
    let output = checked(site.path(), &arguments, b"User-agent: *\nDisallow: a\n");
    let want = "public/robots.txt:2:11: error: \"a\" begins with neither \"/\" nor \"*\": it matches no path [path-without-slash]\n";
    assert_eq!((output.out.as_str(), output.code), (want, Some(1)));
}

#[test]
fn a_check_that_only_reports_ends_with_0_unless_a_file_is_missing() {
    let site = site();
    for (arguments, status) in [
        (&["--exit-zero", "bad.txt"][..], 0),
        (&["--exit-zero", "bad.txt", "missing.txt"], 2),
        (&["--format", "sarif", "bad.txt"], 0),
        (&["--format", "sarif", "--deny", "errors", "bad.txt"], 1),
        (&["--format", "sarif", "bad.txt", "missing.txt"], 2),
        (&["--format", "markdown", "bad.txt"], 1),
        (&["--exit-zero", "--deny", "notes", "bad.txt"], 0),
        (&["--deny", "notes", "--exit-zero", "--format", "sarif", "bad.txt"], 0),
        (&["--exit-zero", "--deny", "errors", "bad.txt", "missing.txt"], 2),
    ] {
        let output = checked(site.path(), arguments, b"");
        assert_eq!(output.code, Some(status), "{arguments:?}: {}", output.error);
    }
}

/// What others wrote: a link to a key beside the checkout, one into its `.git`, and settings that are a link.
#[cfg(unix)]
#[test]
fn nothing_outside_of_the_folder_is_read() {
    use std::os::unix::fs::symlink;

    let folder = folder(&[]);
    let site = folder.at("site");
    for name in [".git", "out", "in", "git", "settings"] {
        fs::create_dir_all(site.join(name)).expect("a directory is made");
    }
    for (path, content) in [
        ("secret", "password = hunter2"),
        ("site/.git/config", "password = hunter2"),
        ("site/plain.txt", "User-agent: *\nDisallow: x\n"),
        ("site/settings/robots.txt", "User-agent: *\nDisallow: x\n"),
    ] {
        fs::write(folder.at(path), content).expect("a file is written");
    }
    for (link, target) in [
        ("out/robots.txt", "../../secret"),
        ("git/robots.txt", "../.git/config"),
        ("in/robots.txt", "../plain.txt"),
        ("settings/robots-check.toml", "../../secret"),
    ] {
        symlink(target, site.join(link)).expect("a link is made");
    }
    let refused = ["out/robots.txt", "git/robots.txt", "settings/robots.txt", "../secret", "http://127.0.0.1:9/x"];
    for path in refused {
        let output = checked(&site, &["--within", ".", "--format", "concise", path, "in/robots.txt"], b"");
        let said = output.error;
        assert!(said.contains("and --within . keeps to that folder: name a file that is in it"), "{path}: {said}");
        assert!(!said.contains("hunter2") && !said.contains("connection"), "{path}: {said}");
        assert_eq!(output.code, Some(2), "{path}");
        let want = "in/robots.txt:2:11: error: ";
        let found = output.out;
        assert!(found.starts_with(want) && !found.contains("hunter2"), "only the other is checked: {found}");
    }
    let output = checked(&site, &["--within", "..", "--format", "concise", "out/robots.txt"], b"");
    assert!(output.out.starts_with("out/robots.txt:1:"), "it is read: {}", output.out);
    let error = checked(&site, &["--within", ".", "--config", "../secret", "plain.txt"], b"").failed(2);
    assert!(error.contains("../secret: this leads to another place"), "{error}");
    let output = checked(&site, &["--within", "missing", "plain.txt"], b"");
    assert!(output.error.contains("--within missing: No such file"), "{}", output.error);
}

#[test]
fn sarif_is_one_document_of_all_files() {
    let site = site();
    let document = checked(site.path(), &["--format", "sarif", "bad.txt", "tree", "missing.txt"], b"").json();
    let run = &document["runs"][0];
    let places: Vec<_> = run["results"]
        .as_array()
        .expect("results")
        .iter()
        .map(|result| {
            let location = &result["locations"][0]["physicalLocation"];
            let rule = result["ruleIndex"].as_u64().expect("an index") as usize;
            assert_eq!(run["tool"]["driver"]["rules"][rule]["id"], result["ruleId"]);
            (location["artifactLocation"]["uri"].as_str().expect("a URI"), result["ruleId"].as_str().expect("a rule"))
        })
        .collect();
    let want = [
        ("bad.txt", "path-without-slash"),
        ("tree/deep/robots.txt", "path-without-slash"),
        ("tree/robots.txt", "unknown-directive"),
    ];
    assert_eq!(places, want);
    let invocation = &run["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    let said = invocation["toolExecutionNotifications"][0]["message"]["text"].as_str().expect("a text");
    assert!(said.contains("missing.txt"), "{said}");
    assert!(!holds_empty_text(&document), "{document:#}");
}

/// Whether any text in a document is empty, which readers of SARIF refuse.
fn holds_empty_text(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::String(text) => text.is_empty(),
        serde_json::Value::Array(values) => values.iter().any(holds_empty_text),
        serde_json::Value::Object(fields) => fields.values().any(holds_empty_text),
        _ => false,
    }
}
