//! Shows which search engines and AI crawlers may fetch the front page of a site, according to its
//! robots.txt or, if there are no rules, to the server's response.

use std::fmt::Write as _;
use std::io::{self, Write};

use askama::Template;
use serde::Serialize;
use tower_robots::check::{CrawlerKind, FrontPageAccess};
use tower_robots::rules::Access;

use crate::commands::output::filters;
use crate::evaluator::{Evaluator, EvaluatorSettings};
use crate::fetch::CrawlerAccess;
use crate::render::{FindingFormat, printable};

/// Maximum numbers of allowed and of disallowed crawlers that are shown by name.
const MAX_NAMES: (usize, usize) = (6, 12);

/// Access of each kind of crawler to the front page. Empty if the access is unknown.
#[derive(Debug, Default, Serialize)]
#[serde(transparent)]
pub(super) struct FrontPage {
    rows: Vec<FrontPageAccess>,
    /// Whether rules determine the access; `false` if a response without rules, such as a 404,
    /// determines the access.
    #[serde(skip)]
    has_rules: bool,
}

impl FrontPage {
    /// Determines the access from rules. The access is unknown if the file is not a robots.txt.
    pub(super) fn by_rules(evaluator: &Evaluator, settings: &EvaluatorSettings) -> Self {
        if evaluator.is_other_file() {
            return Self::default();
        }
        Self { rows: FrontPageAccess::by_rules(&evaluator.rules, &settings.registry), has_rules: true }
    }

    /// Determines the access from a response without rules, such as a body that crawlers cannot
    /// decode.
    pub(super) fn without_rules(settings: &EvaluatorSettings, access: CrawlerAccess) -> Self {
        let access = if access == CrawlerAccess::Nothing { Access::Disallow } else { Access::Allow };
        Self { rows: FrontPageAccess::without_rules(&settings.registry, access), has_rules: false }
    }

    /// Writes which crawlers may fetch the front page. Writes nothing in formats other than text
    /// and Markdown. `name` is the URL of the page, or a phrase that names the robots.txt.
    pub(super) fn write(&self, out: &mut impl Write, format: FindingFormat, name: &str) -> io::Result<()> {
        match format {
            _ if self.rows.is_empty() => Ok(()),
            FindingFormat::Text => writeln!(out, "{}\n", FrontPageText { name, page: self }),
            FindingFormat::Markdown => writeln!(out, "{}\n", FrontPageMarkdown { name, page: self }),
            FindingFormat::Json | FindingFormat::Concise | FindingFormat::Github | FindingFormat::Sarif => Ok(()),
        }
    }
}

#[derive(Template)]
#[template(path = "commands/check/front_page.txt", whitespace = "preserve")]
struct FrontPageText<'a> {
    name: &'a str,
    page: &'a FrontPage,
}

#[derive(Template)]
#[template(path = "commands/check/front_page_markdown.txt", whitespace = "preserve")]
struct FrontPageMarkdown<'a> {
    name: &'a str,
    page: &'a FrontPage,
}

/// Returns the list of allowed crawlers of a kind, and the list of disallowed crawlers of this
/// kind.
fn sides(page: &FrontPage, kind: &CrawlerKind) -> (String, String) {
    let side = |access, shown| {
        let is_meant = |row: &&FrontPageAccess| row.kind == *kind && row.access == access;
        let rows: Vec<_> = page.rows.iter().filter(is_meant).collect();
        let name = |row: &&FrontPageAccess| {
            let mut name = printable(&row.crawler);
            if let (Some(line), Access::Disallow) = (row.line, access) {
                let _ = write!(name, " (line {line})");
            }
            if row.ignores_robots && access == Access::Disallow {
                name.push_str(" (ignores robots.txt)");
            }
            name
        };
        let names: Vec<_> = rows.iter().take(shown).map(name).collect();
        match rows.len() {
            0 => "-".to_owned(),
            all if page.has_rules => match all - names.len() {
                0 => names.join(", "),
                more => format!("{}, and {more} more", names.join(", ")),
            },
            all => format!("all {all}"),
        }
    };
    (side(Access::Allow, MAX_NAMES.0), side(Access::Disallow, MAX_NAMES.1))
}
