//! The field sections of a server (HPACK, RFC 7541) with its Huffman code, looked at before h2 decodes them.
//!
//! To h2 a field that HTTP does not allow is an error of the whole connection: it stops there, and later blocks would be read with another
//! table than the server's. Here such a section is distinguished from others, and what of it belongs into the table is written down, so
//! that h2 reads the rest of the connection.

use std::collections::VecDeque;

use http::StatusCode;
use http::header::HeaderName;

/// The size of the table that a server may use, unless a setting says otherwise.
const TABLE: usize = 4096;

/// The octets of an entry beside its text.
const ENTRY: usize = 32;

/// A piece of what belongs into the table is no larger, so that it fits a frame. A text that takes more, in codes of up to thirty
/// bits an octet, is larger than the table.
const PIECE: usize = 16_000;

/// The fields of all sections of a connection so far, as far as its table remembers them.
#[derive(Debug)]
pub(super) struct FieldBlocks {
    /// The newest first.
    table: VecDeque<Field>,
    size: usize,
    most: usize,
    /// The string that was read last.
    text: Vec<u8>,
    /// The part of the current section that belongs into the table, in pieces of whole fields.
    kept: Vec<Vec<u8>>,
}

/// The properties of a field that have to be known.
#[derive(Clone, Copy, Debug)]
struct Field {
    name: NameKind,
    name_length: usize,
    value_length: usize,
    /// The fault.
    fault: Option<&'static str>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NameKind {
    Usual,
    Status,
    Bad(&'static str),
}

/// A section that is no part of a response.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct BadSection {
    pub(super) why: &'static str,
    /// The part of it that belongs into the table, without anything that h2 would stop at.
    pub(super) kept: Vec<Vec<u8>>,
}

/// This is not HPACK, or cannot be distinguished from it: the connection is over, as h2 will find.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NotHpack;

const BAD_NAME: &str = "a field of the response has a name that HTTP does not allow";
const BAD_VALUE: &str = "a field of the response has octets that HTTP does not allow";
const BAD_STATUS: &str = "the status of the response is no number of three digits";
const BAD_PSEUDO: &str = "a pseudo-header of the response is unknown";
const TOO_LARGE: &str = "the response head is too large";

/// The lengths of the names in the table that needs no server (appendix A).
#[rustfmt::skip]
const STATIC_NAMES: [u8; 61] = [
    10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13, 19, 16, 16, 14, 16, 13, 12, 6, 4, 4, 6,
    7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12, 18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
];

/// The longest value in it.
const STATIC_VALUE: usize = 13;

impl Default for FieldBlocks {
    fn default() -> Self {
        Self { table: VecDeque::new(), size: 0, most: TABLE, text: Vec::new(), kept: vec![Vec::new()] }
    }
}

impl FieldBlocks {
    /// Reads a section. It is bad where h2 would end the connection at a field, or at the size of the whole, of which it bears four
    /// times what the settings allow the server.
    pub(super) fn check(&mut self, block: &[u8], told: usize) -> Result<Option<BadSection>, NotHpack> {
        self.kept.truncate(1);
        self.kept.iter_mut().for_each(Vec::clear);
        let (mut why, mut list) = (None, 0);
        let mut left = Octets { octets: block, at: 0 };
        while let Some(first) = block.get(left.at) {
            let start = left.at;
            let field = match first {
                0x80.. => self.field(left.number(7)?)?,
                0x20..=0x3f => {
                    self.resize(left.number(5)?)?;
                    self.keep(&[&block[start..left.at]]);
                    continue;
                }
                _ => self.literal(&mut left, start, *first >= 0x40)?,
            };
            list += field.size();
            why = why.or(field.fault).or((list > 2 * told).then_some(TOO_LARGE));
        }
        Ok(why
            .map(|why| BadSection { why, kept: self.kept.iter().filter(|piece| !piece.is_empty()).cloned().collect() }))
    }

