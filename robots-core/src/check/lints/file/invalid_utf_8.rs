//! `invalid-utf-8`: octets that are no text.

use crate::check::lint::*;
use crate::check::pattern::escaped;

pub(crate) const LINT: Lint = Lint {
    code: "invalid-utf-8",
    severity: Severity::Warning,
    summary: "octets that are not UTF-8",
    why: "A robots.txt is UTF-8 (RFC 9309, section 2.2), and the paths a browser or crawler requests are UTF-8 with \
          \"%\" escapes. A path saved in another encoding, such as Latin-1, is compared octet by octet and matches \
          nothing; the help guesses the encoding. In a comment it does no harm and is only noted.",
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
        format_args!("{} is not UTF-8: it matches no path, because requests hold paths in UTF-8", Quoted(path)),
    )
    .help_with(|| {
        let Some((encoding, text)) = guessed(path) else {
            return Some("save the file as UTF-8, and write letters outside ASCII as \"%\" escapes".to_owned());
        };
        let [text, escaped] = [text.as_bytes(), &escaped(text.as_bytes())].map(|text| Quoted(text).to_string());
        Some(format!(
            "save the file as UTF-8: if it is {encoding}, the path is {text}, which requests hold as {escaped}"
        ))
    });
}

/// The encoding that a path was most likely written in, and the path.
fn guessed(path: &[u8]) -> Option<(&'static str, String)> {
    /// The letters of KOI8-R from 0xC0 on, in lower case; from 0xE0 on they are in upper case.
    const KOI8: &str = "юабцдефгхийклмнопярстужвьызшэщчъ";
    let count = |is_one: fn(&u8) -> bool| path.iter().filter(|octet| is_one(octet)).count();
    let high = count(|octet| *octet >= 0x80);
    let touches = |pair: &[u8]| pair.iter().any(|octet| *octet >= 0x80) && pair.iter().any(u8::is_ascii_alphabetic);
    if path.windows(2).any(touches) {
        // Letters of both kinds in one word.
        let is_latin = count(|octet| *octet >= 0xC0 && !matches!(octet, 0xD7 | 0xF7)) == high;
        return is_latin.then(|| ("ISO-8859-1", path.iter().copied().map(char::from).collect()));
    }
    let is_word = path.windows(2).any(|pair| pair.iter().all(|octet| *octet >= 0xC0));
    if !is_word || count(|octet| matches!(octet, 0xC0..|0xA3| 0xA8 | 0xB8)) != high {
        return None;
    }
    // Most letters are in lower case.
    if count(|octet| *octet >= 0xE0) * 2 < high {
        let letter = |octet: u8| KOI8.chars().nth(usize::from(octet & 0x1F)).unwrap_or(char::REPLACEMENT_CHARACTER);
        let of_koi8 = |octet: &u8| match octet {
            0xE0.. => letter(*octet).to_uppercase().collect(),
            0xC0.. => letter(*octet).to_string(),
            0xA3 => "ё".to_owned(),
            _ => char::from(*octet).to_string(),
        };
        return Some(("KOI8-R", path.iter().map(of_koi8).collect()));
    }
    let of_1251 = |octet: &u8| match octet {
        0xC0.. => char::from_u32(u32::from('А') + u32::from(octet - 0xC0)).unwrap_or(char::REPLACEMENT_CHARACTER),
        0xA8 => 'Ё',
        0xB8 => 'ё',
        _ => char::from(*octet),
    };
    Some(("windows-1251", path.iter().map(of_1251).collect()))
}
