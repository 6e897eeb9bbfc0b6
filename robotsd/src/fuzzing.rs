//! The functions that the fuzz targets call: the parsers of octets that others choose, each with the properties it holds.

pub use crate::ask::test_octets::{check_request, spop_frames};
pub use crate::board::test_octets::board_day;
pub use crate::commands::replay::test_octets::log_line;
pub use crate::edge::test_octets::{certificate, forwarded_fields, hops, proxy_header, request_head};
#[cfg(fuzzing)]
pub use crate::edge::test_sequences::connection;
pub use crate::pages::test_octets::sitemap;
pub use crate::upstream::test_octets::response_head;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::*;

    /// The corpus of a fuzz target, so that an input which failed once is tried in every build.
    fn corpus(target: &str, entry: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        let inputs = fs::read_dir(&folder).expect("a stored corpus").map(|input| input.expect("an entry").path());
        // Those that were written by hand, or failed once, have numbers; what the fuzzer has found besides, it tries itself.
        let numbered = inputs.filter(|path| path.file_name().is_some_and(|name| name.len() <= 3));
        let tried = numbered.map(|path| entry(&fs::read(path).expect("an input"))).count();
        assert!(tried >= 10, "{target}: {tried} inputs");
    }

    #[test]
    fn the_stored_corpus_holds_every_property() {
        corpus("board_day", board_day);
        corpus("certificate", certificate);
        corpus("check_request", check_request);
        corpus("forwarded_fields", forwarded_fields);
        corpus("hops", hops);
        corpus("log_line", log_line);
        corpus("proxy_header", proxy_header);
        corpus("request_head", request_head);
        corpus("response_head", response_head);
        corpus("sitemap", sitemap);
        corpus("spop_frames", spop_frames);
    }
}
