//! Recognises mistakes in path values: hosts, file name extensions, several paths in one value, and
//! invisible characters.

use super::directives::{is_rule, is_url};
use super::invisible::without_invisible;
use super::pattern::is_expression;
use crate::rules::Field;

const FILE_ENDINGS: &str = "7z action ashx asmx asp aspx avi axd bak bmp bz2 cfm cgi conf css csv dll do doc docx eot epub exe \
                            flv gif gz htm html ico inc ini jpeg jpg js json jsp jspx log m4v map md mov mp3 mp4 mpeg mpg odt \
                            ogg old pdf php php3 php4 php5 phtml pl png ppt pptx ps py rar rb rss rtf sh shtml sql svg swf tar \
                            tgz tif tiff tpl ttf txt wav webm webp wmv woff woff2 wsdl xhtml xls xlsx xml yaml yml zip";

/// Top-level domains that rarely end the name of a folder. `.api`, `.education` and `.ng` are not
/// listed, because some folder names end with them.
const TOP_LEVELS: &str = "at au be biz br ca ch cn com cz de dk edu es eu example fi fr gov hu info io it jp kr mx net nl org pt ru se \
                          test tr ua uk us za";

pub(super) fn is_file_ending(name: &[u8]) -> bool {
    is_one_of(name, FILE_ENDINGS)
}

pub(super) fn is_one_of(text: &[u8], words: &str) -> bool {
    words.split(' ').any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEvidence {
    Own,
    Www,
    /// The host ends with one of the [`TOP_LEVELS`].
    Form,
}

/// Splits a value such as `shop.example/old/` into the host and the remaining text, which is empty
/// or begins with a slash. `None` if the value does not begin with a host. `own` is the host of the
/// site, if known.
pub(super) fn split_host<'p>(text: &'p [u8], own: Option<&[u8]>) -> Option<(&'p [u8], HostEvidence, &'p [u8])> {
    let (authority, rest) = text.split_at(memchr::memchr(b'/', text).unwrap_or(text.len()));
    let is_port = |at: &usize| authority[at + 1..].iter().all(u8::is_ascii_digit);
    let host = &authority[..memchr::memchr(b':', authority).filter(is_port).unwrap_or(authority.len())];
    let is_label = |label: &[u8]| {
        let is_byte = |byte: &u8| byte.is_ascii_alphanumeric() || *byte == b'-' || *byte >= 0x80;
        !label.is_empty() && !label.starts_with(b"-") && !label.ends_with(b"-") && label.iter().all(is_byte)
    };
    let last = host.rsplit(|byte| *byte == b'.').next()?;
    let is_host = last.len() >= 2 && last.len() < host.len() && host.split(|byte| *byte == b'.').all(is_label);
    if !is_host {
        return None;
    }
    let evidence = if own.is_some_and(|own| is_same_host(host, own)) {
        HostEvidence::Own
    } else if strip_www(host).len() < host.len() {
        HostEvidence::Www
    } else if is_one_of(last, TOP_LEVELS) && host.len() > last.len() + 2 {
        HostEvidence::Form
    } else {
        return None;
    };
    Some((host, evidence, rest))
}

pub(super) fn is_same_host(one: &[u8], other: &[u8]) -> bool {
    strip_www(one).eq_ignore_ascii_case(strip_www(other))
}

fn strip_www(host: &[u8]) -> &[u8] {
    match host {
        [b'w' | b'W', b'w' | b'W', b'w' | b'W', b'.', rest @ ..] => rest,
        _ => host,
    }
}

/// Reports whether a field is a rule with only one path. The lints `several-paths` and
/// `space-in-path` report rules with several paths.
pub(super) fn has_one_path(field: &Field<'_>) -> bool {
    is_rule(field) && several_paths(field.value).is_none()
}

/// Returns the paths in a value if they are separated by commas, semicolons or bars, with or
/// without spaces (`/a, /b`).
pub(super) fn joined_paths(value: &[u8]) -> Option<Vec<&[u8]>> {
    value.iter().any(is_joint).then(|| several_paths(value))?
}

