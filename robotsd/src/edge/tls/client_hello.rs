//! How much of a ClientHello has come.
//!
//! Only lengths are read here, to know when the hello is whole; its content is for rustls.

/// The most octets of a ClientHello, its records' heads included. Browsers send up to 2 KiB, key shares against quantum
/// computers included.
pub(super) const MOST: usize = 16 * 1024;

/// The octets of a ClientHello that are kept before it counts as a handshake under way.
pub(super) const USUAL: usize = 4 * 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HelloProgress {
    Partial,
    /// All of it is there; or it is none, and nothing that may follow changes that.
    Whole,
}

/// The content type of records with handshake messages (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 22;

/// Type and length of a handshake message (RFC 8446, section 4).
const MESSAGE_HEAD: usize = 4;

/// The longest fragment of a message that a record may hold (RFC 8446, section 5.1).
const MOST_FRAGMENT: usize = 1 << 14;

/// Looks at all octets since the first one of the connection.
pub(super) fn progress(octets: &[u8]) -> HelloProgress {
    let mut records = octets;
    let mut head = [0; MESSAGE_HEAD];
    // Of the message, which may be spread over several records.
    let mut gathered = 0;
    loop {
        let (kind, length) = match *records {
            [] => return HelloProgress::Partial,
            [kind, ..] if kind != HANDSHAKE => return HelloProgress::Whole,
            [kind, _, _, high, low, ..] => (kind, usize::from(u16::from_be_bytes([high, low]))),
            _ => return HelloProgress::Partial,
        };
        debug_assert_eq!(kind, HANDSHAKE);
        if length == 0 || length > MOST_FRAGMENT {
            return HelloProgress::Whole;
        }
        let payload = &records[5..];
        let fragment = &payload[..length.min(payload.len())];
        for (to, from) in head.iter_mut().skip(gathered).zip(fragment) {
            *to = *from;
        }
        gathered += fragment.len();
        if gathered >= MESSAGE_HEAD {
            let [_, high, middle, low] = head;
            let message = u32::from_be_bytes([0, high, middle, low]) as usize;
            if gathered >= MESSAGE_HEAD + message {
                return HelloProgress::Whole;
            }
        }
        if payload.len() < length {
            return HelloProgress::Partial;
        }
        records = &payload[length..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message of this length in records of at most `fragment` octets.
    fn hello(length: u16, fragment: usize) -> Vec<u8> {
        let [high, low] = length.to_be_bytes();
        let mut message = vec![1, 0, high, low];
        message.resize(MESSAGE_HEAD + usize::from(length), 0);
        let record = |fragment: &[u8]| {
            let [high, low] = u16::try_from(fragment.len()).unwrap().to_be_bytes();
            [&[HANDSHAKE, 3, 1, high, low], fragment].concat()
        };
        message.chunks(fragment).flat_map(record).collect()
    }

    #[test]
    fn a_hello_is_whole_with_its_last_octet() {
        for (length, fragment) in [(200, 1000), (200, 64), (200, 1), (2000, 512), (0, 4)] {
            let hello = hello(length, fragment);
            for end in 0..hello.len() {
                assert_eq!(progress(&hello[..end]), HelloProgress::Partial, "{length} {fragment} {end}");
            }
            assert_eq!(progress(&hello), HelloProgress::Whole, "{length} {fragment}");
            assert_eq!(progress(&[&hello[..], b"more"].concat()), HelloProgress::Whole, "{length} {fragment}");
        }
    }

    #[test]
    fn octets_that_are_no_hello_are_not_waited_for() {
        for octets in [&b"\x15\x03\x01"[..], b"\x80\x2e\x01\x00\x02", b"\x16\x03\x01\xff\xff", b"\x16\x03\x01\x00\x00"]
        {
            assert_eq!(progress(octets), HelloProgress::Whole, "{octets:?}");
        }
    }
}
