//! The file of expectations, as it is written.
//!
//! ```toml
//! robots = "robots.txt"            # beside this file; optional where --robots is given
//!
//! [[allow]]
//! agents = ["Googlebot", "bingbot"]
//! paths  = ["/", "/products/shoes"]
//!
//! [[disallow]]
//! agents = ["*", "GPTBot"]
//! paths  = ["/drafts/"]
//! ```

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Expectations;
use tower_robots::rules::Access;

use crate::input::{self, place};
use crate::render::printable;
use crate::target_url::TargetUrl;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    robots: Option<PathBuf>,
    #[serde(default)]
    allow: Vec<Spanned<Table>>,
    #[serde(default)]
    disallow: Vec<Spanned<Table>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    agents: Vec<Spanned<String>>,
    paths: Vec<Spanned<String>>,
}

/// A file of expectations that makes sense.
#[derive(Debug)]
pub(crate) struct ExpectationsFile {
    /// As written, relative to the file.
    pub(crate) robots: Option<PathBuf>,
    pub(crate) expectations: Expectations,
    /// The line of each expectation.
    pub(crate) lines: Vec<usize>,
    /// Every agent as it is written.
    pub(crate) agents: Vec<WrittenAgent>,
}

/// The name of an agent, and its place.
#[derive(Debug)]
pub(crate) struct WrittenAgent {
    pub(crate) name: String,
    /// Line and column, both from 1.
    pub(crate) place: (usize, usize),
}

impl ExpectationsFile {
    /// Reads a file. Errors name it, with line and column where they can.
    pub(crate) fn read(path: &Path, registry: &Arc<Registry>) -> io::Result<Self> {
        let text = String::from_utf8(input::read(path)?)
            .map_err(|_| io::Error::other(format!("{}: not UTF-8", path.display())))?;
        Self::parse(path, &text, registry).map_err(io::Error::other)
    }

    /// Reads the text of a file; `name` is what errors call it.
    fn parse(name: &Path, text: &str, registry: &Arc<Registry>) -> Result<Self, String> {
        let at = |span: Range<usize>, message: &str| {
            let (line, column) = place(text, span.start);
            format!("{}:{line}:{column}: {message}", printable(name.as_os_str().as_encoded_bytes()))
        };
        let written: Written = toml::from_str(text)
            .map_err(|error| at(error.span().unwrap_or(0..0), &error.message().trim_end().replace('\n', "; ")))?;
        let (mut lines, mut agents) = (Vec::new(), Vec::new());
        let mut expectations = Expectations::new(registry.clone());
        let tables = written.allow.iter().map(|table| (Access::Allow, table));
        for (access, table) in tables.chain(written.disallow.iter().map(|table| (Access::Disallow, table))) {
            let (span, table) = (table.span(), table.get_ref());
            if table.agents.is_empty() || table.paths.is_empty() {
                return Err(at(span, "an expectation has at least one agent and one path"));
            }
            if let Some(agent) = table.agents.iter().find(|agent| agent.get_ref().trim().is_empty()) {
                return Err(at(agent.span(), "the agent is empty: write \"*\" for a crawler that no group names"));
            }
            for path in &table.paths {
                TargetUrl::parse(path.get_ref().as_bytes()).map_err(|error| at(path.span(), &error.to_string()))?;
            }
            let owned = |list: &[Spanned<String>]| list.iter().map(|item| item.get_ref().clone()).collect::<Vec<_>>();
            expectations = expectations.expect(access, owned(&table.agents), owned(&table.paths));
            lines.push(place(text, span.start).0);
            agents.extend(
                table.agents.iter().map(|agent| WrittenAgent {
                    name: agent.get_ref().clone(),
                    place: place(text, agent.span().start),
                }),
            );
        }
        if lines.is_empty() {
            return Err(at(
                0..0,
                "the file has no expectations: write [[allow]] or [[disallow]] with agents and paths",
            ));
        }
        Ok(Self { robots: written.robots, expectations, lines, agents })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        ExpectationsFile::parse(Path::new("e.toml"), text, Registry::builtin()).expect_err("an error")
    }

    #[test]
    fn errors_name_line_and_column() {
        for (text, want) in [
            ("", "e.toml:1:1: the file has no expectations: write [[allow]] or [[disallow]] with agents and paths"),
            ("[[allow]]\nagents = [\"a\"]\n", "e.toml:1:1: missing field `paths`"),
            (
                "[[allow]]\nagents = [\"a\"]\npaths = []\n",
                "e.toml:1:1: an expectation has at least one agent and one path",
            ),
            (
                "[[allow]]\nagents = [\"a\"]\npaths = [\"x\"]\n",
                "e.toml:3:10: \"x\" is neither a path nor a URL: write \"/x\" for the path, or \"https://HOST/x\" for a URL",
            ),
            (
                "[[allow]]\nagents = [\" \"]\npaths = [\"/\"]\n",
                "e.toml:2:11: the agent is empty: write \"*\" for a crawler that no group names",
            ),
        ] {
            assert_eq!(error(text), want, "{text}");
        }
        assert!(error("[[alow]]\n").starts_with("e.toml:1:"));
    }

    #[test]
    fn each_expectation_keeps_its_line() {
        let text = "robots = \"r.txt\"\n[[disallow]]\nagents = [\"a\"]\npaths = [\"/\"]\n\n[[allow]]\nagents = [\"a\"]\npaths = [\"/\"]\n";
        let file = ExpectationsFile::parse(Path::new("e.toml"), text, Registry::builtin()).expect("a file");
        assert_eq!((file.lines, file.robots), (vec![6, 2], Some(PathBuf::from("r.txt"))));
    }
}
