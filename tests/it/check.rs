//! The check room from outside: whole files, real files, any bytes, and the command.

use std::io::BufRead;
use std::path::Path;

use base64::Engine;
use proptest::prelude::*;
use tower_robots::check::{MAX_FINDINGS_PER_LINT, Options, Report, Severity, check, lint};
use tower_robots::rules::RobotsTxt;

fn checked(file: &[u8]) -> Report {
    check(&RobotsTxt::parse(file), &Options::new())
}

/// What was found, as `line:column code`.
fn found(file: &[u8]) -> Vec<String> {
    let place =
        |finding: &tower_robots::check::Finding| format!("{}:{} {}", finding.line(), finding.column(), finding.code());
    checked(file).findings().iter().map(place).collect()
}

#[test]
fn ordinary_files_are_clean() {
    for file in [
        "User-agent: *\nDisallow:\n",
        "# Everything is allowed.\n",
        "User-agent: *\nDisallow: /private/ # not yet\n\nSitemap: https://example.com/sitemap.xml\n",
        "User-agent: Googlebot\nUser-agent: bingbot\nAllow: /\nDisallow: /*?sort=\nCrawl-delay: 5\n\nUser-agent: *\n\
         Disallow: /cgi-bin/\nDisallow: *.pdf$\n",
        "User-agent: Yandex\nClean-param: ref /articles/\nHost: example.com\nDisallow: /tmp/\n",
        "Content-Signal: search=yes, ai-train=no\nUser-agent: *\nContent-Usage: ai=n\nAllow: /\n",
        "License: https://example.com/license.xml\r\nUser-agent: *\r\nDisallow: /x\r\n",
        "user-agent: *\ndisallow: /caf%C3%A9/\nrequest-rate: 1/5\nvisit-time: 0600-0845\n",
        "User-agent: *\nDisallow: /private/\n\nUser-agent: ExampleBot\nCrawl-delay: 5\n",
    ] {
        assert_eq!(found(file.as_bytes()), [""; 0], "{file}");
    }
}

#[test]
fn findings_stand_where_they_belong() {
    let table: [(&[u8], &[&str]); 12] = [
        (b"", &["1:1 empty-file"]),
        (b"Disallow: /x\nUser-agent: *\nDisallow: /x\n", &["1:1 rule-before-group"]),
        (b"User-agent: *\n  Disalllow: /x\nDisallow: /y\n", &["2:3 unknown-directive"]),
        (
            b"Useragent: *\rDissallow: /x\r",
            &["1:1 misspelled-directive", "1:13 cr-line-end", "2:1 misspelled-directive"],
        ),
        (b"User-agent: *\r\n\r\nDisallow /x\r\n", &["3:1 missing-colon", "3:1 blank-line-in-group"]),
        (b"User-agent: *\nDisallow: x\nAllow:\ty # z\n", &["2:11 path-without-slash", "3:8 path-without-slash"]),
        (b"\xEF\xBB\xBFUser-agent: GPT Bot\nDisallow: /x\n", &["1:1 byte-order-mark", "1:13 cut-product-token"]),
        (b"User-agent: *\nDisallow: /x\nUser-agent: a\n", &["3:13 group-without-rules"]),
        (b"User-agent: *\nDisallow: /\n", &["2:11 whole-site-disallowed"]),
        (b"<!doctype html>\n<p>User-agent: *\n", &["1:1 html-instead-of-text"]),
        (b"User-agent: *\nAllow: /\0\nSitemap: //x/y\n", &["2:9 nul-octet", "3:10 sitemap-not-absolute"]),
        (b"User-agent:\nDisallow: /x\nplease\n", &["1:1 empty-user-agent", "3:1 not-a-field"]),
    ];
    for (file, want) in table {
        assert_eq!(found(file), want, "{}", String::from_utf8_lossy(file));
    }
}

