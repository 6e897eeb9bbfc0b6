//! Converts between byte offsets in an open document and the positions of the protocol, with an
//! index of the lines.
//!
//! **Lines end as in robots.txt**: at LF, CR or CRLF. The language server protocol defines lines in
//! the same way. After an edit, only line starts within the edited range are recomputed, so the
//! server stays fast even if an editor sends 200 edits of a 5 MB document at once.

use std::ops;

use super::protocol::{ContentChange, Position, PositionEncoding, Range};

#[derive(Clone, Debug)]
pub(super) struct TextBuffer {
    text: String,
    encoding: PositionEncoding,
    /// Byte offset of the start of each line; the first is 0.
    starts: Vec<usize>,
}

impl TextBuffer {
    pub(super) fn new(text: String, encoding: PositionEncoding) -> Self {
        let mut buffer = Self { text, encoding, starts: vec![0] };
        buffer.starts = buffer.starts_within(0..buffer.text.len() + 1);
        buffer
    }

    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Applies a change. If the range of the change ends before it starts, the range counts as
    /// empty.
    pub(super) fn apply(&mut self, change: ContentChange) {
        let Some(range) = change.range else {
            *self = Self::new(change.text, self.encoding);
            return;
        };
        let start = self.offset(range.start);
        let end = self.offset(range.end).max(start);
        self.text.replace_range(start..end, &change.text);
        let new_end = start + change.text.len();
        // Whether a line starts at an offset depends on the byte before the offset and, if this
        // byte is a CR, also on the byte after the offset.
        let kept = self.starts.partition_point(|known| *known < start);
        let next = self.starts.partition_point(|known| *known <= end);
        let inside = self.starts_within(start..new_end + 1);
        let inside_count = inside.len();
        self.starts.splice(kept..next, inside);
        for known in &mut self.starts[kept + inside_count..] {
            *known = *known - end + new_end;
        }
    }

    /// Returns the byte offset of a position. A position after the end of its line is treated as
    /// the position before the line end. A position inside a character, such as between two
    /// surrogates, counts as the start of the character.
    pub(super) fn offset(&self, position: Position) -> usize {
        let line = position.line as usize;
        if line >= self.starts.len() {
            return self.text.len();
        }
        let line = self.line(line);
        let mut left = position.character as usize;
        for (at, char) in self.text[line.clone()].char_indices() {
            let length = self.encoding.length(char);
            if left < length {
                return line.start + at;
            }
            left -= length;
        }
        line.end
    }

    /// Returns the position of a byte offset. An offset inside a character counts as the start of
    /// the character.
    pub(super) fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.starts.partition_point(|start| *start <= offset).saturating_sub(1);
        let before = &self.text[self.starts[line]..offset];
        let character = match self.encoding {
            PositionEncoding::Utf8 => before.len(),
            PositionEncoding::Utf16 => before.encode_utf16().count(),
        };
        let count = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
        Position { line: count(line), character: count(character) }
    }

    pub(super) fn range(&self, span: ops::Range<usize>) -> Range {
        Range { start: self.position(span.start), end: self.position(span.end) }
    }

    /// Returns the byte range of a line without its line end. `line` is counted from 0. If the line
    /// does not exist, the range is empty.
    pub(super) fn line(&self, line: usize) -> ops::Range<usize> {
        let Some(start) = self.starts.get(line).copied() else { return self.text.len()..self.text.len() };
        let end = self.starts.get(line + 1).copied().unwrap_or(self.text.len());
        start..start + self.text[start..end].trim_end_matches(['\r', '\n']).len()
    }

    fn starts_within(&self, range: ops::Range<usize>) -> Vec<usize> {
        let text = self.text.as_bytes();
        let is_start = |at: usize| match at.checked_sub(1).map(|before| text[before]) {
            None | Some(b'\n') => true,
            Some(b'\r') => text.get(at) != Some(&b'\n'),
            Some(_) => false,
        };
        let before = range.start.saturating_sub(1)..range.end.saturating_sub(1);
        let ends = memchr::memchr2_iter(b'\n', b'\r', &text[before.clone()]).map(|at| before.start + at + 1);
        let first = (range.start == 0).then_some(0);
        first.into_iter().chain(ends.filter(|at| range.contains(at) && is_start(*at))).collect()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn place(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn columns_depend_on_the_encoding() {
        let text = "Disallow: /😀/x y";
        for (encoding, column) in [(PositionEncoding::Utf8, 19), (PositionEncoding::Utf16, 17)] {
            let buffer = TextBuffer::new(text.to_owned(), encoding);
            assert_eq!(buffer.position(text.len()), place(0, column));
            assert_eq!(buffer.offset(place(0, column)), text.len());
            assert_eq!(buffer.offset(place(0, 12)), 11, "inside the emoji");
        }
    }

    #[test]
    fn a_position_outside_the_text_is_clamped() {
        let buffer = TextBuffer::new("a\r\nbc\rd\n".to_owned(), PositionEncoding::Utf16);
        for (position, want) in
            [(place(0, 9), 1), (place(1, 9), 5), (place(2, 0), 6), (place(3, 0), 8), (place(4, 0), 8), (place(9, 9), 8)]
        {
            assert_eq!(buffer.offset(position), want, "{position:?}");
        }
    }

    /// Pattern of test documents, with every kind of line end and characters of one to four bytes.
    const TEXT: &str = "[a/é😀\u{feff}\r\n]{0,12}";

    fn position() -> impl Strategy<Value = Position> {
        (0..6_u32, 0..8_u32).prop_map(|(line, character)| place(line, character))
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        #[test]
        fn applying_edits_gives_the_same_buffer_as_a_new_document(
            text in TEXT,
            is_utf8: bool,
            edits in prop::collection::vec((position(), position(), TEXT), 1..8),
        ) {
            let encoding = if is_utf8 { PositionEncoding::Utf8 } else { PositionEncoding::Utf16 };
            let mut edited = TextBuffer::new(text, encoding);
            for (start, end, text) in edits {
                let whole = TextBuffer::new(edited.text.clone(), encoding);
                let (from, to) = (whole.offset(start), whole.offset(end).max(whole.offset(start)));
                let want = [&whole.text[..from], &text, &whole.text[to..]].concat();
                edited.apply(ContentChange { range: Some(Range { start, end }), text });
                prop_assert_eq!(&edited.text, &want);
                prop_assert_eq!(&edited.starts, &TextBuffer::new(want, encoding).starts);
            }
        }

        #[test]
        fn every_offset_maps_to_a_position_and_back(text in TEXT, is_utf8: bool) {
            let encoding = if is_utf8 { PositionEncoding::Utf8 } else { PositionEncoding::Utf16 };
            let buffer = TextBuffer::new(text, encoding);
            for (at, _) in buffer.text.char_indices() {
                let is_inside_line_end = buffer.text[..at].ends_with('\r') && buffer.text[at..].starts_with('\n');
                prop_assert!(is_inside_line_end || buffer.offset(buffer.position(at)) == at);
            }
        }
    }
}
