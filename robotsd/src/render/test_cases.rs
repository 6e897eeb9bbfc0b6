//! Compares answers with the files in `tests/cases`.

/// Checks a file with cases. A case consists of a title, a document, `---`, and the answer to the
/// document. If messages have changed, run the test with `UPDATE=1` in the environment to write
/// them to the file, and review them before committing.
pub(crate) fn check_cases(file: &str, answer: impl Fn(&str) -> String) {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases").join(file);
    let cases = std::fs::read_to_string(&path).expect("the cases");
    let mut found = String::new();
    for case in cases.split("### ").skip(1) {
        let (title, rest) = case.split_once('\n').expect("a title");
        let (document, _) = rest.split_once("---\n").expect("the end of the document");
        found += &format!("### {title}\n{document}---\n{}", answer(document));
    }
    if std::env::var_os("UPDATE").is_some() {
        return std::fs::write(&path, &found).expect("written");
    }
    for (found, want) in found.split("### ").zip(cases.split("### ")) {
        assert_eq!(found, want);
    }
}
