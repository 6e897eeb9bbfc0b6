//! Networks in CIDR notation.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use crate::rules::ValueError;

/// A network in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
///
/// IPv4 addresses that are mapped into IPv6 are treated as IPv4 addresses: `::ffff:192.0.2.0/120`
/// is `192.0.2.0/24`.
///
/// ```
/// use robots_core::agent::Network;
///
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains([10, 1, 2, 3].into()));
/// assert_eq!(network.to_string(), "10.0.0.0/8");
/// # Ok::<(), robots_core::rules::ValueError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    /// The first address as 128 bits; an IPv4 address is mapped into IPv6.
    bits: u128,
    /// Length of the prefix within the 128 bits.
    length: u32,
}

/// Number of bits before the IPv4 address in an IPv4-mapped IPv6 address.
const MAPPED: u32 = Ipv6Addr::BITS - Ipv4Addr::BITS;

impl Network {
    /// Reports whether an address is in the network.
    pub fn contains(&self, address: IpAddr) -> bool {
        bits(address) & mask(self.length) == self.bits
    }

    /// Returns the first address of the network.
    #[doc(hidden)]
    pub fn first(&self) -> IpAddr {
        let first = Ipv6Addr::from_bits(self.bits);
        match first.to_ipv4_mapped() {
            Some(first) if self.length >= MAPPED => IpAddr::V4(first),
            _ => IpAddr::V6(first),
        }
    }

    /// Returns the length of the prefix, in bits: up to 32 for IPv4, up to 128 for IPv6.
    #[doc(hidden)]
    pub fn length(&self) -> u32 {
        if self.first().is_ipv4() { self.length - MAPPED } else { self.length }
    }

    /// Returns the network that contains an address. The length of its prefix is `v4_length` for an
    /// IPv4 address and `v6_length` for an IPv6 address.
    #[doc(hidden)]
    pub fn around(address: IpAddr, v4_length: u32, v6_length: u32) -> Self {
        let length = if address.to_canonical().is_ipv4() { v4_length + MAPPED } else { v6_length };
        Self { bits: bits(address) & mask(length), length }
    }

    /// Returns the first and the last address of an IPv4 network as numbers; `None` for IPv6.
    pub(crate) fn v4(&self) -> Option<(u32, u32)> {
        let IpAddr::V4(first) = self.first() else { return None };
        Some((first.to_bits(), first.to_bits() | u32::MAX.checked_shr(self.length()).unwrap_or(0)))
    }

    /// Returns the first and the last address of an IPv6 network as numbers; `None` for IPv4.
    pub(crate) fn v6(&self) -> Option<(u128, u128)> {
        let IpAddr::V6(first) = self.first() else { return None };
        Some((first.to_bits(), first.to_bits() | !mask(self.length)))
    }
}

impl FromStr for Network {
    type Err = ValueError;

    fn from_str(text: &str) -> Result<Self, ValueError> {
        let error = |fault: &str| ValueError::of_any(text, format_args!("is not a network: {fault}"));
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address
            .parse()
            .map_err(|_| error("write one such as \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.7\""))?;
        let whole = if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        let length = match length {
            None => whole,
            Some(length) => {
                let of_family = digits(length).filter(|length| *length <= whole);
                of_family.ok_or_else(|| error(&format!("the length after the slash must be a number up to {whole}")))?
            }
        };
        let network = Self { bits: bits(address), length: length + (Ipv6Addr::BITS - whole) };
        if network.bits & mask(network.length) == network.bits {
            Ok(network)
        } else {
            Err(error("the address bits after the prefix length must be zero, as in \"10.0.0.0/8\""))
        }
    }
}

/// A value that settings accept as a network: a [`Network`], an address, or the string form of
/// either. The trait is sealed, so other crates cannot implement it.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not a network",
    label = "not a network",
    note = "a network is a `Network`, an `IpAddr`, or a string such as \"10.0.0.0/8\"",
    note = "settings take a list, even of one network: write `[\"10.0.0.0/8\"]`"
)]
pub trait IntoNetwork: sealed::Sealed {
    /// Returns the network.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a valid network.
    fn network(&self) -> Result<Network, ValueError>;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! into_network {
    ($($type:ty: $network:expr),* $(,)?) => {
        $(impl sealed::Sealed for $type {}

        impl IntoNetwork for $type {
            fn network(&self) -> Result<Network, ValueError> {
                $network(self)
            }
        })*
    };
}

into_network! {
    Network: |network: &Self| Ok(*network),
    IpAddr: |address: &Self| Ok((*address).into()),
    Ipv4Addr: |address: &Self| Ok(IpAddr::V4(*address).into()),
    Ipv6Addr: |address: &Self| Ok(IpAddr::V6(*address).into()),
    str: str::parse,
    String: |text: &Self| text.parse(),
}

impl<N: sealed::Sealed + ?Sized> sealed::Sealed for &N {}

impl<N: IntoNetwork + ?Sized> IntoNetwork for &N {
    fn network(&self) -> Result<Network, ValueError> {
        (**self).network()
    }
}

/// Parses a number. Rejects signs and leading zeros, which `str::parse` would accept.
fn digits(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    if is_number { text.parse().ok() } else { None }
}

impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self { bits: bits(address), length: Ipv6Addr::BITS }
    }
}

