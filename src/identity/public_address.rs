//! The address of a client, where it can be judged.

use std::net::IpAddr;

use super::address_class::AddressClass;
use crate::agent::UndecidedReason;

/// An address that a claim can be judged by: the client's own, and reachable from everywhere.
///
/// An IPv4 address mapped into IPv6 is the IPv4 address. Addresses of documentation (RFC 5737, RFC 3849) count as public:
/// no client has one, and examples and tests do.
///
/// ```
/// use tower_robots::agent::UndecidedReason;
/// use tower_robots::identity::PublicAddress;
///
/// let proxies = ["198.51.100.1".parse()?];
/// let judged = |address| PublicAddress::of(address, |address| proxies.contains(&address));
/// assert!(judged(Some("66.249.66.1".parse()?)).is_ok());
/// assert_eq!(judged(Some("192.168.0.7".parse()?)), Err(UndecidedReason::Address));
/// assert_eq!(judged(Some("198.51.100.1".parse()?)), Err(UndecidedReason::Address));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PublicAddress(IpAddr);

impl PublicAddress {
    /// The client's address, unless it says nothing about the client.
    ///
    /// # Errors
    ///
    /// [`UndecidedReason::Address`] where it is missing, private (RFC 1918, RFC 4193), shared (RFC 6598), reserved, of this
    /// machine or link, or that of a trusted proxy: what came through one is no evidence about the client.
    pub fn of(address: Option<IpAddr>, is_trusted_proxy: impl FnOnce(IpAddr) -> bool) -> Result<Self, UndecidedReason> {
        let address = address.ok_or(UndecidedReason::Address)?.to_canonical();
        let is_public = matches!(AddressClass::of(address), AddressClass::Public | AddressClass::Documentation);
        if is_public && !is_trusted_proxy(address) { Ok(Self(address)) } else { Err(UndecidedReason::Address) }
    }

    /// The address.
    #[must_use]
    pub const fn get(self) -> IpAddr {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<PublicAddress, UndecidedReason> {
        PublicAddress::of(Some(text.parse().expect(text)), |_| false)
    }

    #[test]
    fn an_address_that_says_nothing_about_the_client_is_not_judged() {
        for text in [
            "10.0.0.1",
            "172.16.0.1",
            "192.168.1.1",
            "100.64.0.1",
            "100.127.255.254",
            "127.0.0.1",
            "0.0.0.0",
            "169.254.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "fe80::1",
            "fc00::1",
            "ff02::1",
            "::ffff:10.0.0.1",
            "64:ff9b::c0a8:1",
        ] {
            assert_eq!(of(text), Err(UndecidedReason::Address), "{text}");
        }
        assert_eq!(PublicAddress::of(None, |_| false), Err(UndecidedReason::Address));
        let proxy =
            PublicAddress::of(Some(IpAddr::from([8, 8, 8, 8])), |address| address == IpAddr::from([8, 8, 8, 8]));
        assert_eq!(proxy, Err(UndecidedReason::Address));
    }

    #[test]
    fn a_mapped_address_is_judged_as_what_it_maps() {
        for text in ["66.249.66.1", "203.0.113.7", "2001:4860:4801:10::1", "2001:db8::1"] {
            assert_eq!(of(text).map(PublicAddress::get), Ok(text.parse().expect(text)));
        }
        assert_eq!(of("::ffff:66.249.66.1"), of("66.249.66.1"));
    }
}
