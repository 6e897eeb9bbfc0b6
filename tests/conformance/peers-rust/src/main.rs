//! Answers the cases with the parser of a crate: `robots-conformance-peers PARSER CASES BEGIN`.
//! Prints one line per case, beginning with case number `BEGIN`: `allow`, `disallow` or `error`.

use std::io::Write;
use std::panic::catch_unwind;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use robots_core::{Reading, RobotsTxt, rules::Access};
use serde_json::Value;

/// Returns whether a parser allows a URL. `None` if it cannot read the file.
type Parser = fn(robots: &[u8], agent: &str, url: &str) -> Option<bool>;

fn standard(robots: &[u8], agent: &str, url: &str) -> Option<bool> {
    let rules = RobotsTxt::parse(robots).for_token(agent).ok()?;
    Some(rules.with_reading(Reading::Standard).allows(url))
}

fn reference(robots: &[u8], agent: &str, url: &str) -> Option<bool> {
    let rules = RobotsTxt::parse(robots).for_token(agent).ok()?.with_reading(Reading::Reference);
    Some(rules.verdict(url).access() == Access::Allow)
}

fn robotstxt(robots: &[u8], agent: &str, url: &str) -> Option<bool> {
    let text = String::from_utf8_lossy(robots);
    Some(robotstxt::DefaultMatcher::default().one_agent_allowed_by_robots(&text, agent, url))
}

fn robotxt(robots: &[u8], agent: &str, url: &str) -> Option<bool> {
    Some(robotxt::Robots::parse(robots, agent).is_allowed(url.strip_prefix("https://example.com")?))
}

fn texting_robots(robots: &[u8], agent: &str, url: &str) -> Option<bool> {
    Some(texting_robots::Robot::new(agent, robots).ok()?.allowed(url))
}

const PARSERS: [(&str, Parser); 5] = [
    ("robots-core Standard", standard),
    ("robots-core Reference", reference),
    ("robotstxt", robotstxt),
    ("robotxt", robotxt),
    ("texting_robots", texting_robots),
];

fn answer(parser: Parser, case: &Value) -> &'static str {
    let text = |key: &str| case[key].as_str().expect("a string");
    let robots = BASE64.decode(text("robots")).expect("base64");
    match catch_unwind(|| parser(&robots, text("agent"), text("url"))) {
        Ok(Some(true)) => "allow",
        Ok(Some(false)) => "disallow",
        _ => "error",
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [name, cases, begin] = arguments.as_slice() else { panic!("arguments: PARSER CASES BEGIN") };
    let (_, parser) = PARSERS.iter().find(|(known, _)| known == name).expect("a known parser");
    let cases: Vec<Value> = serde_json::from_slice(&std::fs::read(cases).expect("cases")).expect("JSON");
    for case in &cases[begin.parse().expect("a number")..] {
        // A reader must see each answer at once, because the next case may hang.
        let mut output = std::io::stdout().lock();
        writeln!(output, "{}", answer(*parser, case)).and_then(|()| output.flush()).expect("a reader");
    }
}
