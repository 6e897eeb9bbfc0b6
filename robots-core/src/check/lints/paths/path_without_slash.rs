//! `path-without-slash`: a pattern that no path can match.

use std::fmt;

use crate::check::invisible::without_invisible;
use crate::check::lint::*;
use crate::check::path_text::{
    HostEvidence, is_blank, is_file_ending, is_one_of, joined_paths, parameter_name, split_host, visible_path,
};
use crate::check::pattern::{is_expression, pattern_of_expression, without_redundant_stars};
use crate::check::quote::{pieces, unquoted};

pub(crate) const LINT: Lint = Lint {
    code: "path-without-slash",
    severity: Severity::Error,
    summary: "a path pattern that begins with neither \"/\" nor \"*\"",
    why: "Every path begins with \"/\", and patterns are compared from the first byte on (RFC 9309, section 2.2.2), \
          so a pattern that begins with another character than \"/\" or \"*\" matches no path. A few old crawlers \
          add the slash; all others ignore the rule. If the value has two possible meanings, the help shows both, \
          and there is no automatic fix.",
    bad: Example::new(b"User-agent: *\nDisallow: private/\n"),
    good: Example::new(b"User-agent: *\nDisallow: /private/\nDisallow: *.pdf$\nDisallow:\n"),
    pass: Pass::Field(run),
    fix: Some(LintFix::new(fix)),
};

fn run(file: &CheckedFile<'_>, field: &Field<'_>, sink: &mut Sink) {
    let path = field.value;
    if !is_rule(field) || matches!(path, [] | [b'/' | b'*', ..]) || is_url(path) {
        return;
    }
    // Values with several paths or with invisible characters are skipped, because other lints
    // report them.
    if joined_paths(path).is_some() || visible_path(path).is_some() {
        return;
    }
    let draft = sink.report(
        field.value_range.clone(),
        format_args!("{pattern} begins with neither \"/\" nor \"*\", so it matches no path", pattern = Quoted(path)),
    );
    draft.help_with(|| Some(Meaning::of(path, file.own_host()).to_string()));
}

fn fix(file: &CheckedFile<'_>, finding: &Finding) -> Option<Vec<Edit>> {
    let path = file.text_of(finding);
    let Meaning::Pattern(meant) = Meaning::of(path, file.own_host()) else { return None };
    Some(vec![match meant.strip_suffix(path) {
        Some(front) => Edit::insert(finding.span.start, front),
        None => Edit::new(finding.span.clone(), meant),
    }])
}

