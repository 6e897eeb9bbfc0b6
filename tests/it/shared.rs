//! Where the full case sets live: beside the project, if at all. Both packages' tests use it.

use std::io::Read;
use std::path::{Path, PathBuf};

/// The path of a shared case file, or `None` (with a printed reason) where the folder is not beside the project.
///
/// In CI the folder must be there.
pub(crate) fn case_file(name: &str) -> Option<PathBuf> {
    let path = Path::new(crate::SHARED).join(name);
    if path.exists() {
        return Some(path);
    }
    assert!(std::env::var_os("CI").is_none(), "{} is missing, and CI has to run it", path.display());
    println!("skipped: {} is not here", path.display());
    None
}

/// The lines of a shared case file, unpacked where it is packed.
pub(crate) fn case_lines(name: &str) -> Option<Vec<serde_json::Value>> {
    let path = case_file(name)?;
    let mut text = String::new();
    let file = std::fs::File::open(&path).expect("a readable case file");
    if name.ends_with(".gz") {
        flate2::read::GzDecoder::new(file).read_to_string(&mut text)
    } else {
        std::io::BufReader::new(file).read_to_string(&mut text)
    }
    .expect("case files are text");
    Some(text.lines().map(|line| serde_json::from_str(line).expect("a case a line")).collect())
}
