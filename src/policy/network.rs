//! Ranges of addresses.

use std::error::Error;
use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

/// A network in CIDR notation: `10.0.0.0/8`, `2001:db8::/32`, or a single address.
///
/// An IPv4 address mapped into IPv6 is the IPv4 address.
///
/// ```
/// use tower_robots::policy::Network;
///
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains([10, 1, 2, 3].into()));
/// assert_eq!(network.to_string(), "10.0.0.0/8");
/// # Ok::<(), tower_robots::policy::NetworkError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// Left-aligned in 128 bits, IPv4 mapped.
    bits: u128,
    length: u32,
}

/// A text that is no network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkError {
    text: String,
    fault: NetworkFault,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NetworkFault {
    Address,
    Length(u32),
    HostBits,
}

impl Network {
    /// Whether an address is in the network.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        bits(address) & mask(self.length) == self.bits
    }
}

impl FromStr for Network {
    type Err = NetworkError;

    fn from_str(text: &str) -> Result<Self, NetworkError> {
        let error = |fault| NetworkError { text: text.to_owned(), fault };
        let (address, length) = text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
        let address: IpAddr = address.parse().map_err(|_| error(NetworkFault::Address))?;
        let whole = if address.is_ipv4() { Ipv4Addr::BITS } else { Ipv6Addr::BITS };
        let length = match length {
            None => whole,
            Some(length) => {
                length.parse().ok().filter(|length| *length <= whole).ok_or(error(NetworkFault::Length(whole)))?
            }
        };
        let network = Self { bits: bits(address), length: length + (Ipv6Addr::BITS - whole) };
        if network.bits & mask(network.length) == network.bits {
            Ok(network)
        } else {
            Err(error(NetworkFault::HostBits))
        }
    }
}

/// As [`FromStr`], for what takes a list of networks or of their texts.
impl TryFrom<&str> for Network {
    type Error = NetworkError;

    fn try_from(text: &str) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl TryFrom<String> for Network {
    type Error = NetworkError;

    fn try_from(text: String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

impl TryFrom<&String> for Network {
    type Error = NetworkError;

    fn try_from(text: &String) -> Result<Self, NetworkError> {
        text.parse()
    }
}

/// The network of a single address.
impl From<IpAddr> for Network {
    fn from(address: IpAddr) -> Self {
        Self { bits: bits(address), length: Ipv6Addr::BITS }
    }
}

/// Writes what [`FromStr`] reads: `10.0.0.0/8`, and a single address without a length.
impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let address = Ipv6Addr::from_bits(self.bits);
        let mapped = Ipv6Addr::BITS - Ipv4Addr::BITS;
        let (address, length, whole) = match address.to_ipv4_mapped() {
            Some(address) if self.length >= mapped => (IpAddr::V4(address), self.length - mapped, Ipv4Addr::BITS),
            _ => (IpAddr::V6(address), self.length, Ipv6Addr::BITS),
        };
        write!(f, "{address}")?;
        if length < whole { write!(f, "/{length}") } else { Ok(()) }
    }
}

impl NetworkError {
    /// The text.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }
}

impl fmt::Display for NetworkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} is not a network: ", self.text)?;
        match self.fault {
            NetworkFault::Address => {
                f.write_str("write one such as \"10.0.0.0/8\", \"2001:db8::/32\" or \"192.0.2.7\"")
            }
            NetworkFault::Length(whole) => write!(f, "the length after the slash is a number up to {whole}"),
            NetworkFault::HostBits => f.write_str("bits after the length must be zero, as in \"10.0.0.0/8\""),
        }
    }
}

impl Error for NetworkError {}

fn bits(address: IpAddr) -> u128 {
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
    fn an_address_is_in_the_networks_that_begin_like_it() {
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
        assert_eq!(
            "::ffff:10.0.0.0/104".parse::<Network>().map(|network| network.to_string()),
            Ok("10.0.0.0/8".into())
        );
        let all: Network = "::/0".parse().expect("a network");
        assert!(all.contains(IpAddr::from([8, 8, 8, 8])));
    }

    #[test]
    fn what_is_no_network_is_told_why() {
        for (text, why) in [
            ("example.com", "write one such as"),
            ("10.0.0.0/33", "a number up to 32"),
            ("::/129", "a number up to 128"),
            ("10.0.0.0/", "a number up to 32"),
            ("10.0.0.1/8", "bits after the length must be zero"),
        ] {
            let error = text.parse::<Network>().expect_err(text).to_string();
            assert!(error.contains(why), "{error}");
        }
    }
}