    fn literal(&mut self, left: &mut Octets<'_>, start: usize, is_kept: bool) -> Result<Field, NotHpack> {
        let (name, name_length) = match left.number(if is_kept { 6 } else { 4 })? {
            0 => {
                left.string(&mut self.text)?;
                (NameKind::of(&self.text), self.text.len())
            }
            index => self.field(index).map(|field| (field.name, field.name_length))?,
        };
        let name_end = left.at;
        left.string(&mut self.text)?;
        let mut field = Field { name, name_length, value_length: self.text.len(), fault: name.fault_with(&self.text) };
        if !is_kept {
            return Ok(field);
        }
        if field.fault.is_none() && left.at - start <= PIECE {
            self.keep(&[&left.octets[start..left.at]]);
        } else if name == NameKind::Usual && name_end - start <= PIECE / 2 {
            self.keep(&[&left.octets[start..name_end], &filler(field.value_length)]);
        } else {
            // It has a size in the table, whatever it is. A name has an octet at least.
            let total = name_length + field.value_length;
            let name_length = name_length.clamp(1, total.max(1));
            let value_length = total.checked_sub(name_length).ok_or(NotHpack)?;
            self.keep(&[&[0x40], &filler(name_length), &filler(value_length)]);
            field.name = NameKind::Bad(field.fault.unwrap_or(TOO_LARGE));
            field.fault = field.fault.or(Some(TOO_LARGE));
        }
        self.insert(field);
        Ok(field)
    }

    /// The field of an index.
    fn field(&self, index: usize) -> Result<Field, NotHpack> {
        let at = index.checked_sub(1).ok_or(NotHpack)?;
        let Some(length) = STATIC_NAMES.get(at) else {
            return self.table.get(at - STATIC_NAMES.len()).copied().ok_or(NotHpack);
        };
        let name = match index {
            1..=7 => NameKind::Bad(BAD_PSEUDO),
            8..=14 => NameKind::Status,
            _ => NameKind::Usual,
        };
        let fault = if let NameKind::Bad(why) = name { Some(why) } else { None };
        Ok(Field { name, name_length: usize::from(*length), value_length: STATIC_VALUE, fault })
    }

    fn keep(&mut self, parts: &[&[u8]]) {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        if self.kept.last().is_none_or(|piece| piece.len() + length > PIECE) {
            self.kept.push(Vec::new());
        }
        if let Some(piece) = self.kept.last_mut() {
            parts.iter().for_each(|part| piece.extend_from_slice(part));
        }
    }

    fn insert(&mut self, field: Field) {
        self.table.push_front(field);
        self.size += field.size();
        self.evict();
    }

    fn resize(&mut self, most: usize) -> Result<(), NotHpack> {
        if most > TABLE {
            return Err(NotHpack);
        }
        self.most = most;
        self.evict();
        Ok(())
    }

    fn evict(&mut self) {
        while self.size > self.most {
            let Some(oldest) = self.table.pop_back() else { return };
            self.size -= oldest.size();
        }
    }
}

impl Field {
    fn size(&self) -> usize {
        self.name_length + self.value_length + ENTRY
    }
}

impl NameKind {
    fn of(name: &[u8]) -> Self {
        match name {
            b":status" => Self::Status,
            [b':', ..] => Self::Bad(BAD_PSEUDO),
            name if HeaderName::from_lowercase(name).is_ok() => Self::Usual,
            _ => Self::Bad(BAD_NAME),
        }
    }

    /// The fault of a field of this name that has this value.
    fn fault_with(self, value: &[u8]) -> Option<&'static str> {
        let is_allowed = |octet: &u8| matches!(octet, b'\t' | b' '..=b'~' | 0x80..);
        match self {
            Self::Bad(why) => Some(why),
            Self::Status => StatusCode::from_bytes(value).is_err().then_some(BAD_STATUS),
            Self::Usual => (!value.iter().all(is_allowed)).then_some(BAD_VALUE),
        }
    }
}

/// Octets of a section that are read one after the other.
struct Octets<'a> {
    octets: &'a [u8],
    at: usize,
}

impl Octets<'_> {
    fn next(&mut self) -> Result<u8, NotHpack> {
        let octet = *self.octets.get(self.at).ok_or(NotHpack)?;
        self.at += 1;
        Ok(octet)
    }

    /// A number that begins in the last bits of an octet (section 5.1).
    fn number(&mut self, bits: u32) -> Result<usize, NotHpack> {
        let most = (1 << bits) - 1;
        let mut number = usize::from(self.next()?) & most;
        if number < most {
            return Ok(number);
        }
        for shift in [0, 7, 14, 21] {
            let octet = self.next()?;
            number += usize::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Ok(number);
            }
        }
        Err(NotHpack)
    }

    /// A string, which is decoded into `text` (section 5.2).
    fn string(&mut self, text: &mut Vec<u8>) -> Result<(), NotHpack> {
        let is_huffman = self.octets.get(self.at).is_some_and(|first| *first >= 0x80);
        let length = self.number(7)?;
        let string = self.octets.get(self.at..self.at + length).ok_or(NotHpack)?;
        self.at += length;
        text.clear();
        if is_huffman {
            decode(string, text);
        } else {
            text.extend_from_slice(string);
        }
        Ok(())
    }
}

