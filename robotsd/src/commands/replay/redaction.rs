//! Redacts reports. A redacted report contains only the parameter names of a query, and the network
//! of an address instead of the whole address.

use std::net::IpAddr;

use crate::log::LogPrivacy;

#[derive(Clone, Copy, Debug)]
pub(super) struct ReportPrivacy {
    pub(super) keep_queries: bool,
    pub(super) keep_addresses: bool,
}

/// Maximum length of a path in a report, in bytes.
const MAX_PATH_LENGTH: usize = 200;

impl ReportPrivacy {
    /// Redacts a request target for the report: removes the values in its query, and truncates long
    /// targets.
    pub(super) fn target(self, target: &[u8]) -> Vec<u8> {
        let mut shown = Vec::with_capacity(target.len().min(MAX_PATH_LENGTH));
        match memchr::memchr(b'?', target) {
            Some(at) if !self.keep_queries => {
                shown.extend_from_slice(&target[..at]);
                for (index, pair) in target[at + 1..].split(|byte| *byte == b'&').enumerate() {
                    shown.push(if index == 0 { b'?' } else { b'&' });
                    // A parameter without `=` is replaced as a whole, because it may be a secret.
                    let name = memchr::memchr(b'=', pair).map_or(0, |end| end + 1);
                    shown.extend_from_slice(&pair[..name]);
                    if !pair.is_empty() {
                        shown.push(b'*');
                    }
                }
            }
            _ => shown.extend_from_slice(target),
        }
        if shown.len() > MAX_PATH_LENGTH {
            shown.truncate(MAX_PATH_LENGTH);
            shown.extend_from_slice("…".as_bytes());
        }
        shown
    }

    /// Returns an unreadable line for the report. Any part of an unreadable line may be an address
    /// or a query. Therefore, this function masks all digits, and all text from a `?` up to the
    /// next space, tab or quote.
    pub(super) fn line(self, line: &[u8]) -> Vec<u8> {
        if self.keep_queries && self.keep_addresses {
            return line.to_vec();
        }
        let mut shown = Vec::with_capacity(line.len());
        let mut in_query = false;
        for byte in line {
            in_query &= !matches!(byte, b' ' | b'"' | b'\t');
            match byte {
                _ if in_query => {}
                b'?' => {
                    in_query = true;
                    shown.extend_from_slice(b"?*");
                }
                b'0'..=b'9' => shown.push(b'#'),
                _ => shown.push(*byte),
            }
        }
        shown
    }

    pub(super) fn address(self, address: IpAddr) -> String {
        if self.keep_addresses {
            return address.to_string();
        }
        LogPrivacy::default().address(address).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REDACTED: ReportPrivacy = ReportPrivacy { keep_queries: false, keep_addresses: false };
    const KEPT: ReportPrivacy = ReportPrivacy { keep_queries: true, keep_addresses: true };

    #[test]
    fn query_values_are_redacted() {
        for (target, want) in [
            ("/a", "/a"),
            ("/a?mail=x@y.example&page=2", "/a?mail=*&page=*"),
            ("/a?token", "/a?*"),
            ("/a?a=b=c&&d", "/a?a=*&&*"),
            ("/a?", "/a?"),
        ] {
            assert_eq!(String::from_utf8_lossy(&REDACTED.target(target.as_bytes())), want, "{target}");
            assert_eq!(KEPT.target(target.as_bytes()), target.as_bytes());
        }
        assert_eq!(KEPT.target(&[b'a'; 5000]).len(), MAX_PATH_LENGTH + "…".len());
    }

    #[test]
    fn lines_that_cannot_be_read_are_masked() {
        let line = b"192.0.2.7 - - GET /a?mail=x@y.example HTTP/1.1 \"-\" 17";
        let want = "###.#.#.# - - GET /a?* HTTP/#.# \"-\" ##";
        assert_eq!(String::from_utf8_lossy(&REDACTED.line(line)), want);
        assert_eq!(KEPT.line(line), line);
    }

    #[test]
    fn addresses_are_truncated() {
        for (text, want) in [("192.0.2.7", "192.0.2.0/24"), ("2001:db8:1:2:3::4", "2001:db8:1::/48")] {
            let address = text.parse().expect(text);
            assert_eq!(REDACTED.address(address), want);
            assert_eq!(KEPT.address(address), text);
        }
    }
}
