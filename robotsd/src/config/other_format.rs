//! Files that are no TOML at all, so that one sentence says it in place of an error for every line.

use std::ops::Range;

use super::error::Fault;

/// The problem of a text that is another format; none where it may be TOML. `error` is where the parser first failed.
pub(super) fn recognize(text: &str, error: Option<Range<usize>>) -> Option<Fault> {
    if let Some(at) = text.find('\0') {
        let message = "the file holds NUL octets, so it is no text, or is encoded as UTF-16: save it as UTF-8";
        return Some(Fault::new(at..at + 1, message));
    }
    error?;
    let (start, line) = lines(text).find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let span = start..start + line.len();
    if line.starts_with('{') {
        let message = "this looks like JSON: the file is read as TOML, with [tables] and key = value";
        return Some(Fault::new(span, message));
    }
    if line.ends_with('{') {
        let message = "this looks like a block in braces, as nginx and Caddy have them: the file is read as TOML, with [tables] and key = value";
        return Some(Fault::new(span, message));
    }
    if line.starts_with('<') {
        return Some(Fault::new(
            span,
            "this looks like XML or HTML: the file is read as TOML, with [tables] and key = value",
        ));
    }
    if line.to_ascii_lowercase().starts_with("user-agent:") {
        let message = "this looks like a robots.txt: the file is read as TOML, and names the robots.txt";
        return Some(Fault::new(span, message));
    }
    let yaml = lines(text).find(|(_, line)| *line == "---" || line.starts_with("- ") || is_yaml_pair(line));
    let is_toml = lines(text)
        .any(|(_, line)| line.starts_with('[') || line.split_once(" = ").is_some_and(|(key, _)| is_key(key)));
    if let (Some((start, line)), false) = (yaml, is_toml) {
        let help = match line.split_once(": ") {
            Some((key, value)) if is_key(key) => format!("write {key} = {}", quoted(value)),
            Some(_) | None => match line.strip_suffix(':') {
                Some(key) if is_key(key) => format!("write [{key}], or [[{key}]] for each of several"),
                _ => "write [[table]] for each of several, and key = value".to_owned(),
            },
        };
        return Some(
            Fault::new(start..start + line.len(), "this looks like YAML: the file is read as TOML").help(help),
        );
    }
    None
}

/// The lines without the blanks around them, each with where it begins.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    text.split_inclusive('\n').map(move |line| {
        let at = start + line.len() - line.trim_start().len();
        start += line.len();
        (at, line.trim())
    })
}

/// `key: value` or `key:`.
fn is_yaml_pair(line: &str) -> bool {
    let key = line.split_once(": ").map(|(key, _)| key).or_else(|| line.strip_suffix(':'));
    key.is_some_and(is_key)
}

fn is_key(word: &str) -> bool {
    let word = word.trim();
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'))
}

/// A plain word as TOML writes it.
fn quoted(value: &str) -> String {
    let value = value.trim();
    let is_bare =
        value.starts_with(['"', '\'', '[']) || value.parse::<f64>().is_ok() || matches!(value, "true" | "false");
    if is_bare { value.to_owned() } else { format!("{value:?}") }
}
