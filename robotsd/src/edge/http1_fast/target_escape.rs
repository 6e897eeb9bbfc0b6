//! Escapes octets in a target that `http::Uri`, and so hyper, does not take, though nginx does, and browsers and scripts send
//! them.
//!
//! They are percent-encoded, which says the same octets (RFC 3986, section 2.1), before the head is read. Harmful ones
//! are not: controls, spaces, DEL and the backslash stay as they are, and are refused.

use bytes::Bytes;

/// Octets that begin with a request line, with its target escaped; none where nothing is to be escaped, or the line is not
/// whole. Where the head ends is not changed, so this cannot make two readers see two messages.
pub(crate) fn escaped(head: &Bytes) -> Option<Bytes> {
    let after_method = &head[memchr::memchr(b' ', head)? + 1..];
    let end = after_method.iter().position(|octet| octet.is_ascii_control() || *octet == b' ')?;
    let (target, rest) = after_method.split_at(end);
    if !target.starts_with(b"/") || !rest.starts_with(b" HTTP/1.") {
        return None;
    }
    // UTF-8 is passed on as it came.
    let is_text = std::str::from_utf8(target).is_ok();
    let query = memchr::memchr(b'?', target).unwrap_or(target.len());
    let is_escaped = |(at, octet): (usize, &u8)| match octet {
        b'<' | b'>' => true,
        b'`' => at < query,
        b'"' => at > query,
        octet => !octet.is_ascii() && !is_text,
    };
    if !target.iter().enumerate().any(is_escaped) {
        return None;
    }
    let mut escaped = Vec::with_capacity(head.len() + 2 * target.len());
    escaped.extend_from_slice(&head[..head.len() - after_method.len()]);
    for (at, octet) in target.iter().enumerate() {
        if is_escaped((at, octet)) {
            let digit = |value: u8| b"0123456789ABCDEF"[usize::from(value)];
            escaped.extend_from_slice(&[b'%', digit(octet >> 4), digit(octet & 15)]);
        } else {
            escaped.push(*octet);
        }
    }
    escaped.extend_from_slice(rest);
    Some(escaped.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(target: impl AsRef<[u8]>) -> Option<String> {
        let head = [b"GET ", target.as_ref(), b" HTTP/1.1\r\nX: <\xFF>\r\n\r\n"].concat();
        let escaped = escaped(&head.into())?;
        let target = escaped.strip_prefix(b"GET ")?.strip_suffix(b" HTTP/1.1\r\nX: <\xFF>\r\n\r\n")?;
        Some(String::from_utf8(target.to_vec()).unwrap())
    }

    #[test]
    fn octets_that_are_no_text_and_a_few_others_are_escaped() {
        for (given, want) in [
            (&b"/q?x=caf\xe9"[..], "/q?x=caf%E9"),
            (b"/caf\xe9/\xc3\xa9", "/caf%E9/%C3%A9"),
            (b"/a<b>`c`?d=<e>\"`", "/a%3Cb%3E%60c%60?d=%3Ce%3E%22`"),
            (b"/\x80\xff", "/%80%FF"),
            (b"/?\xff?\"", "/?%FF?%22"),
            (b"/<\\", "/%3C\\"),
        ] {
            assert_eq!(target(given).as_deref(), Some(want), "{}", given.escape_ascii());
        }
    }

    #[test]
    fn what_is_taken_or_refused_stays_as_it_is() {
        for given in [
            "/",
            "/caf\u{e9}?\u{e9}",
            "/a\"b{}|^\\~",
            "/?`{}|^\\~'",
            "/%3C",
            "/#",
            "*",
            "http://h/<",
            "//\x7f<",
            "/ <",
            "/\t<",
            "",
        ] {
            assert_eq!(target(given), None, "{given:?}");
        }
        for head in ["GET /<\r\n", "GET /< HTTP/2.0\r\n\r\n", "GET\r\n\r\n", "GET  /< HTTP/1.1", "GET /<", ""] {
            assert_eq!(escaped(&Bytes::from_static(head.as_bytes())), None, "{head:?}");
        }
    }

    /// http may come to take more, or less.
    #[test]
    fn exactly_what_a_uri_does_not_take_is_escaped() {
        for (before, after) in [("/a", "b"), ("/a?x=", "b")] {
            for octet in (0x21..=0xFF).filter(|octet| *octet != 0x7F) {
                let given = [before.as_bytes(), &[octet], after.as_bytes()].concat();
                let is_taken = http::Uri::from_maybe_shared(Bytes::from(given.clone())).is_ok();
                assert_eq!(target(&given).is_none(), is_taken, "{}", given.escape_ascii());
            }
        }
    }
}