enum Meaning {
    Pattern(Vec<u8>),
    /// Two possible patterns, each with a description of the paths that it matches.
    Either([(Vec<u8>, &'static str); 2]),
    /// Advice for the author if no pattern can be suggested.
    Unknown(&'static str),
}

const DISK_PATH_ADVICE: &str = "write the path that a browser shows, without the folders of the server's disk";

impl Meaning {
    /// Returns the probable meaning of a value. `own` is the host of the site, if known.
    fn of(value: &[u8], own: Option<&[u8]>) -> Self {
        let seen = without_invisible(value);
        let text = seen.as_deref().map_or(value, str::as_bytes);
        let text = unquoted(text).unwrap_or(text);
        if has_scheme(text) {
            return Self::Unknown("write only the path: rules contain neither a scheme nor a host");
        }
        let is_expression = is_expression(text);
        let text = if is_expression { text } else { without_marks(text) };
        let unanchored = text.strip_prefix(b"^").unwrap_or(text);
        if text.iter().any(is_blank) || joined_paths(text).is_some() {
            return Self::Unknown("write one path per line, and \"%20\" for a space within the path");
        }
        let pattern = pattern_of_expression(text);
        let is_anchored = unanchored.len() < text.len();
        if unanchored.starts_with(b".*") || is_expression || is_anchored && pattern.is_none() {
            let unknown =
                "begin with \"/\", write \"*\" for \".*\" or a character class, and write a rule for each alternative";
            return pattern.map_or(Self::Unknown(unknown), Self::Pattern);
        }
        match unanchored {
            path @ [b'/' | b'*', ..] => Self::Pattern(path.to_vec()),
            path if without_dots(path).len() < path.len() => {
                Self::Pattern([b"/".as_slice(), without_dots(path)].concat())
            }
            [b'.', name @ ..] => Self::of_dotted(name),
            [b'?', parameter @ ..] => {
                let is_named = parameter.first().is_some_and(u8::is_ascii_alphanumeric);
                let star: &[u8] = if is_named { b"*" } else { b"" };
                let every = [b"/*?".as_slice(), star, parameter].concat();
                Self::Either([(every, "every page"), ([b"/?".as_slice(), parameter].concat(), "the home page alone")])
            }
            [b'&', parameter @ ..] => {
                let every = [b"/*?*".as_slice(), parameter].concat();
                Self::Either([
                    (every, "every position"),
                    ([b"/*&".as_slice(), parameter].concat(), "every position except the first"),
                ])
            }
            [b'\\', b'\\', ..] => Self::Unknown(DISK_PATH_ADVICE),
            [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => Self::Unknown(DISK_PATH_ADVICE),
            [b';' | b'=' | b'-' | b'+' | b',' | b'!' | b'|' | b')' | b']', ..] => Self::anywhere_or_first(unanchored),
            _ => Self::of_word(unanchored, own),
        }
    }

    /// Returns the meaning of a value that begins with a dot: `.pdf$` is a file extension, and
    /// `.git/` is a folder.
    fn of_dotted(name: &[u8]) -> Self {
        const HIDDEN: &str = "aws ds_store env git hg htaccess htpasswd ssh svn well-known";
        let is_byte = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        let (word, rest) = name.split_at(name.iter().take_while(|byte| is_byte(byte)).count());
        if rest.starts_with(b"/") || is_one_of(word, HIDDEN) {
            Self::Pattern([b"/.".as_slice(), name].concat())
        } else if is_file_ending(word) {
            Self::Pattern([b"/*.".as_slice(), name].concat())
        } else {
            Self::anywhere_or_first(&[b".".as_slice(), name].concat())
        }
    }

    /// Returns the two possible meanings of a value such as `-print.html`: the text may be anywhere
    /// in paths, or must be at their beginning.
    fn anywhere_or_first(text: &[u8]) -> Self {
        Self::Either([
            ([b"/*".as_slice(), text].concat(), "paths that contain it anywhere"),
            ([b"/".as_slice(), text].concat(), "those that begin with it"),
        ])
    }

    fn of_word(text: &[u8], own: Option<&[u8]>) -> Self {
        let begun = "paths that begin with it";
        let path = [b"/".as_slice(), text].concat();
        if is_one_of(text, "all any everything") {
            return Self::Either([(b"/".to_vec(), "every path"), (path, begun)]);
        }
        if is_one_of(text, "none nothing null") {
            return Self::Unknown("leave the value empty for a rule without a path");
        }
        if text.strip_suffix(b"$").is_some_and(is_file_ending) {
            return Self::Either([
                ([b"/*.".as_slice(), text].concat(), "files of this kind"),
                (path, "this path alone"),
            ]);
        }
        if parameter_name(text).is_some() {
            return Self::Either([
                (without_redundant_stars([b"/*?*".as_slice(), text].concat()), "a query parameter"),
                (path, begun),
            ]);
        }
        match split_host(text, own) {
            Some((_, evidence, rest)) if rest.len() > 1 => match evidence {
                HostEvidence::Own => Self::Pattern(rest.to_vec()),
                HostEvidence::Www if own.is_none() => Self::Pattern(rest.to_vec()),
                _ => Self::Either([
                    (rest.to_vec(), "this path if the site has this host"),
                    (path, "a folder of this name"),
                ]),
            },
            Some(_) => Self::Either([(b"/".to_vec(), "the whole site if it has this host"), (path, begun)]),
            None => Self::Pattern(with_slashes(text)),
        }
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => write!(f, "write {}", Quoted(pattern)),
            Self::Either([(one, one_for), (other, other_for)]) => {
                write!(
                    f,
                    "write {one} for {one_for}, or {other} for {other_for}",
                    one = Quoted(one),
                    other = Quoted(other)
                )
            }
            Self::Unknown(advice) => f.write_str(advice),
        }
    }
}

/// Removes punctuation around a path, such as list marks, brackets or typing errors: `: /a`,
/// `- /a`, `(/a)`.
fn without_marks(text: &[u8]) -> &[u8] {
    /// Opening brackets and quotes. If one of them is removed, punctuation after the path is also
    /// removed.
    const OPENING: [char; 11] = ['(', '[', '{', '<', '"', '\'', '`', '\u{ab}', '\u{201c}', '\u{201e}', '\u{2018}'];
    let is_mark = |piece: &Result<char, u8>| match piece {
        Ok(char) => !char.is_alphanumeric() && !"/*.?&$;%#\\_^".contains(*char),
        // A no-break space in a file that is not UTF-8.
        Err(byte) => *byte == 0xA0,
    };
    let marks: Vec<_> = pieces(text).take_while(is_mark).collect();
    let path = &text[marks.iter().map(|mark| mark.map_or(1, char::len_utf8)).sum()..];
    match path {
        [b'/', ..] if marks.iter().any(|mark| mark.is_ok_and(|char| OPENING.contains(&char))) => {
            let is_end = |char: char| !char.is_alphanumeric() && !"/*$=?&".contains(char);
            std::str::from_utf8(path).map_or(path, |path| path.trim_end_matches(is_end).as_bytes())
        }
        [b'/', ..] => path,
        [b'*', ..] if marks.last() == Some(&Ok(' ')) => path,
        _ => text,
    }
}

/// Reports whether `text` begins like a URL with a misspelled or non-web scheme: `https:/`,
/// `http//`, `ftp://`.
fn has_scheme(text: &[u8]) -> bool {
    let (word, rest) = text.split_at(text.iter().take_while(|byte| byte.is_ascii_alphabetic()).count());
    let is_web = is_one_of(word, "http https") && (rest.starts_with(b":") || rest.starts_with(b"//"));
    let (front, path) = text.split_at(memchr::memchr(b'/', text).unwrap_or(text.len()));
    // In `c:/`, the letter is a Windows drive, not a scheme. In `:/a`, the colon is superfluous.
    is_web || front.ends_with(b":") && (front.len() > 2 || path.starts_with(b"//"))
}

fn without_dots(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"./").or(path.strip_prefix(b"../")) {
        path = rest;
    }
    path
}

/// Returns a path with a leading slash. Backslashes and characters that look like a slash become
/// slashes. If `text` begins with an escaped slash, all escaped slashes become slashes, too.
fn with_slashes(text: &[u8]) -> Vec<u8> {
    let Ok(text) = std::str::from_utf8(text) else { return [b"/", text].concat() };
    let mut path = text.replace(['\\', '\u{2044}', '\u{2215}', '\u{ff0f}'], "/");
    if text.starts_with("%2F") || text.starts_with("%2f") {
        path = path.replace("%2F", "/").replace("%2f", "/");
    }
    format!("/{}", path.strip_prefix('/').unwrap_or(&path)).into_bytes()
}
