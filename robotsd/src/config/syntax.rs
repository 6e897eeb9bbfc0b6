//! Problems of a document's syntax, as its author would put them.

use std::ops::Range;

use toml::de::Error;

use super::Fault;

/// A problem of the syntax.
pub(super) fn fault(text: &str, error: &Error) -> Fault {
    let span = error.span().unwrap_or(0..0);
    if let Some(fault) = unclosed(text, &span, error.message().trim_end()) {
        return fault;
    }
    let message = match error.message().trim_end() {
        "duplicate key" => "this key stands in its table already: keep one of the two".to_owned(),
        "invalid basic string, expected `\"`" => "the text has no end: close it with \"".to_owned(),
        message if message.starts_with("string values must be quoted") || message.starts_with("invalid boolean") => {
            "text is written in quotes".to_owned()
        }
        message => message.replace('\n', "; "),
    };
    let start = span.start.min(text.len());
    let line_start = text.get(..start).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
    let line = text.get(line_start..).and_then(|rest| rest.lines().next()).unwrap_or_default().trim();
    let help = match line.split_once('=') {
        Some((_, "")) => return Fault::new(span, "the key has no value"),
        Some((key, value)) if message == "text is written in quotes" => {
            let value = value.split('#').next().unwrap_or_default().trim();
            Some(format!("write {} = {value:?}", key.trim()))
        }
        None => match line.split_once(": ") {
            Some((key, value)) if !line.starts_with('#') => Some(format!("write {} = {}", key.trim(), value.trim())),
            _ => None,
        },
        _ => None,
    };
    Fault::new(span, message).help(help)
}

const UNCLOSED_TEXT: &str = "the text of several lines has no end: close it with ";
const UNCLOSED_LIST: &str = "the list has no end: close it with ]";
const UNCLOSED_TABLE: &str = "the table has no end: close it with }";

/// Whether a fault is that something has no end.
pub(super) fn is_unclosed(fault: &Fault) -> bool {
    [UNCLOSED_TEXT, UNCLOSED_LIST, UNCLOSED_TABLE].iter().any(|unclosed| fault.message.starts_with(unclosed))
}

/// Whether an error is that the header of a table has no end, or no name: the parser takes the next header that it can read for it.
pub(super) fn is_of_header(error: &Error) -> bool {
    ["unclosed table", "unclosed array table", "unquoted keys cannot be empty"]
        .iter()
        .any(|begin| error.message().starts_with(begin))
}

/// Whether an error is that two entries have one place: where the parser puts them may be the consequence of another.
pub(super) fn is_of_place(error: &Error) -> bool {
    ["duplicate key", "cannot extend"].iter().any(|begin| error.message().starts_with(begin))
}

/// The line without its octets, so that those behind it keep their places.
pub(super) fn blank(line: &str) -> String {
    let blank = |octet: u8| if matches!(octet, b'\n' | b'\r') { char::from(octet) } else { ' ' };
    line.bytes().map(blank).collect()
}

/// A list, a table in one line or a text of several that has no end. The parser finds it where something else begins, lines below.
fn unclosed(text: &str, span: &Range<usize>, message: &str) -> Option<Fault> {
    let before = text.get(..span.start)?;
    if message.starts_with("invalid multi-line ") {
        let quotes = if message.contains("literal") { "'''" } else { "\"\"\"" };
        let start = before.rfind(quotes)?;
        return Some(Fault::new(start..start + quotes.len(), format!("{UNCLOSED_TEXT}{quotes}")));
    }
    let (open, unclosed) = match message.split(',').next()? {
        "missing comma between array elements" => ('[', UNCLOSED_LIST),
        "missing comma between key-value pairs" | "missing key for inline table element" => ('{', UNCLOSED_TABLE),
        _ => return None,
    };
    // It is open where a line begins that is another key or a header.
    let line_start = before.rfind('\n')? + 1;
    let line = text.get(line_start..)?.lines().next()?.trim();
    let is_next = line.starts_with('[') || line.split_once('=').is_some_and(|(key, _)| is_key(key.trim()));
    let before = before.get(..line_start)?;
    let (start, _) = before.rmatch_indices(open).find(|(at, _)| before[..*at].trim_end().ends_with('='))?;
    // Lines of a table over several are entries, too, and only a comma may be missing.
    let is_over_lines = open == '{' && (before[start..].trim_end().contains('\n') || line.ends_with('}'));
    (is_next && !is_over_lines).then(|| Fault::new(start..start + 1, unclosed))
}

/// The problem of a text that is another format; none where it may be TOML. `error` is where the parser first failed.
/// One sentence then says so in place of an error for every line.
pub(super) fn recognize(text: &str, error: Option<Range<usize>>) -> Option<Fault> {
    if let Some(at) = text.find('\0') {
        let message = "the file holds NUL octets, so it is no text, or is encoded as UTF-16: save it as UTF-8";
        return Some(Fault::new(at..at + 1, message));
    }
    error?;
    let (start, line) = lines(text).find(|(_, line)| !line.is_empty() && !line.starts_with('#'))?;
    let (with_tables, is_robots) =
        ("with [tables] and key = value", line.to_ascii_lowercase().starts_with("user-agent:"));
    let forms = [
        (line.starts_with('{'), "JSON", with_tables),
        (line.ends_with('{'), "a block in braces, as nginx and Caddy have them", with_tables),
        (line.starts_with('<'), "XML or HTML", with_tables),
        (is_robots, "a robots.txt", "and names the robots.txt"),
    ];
    if let Some((_, form, how)) = forms.into_iter().find(|(is_form, ..)| *is_form) {
        let message = format!("this looks like {form}: the file is read as TOML, {how}");
        return Some(Fault::new(start..start + line.len(), message));
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

pub(super) fn is_key(word: &str) -> bool {
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