/// Writes the network in the form that [`FromStr`] parses: `10.0.0.0/8`, or a single address
/// without a length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, length) = (self.first(), self.length());
        let whole = if first.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        write!(f, "{first}")?;
        if length < whole { write!(f, "/{length}") } else { Ok(()) }
    }
}

/// Returns an address as an IPv6 address in numeric form. IPv4 addresses are mapped into IPv6.
pub fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

fn mask(length: u32) -> u128 {
    u128::MAX.checked_shl(Ipv6Addr::BITS - length).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_contains_the_addresses_with_its_prefix() {
        for (network, inside, outside) in [
            ("10.0.0.0/8", "10.255.0.1", "11.0.0.1"),
            ("10.0.0.0/8", "::ffff:10.1.2.3", "::10.1.2.3"),
            ("192.0.2.7", "192.0.2.7", "192.0.2.8"),
            ("2001:db8::/32", "2001:db8:ffff::1", "2001:db9::1"),
            ("0.0.0.0/0", "8.8.8.8", "2001:db8::1"),
            ("::1", "::1", "127.0.0.1"),
        ] {
            let network: Network = network.parse().expect("a network");
            assert!(network.contains(inside.parse().expect("an address")), "{inside}");
            assert!(!network.contains(outside.parse().expect("an address")), "{outside}");
        }
        for text in ["10.0.0.0/8", "192.0.2.7", "2001:db8::/32", "::1", "0.0.0.0/0", "::/0"] {
            let network: Network = text.parse().expect("a network");
            assert_eq!(network.to_string().parse(), Ok(network), "{text}");
        }
        assert_eq!(Network::from(IpAddr::from([192, 0, 2, 7])).to_string(), "192.0.2.7");
        let found = "::ffff:10.0.0.0/104".parse::<Network>().map(|network| network.to_string());
        assert_eq!(found, Ok("10.0.0.0/8".into()));
        let all: Network = "::/0".parse().expect("a network");
        assert!(all.contains(IpAddr::from([8, 8, 8, 8])));
    }

    #[test]
    fn an_invalid_network_is_refused_with_a_reason() {
        for (text, why) in [
            ("", "write one such as"),
            ("example.com", "write one such as"),
            (" 192.0.2.7", "write one such as"),
            ("192.0.2.07", "write one such as"),
            ("192.0.2.256", "write one such as"),
            ("fe80::1%eth0/64", "write one such as"),
            ("10.0.0.0/33", "a number up to 32"),
            ("::/129", "a number up to 128"),
            ("10.0.0.0/", "a number up to 32"),
            ("10.0.0.0/+8", "a number up to 32"),
            ("10.0.0.0/08", "a number up to 32"),
            ("10.0.0.0/8/8", "a number up to 32"),
            ("10.0.0.0/99999999999", "a number up to 32"),
            ("10.0.0.1/8", "the address bits after the prefix length must be zero"),
            ("2001:db8::1/64", "the address bits after the prefix length must be zero"),
            ("::ffff:192.0.2.7/120", "the address bits after the prefix length must be zero"),
        ] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
        let error = "x".repeat(10_000).parse::<Network>().expect_err("no network").to_string();
        assert!(error.len() < 500, "{error}");
    }

    #[test]
    fn a_network_has_a_canonical_form_a_first_address_and_an_address_range() {
        for (text, form, first, length) in [
            ("192.0.2.7", "192.0.2.7", "192.0.2.7", 32),
            ("0.0.0.0/0", "0.0.0.0/0", "0.0.0.0", 0),
            ("2001:DB8::/32", "2001:db8::/32", "2001:db8::", 32),
            ("::/0", "::/0", "::", 0),
            ("::ffff:192.0.2.0/120", "192.0.2.0/24", "192.0.2.0", 24),
            ("::ffff:0:0/96", "0.0.0.0/0", "0.0.0.0", 0),
        ] {
            let network: Network = text.parse().expect(text);
            assert_eq!((network.to_string().as_str(), network.length()), (form, length));
            assert_eq!(network.first(), first.parse::<IpAddr>().expect(first));
        }
        let network = |text: &str| text.parse::<Network>().expect(text);
        assert_eq!((network("10.0.0.0/8").v4(), network("10.0.0.0/8").v6()), (Some((0x0A00_0000, 0x0AFF_FFFF)), None));
        assert_eq!((network("::/0").v4(), network("::/0").v6()), (None, Some((0, u128::MAX))));
        let around = |address: &str| Network::around(address.parse().expect(address), 24, 48).to_string();
        assert_eq!(around("::ffff:192.0.2.7"), "192.0.2.0/24");
        assert_eq!(around("2001:db8:1:2::3"), "2001:db8:1::/48");
    }
}
