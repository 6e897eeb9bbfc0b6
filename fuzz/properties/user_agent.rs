//! A `User-Agent` line always names the same agent, and has at most as many tokens as a chain of
//! obeyed groups.

use std::sync::{Arc, LazyLock};

use tower_robots::agent::{Recognizer, Registry};
use tower_robots::rules::RobotsTxt;

const FILE: &[u8] = b"User-agent: Googlebot\nUser-agent: my-crawler\nUser-agent: *\nDisallow: /private/\n";

static RECOGNIZER: LazyLock<Recognizer> =
    LazyLock::new(|| Recognizer::new(Arc::clone(Registry::builtin()), &RobotsTxt::parse(FILE)));

pub(crate) fn holds(field: &[u8]) {
    let agent = RECOGNIZER.identify(field);
    let again = RECOGNIZER.identify(field);
    assert_eq!((agent.class(), agent.crawler()), (again.class(), again.crawler()));
    assert!(agent.tokens() == again.tokens() && agent.tokens().len() <= 16, "{:?}", agent.tokens());
}
