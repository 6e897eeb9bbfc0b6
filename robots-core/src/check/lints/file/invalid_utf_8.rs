//! `invalid-utf-8`: bytes that are not UTF-8.

use crate::check::lint::*;
use crate::check::pattern::escaped;

pub(crate) const LINT: Lint = Lint {
    code: "invalid-utf-8",
    severity: Severity::Warning,
    summary: "bytes that are not UTF-8",
    why: "A robots.txt must be UTF-8 (RFC 9309, section 2.2), and requests of browsers and crawlers contain paths as \
          UTF-8 with \"%\" escapes. A path that was saved in another encoding, such as Latin-1, is compared byte by \
          byte and matches nothing. The help of the finding suggests the encoding that was probably used. In a \
          comment, such bytes have no effect, so the finding is only a note.",
    bad: Example::new(b"User-agent: *\nDisallow: /caf\xe9/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /caf%C3%A9/\n"),
    pass: Pass::Line(run),
    fix: None,
};

fn run(line: &Line<'_>, kind: &LineKind<'_>, sink: &mut Sink) {
    let Err(error) = std::str::from_utf8(line.bytes()) else { return };
    let start = line.range.start + error.valid_up_to();
    let length = error.error_len().unwrap_or(line.bytes().len() - error.valid_up_to());
    let severity = if start < line.content().end { LINT.severity } else { Severity::Note };
    let path = match kind {
        LineKind::Field(field) if is_rule(field) && field.value_range.contains(&start) => field.value,
        _ => {
            sink.report_at(severity, start..start + length, "the line is not UTF-8 from here on")
                .help("save the file as UTF-8, and write letters outside ASCII as \"%\" escapes in paths");
            return;
        }
    };
    sink.report_at(
        severity,
        start..start + length,
        format_args!(
            "{path} is not UTF-8: it matches no path, because requests contain paths in UTF-8",
            path = Quoted(path)
        ),
    )
    .help_with(|| {
        let Some((encoding, text)) = guessed(path) else {
            return Some("save the file as UTF-8, and write letters outside ASCII as \"%\" escapes".to_owned());
        };
        let [text, escaped] = [text.as_bytes(), &escaped(text.as_bytes())].map(|text| Quoted(text).to_string());
        Some(format!(
            "save the file as UTF-8: if its encoding is {encoding}, the path is {text}, which requests contain as \
             {escaped}"
        ))
    });
}

/// Returns the most likely encoding of a path, and the decoded path. `None` if the encoding is
/// unclear.
fn guessed(path: &[u8]) -> Option<(&'static str, String)> {
    let high = || path.iter().filter(|byte| **byte >= 0x80);
    let touches = |pair: &[u8]| pair.iter().any(|byte| *byte >= 0x80) && pair.iter().any(u8::is_ascii_alphabetic);
    if path.windows(2).any(touches) {
        // Bytes ≥ 0x80 next to ASCII letters are probably letters in Latin script. The encoding is
        // probably ISO-8859-1 if all bytes ≥ 0x80 are letters in it.
        let is_latin = high().all(|byte| matches!(byte, 0xC0..=0xD6 | 0xD8..=0xF6 | 0xF8..));
        return is_latin.then(|| ("ISO-8859-1", path.iter().copied().map(char::from).collect()));
    }
    let text: String = path.iter().copied().map(of_windows_1251).collect::<Option<_>>()?;
    // If a lower-case word in another Cyrillic encoding is decoded as windows-1251, the result is
    // in upper case. So windows-1251 is assumed only if all letters of each word, except the first
    // letter, are in lower case.
    let is_word = |pair: &[u8]| pair.iter().all(|byte| *byte >= 0x80);
    let is_small = |word: &str| word.chars().skip(1).all(char::is_lowercase);
    let words = text.split(|char: char| !char.is_alphabetic());
    (path.windows(2).any(is_word) && words.clone().all(is_small)).then_some(("windows-1251", text))
}

/// Decodes an ASCII character or a Russian, Ukrainian, Belarusian or Bulgarian letter; `None` for
/// other bytes.
fn of_windows_1251(byte: u8) -> Option<char> {
    Some(match byte {
        0..0x80 => char::from(byte),
        0xC0.. => char::from_u32(u32::from('\u{410}') + u32::from(byte - 0xC0))?,
        0xA8 => '\u{401}',
        0xAA => '\u{404}',
        0xAF => '\u{407}',
        0xB2 => '\u{406}',
        0xB3 => '\u{456}',
        0xB8 => '\u{451}',
        0xBA => '\u{454}',
        0xBF => '\u{457}',
        _ => return None,
    })
}
