//! What owners write where a path pattern belongs: hosts, endings of file names, several paths at once, characters that nobody sees.

use super::pattern::is_expression;
use super::quote::unquoted;

/// Endings of file names that rules are written for.
const FILE_ENDINGS: &str = "7z action ashx asmx asp aspx avi axd bak bmp bz2 cfm cgi conf css csv dll do doc docx eot epub exe \
                            flv gif gz htm html ico inc ini jpeg jpg js json jsp jspx log m4v map md mov mp3 mp4 mpeg mpg odt \
                            ogg old pdf php php3 php4 php5 phtml pl png ppt pptx ps py rar rb rss rtf sh shtml sql svg swf tar \
                            tgz tif tiff tpl ttf txt wav webm webp wmv woff woff2 wsdl xhtml xls xlsx xml yaml yml zip";

/// Last labels of hosts that names of folders hardly end with, unlike `.api`, `.education` or `.ng`.
const TOP_LEVELS: &str = "au biz br ch com cz de dk edu es eu example fr gov hu info jp net nl org ru se test uk us";

/// Whether a name is the ending of many file names (`pdf`, `php`).
pub(super) fn is_file_ending(name: &[u8]) -> bool {
    is_one_of(name, FILE_ENDINGS)
}

/// Whether a text is one of these words, in any case.
pub(super) fn is_one_of(text: &[u8], words: &str) -> bool {
    words.split(' ').any(|word| text.eq_ignore_ascii_case(word.as_bytes()))
}

/// How sure it is that the text in front of a path is a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HostEvidence {
    /// It is the host of the site.
    Own,
    /// It begins with `www.`.
    Www,
    /// It ends as many hosts do.
    Form,
}

