//! `path-without-slash`: a pattern that no path can match.

use std::fmt;

use crate::check::lint::*;
use crate::check::path_text::{
    HostEvidence, is_file_ending, is_one_of, joined_paths, parameter_name, split_host, without_invisible,
};
use crate::check::pattern::{is_expression, of_expression, without_runs};
use crate::check::quote::unquoted;

pub(crate) const LINT: Lint = Lint {
    code: "path-without-slash",
    severity: Severity::Error,
    summary: "a path pattern that begins with neither \"/\" nor \"*\"",
    why: "Every path begins with \"/\" and patterns are compared from the first octet on (RFC 9309, section 2.2.2), so \
          a pattern that begins with anything but \"/\" or \"*\" matches no path. A few old crawlers add the slash; \
          the others ignore the rule. Where the value can be meant in two ways, the help names both and no fix is made.",
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
    let draft = sink.report(
        field.value_range.clone(),
        format_args!("{} begins with neither \"/\" nor \"*\": it matches no path", Quoted(path)),
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

/// What a value without a slash is meant to be.
enum Meaning {
    Pattern(Vec<u8>),
    /// One of two patterns, and the paths that each is for.
    Either([(Vec<u8>, &'static str); 2]),
    /// No pattern that can be named: what to do.
    Unknown(&'static str),
}

impl Meaning {
    /// Finds the meaning of a value; `own` is the host of the site.
    fn of(value: &[u8], own: Option<&[u8]>) -> Self {
        if joined_paths(value).is_some() {
            return Self::Unknown("give each path a line of its own");
        }
        let seen = without_invisible(value);
        let text = seen.as_deref().map_or(value, str::as_bytes);
        let text = unquoted(text).unwrap_or(text);
        if text.starts_with(b"^") || text.starts_with(b".*") || is_expression(text) {
            let unknown = "begin with \"/\", and write \"*\" for \".*\" or a class and a rule for each alternative";
            return of_expression(text).map_or(Self::Unknown(unknown), Self::Pattern);
        }
        match without_marks(text) {
            path @ [b'/' | b'*', ..] => Self::Pattern(path.to_vec()),
            path if is_url(path) => Self::Pattern(path.to_vec()),
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
                    (every, "every place"),
                    ([b"/*&".as_slice(), parameter].concat(), "every place but the first"),
                ])
            }
            [drive, b':', b'\\' | b'/', ..] if drive.is_ascii_alphabetic() => {
                Self::Unknown("write the path that a browser shows: it does not hold the folders of the server's disk")
            }
            _ => Self::of_word(text, own),
        }
    }

    /// The meaning of a value that begins with a dot: `.pdf$` is the end of file names, `.git/` a folder.
    fn of_dotted(name: &[u8]) -> Self {
        const HIDDEN: &str = "aws ds_store env git hg htaccess htpasswd ssh svn well-known";
        let is_octet = |octet: &u8| octet.is_ascii_alphanumeric() || matches!(octet, b'-' | b'_');
        let (word, rest) = name.split_at(name.iter().take_while(|octet| is_octet(octet)).count());
        let (ending, hidden) = ([b"/*.".as_slice(), name].concat(), [b"/.".as_slice(), name].concat());
        if rest.starts_with(b"/") || is_one_of(word, HIDDEN) {
            Self::Pattern(hidden)
        } else if is_file_ending(word) {
            Self::Pattern(ending)
        } else {
            Self::Either([(ending, "paths that hold it anywhere"), (hidden, "those that begin with it")])
        }
    }

    fn of_word(text: &[u8], own: Option<&[u8]>) -> Self {
        let begun = "paths that begin with it";
        let path = [b"/".as_slice(), text].concat();
        if is_one_of(text, "all any everything") {
            return Self::Either([(b"/".to_vec(), "every path"), (path, begun)]);
        }
        if is_one_of(text, "none nothing") {
            return Self::Unknown("leave the value out for a rule without a path");
        }
        if text.strip_suffix(b"$").is_some_and(is_file_ending) {
            return Self::Either([
                ([b"/*.".as_slice(), text].concat(), "files of this kind"),
                (path, "this path alone"),
            ]);
        }
        if parameter_name(text).is_some() {
            return Self::Either([
                (without_runs([b"/*?*".as_slice(), text].concat()), "a query parameter"),
                (path, begun),
            ]);
        }
        match split_host(text, own) {
            Some((_, evidence, rest)) if rest.len() > 1 => match evidence {
                HostEvidence::Own => Self::Pattern(rest.to_vec()),
                HostEvidence::Www if own.is_none() => Self::Pattern(rest.to_vec()),
                _ => Self::Either([(rest.to_vec(), "this path of the site"), (path, "a folder of this name")]),
            },
            Some((_, HostEvidence::Own | HostEvidence::Www, _)) => {
                Self::Either([(b"/".to_vec(), "the whole site"), (path, begun)])
            }
            _ => Self::Pattern(with_slashes(text)),
        }
    }
}

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pattern(pattern) => write!(f, "write {}", Quoted(pattern)),
            Self::Either([(one, one_for), (other, other_for)]) => {
                write!(f, "write {} for {one_for}, or {} for {other_for}", Quoted(one), Quoted(other))
            }
            Self::Unknown(advice) => f.write_str(advice),
        }
    }
}

/// A path without the marks that a slip or a list leaves in front of it: `: /a`, `- /a`.
fn without_marks(text: &[u8]) -> &[u8] {
    /// The no-break space of files that are not UTF-8.
    const NO_BREAK: u8 = 0xA0;
    let is_mark = |octet: &&u8| matches!(**octet, b':' | b'=' | b'-' | b'>' | b' ' | b'\t' | NO_BREAK);
    match &text[text.iter().take_while(is_mark).count()..] {
        path @ [b'/' | b'*', ..] => path,
        _ => text,
    }
}

/// A path without the `./` and `../` in front of it.
fn without_dots(mut path: &[u8]) -> &[u8] {
    while let Some(rest) = path.strip_prefix(b"./").or(path.strip_prefix(b"../")) {
        path = rest;
    }
    path
}

/// The path that is meant: escaped slashes and backslashes in front, and all backslashes, are slashes.
fn with_slashes(text: &[u8]) -> Vec<u8> {
    let text = text.strip_prefix(b"%2F").or(text.strip_prefix(b"%2f")).unwrap_or(text);
    let text = text.strip_prefix(b"\\").unwrap_or(text);
    let slash = |octet: &u8| if *octet == b'\\' { b'/' } else { *octet };
    std::iter::once(b'/').chain(text.iter().map(slash)).collect()
}
