//! The address of a client as a log has it.

use std::net::{IpAddr, Ipv4Addr};

/// The address, if it is one; it may have been truncated.
pub(crate) fn address_as_logged(text: &[u8]) -> Option<IpAddr> {
    match dotted(text) {
        Some(address) => Some(IpAddr::V4(address)),
        None => other(text),
    }
}

/// Whether an address is that of a client, as far as it shows.
///
/// Logs are often written with truncated addresses, to a /24, a /48 or a /64. Such an address is another one than that of the
/// client, and only looks like an address. So one that ends as a truncated one does decides nothing; hardly any client
/// has one.
pub(crate) fn is_whole(address: &IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => address.octets()[3] != 0,
        IpAddr::V6(address) => address.segments()[4..] != [0; 4],
    }
}

/// An IPv4 address as most lines have it: a third of the time that a parser of every form takes.
fn dotted(text: &[u8]) -> Option<Ipv4Addr> {
    let (mut octets, mut at, mut digits) = ([0_u8; 4], 0, 0);
    for octet in text {
        match octet {
            b'0'..=b'9' => {
                let before = octets[at];
                // No zero before other digits.
                if digits > 0 && before == 0 {
                    return None;
                }
                octets[at] = before.checked_mul(10)?.checked_add(octet - b'0')?;
                digits += 1;
            }
            b'.' if digits > 0 && at < 3 => (at, digits) = (at + 1, 0),
            _ => return None,
        }
    }
    (at == 3 && digits > 0).then_some(Ipv4Addr::from(octets))
}

fn other(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    Some(text.parse::<IpAddr>().ok()?.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_short_way_reads_what_the_parser_reads() {
        for text in [
            "1.2.3.4",
            "255.255.255.255",
            "0.0.0.1",
            "10.20.30.40",
            "256.1.1.1",
            "1.2.3",
            "1.2.3.4.5",
            "1..3.4",
            ".1.2.3.4",
            "1.2.3.4.",
            "01.2.3.4",
            "1.2.3.00",
            "1.2.3.4 ",
            "",
            ".",
            "a.b.c.d",
            "1.2.3.-4",
            "999999.1.1.1",
            "::1",
        ] {
            assert_eq!(dotted(text.as_bytes()), text.parse().ok(), "{text}");
        }
    }

    #[test]
    fn whole_addresses_are_read_in_every_form() {
        for (text, want) in [
            ("66.249.66.1", Some("66.249.66.1")),
            ("::ffff:66.249.66.1", Some("66.249.66.1")),
            ("[2001:4860:4801:10::1]", Some("2001:4860:4801:10::1")),
            ("66.249.66.0", None),
            ("::ffff:66.249.66.0", None),
            ("2001:4860:4801::", None),
            ("2001:4860:4801:10::", None),
            ("66.249.66.0/24", None),
            ("66.249.66.1,", None),
            ("crawl.example", None),
            ("-", None),
            ("", None),
        ] {
            let address = address_as_logged(text.as_bytes()).filter(is_whole);
            assert_eq!(address, want.map(|want| want.parse().expect(want)), "{text}");
        }
        assert_eq!(address_as_logged(b"\xff"), None);
    }
}
