//! The functions that the fuzz targets call. Each function passes untrusted bytes to a parser and
//! checks properties of the result.

pub use crate::board::test_any_input::board_day;
pub use crate::commands::replay::test_any_input::log_line;
pub use crate::decision::test_any_input::{check_request, spop_frames};
pub use crate::edge::test_any_input::{certificate, forwarded_fields, hops, proxy_header, request_head};
pub use crate::edge::test_sequences::connection;
pub use crate::pages::test_any_input::sitemap;
pub use crate::upstream::test_any_input::response_head;

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use tokio::runtime::Builder;

    use super::*;

    fn replay(target: &str, holds: impl Fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target);
        let inputs = fs::read_dir(&folder).expect("a stored corpus").map(|input| input.expect("an entry").path());
        let tried = inputs.map(|path| holds(&fs::read(path).expect("an input"))).count();
        assert!(tried >= 10, "{target}: {tried} inputs");
    }

    #[test]
    fn every_property_holds_for_the_stored_corpus() {
        replay("board_day", board_day);
        replay("certificate", certificate);
        replay("check_request", check_request);
        replay("forwarded_fields", forwarded_fields);
        replay("hops", hops);
        replay("log_line", log_line);
        replay("proxy_header", proxy_header);
        replay("request_head", request_head);
        replay("response_head", response_head);
        replay("sitemap", sitemap);
        replay("spop_frames", spop_frames);
    }

    #[test]
    fn the_edge_answers_the_stored_corpus_of_connections_in_the_same_way_as_hyper() {
        let runtime = Builder::new_current_thread().enable_all().start_paused(true).build().expect("a runtime");
        replay("connection", |bytes| {
            connection(bytes, &runtime);
        });
    }
}
