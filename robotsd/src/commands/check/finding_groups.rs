//! The findings about one file, grouped by code, for people: a file may repeat one slip in every line.

use std::io::{self, Write};

use tower_robots::check::{Finding, Report, Severity};

use crate::render::{self, Checked, Colour, finding_line, printable};

/// Findings of one code that are shown whole; of more only the first is.
const SHOWN_WHOLE: usize = 3;

/// Lines of further findings that are named.
const LINES: usize = 8;

/// Whether notes are shown, or only counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShownNotes {
    Counted,
    Each,
}

/// Every group of a report: errors first, then by place.
#[derive(Debug)]
pub(super) struct FindingGroups<'r>(Vec<FindingGroup<'r>>);

/// The findings of one code and one severity.
#[derive(Debug)]
pub(super) struct FindingGroup<'r> {
    first: &'r Finding,
    others: Vec<&'r Finding>,
    /// Those included that the report counts and does not hold.
    count: usize,
}

impl<'r> FindingGroups<'r> {
    pub(super) fn of(report: &'r Report) -> Self {
        let mut groups: Vec<FindingGroup<'r>> = Vec::new();
        for finding in report {
            let is_same = |group: &&mut FindingGroup<'_>| {
                (group.first.code(), group.first.severity()) == (finding.code(), finding.severity())
            };
            match groups.iter_mut().find(is_same) {
                Some(group) => group.others.push(finding),
                None => {
                    let count = report.count_of(finding.code(), finding.severity());
                    groups.push(FindingGroup { first: finding, others: Vec::new(), count });
                }
            }
        }
        groups.sort_by_key(|group| std::cmp::Reverse(group.first.severity()));
        Self(groups)
    }

    /// The code that is found most often, and how often.
    pub(super) fn most_frequent(&self) -> Option<(&'static str, usize)> {
        self.0.iter().rev().max_by_key(|group| group.count).map(|group| (group.first.code(), group.count))
    }

    /// A snippet for each code, or for each finding where there are few.
    pub(super) fn write_snippets(
        &self,
        out: &mut impl Write,
        colour: Colour,
        checked: Checked<'_>,
        notes: ShownNotes,
    ) -> io::Result<()> {
        for group in self.shown(notes) {
            render::snippet(out, colour, checked, group.first)?;
            if group.count > SHOWN_WHOLE {
                let indent = group.first.line().to_string().len();
                writeln!(out, "{:indent$} = {}; --verbose shows each", "", group.further())?;
            } else {
                for finding in &group.others {
                    writeln!(out)?;
                    render::snippet(out, colour, checked, finding)?;
                }
            }
            writeln!(out)?;
        }
        let counted: Vec<_> = self.counted(notes).collect();
        if counted.is_empty() {
            return Ok(());
        }
        writeln!(out, "notes, which --notes shows:")?;
        let name = printable(checked.name.as_bytes());
        let width = counted.iter().map(|group| group.count.to_string().len()).max().unwrap_or(0);
        for group in counted {
            let place = format!("{name}:{}:{}", group.first.line(), group.first.column());
            writeln!(out, "  {:>width$} × {}, {} {place}", group.count, group.first.code(), group.at())?;
        }
        writeln!(out)
    }

    /// A line for each code; the notes together are one.
    pub(super) fn write_lines(&self, out: &mut impl Write, name: &str, notes: ShownNotes) -> io::Result<()> {
        for group in self.shown(notes) {
            let (line, code) = (finding_line(name, group.first), group.first.code());
            match group.count {
                1 => writeln!(out, "{line} [{code}]")?,
                _ => writeln!(out, "{line} [{code}; {}]", group.further())?,
            }
        }
        let counted = |group: &FindingGroup<'_>| {
            let (line, column) = (group.first.line(), group.first.column());
            format!("{} × {}, {} {line}:{column}", group.count, group.first.code(), group.at())
        };
        let counted: Vec<_> = self.counted(notes).map(counted).collect();
        match counted.is_empty() {
            true => Ok(()),
            false => writeln!(out, "{}: notes: {}", printable(name.as_bytes()), counted.join("; ")),
        }
    }

    fn shown(&self, notes: ShownNotes) -> impl Iterator<Item = &FindingGroup<'r>> {
        self.0.iter().filter(move |group| notes == ShownNotes::Each || group.first.severity() != Severity::Note)
    }

    fn counted(&self, notes: ShownNotes) -> impl Iterator<Item = &FindingGroup<'r>> {
        self.0.iter().filter(move |group| notes == ShownNotes::Counted && group.first.severity() == Severity::Note)
    }
}

impl FindingGroup<'_> {
    /// As in `first at`, or `at` where there is one.
    const fn at(&self) -> &'static str {
        if self.count == 1 { "at" } else { "first at" }
    }

    /// As in `427 more, in lines 13, 14 and others`.
    fn further(&self) -> String {
        let mut lines: Vec<usize> = self.others.iter().map(|finding| finding.line()).collect();
        lines.dedup();
        let named: Vec<_> = lines.iter().take(LINES).map(ToString::to_string).collect();
        let more = self.count - 1;
        let others = if lines.len() > LINES || more > self.others.len() { " and others" } else { "" };
        let plural = if lines.len() == 1 && others.is_empty() { "" } else { "s" };
        format!("{more} more, in line{plural} {}{others}", named.join(", "))
    }
}
