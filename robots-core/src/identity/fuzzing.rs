//! Entry points for the fuzz targets. The functions call parsers of untrusted bytes and check
//! properties of the results.

use super::published_list::RangeList;

pub use super::signature::test_any_input::{signature_base, structured_field};

/// Checks that parsing returns a non-empty list or an error. Also checks that
/// [`RangeList::check_after`] accepts a list that is equal to the previous list.
pub fn range_list(bytes: &[u8]) {
    let _ = RangeList::check_media_type(&String::from_utf8_lossy(bytes));
    let Ok(list) = RangeList::parse(bytes) else { return };
    assert!(!list.set.is_empty() && list.set.ranges() <= list.prefixes);
    assert!(list.prefixes <= 50_000);
    assert_eq!(list.check_after(&list.set), Ok(()));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// Runs a fuzz target with its corpus, so that every test run includes the inputs that once
    /// failed.
    fn corpus(target: &str, entry: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        // The published package does not contain the corpus.
        let Ok(inputs) = fs::read_dir(&folder) else { return };
        let tried = inputs.map(|input| entry(&fs::read(input.expect("an entry").path()).expect("an input"))).count();
        assert!(tried >= 10, "{target}: {tried} inputs");
    }

    #[test]
    fn every_property_holds_for_the_stored_corpus() {
        corpus("range_list", range_list);
        corpus("structured_field", structured_field);
        corpus("signature_base", signature_base);
    }
}
