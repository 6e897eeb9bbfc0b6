//! One range of addresses, as lists have them.

use std::error::Error;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A range of addresses in CIDR notation, or a single address: `66.249.64.0/27`, `2001:4860:4801:10::/64`, `192.0.2.7`.
///
/// IPv4 mapped into IPv6 is IPv4: `::ffff:192.0.2.0/120` is `192.0.2.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Prefix {
    first: IpAddr,
    length: u8,
}

/// Why a text is no [`Prefix`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefixError {
    text: String,
    fault: PrefixFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum PrefixFault {
    Address,
    Length(u8),
    HostBits,
}

impl Prefix {
    /// The first address of the range.
    #[must_use]
    pub const fn first(&self) -> IpAddr {
        self.first
    }

    /// How many bits all its addresses share.
    #[must_use]
    pub const fn length(&self) -> u8 {
        self.length
    }

    /// The range of this length, by family, that holds an address.
    pub(super) fn around(address: IpAddr, v4_length: u8, v6_length: u8) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => {
                let host = u32::MAX.checked_shr(v4_length.into()).unwrap_or(0);
                Self { first: IpAddr::from((address.to_bits() & !host).to_be_bytes()), length: v4_length }
            }
            IpAddr::V6(address) => {
                let host = u128::MAX.checked_shr(v6_length.into()).unwrap_or(0);
                Self { first: IpAddr::from((address.to_bits() & !host).to_be_bytes()), length: v6_length }
            }
        }
    }

    /// The first and the last address in bits, of an IPv4 range.
    pub(super) fn v4(&self) -> Option<(u32, u32)> {
        let IpAddr::V4(first) = self.first else { return None };
        Some((first.to_bits(), first.to_bits() | u32::MAX.checked_shr(self.length.into()).unwrap_or(0)))
    }

    /// The first and the last address in bits, of an IPv6 range.
    pub(super) fn v6(&self) -> Option<(u128, u128)> {
        let IpAddr::V6(first) = self.first else { return None };
        Some((first.to_bits(), first.to_bits() | u128::MAX.checked_shr(self.length.into()).unwrap_or(0)))
    }
}

impl FromStr for Prefix {
    type Err = PrefixError;

    fn from_str(text: &str) -> Result<Self, PrefixError> {
        let error = |fault| PrefixError { text: text.chars().take(64).collect(), fault };
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let first: IpAddr = address.parse().map_err(|_| error(PrefixFault::Address))?;
        let whole = if first.is_ipv4() { 32 } else { 128 };
        let length = match length {
            None => whole,
            Some(length) => {
                digits(length).filter(|length| *length <= whole).ok_or(error(PrefixFault::Length(whole)))?
            }
        };
        let has_host_bits = match first {
            IpAddr::V4(first) => first.to_bits() & u32::MAX.checked_shr(length.into()).unwrap_or(0) != 0,
            IpAddr::V6(first) => first.to_bits() & u128::MAX.checked_shr(length.into()).unwrap_or(0) != 0,
        };
        if has_host_bits {
            return Err(error(PrefixFault::HostBits));
        }
        match first.to_canonical() {
            first @ IpAddr::V4(_) if length >= 96 => Ok(Self { first, length: length - 96 }),
            _ => Ok(Self { first, length }),
        }
    }
}

/// Digits only: `parse` alone would take a sign.
fn digits(text: &str) -> Option<u8> {
    let is_number = text.bytes().all(|octet| octet.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_number { text.parse().ok() } else { None }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

impl fmt::Display for PrefixError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is no range of addresses: ", self.text)?;
        match self.fault {
            PrefixFault::Address => {
                f.write_str("write one such as \"66.249.64.0/27\", \"2001:db8::/32\" or \"192.0.2.7\"")
            }
            PrefixFault::Length(whole) => write!(f, "the length after the slash is a number up to {whole}"),
            PrefixFault::HostBits => f.write_str("bits after the length must be zero, as in \"66.249.64.0/27\""),
        }
    }
}

impl Error for PrefixError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_are_read_in_one_form() {
        for (text, form) in [
            ("66.249.64.0/27", "66.249.64.0/27"),
            ("192.0.2.7", "192.0.2.7/32"),
            ("0.0.0.0/0", "0.0.0.0/0"),
            ("2001:DB8::/32", "2001:db8::/32"),
            ("2001:db8::1", "2001:db8::1/128"),
            ("::/0", "::/0"),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24"),
            ("::ffff:192.0.2.7", "192.0.2.7/32"),
            ("::ffff:0:0/96", "0.0.0.0/0"),
        ] {
            assert_eq!(text.parse::<Prefix>().expect(text).to_string(), form, "{text}");
        }
        assert_eq!("10.0.0.0/8".parse::<Prefix>().map(|prefix| prefix.v4()), Ok(Some((0x0A00_0000, 0x0AFF_FFFF))));
        assert_eq!("::/0".parse::<Prefix>().map(|prefix| prefix.v6()), Ok(Some((0, u128::MAX))));
    }

    #[test]
    fn what_is_no_prefix_is_refused_with_a_reason() {
        for (text, reason) in [
            ("", "write one such as"),
            ("example.com", "write one such as"),
            (" 192.0.2.7", "write one such as"),
            ("192.0.2.07", "write one such as"),
            ("192.0.2.256", "write one such as"),
            ("fe80::1%eth0", "write one such as"),
            ("fe80::1%eth0/64", "write one such as"),
            ("192.0.2.0/33", "a number up to 32"),
            ("192.0.2.0/", "a number up to 32"),
            ("192.0.2.0/+8", "a number up to 32"),
            ("192.0.2.0/024", "a number up to 32"),
            ("192.0.2.0/24/24", "a number up to 32"),
            ("192.0.2.0/99999999999", "a number up to 32"),
            ("::/129", "a number up to 128"),
            ("192.0.2.7/24", "bits after the length"),
            ("2001:db8::1/64", "bits after the length"),
            ("::ffff:192.0.2.7/120", "bits after the length"),
        ] {
            let error = text.parse::<Prefix>().expect_err(text).to_string();
            assert!(error.contains(reason), "{error}");
        }
        let error = "x".repeat(10_000).parse::<Prefix>().expect_err("no prefix").to_string();
        assert!(error.len() < 200, "{error}");
    }
}