/// A string of this length that any name or value may have. An entry that is larger than the table empties it, however large it is.
fn filler(length: usize) -> Vec<u8> {
    let length = length.min(TABLE);
    let mut octets = Vec::with_capacity(length + 3);
    match length.checked_sub(0x7f) {
        None => octets.push(length as u8),
        Some(rest) if rest < 0x80 => octets.extend([0x7f, rest as u8]),
        Some(rest) => octets.extend([0x7f, rest as u8 | 0x80, (rest >> 7) as u8]),
    }
    octets.resize(octets.len() + length, b'x');
    octets
}

/// The length of the Huffman code of each octet, in bits (RFC 7541, appendix B). The code is canonical, so the lengths
/// say all of it.
#[rustfmt::skip]
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];

const LONGEST: usize = 30;

/// The octets in the order of their codes, and how many codes there are of each length.
const CODES: ([u8; 256], [u32; LONGEST + 1]) = {
    let (mut octets, mut counts) = ([0; 256], [0; LONGEST + 1]);
    let (mut length, mut at) = (0, 0);
    while length <= LONGEST {
        let mut octet = 0;
        while octet < 256 {
            if LENGTHS[octet] as usize == length {
                octets[at] = octet as u8;
                at += 1;
                counts[length] += 1;
            }
            octet += 1;
        }
        length += 1;
    }
    (octets, counts)
};

