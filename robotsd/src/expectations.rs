//! The file of expectations.
//!
//! ```toml
//! robots = "robots.txt"            # relative to this file; optional with --robots
//!
//! [[allow]]
//! agents = ["Googlebot", "bingbot"]
//! paths  = ["/", "/products/shoes"]
//!
//! [[disallow]]
//! agents = ["*", "GPTBot"]
//! paths  = ["/drafts/"]
//! ```

use std::path::{Path, PathBuf};
use std::sync::Arc;

use toml::Spanned;
use tower_robots::agent::Registry;
use tower_robots::check::Expectations;
use tower_robots::rules::Access;

use crate::config::{ConfigError, Document, Fault, as_utf8, read_document, schema_of, tables};
use crate::input::{Places, ReadInput};
use crate::render::printable_path;
use crate::target_url::TargetUrl;

/// Maximum size of a file of expectations, in bytes. [`MAX_PAIRS`] is the maximum number of (agent,
/// path) pairs in the file. Both limits are needed to limit memory use, because parsed TOML needs
/// about a hundred times as much memory as its text.
const MAX_BYTES: usize = 1 << 20;
const MAX_PAIRS: usize = 100_000;

tables! {
    Written {
        /// The robots.txt to test, relative to this file. The option --robots overrides it.
        robots: Option<PathBuf>,
        /// Crawlers that may fetch paths.
        allow: Vec<Spanned<Expected>>,
        /// Crawlers that may not fetch paths.
        disallow: Vec<Spanned<Expected>>,
    }

    Expected {
        /// Names of crawlers, product tokens, "*" for a crawler that no group names, or
        /// User-Agent headers.
        agents: Spanned<Vec<Spanned<String>>>,
        /// Paths, or URLs of which only the path counts.
        paths: Spanned<Vec<Spanned<String>>>,
    }
}

impl Document for Written {
    const NAME: &'static str = "the file";
}

#[derive(Debug)]
pub(crate) struct ExpectationsFile {
    /// Path of the robots.txt as written, relative to the file of expectations.
    pub(crate) robots: Option<PathBuf>,
    pub(crate) expectations: Expectations,
    pub(crate) agents: Vec<WrittenWord>,
    pub(crate) paths: Vec<WrittenWord>,
    /// Index in `paths` of the first path of each expectation.
    first_paths: Vec<usize>,
}

#[derive(Debug)]
pub(crate) struct WrittenWord {
    pub(crate) text: String,
    /// Line and column, both from 1.
    pub(crate) place: (usize, usize),
}

impl ExpectationsFile {
    pub(crate) fn schema() -> String {
        schema_of::<Written>("robots.test.toml")
    }

    /// Returns the line and column of a path in one expectation of the file.
    pub(crate) fn place(&self, expectation: usize, path: &str) -> (usize, usize) {
        let of = self.first_paths.get(expectation).map_or(&[][..], |first| &self.paths[*first..]);
        of.iter().find(|written| written.text == path).map_or((1, 1), |written| written.place)
    }

    /// Reads a file of expectations. The error contains the file's path, and the line and column of
    /// every problem.
    pub(crate) fn read(path: &Path, read: ReadInput, registry: &Arc<Registry>) -> Result<Self, ConfigError> {
        let bytes = read(path).map_err(ConfigError::without_place)?;
        if bytes.len() > MAX_BYTES {
            let name = printable_path(path);
            let fault = format!(
                "{name}: the file is larger than {limit} KiB: split it into several files",
                limit = MAX_BYTES >> 10
            );
            return Err(ConfigError::without_place(fault));
        }
        Self::parse(path, &as_utf8(path, bytes)?, registry)
    }