#[test]
fn the_report_knows_its_worst() {
    let report = checked(b"User-agent: a\nDisallow: /\n");
    assert_eq!((report.worst(), report.count(Severity::Note)), (Some(Severity::Note), 1));
    let report = checked(b"User-agent: a\nDisallow: /\nDisallow: x\nfoo: x\n");
    assert_eq!(report.worst(), Some(Severity::Error));
    assert_eq!(Severity::ALL.map(|severity| report.count(severity)), [1, 1, 1]);
    assert_eq!(checked(b"# x\n").worst(), None);
    assert!(checked(b"# x\n").is_clean());
}

#[test]
fn options_turn_lints_off_and_change_their_severity() {
    let robots = RobotsTxt::parse(&b"User-agent: *\nDisallow: /\n"[..]);
    let whole_site = lint("whole-site-disallowed").expect("a lint");
    assert!(check(&robots, &Options::new().allow(whole_site)).is_clean());
    let report = check(&robots, &Options::new().report_as(whole_site, Severity::Error));
    assert_eq!(report.worst(), Some(Severity::Error));
    let report = check(&robots, &Options::new().report_as(whole_site, Severity::Error).allow(whole_site));
    assert_eq!(report.worst(), None);
}

#[test]
fn a_file_of_rubbish_has_a_bounded_report() {
    let report = checked(&[&b"User-agent: *\nDisallow:\n"[..], &b"rubbish\n".repeat(10_000)].concat());
    assert_eq!(report.findings().len(), MAX_FINDINGS_PER_LINT);
    assert_eq!(report.count(Severity::Error), 10_000);
    assert_eq!(report.omitted(), 10_000 - MAX_FINDINGS_PER_LINT);
}

/// Holds for every file: sorted findings, each span inside the file, each place a line that exists.
fn hold_invariants(file: &[u8]) {
    let robots = RobotsTxt::parse(file);
    let lines = robots.lines().count();
    let report = check(&robots, &Options::new());
    assert!(report.findings().is_sorted_by_key(|finding| finding.span().start));
    for finding in &report {
        let span = finding.span();
        assert!(span.start <= span.end && span.end <= file.len(), "{finding:?}");
        assert!((1..=lines).contains(&finding.line()) && finding.column() >= 1, "{finding:?}");
        assert!(lint(finding.code()).is_some(), "{finding:?}");
        for text in [Some(finding.message()), finding.help()].into_iter().flatten() {
            assert!(!text.chars().any(char::is_control) && text.len() < 3_000, "{text:?}");
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_are_checked(file in proptest::collection::vec(any::<u8>(), 0..600)) {
        hold_invariants(&file);
    }

    #[test]
    fn any_lines_are_checked(
        file in "((user-agent|Useragent|disallow|ALLOW|sitemap|host|foo|http)?[ \t]?:?[ \t]?[/*$a-z0-9:# \u{0}\u{e9}]{0,8}(\r|\n|\r\n)){0,20}"
    ) {
        hold_invariants(file.as_bytes());
    }
}

/// The files of the shared case data, which stand beside the project or nowhere.
#[test]
fn real_files_are_checked() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/cases/robots_files.jsonl.gz");
    if !path.exists() && std::env::var_os("CI").is_none() {
        return println!("skipped: {} is not there", path.display());
    }
    let file = std::fs::File::open(&path).expect("the case data opens");
    let lines = std::io::BufReader::new(flate2::read::GzDecoder::new(file)).lines();
    let mut files = 0;
    for line in lines {
        let case: serde_json::Value = serde_json::from_str(&line.expect("a line")).expect("an object");
        let body = case["body_base64"].as_str().expect("a body");
        hold_invariants(&base64::engine::general_purpose::STANDARD.decode(body).expect("base64"));
        files += 1;
    }
    assert_eq!(files, 3_240);
}

#[cfg(feature = "cli")]
mod command {
    #![expect(clippy::expect_used, reason = "a test that cannot go on ends here")]

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
        assert!(
            text(&output.stdout).starts_with("::warning file=warn.txt,line=2,col=11,title=whole-site-disallowed::")
        );
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
}
