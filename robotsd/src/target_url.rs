//! Parses URLs and paths that people write on the command line, in lists and in files of
//! expectations.
//!
//! A path begins with `/`, and a URL begins with `http://` or `https://`. Anything else is an
//! error, because it would be ambiguous: `drafts/x` may be the path `/drafts/x`, or the path `/x`
//! of the host `drafts`.

use tower_robots::rules::{Authority, Port};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TargetUrl<'a> {
    text: &'a [u8],
    authority: Option<Authority<'a>>,
}

impl<'a> TargetUrl<'a> {
    /// Parses a path or URL.
    ///
    /// # Errors
    ///
    /// Returns an error message if `text` is neither a path nor a URL. The message suggests a
    /// correction.
    pub(crate) fn parse(text: &'a [u8]) -> Result<Self, String> {
        if text.starts_with(b"/") {
            return Ok(Self { text, authority: None });
        }
        let word = String::from_utf8_lossy(text.trim_ascii());
        // Only the text before the first of these characters can be a scheme, because `://` may
        // also be in a query: `go?u=https://example.com/`.
        let scheme_end = text.iter().position(|byte| matches!(byte, b':' | b'/' | b'?' | b'#'));
        let (scheme, rest) = match scheme_end.map(|end| text.split_at(end)) {
            Some((scheme, rest)) if rest.starts_with(b"://") => (scheme, rest),
            _ if word.is_empty() => {
                return Err("the value is empty: write \"/\" for the start page".to_owned());
            }
            Some((scheme, rest)) if rest.starts_with(b":") && is_http(scheme) => {
                let (scheme, rest) = word.split_once(':').unwrap_or(("https", &word));
                let url = format!("{scheme}://{}", rest.trim_start_matches('/'));
                return Err(format!("{word:?} has no slashes after its scheme: write {url:?}"));
            }
            _ => return Err(without_scheme(&word)),
        };
        if !is_http(scheme) {
            return Err(format!(
                "{word:?} is not the URL of a website: write a path that begins with \"/\", or a URL with http:// or https://"
            ));
        }
        let behind = &rest[b"://".len()..];
        let end = behind.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#')).unwrap_or(behind.len());
        let authority = Authority::split(&behind[..end]);
        // A backslash is ambiguous. In browsers, it ends the host. In other clients, it may be part
        // of the user information before an `@`.
        if behind[..end].contains(&b'\\') {
            let url = word.replace('\\', "/");
            return Err(format!("{word:?} has a backslash before its path: write {url:?}"));
        }
        if authority.host.is_empty() {
            let path = word.split_once("://").map_or("", |(_, rest)| rest).trim_start_matches('/');
            let (path, url) = (format!("/{path}"), format!("https://HOST/{path}"));
            return Err(format!(
                "{word:?} has no host: write {path:?} if you mean the path, or {url:?} if you mean a URL"
            ));
        }
        let has_blank = authority.host.iter().any(|byte| byte.is_ascii_whitespace() || byte.is_ascii_control());
        if authority.port == Port::Malformed || has_blank {
            return Err(format!(
                "the host or port of {word:?} is malformed: write a URL such as \"https://example.com:8443/x\""
            ));
        }
        Ok(Self { text, authority: Some(authority) })
    }

    pub(crate) const fn as_bytes(&self) -> &'a [u8] {
        self.text
    }

    /// Returns the host as written in the URL, and `None` for a path.
    pub(crate) fn host(&self) -> Option<&'a [u8]> {
        self.authority.map(|authority| authority.host_and_port)
    }

    /// Returns the path with its query and fragment, without scheme and host.
    pub(crate) fn path(&self) -> &'a [u8] {
        match self.authority.and_then(|_| Authority::of_url(self.text)) {
            Some((_, _, path)) if path.starts_with(b"/") => path,
            Some(_) => b"/",
            None => self.text,
        }
    }

    pub(crate) fn is_https(&self) -> bool {
        self.text.get(..b"https:".len()).is_some_and(|scheme| scheme.eq_ignore_ascii_case(b"https:"))
    }
}

/// Returns the path or URL on a line of a list, without the comment. A comment begins with a `#` at
/// the start of the line or after white space. `None` if the line is empty or contains only a
/// comment.
pub(crate) fn listed(line: &[u8]) -> Option<&[u8]> {
    let line = line.trim_ascii();
    let is_comment = |at: &usize| *at == 0 || line[*at - 1].is_ascii_whitespace();
    let end = memchr::memchr_iter(b'#', line).find(is_comment).unwrap_or(line.len());
    Some(line[..end].trim_ascii_end()).filter(|target| !target.is_empty())
}

