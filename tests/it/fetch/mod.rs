//! Fetching from real servers on loopback: every kind of response and failure.

mod answers;
mod anything;
mod exchange;
#[cfg(feature = "tls")]
mod https;
#[cfg(feature = "layer")]
mod served;
mod server;
mod site;

const PAGE: &str = include_str!("../../../docs/src/explanation/fetching.md");
const CRAWLER: &str = include_str!("../../../src/source/fetch/crawler/tests.rs");
const SITE: &str = include_str!("../../../src/source/fetch/site_freshness/tests.rs");

/// Returns the names of the tests in a file.
fn tests_in(code: &str) -> impl Iterator<Item = &str> {
    code.split("#[test]\nfn ").skip(1).filter_map(|test| test.split('(').next())
}

#[test]
fn the_handbook_names_the_test_of_every_transition() {
    let in_code: Vec<_> = tests_in(CRAWLER).chain(tests_in(SITE)).collect();
    assert!(in_code.len() > 30);
    let quoted: Vec<_> = PAGE.split('`').skip(1).step_by(2).collect();
    for name in quoted.iter().filter(|name| name.matches('_').count() > 1 && !name.contains(':')) {
        assert!(in_code.contains(name), "the page names {name}, which is no test");
    }
    // These tests are not about a transition.
    let others = [
        "a_clock_that_jumps_back_keeps_the_held_version",
        "after_the_clock_was_set_back_the_file_is_fetched_again",
        "each_fetch_result_of_the_specification_gives_the_expected_access_or_lifetime",
    ];
    for name in in_code.iter().filter(|name| !others.contains(name)) {
        assert!(quoted.contains(name), "the page does not name {name}");
    }
}
