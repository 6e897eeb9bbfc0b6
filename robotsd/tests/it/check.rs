//! `robotsd check`: statuses, output, what is read.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use tempfile::TempDir;

fn robotsd(directory: &Path, arguments: &[&str], input: &[u8]) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_robotsd"))
        .arg("check")
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("robotsd starts");
    // A command that reads no input may be gone before all of it is written.
    let _ = child.stdin.take().expect("a pipe").write_all(input);
    child.wait_with_output().expect("robotsd ends")
}

fn text(octets: &[u8]) -> String {
    String::from_utf8(octets.to_vec()).expect("the output is UTF-8")
}

fn site() -> TempDir {
    let directory = tempfile::tempdir().expect("a directory");
    for (path, content) in [
        ("good.txt", "User-agent: *\nDisallow: /private/\n"),
        ("bad.txt", "User-agent: *\nDisallow: private/\n"),
        ("warn.txt", "User-agent: *\nDisallow: /\n"),
        ("tree/robots.txt", "User-agent: *\nfoo: x\nDisallow: /x\n"),
        ("tree/deep/robots.txt", "User-agent: *\nAllow: x\n"),
        ("tree/notes.txt", "not a robots.txt"),
        ("empty/README", "nothing here"),
    ] {
        let path = directory.path().join(path);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a directory is made");
        fs::write(path, content).expect("a file is written");
    }
    directory
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
        let output = robotsd(site.path(), arguments, b"");
        assert_eq!(output.status.code(), Some(status), "{arguments:?}: {}", text(&output.stderr));
    }
}

#[test]
fn a_finding_is_shown_with_the_line_of_the_file() {
    let output = robotsd(site().path(), &["bad.txt"], b"");
    let want = "error[path-without-slash]: \"private/\" begins with neither \"/\" nor \"*\": it matches no path\n \
                --> bad.txt:2:11\n  |\n2 | Disallow: private/\n  |           ^^^^^^^^\n  |\n  = help: write \
                \"/private/\"\n\n1 file checked: 1 error\n";
    assert_eq!(text(&output.stdout), want);
    assert_eq!(text(&output.stderr), "");
}

#[test]
fn what_cannot_be_read_does_not_stop_the_rest() {
    let output = robotsd(site().path(), &["missing.txt", "empty", "bad.txt"], b"");
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stdout).ends_with("1 file checked: 1 error\n"), "{}", text(&output.stdout));
    let complaints = text(&output.stderr);
    assert!(complaints.starts_with("robotsd: missing.txt: "), "{complaints}");
    assert!(complaints.contains("robotsd: empty: the directory holds neither"), "{complaints}");
}

#[test]
fn a_directory_stands_for_the_files_in_it() {
    let site = site();
    let output = robotsd(site.path(), &["--format=json", "tree"], b"");
    let files: Vec<String> = text(&output.stdout).lines().map(|line| value(line)["file"].to_string()).collect();
    assert_eq!(files, ["\"tree/deep/robots.txt\"", "\"tree/robots.txt\""]);
    let output = robotsd(&site.path().join("tree"), &["deep/robots.txt"], b"");
    assert_eq!(output.status.code(), Some(1));
    fs::remove_dir_all(site.path().join("tree")).expect("a directory is removed");
    let output = robotsd(site.path(), &["."], b"");
    assert!(text(&output.stdout).ends_with("3 files checked: 1 error, 1 warning\n"), "{}", text(&output.stdout));
}

#[test]
fn standard_input_is_a_file_too() {
    let output = robotsd(Path::new("."), &["-"], b"User-agent: *\nDisallow: x\n");
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("--> <stdin>:2:11\n"));
    let output = robotsd(Path::new("."), &["-"], &b"#".repeat((8 << 20) + 1));
    assert_eq!(output.status.code(), Some(2));
    assert!(text(&output.stderr).contains("<stdin>: larger than 8 MiB"), "{}", text(&output.stderr));
}

#[test]
fn programs_read_json_and_github_commands() {
    let site = site();
    let output = robotsd(site.path(), &["--format", "json", "good.txt", "bad.txt"], b"");
    let lines: Vec<_> = text(&output.stdout).lines().map(value).collect();
    let want = serde_json::json!({
        "file": "bad.txt", "code": "path-without-slash", "severity": "error", "line": 2, "column": 11,
        "span": {"start": 24, "end": 32}, "message": "\"private/\" begins with neither \"/\" nor \"*\": it matches no path",
        "help": "write \"/private/\"",
    });
    assert_eq!(lines, [want]);
    let output = robotsd(site.path(), &["--format", "github", "warn.txt"], b"");
    assert!(text(&output.stdout).starts_with("::warning file=warn.txt,line=2,col=11,title=whole-site-disallowed::"));
}

#[test]
fn a_code_is_explained() {
    let output = robotsd(Path::new("."), &["--explain", "secret-path"], b"");
    assert_eq!(output.status.code(), Some(0));
    let shown = text(&output.stdout);
    assert!(shown.starts_with("secret-path: ") && shown.contains("/backup/db.sql"), "{shown}");
    let output = robotsd(Path::new("."), &["--explain"], b"");
    assert_eq!(text(&output.stdout).lines().count(), tower_robots::check::lints().len());
    let output = robotsd(Path::new("."), &["--explain", "no-such-code"], b"");
    assert_eq!(output.status.code(), Some(2));
}

fn value(line: &str) -> serde_json::Value {
    serde_json::from_str(line).expect("a line is an object")
}
