//! The parts of an authority: user information, host and port (RFC 3986, section 3.2).
//!
//! All code that splits authorities uses this module; callers check host names and IP addresses
//! themselves. A URL crate would be another dependency, and would allocate memory for each
//! authority. It would also reject some values that clients send or operators write.

/// A split authority: `[ userinfo "@" ] host [ ":" port ]` (RFC 3986, section 3.2).
///
/// ```
/// use robots_core::rules::{Authority, Port};
///
/// let authority = Authority::split(b"user@[::1]:8080");
/// assert_eq!(authority.userinfo, Some(&b"user"[..]));
/// assert_eq!(authority.host, b"[::1]");
/// assert_eq!(authority.bare_host(), b"::1");
/// assert_eq!(authority.port, Port::Number(8080));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Authority<'a> {
    /// Bytes before the `@`; `None` if there is no `@`.
    pub userinfo: Option<&'a [u8]>,
    /// Host and port as written.
    pub host_and_port: &'a [u8],
    /// Host as written, with the brackets of an IPv6 address. May be empty.
    pub host: &'a [u8],
    /// Port after the host, if any.
    pub port: Port,
}

/// The port of an authority (RFC 3986, section 3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Port {
    /// No colon follows the host.
    Absent,
    /// A colon without digits follows the host. Such a port means the same as [`Port::Absent`].
    Empty,
    /// Digits with a value from 0 to 65535.
    Number(u16),
    /// Bytes after the host that are not a port.
    Malformed,
}

impl<'a> Authority<'a> {
    /// Splits an authority. Never fails: invalid bytes are part of the host, or the port is
    /// [`Port::Malformed`].
    pub fn split(authority: &'a [u8]) -> Self {
        // A valid authority contains at most one `@`. If there are several `@`, the last one is the
        // delimiter, as in browsers.
        match memchr::memrchr(b'@', authority) {
            Some(at) => Self { userinfo: Some(&authority[..at]), ..Self::of_host_field(&authority[at + 1..]) },
            None => Self::of_host_field(authority),
        }
    }

    /// Splits the value of a `Host` field. Such a value has no user information (RFC 9110, section
    /// 7.2), so an `@` is an ordinary byte of the host.
    pub fn of_host_field(value: &'a [u8]) -> Self {
        // Colons within brackets, as in `[::1]`, do not delimit a port.
        let end = match value {
            [b'[', ..] => memchr::memchr(b']', value).map(|end| end + 1),
            _ => memchr::memchr(b':', value),
        };
        let (host, rest) = value.split_at(end.unwrap_or(value.len()));
        Self { userinfo: None, host_and_port: value, host, port: Port::behind_host(rest) }
    }

    /// Splits an absolute URL into its scheme, its authority and the remaining bytes, which begin
    /// with the path. `None` if there is no `://`.
    pub fn of_url(url: &'a [u8]) -> Option<(&'a [u8], Self, &'a [u8])> {
        let colon = memchr::memmem::find(url, b"://")?;
        let (scheme, behind) = (&url[..colon], &url[colon + 3..]);
        let end = memchr::memchr3(b'/', b'?', b'#', behind).unwrap_or(behind.len());
        let (authority, rest) = behind.split_at(end);
        Some((scheme, Self::split(authority), rest))
    }

    /// Returns the host without the brackets of an IPv6 address.
    pub const fn bare_host(&self) -> &'a [u8] {
        match self.host {
            [b'[', address @ .., b']'] => address,
            host => host,
        }
    }
}

impl Port {
    fn behind_host(rest: &[u8]) -> Self {
        match rest {
            [] => Self::Absent,
            [b':'] => Self::Empty,
            [b':', digits @ ..] => digits.iter().try_fold(0_u16, next_digit).map_or(Self::Malformed, Self::Number),
            _ => Self::Malformed,
        }
    }
}

