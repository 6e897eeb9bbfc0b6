//! The page on lints matches the code.

use std::fmt::Write;
use std::path::Path;

use tower_robots::check::Lint;

const HEAD: &str = "| code | severity | finds |\n|---|---|---|\n";

#[test]
fn the_lint_table_in_the_docs_matches_the_code() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/docs/lints.md");
    let page = std::fs::read_to_string(&path).expect("the page exists");
    let at = page.find(HEAD).expect("the page contains the table") + HEAD.len();
    let mut table = String::new();
    for lint in Lint::all() {
        let code = lint.code;
        // `Lint::url` refers to this page.
        assert!(lint.url().ends_with(&format!("/docs/lints/#{code}")), "{}", lint.url());
        let (severity, summary) = (lint.severity, lint.summary);
        writeln!(table, "| <a id=\"{code}\"></a>`{code}` | {severity} | {summary} |").expect("a string grows");
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(&path, format!("{}{table}", &page[..at])).expect("the page can be written");
        return;
    }
    assert_eq!(&page[at..], table, "run this test with UPDATE_DOCS=1");
}
