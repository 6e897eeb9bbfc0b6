//! The parts of a file that are not read, and why.

use super::line::Lines;
#[cfg(doc)]
use super::line::MAX_LINE;

/// A line, or a part of one, that no crawler reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Note {
    line: usize,
    kind: NoteKind,
}

/// Why a [`Note`] was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoteKind {
    /// Octets of a byte order mark were skipped.
    ByteOrderMark,
    /// The line has no separator, or no name in front of it.
    Malformed,
    /// A rule stands before any user-agent line.
    RuleOutsideGroup,
    /// The line is longer than [`MAX_LINE`]; the rest of it was ignored.
    LongLine,
    /// The line holds a NUL; what follows it was ignored.
    Nul,
    /// The value of a host line is not one host.
    InvalidHost,
    /// An earlier host line counts.
    RepeatedHost,
    /// The value of a crawl-delay line is not a number of seconds.
    InvalidCrawlDelay,
    /// The line reaches past the octets that the reading counts, so it was dropped.
    CutLine,
    /// This line and all that follow stand past the octets that the reading counts.
    PastLimit,
}

impl Note {
    pub(super) const fn new(line: usize, kind: NoteKind) -> Self {
        Self { line, kind }
    }

    /// The line it is about.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> NoteKind {
        self.kind
    }
}

/// The parts lost of a file of which only the first `limit` octets count.
pub(super) fn past_limit(file: &[u8], limit: usize) -> Vec<Note> {
    if file.len() <= limit {
        return Vec::new();
    }
    let mut notes = Vec::new();
    for line in Lines::new(file).skip_while(|line| line.range().end <= limit) {
        if line.range().start >= limit {
            notes.push(Note::new(line.number(), NoteKind::PastLimit));
            break;
        }
        if line.content().end > limit {
            notes.push(Note::new(line.number(), NoteKind::CutLine));
        }
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_a_cut_line_and_those_behind_it_are_noted() {
        let file = b"user-agent: *\ndisallow: /a\ndisallow: /b\n";
        let notes = |limit| past_limit(file, limit).iter().map(|note| (note.line(), note.kind())).collect::<Vec<_>>();
        assert_eq!(notes(40), []);
        assert_eq!(notes(39), [(4, NoteKind::PastLimit)]);
        assert_eq!(notes(30), [(3, NoteKind::CutLine), (4, NoteKind::PastLimit)]);
        assert_eq!(notes(26), [(3, NoteKind::PastLimit)]);
    }
}
