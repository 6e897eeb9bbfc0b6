//! The matchers in the table: ours, its peers and the floor. Each returns whether a path is
//! allowed.

use tower_robots::rules::{Access, Fallback, ProductToken, Reading, RequestPath, RobotsTxt, RuleSet};

use crate::columns::Column;

/// A matcher that uses the file of a column.
pub type Matcher<'c> = Box<dyn Fn(&str) -> bool + 'c>;

/// Our matcher. It does everything from a request target to a verdict.
pub fn ours(column: &Column) -> Matcher<'_> {
    let rules = compile(column);
    let tokens = [ProductToken::new(column.agent)];
    Box::new(move |path| {
        let verdict = rules.select(&tokens, Fallback::Star).verdict(&RequestPath::new(path.as_bytes()));
        verdict.access() == Access::Allow
    })
}

/// Compiles every rule of the column. A file of more than 500 KiB is read completely, because the
/// peers do the same.
pub fn compile(column: &Column) -> RuleSet {
    let reading = if column.robots.len() > 512_000 { Reading::Reference } else { Reading::Standard };
    RobotsTxt::parse(column.robots.as_bytes()).compile(reading)
}

/// Keeps a parsed file for one agent.
pub fn robotxt(column: &Column) -> Matcher<'_> {
    let robots = robotxt::Robots::parse(column.robots.as_bytes(), column.agent);
    Box::new(move |path| robots.is_allowed(path))
}

/// Keeps a parsed file for one agent.
pub fn texting_robots(column: &Column) -> Option<Matcher<'_>> {
    let robots = texting_robots::Robot::new(column.agent, column.robots.as_bytes()).ok()?;
    Some(Box::new(move |path| robots.allowed(path)))
}

/// Parses the file again for every decision, which is the only way to use this crate.
pub fn robotstxt(column: &Column) -> Matcher<'_> {
    Box::new(move |path| {
        robotstxt::DefaultMatcher::default().one_agent_allowed_by_robots(&column.robots, column.agent, path)
    })
}

/// The floor. It is not a matcher: for each byte of the path, it makes one step through a table of
/// states, as the best possible automaton would.
pub fn floor(_: &Column) -> Matcher<'_> {
    const STATES: usize = 64;
    let table: Vec<[u8; 256]> =
        (0..STATES).map(|state| std::array::from_fn(|byte| ((state * 31 + byte * 7 + 1) % STATES) as u8)).collect();
    let table: Box<[[u8; 256]; STATES]> = table.into_boxed_slice().try_into().expect("as many rows as states");
    Box::new(move |path| {
        path.bytes().fold(0u8, |state, byte| table[usize::from(state) % STATES][usize::from(byte)]) != 0
    })
}
