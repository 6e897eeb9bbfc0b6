//! The index agrees with the slow matcher, including the line. The first line of the input is the
//! path.

use tower_robots::rules::{Fallback, ProductToken, Reading, RequestPath, RobotsTxt};

use crate::slow;

pub(crate) fn holds(input: &[u8]) {
    // The slow matcher takes the product of both lengths.
    let at = input.iter().position(|byte| *byte == b'\n').unwrap_or(input.len());
    let (path, file) = input.split_at(at);
    if path.len() > 128 || file.len() > 4096 {
        return;
    }
    let robots = RobotsTxt::parse(file);
    for reading in [Reading::Standard, Reading::Reference, Reading::Legacy] {
        let (rules, slow) = (robots.compile(reading), slow::of_parsed(&robots, reading));
        let path = match reading {
            Reading::Reference => RequestPath::verbatim(path),
            _ => RequestPath::new(path),
        };
        let forms: Vec<&[u8]> = path.forms().map(|(_, form)| form).collect();
        for chain in [&["a"][..], &["b", "a"], &[]] {
            let tokens: Vec<_> = chain.iter().map(ProductToken::new).collect();
            let verdict = rules.select(&tokens, Fallback::Star).verdict(&path);
            let want = slow::answer(&slow, reading, chain, true, &forms);
            assert_eq!((verdict.access(), verdict.line().unwrap_or(0)), want, "{reading:?} {chain:?} {path:?}");
        }
    }
}
