//! The content of a config, followed by the content of the files that it includes. Every span in
//! the settings is a position in this joined text. A comparison of two configs therefore also
//! compares the sites in their included files.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tower_robots::check::Severity;

use super::{ConfigError, Fault};
use crate::render::FoundProblem;

/// The files that a joined text consists of: first the config, then the files that it includes.
// `Debug` omits the positions, because two configs with the same settings must have the same
// output.
#[derive(Clone, derive_more::Debug)]
#[debug("Parts")]
pub(crate) struct Parts(Vec<(PathBuf, Range<usize>)>);

impl Parts {
    pub(super) fn one(path: &Path, text: &str) -> Self {
        Self(vec![(path.to_owned(), 0..text.len())])
    }

    /// Joins the content of a config with the content of its included files. An included file
    /// without content gets an empty range.
    pub(super) fn join<'t>(
        path: &Path,
        text: &Arc<str>,
        files: impl ExactSizeIterator<Item = (&'t Path, Option<&'t str>)>,
    ) -> (Arc<str>, Self) {
        let mut parts = Self::one(path, text);
        if files.len() == 0 {
            return (Arc::clone(text), parts);
        }
        let mut joined = text.to_string();
        for (path, text) in files {
            if !joined.ends_with('\n') {
                joined.push('\n');
            }
            let start = joined.len();
            joined.push_str(text.unwrap_or_default());
            parts.0.push((path.to_owned(), start..joined.len()));
        }
        (joined.into(), parts)
    }

    /// Returns the index of the file that contains the byte at this offset. The config has index 0.
    pub(super) fn of(&self, byte: usize) -> usize {
        let before = self.0.partition_point(|(_, range)| range.start <= byte);
        self.0[..before].iter().rposition(|(_, range)| !range.is_empty()).unwrap_or(0)
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|(path, _)| &**path)
    }

    pub(super) fn path(&self, number: usize) -> &Path {
        &self.0[number].0
    }

    /// Returns the folder of the file that contains the byte at this offset. Paths in the file are
    /// relative to this folder.
    pub(super) fn folder(&self, byte: usize) -> &Path {
        self.path(self.of(byte)).parent().unwrap_or(Path::new(""))
    }

    pub(crate) fn diagnostic(&self, severity: Severity, text: &str, fault: &Fault) -> FoundProblem {
        let (path, range) = &self.0[self.of(fault.span.start)];
        let span = fault.span.start.saturating_sub(range.start)..fault.span.end.saturating_sub(range.start);
        let text = text.get(range.clone()).unwrap_or_default();
        Fault { span, ..fault.clone() }.diagnostic(severity, &path.to_string_lossy(), text)
    }

    pub(super) fn errors(&self, text: &str, faults: Vec<Fault>) -> BTreeMap<usize, ConfigError> {
        let mut by_part: BTreeMap<usize, Vec<Fault>> = BTreeMap::new();
        for fault in faults {
            by_part.entry(self.of(fault.span.start)).or_default().push(fault);
        }
        by_part.into_iter().map(|(part, faults)| (part, self.error(text, faults))).collect()
    }

    /// Creates an error from problems in the joined text; `faults` must not be empty.
    pub(super) fn error(&self, text: &str, faults: Vec<Fault>) -> ConfigError {
        ConfigError::with(self.path(0), text, faults, |fault| self.diagnostic(Severity::Error, text, fault))
    }
}
