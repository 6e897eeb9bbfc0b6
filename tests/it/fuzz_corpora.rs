//! The stored corpora of the fuzz targets satisfy their properties in a debug build, too.

use std::fs;
use std::path::Path;

#[path = "../../fuzz/properties/parse.rs"]
mod parse;
#[path = "../../fuzz/properties/path_forms.rs"]
mod path_forms;
#[path = "../../fuzz/properties/state_dir.rs"]
mod state_dir;
#[path = "../../fuzz/properties/user_agent.rs"]
mod user_agent;
#[path = "../../fuzz/properties/verdict.rs"]
mod verdict;

/// Calls the property of a target with every input of its corpus.
fn replay(target: &str, holds: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(target);
    let inputs = fs::read_dir(&folder).unwrap().map(|input| fs::read(input.unwrap().path()).unwrap());
    let tried = inputs.map(|input| holds(&input)).count();
    assert!(tried >= 10, "{target}: {tried} inputs");
}

#[test]
fn the_parse_corpus_satisfies_its_property() {
    replay("parse", parse::holds);
}

#[test]
fn the_path_forms_corpus_satisfies_its_property() {
    replay("path_forms", path_forms::holds);
}

#[test]
fn the_state_dir_corpus_satisfies_its_property() {
    replay("state_dir", state_dir::holds);
}

#[test]
fn the_user_agent_corpus_satisfies_its_property() {
    replay("user_agent", user_agent::holds);
}

#[test]
fn the_verdict_corpus_satisfies_its_property() {
    replay("verdict", verdict::holds);
}
