//! An open robots.txt, and the results that were computed from its text.
//!
//! **The buffer is not the file.** The editor decodes the file and removes a byte order mark. Lints
//! about bytes therefore check the file on disk, whenever the document is opened or saved.
//!
//! **Only the bytes that crawlers read are parsed.** Therefore, the server responds quickly even if
//! the document is huge.

use std::cell::OnceCell;
use std::ops::Range;
use std::path::PathBuf;

use tower_robots::agent::Registry;
use tower_robots::check::{Finding, FixedFile, Fixes, Lint, Options, Report, Safety, check};
use tower_robots::rules::{Name, Reading, RobotsTxt, Rule};

use super::protocol::{self, ContentChange, DocumentItem, Position, PositionEncoding};
use super::text::TextBuffer;
use crate::commands::arguments::WithinArgs;
use crate::commands::check::CheckFile;
use crate::evaluator::{Evaluator, EvaluatorSettings, TimeBudget};
use crate::input::InputSource;

/// Codes of the lints about bytes that the text in an editor does not show.
const BYTE_LINTS: [&str; 3] = ["byte-order-mark", "utf-16", "invalid-utf-8"];

#[derive(Debug)]
pub(super) struct Document {
    pub(super) uri: String,
    pub(super) version: i32,
    pub(super) buffer: TextBuffer,
    pub(super) needs_publishing: bool,
    /// Whether the editor requests diagnostics. If so, the server does not publish them.
    pub(super) is_pulled: bool,
    /// Findings about the bytes of the file, computed when the document was last opened or saved.
    pub(super) on_disk: Vec<Finding>,
    path: Option<PathBuf>,
    settings: EvaluatorSettings,
    computed: Computed,
}

#[derive(Debug, Default)]
struct Computed {
    robots: OnceCell<RobotsTxt>,
    report: OnceCell<Report>,
    fixes: OnceCell<Fixes>,
    fixed: OnceCell<FixedFile>,
    evaluator: OnceCell<Evaluator>,
}

/// Error of a check that was stopped early, because its result is no longer needed or other
/// messages are waiting.
#[derive(Clone, Copy, Debug)]
pub(super) struct Interrupted;

impl Document {
    pub(super) fn open(item: DocumentItem, encoding: PositionEncoding) -> Self {
        Self {
            path: protocol::path_of(&item.uri),
            uri: item.uri,
            version: item.version,
            buffer: TextBuffer::new(item.text, encoding),
            needs_publishing: true,
            is_pulled: false,
            on_disk: Vec::new(),
            settings: EvaluatorSettings::default(),
            computed: Computed::default(),
        }
    }

    pub(super) fn change(&mut self, version: Option<i32>, changes: Vec<ContentChange>) {
        changes.into_iter().for_each(|change| self.buffer.apply(change));
        self.version = version.unwrap_or(self.version);
        self.discard_results();
    }

    fn discard_results(&mut self) {
        self.computed = Computed::default();
        self.needs_publishing = true;
    }

    /// Reads the bytes of the file, and the settings that `robotsd check` uses in the folder of the
    /// file. Returns an error message if the settings cannot be read.
    pub(super) fn read_disk(&mut self) -> Option<String> {
        let source = self.path.clone().map(InputSource::Found);
        let found = source.as_ref().map(|source| CheckFile::find(source, None, &WithinArgs::default()));
        let (file, problem) = match found {
            Some(Ok(file)) => (file, None),
            Some(Err(error)) => (CheckFile::default(), Some(error.to_string())),
            None => (CheckFile::default(), None),
        };
        let settings = file.settings(&EvaluatorSettings::default(), &[], &[]);
        let without = |is_off: &dyn Fn(&Lint) -> bool| {
            let off = Lint::all().iter().filter(|lint| is_off(lint));
            off.fold(settings.checks.clone(), |options, lint| options.allow(lint))
        };
        let is_of_bytes = |lint: &Lint| BYTE_LINTS.contains(&lint.code);
        let bytes = source.and_then(|source| source.read().ok());
        let report = bytes.map(|bytes| check(&RobotsTxt::parse_beginning(bytes), &without(&|lint| !is_of_bytes(lint))));
        self.on_disk = report.map_or_else(Vec::new, |report| report.findings);
        self.settings = EvaluatorSettings { checks: without(&is_of_bytes), ..settings };
        self.discard_results();
        problem
    }