pub(crate) fn is_http(scheme: &[u8]) -> bool {
    scheme.eq_ignore_ascii_case(b"http") || scheme.eq_ignore_ascii_case(b"https")
}

/// Reports whether `word` begins like a host name. If so, it is probably a URL without a scheme.
fn begins_with_host(word: &str) -> bool {
    let first = word.split(['/', '?', '#']).next().unwrap_or_default();
    let is_name = |host: &str| host.chars().all(|char| char.is_alphanumeric() || matches!(char, '.' | '-' | '_'));
    let (host, port) = first.split_once(':').map_or((first, None), |(host, port)| (host, Some(port)));
    if port.is_some_and(|port| port.parse::<u16>().is_err()) || host.is_empty() || !is_name(host) {
        return false;
    }
    // If the first segment contains a dot, it is treated as a host only if more text follows, as in
    // `example.com/index.html`. If nothing follows the first segment, it may be a path such as
    // `index.html`.
    let is_alone = first.len() == word.len();
    port.is_some() || host == "localhost" || host.starts_with("www.") || (host.contains('.') && !is_alone)
}

fn without_scheme(word: &str) -> String {
    let path = format!("/{word}");
    if begins_with_host(word) {
        let url = format!("https://{word}");
        return format!(
            "{word:?} could be a path or a URL: write {url:?} if you mean the URL, or {path:?} if you mean a path"
        );
    }
    let url = format!("https://HOST/{word}");
    format!("{word:?} could be a path or a URL: write {path:?} if you mean the path, or {url:?} if you mean a URL")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_begins_with_a_slash_and_a_url_with_its_scheme() {
        for (word, host) in [
            ("/", None),
            ("/drafts/x?y#z", None),
            ("//drafts/x", None),
            ("/go?u=https://example.com/", None),
            ("https://example.com", Some("example.com")),
            ("HTTPS://Example.com:8443?x", Some("Example.com:8443")),
            ("http://user:secret@[::1]:80/x", Some("[::1]:80")),
            ("http://drafts/x", Some("drafts")),
        ] {
            let url = TargetUrl::parse(word.as_bytes()).unwrap_or_else(|error| panic!("{word}: {error}"));
            assert_eq!(url.host().map(String::from_utf8_lossy).as_deref(), host, "{word}");
            assert_eq!(url.as_bytes(), word.as_bytes());
        }
        let path = |word: &'static str| TargetUrl::parse(word.as_bytes()).expect("a URL").path();
        let want = (&b"/a/*.pdf$"[..], &b"/"[..], &b"/a://b"[..]);
        assert_eq!((path("https://h/a/*.pdf$"), path("https://h"), path("/a://b")), want);
    }

    #[test]
    fn a_target_that_is_neither_a_path_nor_a_url_is_an_error_with_suggestions() {
        let both = |path: &str, url: &str| format!("write {path:?} if you mean the path, or {url:?} if you mean a URL");
        for (word, want) in [
            ("drafts/x", both("/drafts/x", "https://HOST/drafts/x")),
            ("go?u=https://example.com/", both("/go?u=https://example.com/", "https://HOST/go?u=https://example.com/")),
            ("index.html", both("/index.html", "https://HOST/index.html")),
            ("?page=2", both("/?page=2", "https://HOST/?page=2")),
            ("https:///x", both("/x", "https://HOST/x")),
            (
                "example.com/x",
                r#"write "https://example.com/x" if you mean the URL, or "/example.com/x" if you mean a path"#
                    .to_owned(),
            ),
            (
                "localhost:80",
                r#"write "https://localhost:80" if you mean the URL, or "/localhost:80" if you mean a path"#.to_owned(),
            ),
            ("https:/example.com/x", r#"write "https://example.com/x""#.to_owned()),
            ("ftp://example.com/x", "a URL with http:// or https://".to_owned()),
            (r"https://example.com\x", r#"has a backslash before its path: write "https://example.com/x""#.to_owned()),
            (r"http://evil.test\@good.test/x", r#"write "http://evil.test/@good.test/x""#.to_owned()),
            ("https://example.com:x/", "is malformed".to_owned()),
            ("https://exa mple/", "is malformed".to_owned()),
            ("", "the value is empty".to_owned()),
            ("  ", "the value is empty".to_owned()),
        ] {
            let error = TargetUrl::parse(word.as_bytes()).expect_err(word);
            assert!(error.contains(&want), "{word}: {error}");
        }
        let error = TargetUrl::parse(b"a\x1b[31m\xff").expect_err("no path");
        assert!(!error.contains('\x1b'), "{error}");
    }
}
