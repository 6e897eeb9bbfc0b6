//! `content-usage-value`: a Content-Usage line whose value is invalid.

use crate::check::lint::*;

pub(crate) const LINT: Lint = Lint {
    code: "content-usage-value",
    severity: Severity::Warning,
    summary: "a Content-Usage line that is not a list of preferences",
    why: "Content-Usage is a field from the IETF's work on AI preferences. Its value is an optional path and a list \
          such as \"train-ai=n, search=y\", with a lower-case key and \"y\" or \"n\" in each item. An invalid \
          line states no preference. The set of keys is not final yet, so this lint accepts every key.",
    bad: Example::new(b"User-agent: *\nContent-Usage: train-ai: no\nDisallow: /private/\n"),
    good: Example::new(b"User-agent: *\nContent-Usage: /art/ train-ai=n, search=y\nDisallow: /private/\n"),
    pass: Pass::Named("content-usage", run),
    fix: Some(LintFix::new(|file, finding| file.with_value(finding, |value| corrected(value, words)))),
};

fn run(_: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let span = field.value_or_name();
    if let Some(item) = first_wrong(field.value, words) {
        sink.report(span, format_args!("{} is not a preference", Quoted(item)))
            .help("write keys with \"y\" or \"n\", such as \"train-ai=n, search=y\"");
    }
}

const fn words(_: &[u8]) -> &'static [&'static str] {
    &["y", "n"]
}

/// A function that returns the valid values of a key. If there are two valid values, the first one
/// means yes and the second one means no.
type Words = fn(&[u8]) -> &'static [&'static str];

/// Returns the first invalid item of a list `[/path] key=value, …`.
pub(super) fn first_wrong(value: &[u8], words: Words) -> Option<&[u8]> {
    let list = match value {
        [b'/', ..] => value[memchr::memchr2(b' ', b'\t', value).unwrap_or(value.len())..].trim_ascii(),
        _ => value,
    };
    let is_key = |key: &[u8]| {
        matches!(key, [b'a'..=b'z' | b'*', rest @ ..]
            if rest.iter().all(|byte| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'*')))
    };
    list.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).find(|item| {
        let Some(at) = memchr::memchr(b'=', item) else { return true };
        !is_key(&item[..at]) || !words(&item[..at]).iter().any(|word| word.as_bytes() == &item[at + 1..])
    })
}

/// Returns a corrected list: words such as `yes` and `false` are replaced with valid values, and
/// the colon in `train-ai: no` is replaced with `=`.
pub(super) fn corrected(value: &[u8], words: Words) -> Option<Vec<u8>> {
    let path = match value {
        [b'/', ..] => &value[..=memchr::memchr2(b' ', b'\t', value)?],
        _ => &value[..0],
    };
    let mut text = path.to_vec();
    for (at, item) in value[path.len()..].split(|byte| *byte == b',').enumerate() {
        let part = memchr::memchr2(b'=', b':', item)?;
        let key = item[..part].trim_ascii().to_ascii_lowercase();
        let written = item[part + 1..].trim_ascii().to_ascii_lowercase();
        let word = match (words(&key), written.as_slice()) {
            ([yes, _], b"y" | b"yes" | b"true" | b"1") => yes,
            ([_, no], b"n" | b"no" | b"false" | b"0") => no,
            (words, written) => words.iter().find(|word| word.as_bytes() == written)?,
        };
        text.extend_from_slice(if at == 0 { b"" } else { b", " });
        text.extend_from_slice(&[&key, b"=".as_slice(), word.as_bytes()].concat());
    }
    Some(text)
}