    pub(super) fn robots(&self) -> &RobotsTxt {
        self.computed.robots.get_or_init(|| RobotsTxt::parse_beginning(self.buffer.text()))
    }

    pub(super) const fn checks(&self) -> &Options {
        &self.settings.checks
    }

    pub(super) fn registry(&self) -> &Registry {
        &self.settings.registry
    }

    /// Returns the findings in the text, or an error if `should_continue` returns `false` during
    /// the check.
    pub(super) fn report(&self, should_continue: &dyn Fn() -> bool) -> Result<&Report, Interrupted> {
        if let Some(report) = self.computed.report.get() {
            return Ok(report);
        }
        // Parsing cannot be interrupted, so `should_continue` is called before parsing begins.
        if !should_continue() {
            return Err(Interrupted);
        }
        let report = Report::of_while(self.robots(), self.checks(), should_continue).ok_or(Interrupted)?;
        Ok(self.computed.report.get_or_init(|| report))
    }

    /// Returns the fixes of the findings in `report`, which must be the report of this document.
    pub(super) fn fixes(&self, report: &Report) -> &Fixes {
        self.computed.fixes.get_or_init(|| Fixes::of(self.robots(), report, self.checks()))
    }

    /// Returns the document after all safe fixes that can be applied within a second. Returns an
    /// error if `should_continue` returns `false` before the fixes are complete.
    pub(super) fn fixed(&self, should_continue: &dyn Fn() -> bool) -> Result<&FixedFile, Interrupted> {
        if let Some(fixed) = self.computed.fixed.get() {
            return Ok(fixed);
        }
        let time = TimeBudget::start();
        let continues = || time.is_left() && should_continue();
        let fixed = FixedFile::of_while(self.robots(), self.checks(), Safety::Safe, &continues);
        if fixed.is_cut && !should_continue() {
            return Err(Interrupted);
        }
        Ok(self.computed.fixed.get_or_init(|| fixed))
    }

    /// Reports whether the document is so long that crawlers do not read all of it. A document of
    /// this length is not fixed, because crawlers would read more of its lines if a fix made it
    /// shorter.
    pub(super) fn is_long(&self) -> bool {
        self.buffer.text().len() > Reading::STANDARD_LIMIT
    }

    pub(super) fn evaluator(&self) -> &Evaluator {
        self.computed.evaluator.get_or_init(|| Evaluator::of(self.robots(), Reading::Standard, &self.settings))
    }

    pub(super) fn item_at(&self, position: Position) -> Option<Item<'_>> {
        let number = position.line as usize + 1;
        let group = self.robots().groups().take_while(|group| group.line() <= number).last()?;
        let name = group.names().find(|name| name.line() == number).map(Item::Name);
        name.or_else(|| group.rules().find(|rule| rule.line() == number).map(Item::Rule))
    }

    pub(super) fn range(&self, span: Range<usize>) -> protocol::Range {
        self.buffer.range(span)
    }

    /// Returns the range of the line with this number, without its line end. The first line has the
    /// number 1.
    pub(super) fn line_range(&self, line: usize) -> protocol::Range {
        self.range(self.buffer.line(line.saturating_sub(1)))
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'r> {
    Name(Name<'r>),
    Rule(Rule<'r>),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn safe_fixes_are_kept_until_the_text_changes() {
        let item = DocumentItem {
            uri: "untitled:robots.txt".to_owned(),
            version: 1,
            text: "User-agent: *\nDissallow: /\n".to_owned(),
        };
        let mut document = Document::open(item, PositionEncoding::Utf8);
        let is_kept = |document: &Document| document.fixed(&|| false).is_ok();
        assert!(!is_kept(&document));
        let fixed = document.fixed(&|| true).expect("safe fixes");
        assert_eq!(&**fixed.robots.bytes(), b"User-agent: *\nDisallow: /\n");
        assert!(is_kept(&document));
        document.change(Some(2), Vec::new());
        assert!(!is_kept(&document));
    }
}