/// Decodes into `octets`, up to the padding, or up to what is no code.
pub(super) fn decode(coded: &[u8], octets: &mut Vec<u8>) {
    // The code so far, the first one of its length, and the octets that have shorter ones.
    let (mut code, mut first, mut shorter, mut length) = (0_u32, 0_u32, 0_u32, 0);
    for bit in coded.iter().flat_map(|octet| (0..8).rev().map(move |at| octet >> at & 1)) {
        length += 1;
        (code, first) = (code << 1 | u32::from(bit), first << 1);
        let Some(count) = CODES.1.get(length) else { return };
        if code - first < *count {
            octets.push(CODES.0[(shorter + code - first) as usize]);
            (code, first, shorter, length) = (0, 0, 0, 0);
        } else {
            (first, shorter) = (first + count, shorter + count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn string(text: &str) -> Vec<u8> {
        [&[text.len() as u8], text.as_bytes()].concat()
    }

    /// A literal, which the table keeps or does not.
    fn literal(first: u8, name: &str, value: &str) -> Vec<u8> {
        [vec![first], string(name), string(value)].concat()
    }

    fn bad(why: &'static str, kept: &[&[u8]]) -> Result<Option<BadSection>, NotHpack> {
        let kept = kept.concat();
        Ok(Some(BadSection { why, kept: if kept.is_empty() { Vec::new() } else { vec![kept] } }))
    }

    #[test]
    fn what_http_allows_passes() {
        let mut blocks = FieldBlocks::default();
        let date = [
            &[0x0f, 0x12, 0x96][..],
            &[
                0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66, 0xe0,
                0x82, 0xa6, 0x2d, 0x1b, 0xff,
            ],
        ];
        let block = [&[0x20, 0x3f, 0xe1, 0x1f, 0x88][..], &date.concat(), &literal(0x40, "x-a", "\t\u{e9} ~"), &[0xbe]]
            .concat();
        assert_eq!(blocks.check(&block, 65_536), Ok(None));
        // The table is that of the connection.
        assert_eq!(blocks.check(&[0x88, 0xbe], 65_536), Ok(None));
        assert_eq!(blocks.check(&[0x88, 0xbf], 65_536), Err(NotHpack));
    }

    #[test]
    fn what_it_does_not_allow_leaves_the_table_as_the_server_has_it() {
        let mut blocks = FieldBlocks::default();
        let good = literal(0x40, "x-a", "1");
        for (fault, why) in [
            (literal(0, "x-b", "1\n"), BAD_VALUE),
            (literal(0x10, "x-b", "\u{7f}"), BAD_VALUE),
            (literal(0, "X-b", "1"), BAD_NAME),
            (literal(0, "", "1"), BAD_NAME),
            (literal(0, ":path", "1"), BAD_PSEUDO),
            (vec![0x84], BAD_PSEUDO),
            ([vec![0x08], string("099")].concat(), BAD_STATUS),
            ([vec![0x08], string("2000")].concat(), BAD_STATUS),
        ] {
            let block = [&[0x88][..], &good, &fault].concat();
            assert_eq!(blocks.check(&block, 65_536), bad(why, &[&good]), "{fault:?}");
        }
        // A bad entry that is kept has its size there, and stays bad: a name, and a value only as long as it is meant.
        let kept = literal(0x40, "x-c", "a\nb");
        assert_eq!(blocks.check(&kept, 65_536), bad(BAD_VALUE, &[&literal(0x40, "x-c", "xxx")]));
        assert_eq!(blocks.check(&[0xbe], 65_536), bad(BAD_VALUE, &[]));
        let again = [vec![0x7e], string("fine")].concat();
        assert_eq!(blocks.check(&again, 65_536), Ok(None));
        let kept = literal(0x40, "X-C", "fine");
        assert_eq!(blocks.check(&kept, 65_536), bad(BAD_NAME, &[&literal(0x40, "xxx", "xxxx")]));
        let want = bad(BAD_NAME, &[&literal(0x40, "xxx", "xxxx")]);
        assert_eq!(blocks.check(&[vec![0x7e], string("fine")].concat(), 65_536), want);
        let empty = literal(0x40, "", "ab");
        assert_eq!(blocks.check(&empty, 65_536), bad(BAD_NAME, &[&literal(0x40, "x", "x")]));
        let kept = [vec![0x48], string("2000")].concat();
        assert_eq!(blocks.check(&kept, 65_536), bad(BAD_STATUS, &[&literal(0x40, "xxxxxxx", "xxxx")]));
    }

    #[test]
    fn the_table_keeps_what_fits() {
        let mut blocks = FieldBlocks::default();
        for _ in 0..1_000 {
            assert_eq!(blocks.check(&literal(0x40, "x-a", &"a".repeat(61)), 65_536), Ok(None));
        }
        assert_eq!((blocks.table.len(), blocks.size), (4096 / 96, 4096 / 96 * 96));
        let none = [0x20];
        assert_eq!(blocks.check(&none, 65_536), Ok(None));
        assert_eq!((blocks.table.len(), blocks.size), (0, 0));
    }

    #[test]
    fn a_head_beyond_the_bound_is_bad_however_few_octets_say_it() {
        let mut blocks = FieldBlocks::default();
        let large = literal(0x40, "x-a", &"a".repeat(100));
        assert_eq!(blocks.check(&large, 10_000), Ok(None));
        assert_eq!(blocks.check(&[0xbe; 148], 10_000), Ok(None));
        assert_eq!(blocks.check(&[0xbe; 149], 10_000), bad(TOO_LARGE, &[]));
    }

    #[test]
    fn what_is_no_hpack_is_told() {
        for block in
            [&[0x80][..], &[0xff, 0xff, 0xff, 0xff, 0xff, 0x01], &[0x40, 0x05, b'a'], &[0x3f, 0xe2, 0x1f], &[0x40]]
        {
            assert_eq!(FieldBlocks::default().check(block, 65_536), Err(NotHpack), "{block:?}");
        }
    }

    fn decoded(coded: &[u8]) -> Vec<u8> {
        let mut octets = Vec::new();
        decode(coded, &mut octets);
        octets
    }

    #[test]
    fn the_examples_of_the_standard_are_read() {
        // RFC 7541, appendix C.4 and C.6.
        let host = [0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff];
        assert_eq!(decoded(&host), b"www.example.com");
        let date = [
            0xd0, 0x7a, 0xbe, 0x94, 0x10, 0x54, 0xd4, 0x44, 0xa8, 0x20, 0x05, 0x95, 0x04, 0x0b, 0x81, 0x66, 0xe0, 0x82,
            0xa6, 0x2d, 0x1b, 0xff,
        ];
        assert_eq!(decoded(&date), b"Mon, 21 Oct 2013 20:13:21 GMT");
    }

    #[test]
    fn the_longest_codes_are_read_and_what_is_none_ends_it() {
        // NUL has 13 bits; LF, CR and 22 have the first codes of 30, and after those comes EOS.
        assert_eq!(decoded(&[0xff, 0xc7]), [0]);
        for (last, octet) in [(0xf3, b'\n'), (0xf7, b'\r'), (0xfb, 22)] {
            assert_eq!(decoded(&[0xff, 0xff, 0xff, last]), [octet]);
        }
        assert_eq!(decoded(&[0xff; 16]), b"");
    }
}
