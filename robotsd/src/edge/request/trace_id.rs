//! The trace that a request belongs to (W3C Trace Context).
//!
//! `traceparent` and `tracestate` are the client's and pass as they came; only the id is read, for logs, and only where the field is
//! as the standard says: a log is no place for what a client makes up.

use http::{HeaderMap, HeaderName};

const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// Octets of `version-trace_id-parent_id-flags`.
const LENGTH: usize = 55;

/// The trace id: 32 hexadecimal digits in lower case, not all zero. None without exactly one valid `traceparent`.
pub(crate) fn trace_id(fields: &HeaderMap) -> Option<&str> {
    let mut lines = fields.get_all(TRACEPARENT).into_iter();
    let (Some(line), None) = (lines.next(), lines.next()) else { return None };
    let line = line.to_str().ok()?;
    let (head, further) = line.split_at_checked(LENGTH)?;
    let [version, trace, parent, flags] = parts(head)?;
    // A later version may have more to say, behind a hyphen; version 255 is forbidden (section 3.2.2).
    let is_whole = further.is_empty() || version != "00" && further.starts_with('-');
    let is_valid = is_id(version, 2) && version != "ff" && is_id(trace, 32) && is_id(parent, 16) && is_id(flags, 2);
    let is_set = |id: &str| id.bytes().any(|digit| digit != b'0');
    (is_whole && is_valid && is_set(trace) && is_set(parent)).then_some(trace)
}

fn parts(head: &str) -> Option<[&str; 4]> {
    let mut parts = head.split('-');
    let found = [parts.next()?, parts.next()?, parts.next()?, parts.next()?];
    parts.next().is_none().then_some(found)
}

fn is_id(text: &str, length: usize) -> bool {
    text.len() == length && text.bytes().all(|octet| matches!(octet, b'0'..=b'9' | b'a'..=b'f'))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn of(lines: &[&[u8]]) -> Option<String> {
        let lines = lines.iter().map(|line| (TRACEPARENT, HeaderValue::from_bytes(line).expect("a field value")));
        trace_id(&lines.collect()).map(str::to_owned)
    }

    #[test]
    fn a_trace_id_is_that_of_one_valid_traceparent() {
        const ID: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
        let valid = format!("00-{ID}-00f067aa0ba902b7-01");
        let later = format!("cc-{ID}-00f067aa0ba902b7-01-what-comes");
        assert_eq!(of(&[valid.as_bytes()]).as_deref(), Some(ID));
        assert_eq!(of(&[later.as_bytes()]).as_deref(), Some(ID));
        for wrong in [
            "",
            ID,
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-more",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-012",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00_4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e47--00f067aa0ba902b7-011",
        ] {
            assert_eq!(of(&[wrong.as_bytes()]), None, "{wrong}");
        }
        assert_eq!(of(&[valid.as_bytes(), valid.as_bytes()]), None);
        assert_eq!(of(&[&[0xff; LENGTH]]), None);
        assert_eq!(of(&[]), None);
    }
}
