//! The case sets. The complete sets are in `../shared`, if that exists. `tests/draw_cases.py` draws
//! a part of each into `tests/cases`, which every clone has. The tests of both packages use these
//! sets.

use std::io::{Read, Write};
use std::path::Path;

use serde_json::Value;

/// The number of drawn cases and the total number of cases, by the name of the set.
const DRAWN: &str = include_str!("../cases/drawn.json");

/// Returns the cases of a set in `../shared/cases`: all of them, or the drawn ones if the folder
/// does not exist. In the second case, prints the number of skipped cases to stderr, which no test
/// captures.
///
/// In CI the complete set must exist.
pub(crate) fn cases(name: &str) -> Vec<Value> {
    let path = Path::new(crate::SHARED).join("cases").join(name);
    if path.exists() {
        let file = std::fs::read(&path).expect("a readable case file");
        return lines(&if name.ends_with(".gz") { unpacked(&file) } else { file });
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing, and CI has to run it", path.display());
    let cases = drawn(name);
    let whole = counts(name).1;
    let left_out = format!("{name}: {} of {whole} cases, the others are not here\n", cases.len());
    std::io::stderr().write_all(left_out.as_bytes()).expect("a standard error");
    cases
}

pub(crate) fn drawn(name: &str) -> Vec<Value> {
    let packed: &[u8] = match name {
        "reference_suite.jsonl" => include_bytes!("../cases/reference_suite.jsonl.gz"),
        "robots_files.jsonl.gz" => include_bytes!("../cases/robots_files.jsonl.gz"),
        "verdicts.jsonl.gz" => include_bytes!("../cases/verdicts.jsonl.gz"),
        _ => panic!("{name} is not a set of cases"),
    };
    let cases = lines(&unpacked(packed));
    assert_eq!(cases.len(), counts(name).0, "{name}: tests/draw_cases.py writes both");
    cases
}

/// Returns the number of drawn cases of a set, and of all its cases.
fn counts(name: &str) -> (usize, usize) {
    let counts: Value = serde_json::from_str(DRAWN).expect("JSON");
    let count = |key: &str| counts[name][key].as_u64().and_then(|count| usize::try_from(count).ok()).expect("a count");
    (count("drawn"), count("whole"))
}

fn unpacked(bytes: &[u8]) -> Vec<u8> {
    let mut text = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut text).expect("a packed case file");
    text
}

fn lines(text: &[u8]) -> Vec<Value> {
    let text = std::str::from_utf8(text).expect("case files are text");
    text.lines().map(|line| serde_json::from_str(line).expect("a case a line")).collect()
}