fn next_digit(number: u16, digit: &u8) -> Option<u16> {
    if !digit.is_ascii_digit() {
        return None;
    }
    number.checked_mul(10)?.checked_add(u16::from(digit - b'0'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(authority: &str) -> (Option<&str>, &str, Port) {
        let text = |bytes| std::str::from_utf8(bytes).expect("text");
        let split = Authority::split(authority.as_bytes());
        (split.userinfo.map(text), text(split.host), split.port)
    }

    #[test]
    fn rfc_3986_3_2_an_authority_is_userinfo_host_and_port() {
        for (authority, want) in [
            ("example.com", (None, "example.com", Port::Absent)),
            ("example.com:8080", (None, "example.com", Port::Number(8080))),
            ("user@example.com", (Some("user"), "example.com", Port::Absent)),
            ("user:pass@example.com:81", (Some("user:pass"), "example.com", Port::Number(81))),
            ("@example.com", (Some(""), "example.com", Port::Absent)),
            ("a@b@example.com", (Some("a@b"), "example.com", Port::Absent)),
            ("[::1]", (None, "[::1]", Port::Absent)),
            ("[::1]:443", (None, "[::1]", Port::Number(443))),
            ("u@[2001:db8::1]:80", (Some("u"), "[2001:db8::1]", Port::Number(80))),
            ("127.0.0.1:0", (None, "127.0.0.1", Port::Number(0))),
            ("", (None, "", Port::Absent)),
            (":80", (None, "", Port::Number(80))),
        ] {
            assert_eq!(parts(authority), want, "{authority}");
        }
    }

    #[test]
    fn rfc_3986_3_2_3_a_port_is_digits_and_may_be_empty() {
        for (authorities, port) in [
            ("a: | [::1]:", Port::Empty),
            ("a:00080", Port::Number(80)),
            ("a:65535", Port::Number(65535)),
            ("a:65536 | a:99999999999999999999 | a:+80 | a:-1 | a: 80 | a:http | a:80:80", Port::Malformed),
            ("a::", Port::Malformed),
        ] {
            for authority in authorities.split(" | ") {
                assert_eq!(parts(authority).2, port, "{authority}");
            }
        }
    }

    #[test]
    fn rfc_6874_a_zone_id_stays_in_the_brackets() {
        assert_eq!(parts("[fe80::1%25eth0]:80"), (None, "[fe80::1%25eth0]", Port::Number(80)));
        assert_eq!(Authority::split(b"[fe80::1%25eth0]").bare_host(), b"fe80::1%25eth0");
    }

    #[test]
    fn an_authority_with_invalid_brackets_has_no_valid_port() {
        assert_eq!(parts("[::1"), (None, "[::1", Port::Absent));
        assert_eq!(parts("[::1]x"), (None, "[::1]", Port::Malformed));
        assert_eq!(parts("[::1]]:80"), (None, "[::1]", Port::Malformed));
        assert_eq!(parts("::1"), (None, "", Port::Malformed));
        assert_eq!(parts("a[::1]:80"), (None, "a[", Port::Malformed));
        assert_eq!(Authority::split(b"[").bare_host(), b"[");
        assert_eq!(Authority::split(b"[]").bare_host(), b"");
    }

    #[test]
    fn rfc_9110_7_2_a_host_field_has_no_userinfo() {
        let authority = Authority::of_host_field(b"user@example.com:80");
        assert_eq!(authority.userinfo, None);
        assert_eq!(authority.host, b"user@example.com");
        assert_eq!(authority.port, Port::Number(80));
    }

    #[test]
    fn an_absolute_url_is_split_into_scheme_authority_and_rest() {
        for (url, scheme, host_and_port, rest) in [
            ("http://a.example:81/x?y", "http", "a.example:81", "/x?y"),
            ("https://user@a.example", "https", "a.example", ""),
            ("http://a.example?x@y", "http", "a.example", "?x@y"),
            ("http://a.example#x", "http", "a.example", "#x"),
            ("http:///x", "http", "", "/x"),
        ] {
            let (found, authority, behind) = Authority::of_url(url.as_bytes()).expect(url);
            let want = (scheme.as_bytes(), host_and_port.as_bytes(), rest.as_bytes());
            assert_eq!((found, authority.host_and_port, behind), want, "{url}");
        }
        assert_eq!(Authority::of_url(b"/robots.txt"), None);
    }

    proptest! {
        #[test]
        fn splitting_an_authority_loses_no_bytes(authority: Vec<u8>) {
            let split = Authority::split(&authority);
            let userinfo = split.userinfo.map_or(0, |userinfo| userinfo.len() + 1);
            prop_assert_eq!(userinfo + split.host_and_port.len(), authority.len());
            prop_assert!(split.host_and_port.starts_with(split.host));
            let is_whole = split.host.len() == split.host_and_port.len();
            prop_assert_eq!(is_whole, split.port == Port::Absent);
        }
    }
}
