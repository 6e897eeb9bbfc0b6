//! The address of a client as a log has it.

use std::net::IpAddr;

/// The address, if it is one, and whole.
///
/// Logs are often written with truncated addresses, to a /24, a /48 or a /64. Such an address is another one than that of the
/// client, and only looks like an address. So one that ends as a truncated one does decides nothing; hardly any client
/// has one.
pub(super) fn parse(text: &[u8]) -> Option<IpAddr> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = text.parse::<IpAddr>().ok()?.to_canonical();
    let is_whole = match address {
        IpAddr::V4(address) => address.octets()[3] != 0,
        IpAddr::V6(address) => address.segments()[4..] != [0; 4],
    };
    is_whole.then_some(address)
}

#[cfg(test)]
mod tests {
    use super::*;

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
            assert_eq!(parse(text.as_bytes()), want.map(|want| want.parse().expect(want)), "{text}");
        }
        assert_eq!(parse(b"\xff"), None);
    }
}