/// Splits `shop.example/old/` into the host and the rest, which is empty or begins with a slash. `own` is a host of the site.
pub(super) fn split_host<'p>(text: &'p [u8], own: Option<&[u8]>) -> Option<(&'p [u8], HostEvidence, &'p [u8])> {
    let (host, rest) = text.split_at(memchr::memchr(b'/', text).unwrap_or(text.len()));
    let is_label = |label: &[u8]| {
        let is_octet = |octet: &u8| octet.is_ascii_alphanumeric() || *octet == b'-' || *octet >= 0x80;
        !label.is_empty() && !label.starts_with(b"-") && !label.ends_with(b"-") && label.iter().all(is_octet)
    };
    let last = host.rsplit(|octet| *octet == b'.').next()?;
    let is_host = last.len() >= 2 && last.len() < host.len() && host.split(|octet| *octet == b'.').all(is_label);
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

/// Whether two hosts differ in `www.` and in case at most.
pub(super) fn is_same_host(one: &[u8], other: &[u8]) -> bool {
    strip_www(one).eq_ignore_ascii_case(strip_www(other))
}

fn strip_www(host: &[u8]) -> &[u8] {
    match host {
        [b'w' | b'W', b'w' | b'W', b'w' | b'W', b'.', rest @ ..] => rest,
        _ => host,
    }
}

/// The paths of a value that holds several: joined by commas, semicolons or bars (`/a,/b`), or by blanks (`/a /b`). `None` if it is
/// one path, however many commas that has (`/a,b.html`).
pub(super) fn several_paths(value: &[u8]) -> Option<Vec<&[u8]>> {
    joined_paths(value).or_else(|| {
        let parts: Vec<_> =
            value.split(|octet| matches!(octet, b' ' | b'\t')).filter(|part| !part.is_empty()).collect();
        (parts.len() > 1 && parts.iter().all(|part| is_path(part))).then_some(parts)
    })
}

/// The paths of a value that are joined by commas, semicolons or bars.
pub(super) fn joined_paths(value: &[u8]) -> Option<Vec<&[u8]>> {
    let mark = *value.iter().find(|octet| matches!(octet, b',' | b';' | b'|'))?;
    if is_expression(value) {
        return None;
    }
    let mut parts: Vec<_> = value.split(|octet| *octet == mark).collect();
    // A mark at the end parts nothing.
    parts.pop_if(|part| part.trim_ascii().is_empty());
    // Without slashes, `a,b.html` is one name.
    let is_apart = parts.iter().skip(1).all(|part| part.starts_with(b" "));
    let paths: Vec<_> = parts.iter().map(|part| part.trim_ascii()).map(|part| unquoted(part).unwrap_or(part)).collect();
    let is_one = |path: &&[u8]| is_path(path) || is_apart && !is_path(paths[0]) && is_name(path);
    (paths.len() > 1 && paths.iter().all(is_one)).then_some(paths)
}

/// Whether this is written as a path is: a slash in front, or a `*` and what it leads up to.
fn is_path(part: &[u8]) -> bool {
    matches!(part, [b'/', ..] | [b'*', b'/' | b'.' | b'?', ..])
        && !part.iter().any(|octet| matches!(octet, b' ' | b'\t' | b',' | b';' | b'|' | b'"'))
}

/// Whether this is a path but for the slash in front of it.
fn is_name(part: &[u8]) -> bool {
    let is_octet = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_./*".contains(octet);
    !part.is_empty() && part.iter().all(is_octet)
}

/// The name of a query parameter that a text begins with (`page` of `page=9`).
pub(super) fn parameter_name(text: &[u8]) -> Option<&[u8]> {
    let name = &text[..memchr::memchr(b'=', text)?];
    let is_octet = |octet: &u8| octet.is_ascii_alphanumeric() || b"-_.[]".contains(octet);
    (name.first()?.is_ascii_alphanumeric() && name.iter().all(is_octet)).then_some(name)
}

/// A text without the characters that nobody sees and no path holds, and without white space other than ASCII around it; `None` if
/// there is none, or if the text is not UTF-8.
pub(super) fn without_invisible(text: &[u8]) -> Option<String> {
    if text.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(text).ok()?;
    let kept = text.trim();
    let mut seen = String::with_capacity(kept.len());
    let mut before = None;
    let mut chars = kept.chars().peekable();
    let is_letter = |char: Option<char>| char.is_some_and(|char| !char.is_ascii());
    while let Some(char) = chars.next() {
        let is_seen = match char {
            // Scripts such as Persian and Hindi join or part letters with these, and emoji are joined by one.
            '\u{200c}' | '\u{200d}' => is_letter(before) && is_letter(chars.peek().copied()),
            _ => !is_invisible(char),
        };
        if is_seen {
            seen.push(char);
            before = Some(char);
        }
    }
    let seen = seen.trim();
    (seen.len() < text.len()).then(|| seen.to_owned())
}

/// Characters of no width, and those that only direct how others are shown.
const fn is_invisible(char: char) -> bool {
    matches!(
        char,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{180e}' | '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}' | '\u{feff}'
    )
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
            ("/a,/b", Some(&["/a", "/b"][..])),
            ("/a, /b,", Some(&["/a", "/b"])),
            ("/a;/b", Some(&["/a", "/b"])),
            ("/a|/b|/c", Some(&["/a", "/b", "/c"])),
            ("\"/a\", \"/b\"", Some(&["/a", "/b"])),
            ("*.pdf$,*.doc$", Some(&["*.pdf$", "*.doc$"])),
            ("/a /b", Some(&["/a", "/b"])),
            ("private/, admin", Some(&["private/", "admin"])),
            ("a,b.html", None),
            ("/a,b.html", None),
            ("/a,", None),
            ("/*,*", None),
            ("/a/b|c", None),
            ("/(a|/b)", None),
            ("/a b", None),
            ("/a", None),
        ] {
            let want: Option<Vec<&[u8]>> = want.map(|paths| paths.iter().map(|path| path.as_bytes()).collect());
            assert_eq!(several_paths(value.as_bytes()), want, "{value}");
        }
    }

    #[test]
    fn characters_that_nobody_sees_are_left_out() {
        for (text, want) in [
            ("/a\u{200b}", Some("/a")),
            ("\u{feff}/a\u{2060}b", Some("/ab")),
            ("\u{a0}/a\u{3000}", Some("/a")),
            ("/a\u{200d}", Some("/a")),
            ("/a\u{a0}b", None),
            ("/caf\u{e9}", None),
            // "Does not" in Persian.
            ("/\u{645}\u{6cc}\u{200c}\u{634}", None),
            ("/a", None),
        ] {
            assert_eq!(without_invisible(text.as_bytes()).as_deref(), want, "{text:?}");
        }
        assert_eq!(without_invisible(b"/\xe2\x80\x8b\xff"), None);
    }
}