/// Returns the paths in a value that contains several paths, separated by spaces, commas or similar
/// characters. `None` if the value is one path, which may contain commas (`/a,b.html`).
pub(super) fn several_paths(value: &[u8]) -> Option<Vec<&[u8]>> {
    let is_between = |byte: &u8| is_joint(byte) || is_blank(byte);
    if !value.iter().any(is_between) || is_expression(value) {
        return None;
    }
    let paths: Vec<_> = value.split(is_between).map(without_quotes).filter(|path| !path.is_empty()).collect();
    // In a value without spaces, a separator such as a comma may be part of a single path:
    // `/redirect?to=/a,/b`, or `/offer,*/` on sites with commas in paths.
    let is_apart = value.iter().any(is_blank);
    let query = paths.iter().position(|path| path.contains(&b'?')).unwrap_or(paths.len());
    let is_ending = |path: &[u8]| path.strip_prefix(b"/").unwrap_or(path).starts_with(b"*.");
    let is_one = |at: usize| match paths[at] {
        path if !is_path(path) => false,
        _ if is_apart || at == 0 => true,
        _ if at > query => false,
        path @ [b'*', ..] => paths[at - 1].ends_with(b"$") || is_ending(path) && is_ending(paths[0]),
        _ => true,
    };
    (paths.len() > 1 && (0..paths.len()).all(is_one)).then_some(paths)
}

pub(super) fn is_path(text: &[u8]) -> bool {
    matches!(text, [b'/', ..] | [b'*', b'/' | b'.' | b'?', ..]) || is_url(text)
}

pub(super) const fn is_joint(byte: &u8) -> bool {
    matches!(byte, b',' | b';' | b'|')
}

pub(super) const fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | 0x0B | 0x0C)
}

fn without_quotes(mut text: &[u8]) -> &[u8] {
    while let [b'"' | b'\'', rest @ ..] | [rest @ .., b'"' | b'\''] = text {
        text = rest;
    }
    text
}

pub(super) fn parameter_name(text: &[u8]) -> Option<&[u8]> {
    let name = &text[..memchr::memchr(b'=', text)?];
    let is_byte = |byte: &u8| byte.is_ascii_alphanumeric() || b"-_.[]".contains(byte);
    (name.first()?.is_ascii_alphanumeric() && name.iter().all(is_byte)).then_some(name)
}

/// Returns a path without its invisible characters. `None` if the value has no invisible
/// characters, or if the visible characters are not a path.
pub(super) fn visible_path(value: &[u8]) -> Option<String> {
    without_invisible(value).filter(|seen| seen.is_empty() || seen.starts_with(['/', '*']))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_distinguished_from_folders_and_files() {
        let of = |text: &'static str| {
            let (host, evidence, rest) = split_host(text.as_bytes(), Some(b"shop.example"))?;
            Some((str::from_utf8(host).expect("text"), evidence, str::from_utf8(rest).expect("text")))
        };
        for (text, want) in [
            ("shop.example/old/", Some(("shop.example", HostEvidence::Own, "/old/"))),
            ("WWW.Shop.Example", Some(("WWW.Shop.Example", HostEvidence::Own, ""))),
            ("www.warsaw.pl/x", Some(("www.warsaw.pl", HostEvidence::Www, "/x"))),
            ("other.example/x", Some(("other.example", HostEvidence::Form, "/x"))),
            ("shop.example:8080/x", Some(("shop.example", HostEvidence::Own, "/x"))),
            ("index.php/x", None),
            ("residential.education/x", None),
            ("s.nl/x", None),
            (".well-known/x", None),
            ("v1.0/x", None),
            ("a..b/x", None),
            ("folder/x", None),
            ("*.example/x", None),
            ("", None),
        ] {
            assert_eq!(of(text), want, "{text}");
        }
    }

    #[test]
    fn several_paths_are_distinguished_from_one() {
        for (value, want) in [
            ("/a,/b", &["/a", "/b"][..]),
            ("/a, /b,", &["/a", "/b"]),
            ("/a;/b", &["/a", "/b"]),
            ("/a|/b|/c", &["/a", "/b", "/c"]),
            ("\"/a\", \"/b\"", &["/a", "/b"]),
            ("*.pdf$,*.doc$", &["*.pdf$", "*.doc$"]),
            ("/a /b", &["/a", "/b"]),
            ("\"/a, /b\"", &["/a", "/b"]),
            ("/a,/b;/c", &["/a", "/b", "/c"]),
            ("/a, /b /c", &["/a", "/b", "/c"]),
            ("/a, */b", &["/a", "*/b"]),
            ("/*.jpg,*.png", &["/*.jpg", "*.png"]),
            ("https://a.example/,/b", &["https://a.example/", "/b"]),
        ] {
            let want: Vec<&[u8]> = want.iter().map(|path| path.as_bytes()).collect();
            assert_eq!(several_paths(value.as_bytes()), Some(want), "{value}");
        }
        let single = "/offer,*/ ~ /*,*.html ~ /to?a=/b,/c ~ /a and /b ~ private/, admin ~ a,b.html ~ /a,b.html ~ \
            /a, ~ /*,* ~ /a/b|c ~ /(a|/b) ~ /a b ~ /a";
        for value in single.split(" ~ ") {
            assert_eq!(several_paths(value.as_bytes()), None, "{value}");
        }
    }
}
