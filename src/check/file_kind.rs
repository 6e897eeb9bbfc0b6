//! What a file is: rules, or something that only bears the name robots.txt.

use std::fmt;

use super::html;
use crate::rules::RobotsTxt;

/// Octets that are looked at where no mark says it.
const SAMPLE: usize = 64;

/// What a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    /// Text in which rules may stand.
    Rules,
    /// A web page.
    Html,
    /// Text of two octets a character.
    Utf16,
    /// No text.
    Binary,
}

impl FileKind {
    pub(crate) fn of(robots: &RobotsTxt) -> Self {
        if utf_16_form(robots.bytes()).is_some() {
            Self::Utf16
        } else if html::first_tag(robots).is_some() {
            Self::Html
        } else if is_binary(robots.bytes()) {
            Self::Binary
        } else {
            Self::Rules
        }
    }
}

/// Whether a file was never text. Text in an old encoding has octets that are not UTF-8, and damaged text may hold a
/// control character or two, but only an image or an archive is made of both.
pub(super) fn is_binary(file: &[u8]) -> bool {
    let is_control = |byte: &u8| matches!(byte, 0..=8 | 0x0E..=0x1F | 0x7F);
    let controls = file.iter().filter(|byte| is_control(byte)).count();
    if controls * 32 <= file.len() {
        return false;
    }
    let invalid: usize = file.utf8_chunks().map(|chunk| chunk.invalid().len()).sum();
    (controls + invalid) * 5 > file.len()
}

/// The order of the two octets of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Utf16Form {
    LittleEndian,
    BigEndian,
}

impl fmt::Display for Utf16Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::LittleEndian => "UTF-16 (little endian)",
            Self::BigEndian => "UTF-16 (big endian)",
        })
    }
}

/// Which UTF-16 a file is.
pub(super) fn utf_16_form(file: &[u8]) -> Option<Utf16Form> {
    match file {
        [0xFF, 0xFE, ..] => return Some(Utf16Form::LittleEndian),
        [0xFE, 0xFF, ..] => return Some(Utf16Form::BigEndian),
        _ => {}
    }
    let sample = &file[..file.len().min(SAMPLE)];
    if sample.len() < 16 {
        return None;
    }
    let every = |first: usize, zero: bool| sample.iter().skip(first).step_by(2).all(|octet| (*octet == 0) == zero);
    if every(0, false) && every(1, true) {
        Some(Utf16Form::LittleEndian)
    } else if every(0, true) && every(1, false) {
        Some(Utf16Form::BigEndian)
    } else {
        None
    }
}