    fn parse(name: &Path, text: &str, registry: &Arc<Registry>) -> Result<Self, ConfigError> {
        let at = |faults| ConfigError { command: "test", ..ConfigError::at(name, text, faults) };
        let written: Written = read_document(text).map_err(at)?;
        let tables = written.allow.iter().map(|table| (Access::Allow, table));
        let tables: Vec<_> = tables.chain(written.disallow.iter().map(|table| (Access::Disallow, table))).collect();
        let faults: Vec<_> = tables.iter().flat_map(|(_, table)| faults(table)).collect();
        if !faults.is_empty() {
            return Err(at(faults));
        }
        if tables.is_empty() {
            return Err(at(vec![Fault::new(0..0, "the file has no expectations").help(EXAMPLE.to_owned())]));
        }
        let (mut first_paths, mut agents, mut paths) = (Vec::new(), Vec::new(), Vec::new());
        let pairs = tables
            .iter()
            .map(|(_, table)| table.get_ref().agents.get_ref().len() * table.get_ref().paths.get_ref().len());
        if pairs.sum::<usize>() > MAX_PAIRS {
            let fault = format!("the file has more than {MAX_PAIRS} combinations of agents and paths");
            return Err(at(vec![Fault::new(0..0, fault).help("split the file into several files".to_owned())]));
        }
        let places = Places::of(text);
        let word =
            |word: &Spanned<String>| WrittenWord { text: word.get_ref().clone(), place: places.at(word.span().start) };
        let mut expectations = Expectations::new(registry.clone());
        for (access, table) in tables {
            let table = table.get_ref();
            let (of_agents, of_paths) = (table.agents.get_ref(), table.paths.get_ref());
            let owned = |list: &[Spanned<String>]| list.iter().map(|item| item.get_ref().clone()).collect::<Vec<_>>();
            expectations = expectations.expect(access, owned(of_agents), owned(of_paths));
            first_paths.push(paths.len());
            agents.extend(of_agents.iter().map(word));
            paths.extend(of_paths.iter().map(word));
        }
        Ok(Self { robots: written.robots, expectations, agents, paths, first_paths })
    }
}

const EXAMPLE: &str = "write [[allow]] or [[disallow]], with agents = [\"Googlebot\"] and paths = [\"/\"]";

fn faults(table: &Spanned<Expected>) -> Vec<Fault> {
    let (span, table) = (table.span(), table.get_ref());
    let (agents, paths) = (table.agents.get_ref(), table.paths.get_ref());
    let mut faults = Vec::new();
    if agents.is_empty() || paths.is_empty() {
        let (key, example) =
            if agents.is_empty() { ("agent", "agents = [\"*\"]") } else { ("path", "paths = [\"/\"]") };
        faults.push(
            Fault::new(span, format!("an expectation needs at least one {key}")).help(format!("write {example}")),
        );
    }
    for agent in agents.iter().filter(|agent| agent.get_ref().trim().is_empty()) {
        let fault = Fault::new(agent.span(), "the name of the agent is empty");
        faults.push(fault.help("write \"*\" for a crawler that is not named in any group".to_owned()));
    }
    for path in paths {
        if let Err(error) = TargetUrl::parse(path.get_ref().as_bytes()) {
            faults.push(Fault::new(path.span(), error));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::test_cases::check_cases;

    fn error(text: &str) -> String {
        ExpectationsFile::parse(Path::new("e.toml"), text, Registry::builtin()).expect_err("an error").to_string()
    }

    #[test]
    fn errors_in_an_expectations_file_contain_the_line_and_column() {
        check_cases("expectations_mistakes.txt", |text| error(text) + "\n");
    }

    #[test]
    fn each_expectation_keeps_its_line_and_column() {
        let text = "robots = \"r.txt\"\n[[disallow]]\nagents = [\"a\"]\npaths = [\"/\"]\n\n[[allow]]\nagents = [\"a\"]\npaths = [\"/b\",\n \"/\"]\n";
        let file = ExpectationsFile::parse(Path::new("e.toml"), text, Registry::builtin()).expect("a file");
        assert_eq!([file.place(0, "/"), file.place(1, "/")], [(9, 2), (4, 10)]);
        assert_eq!(file.robots, Some(PathBuf::from("r.txt")));
    }
}
