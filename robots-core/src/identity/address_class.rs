//! Classes of IP addresses, by the kind of network. The class of an address decides whether the
//! address can identify a client, and whether an HTTP redirect to the address is followed.
//!
//! Files such as address lists are fetched from inside a site's own network. A server that responds
//! with a redirect chooses the address that is requested next. A redirect must not lead to an
//! address that only the fetching machine or its network can reach, such as an admin interface on
//! the loopback, or the metadata service of a cloud on a link-local address. A name may resolve to
//! a different address each time (DNS rebinding). So the class is checked after name resolution,
//! for the address that the fetch connects to.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::agent::UndecidedReason;

/// The kind of network that an address belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressClass {
    /// Reachable from the whole Internet.
    Public,
    /// Reachable only within an organisation's network: private (RFC 1918), shared (RFC 6598),
    /// unique local (RFC 4193) and the older site-local addresses.
    Private,
    /// This machine. The class includes the unspecified address, because connections to the
    /// unspecified address reach this machine.
    Loopback,
    /// Reachable only from the same network link (RFC 3927, RFC 4291).
    LinkLocal,
    /// Multicast addresses, reserved addresses and addresses for benchmarks.
    Special,
    /// For documentation only; never routed.
    Documentation,
}

impl AddressClass {
    /// Returns the class of an address. If an IPv6 address embeds an IPv4 address, returns the
    /// class of the IPv4 address.
    pub fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(address) => Self::of_v4(address),
            IpAddr::V6(address) => embedded(address).map_or_else(|| Self::of_v6(address), Self::of_v4),
        }
    }

    /// Reports whether a server with an address of this class may redirect to an address of class
    /// `to`. The new address must be of the same class or of a more public class.
    pub const fn may_redirect_to(self, to: Self) -> bool {
        match to {
            Self::Public => true,
            Self::Private => matches!(self, Self::Private | Self::Loopback | Self::LinkLocal),
            Self::Loopback => matches!(self, Self::Loopback),
            Self::LinkLocal => matches!(self, Self::LinkLocal),
            Self::Special | Self::Documentation => matches!(self, Self::Special | Self::Documentation),
        }
    }

    fn of_v4(address: Ipv4Addr) -> Self {
        match address.octets() {
            [0, 0, 0, 0] | [127, ..] => Self::Loopback,
            [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => Self::Private,
            [169, 254, ..] => Self::LinkLocal,
            [0 | 224.., ..] => Self::Special,
            [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Self::Documentation,
            // IETF protocol assignments, the former anycast address of 6to4 relays, and benchmarks.
            [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Self::Special,
            _ => Self::Public,
        }
    }

    fn of_v6(address: Ipv6Addr) -> Self {
        match address.segments() {
            [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Self::Loopback,
            [0xFE80..=0xFEBF, ..] => Self::LinkLocal,
            [0xFC00..=0xFDFF | 0xFEC0..=0xFEFF, ..] => Self::Private,
            [0x2001, 0xDB8, ..] | [0x3FFF, 0..=0xFFF, ..] => Self::Documentation,
            // IETF protocol assignments, including Teredo.
            [0x2001, 0..=0x1FF, ..] => Self::Special,
            // Global unicast (RFC 4291, section 2.4). No other range is assigned for this purpose.
            [0x2000..=0x3FFF, ..] => Self::Public,
            _ => Self::Special,
        }
    }
}

/// Returns the IPv4 address that an IPv6 address embeds: mapped, compatible, translated (SIIT),
/// NAT64 or 6to4.
fn embedded(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let from = |high: u16, low: u16| Some(Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low)));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0 | 0xFFFF, high, low]
        | [0, 0, 0, 0, 0xFFFF, 0, high, low]
        | [0x64, 0xFF9B, 0, 0, 0, 0, high, low]
        | [0x2002, high, low, ..] => from(high, low),
        _ => None,
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Special | Self::Documentation => "special-purpose",
        })
    }
}

/// A client address that can verify or refute a claim. It is publicly reachable, and it belongs to
/// the client, not to a trusted proxy.
///
/// An IPv4 address that is mapped into IPv6 is treated as the IPv4 address. Documentation addresses
/// (RFC 5737, RFC 3849) are treated as public, because examples and tests use these addresses, and
/// no client has such an address.
///
/// ```
/// use robots_core::agent::UndecidedReason;
/// use robots_core::identity::PublicAddress;
///
/// let proxies = ["198.51.100.1".parse()?];
/// let judged = |address| PublicAddress::of(address, |address| proxies.contains(&address));
/// assert!(judged(Some("66.249.66.1".parse()?)).is_ok());
/// assert_eq!(judged(Some("192.168.0.7".parse()?)), Err(UndecidedReason::Address));
/// assert_eq!(judged(Some("198.51.100.1".parse()?)), Err(UndecidedReason::Address));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PublicAddress(IpAddr);

impl PublicAddress {
    /// Checks the client's address.
    ///
    /// # Errors
    ///
    /// Returns [`UndecidedReason::Address`] if the address is unknown, private (RFC 1918, RFC
    /// 4193), shared (RFC 6598), reserved, or local to this machine or link. Also returns this
    /// error for the address of a trusted proxy, because such an address proves nothing about the
    /// client.
    pub fn of(address: Option<IpAddr>, is_trusted_proxy: impl FnOnce(IpAddr) -> bool) -> Result<Self, UndecidedReason> {
        let address = address.ok_or(UndecidedReason::Address)?.to_canonical();
        let is_public = matches!(AddressClass::of(address), AddressClass::Public | AddressClass::Documentation);
        if is_public && !is_trusted_proxy(address) { Ok(Self(address)) } else { Err(UndecidedReason::Address) }
    }

    /// Returns the address.
    pub const fn get(self) -> IpAddr {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::AddressClass::{Documentation, LinkLocal, Loopback, Private, Public, Special};
    use super::*;

    #[test]
    fn addresses_are_classified_by_their_network() {
        for (class, addresses) in [
            (Loopback, "127.0.0.1 127.255.255.255 127.0.0.53 0.0.0.0 ::1 ::"),
            (LinkLocal, "169.254.0.0 169.254.169.254 169.254.255.255 fe80:: fe80::1 febf:ffff::1"),
            (
                Private,
                "10.0.0.0 10.255.255.255 172.16.0.0 172.31.255.255 192.168.0.0 192.168.255.255 100.64.0.0 \
                 100.127.255.255 fc00:: fd00::1 fdff:ffff::1 fec0::1 feff::1",
            ),
            (
                Special,
                "0.0.0.1 0.255.255.255 192.0.0.1 192.88.99.1 198.18.0.1 198.19.255.255 224.0.0.1 239.255.255.255 \
                 240.0.0.1 255.255.255.255 ff02::1 ff0e::1 2001:: 2001:0:7f00:1::1 2001:1ff:ffff::1 100::1 \
                 64:ff9b:1::1 5f00::1 4000::1 fe00::1 fbff::1",
            ),
            (Documentation, "192.0.2.1 198.51.100.1 203.0.113.255 2001:db8::1 3fff::1 3fff:fff::1"),
            (
                Public,
                "1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.0 100.63.255.255 100.128.0.0 126.255.255.255 128.0.0.0 \
                 169.253.255.255 169.255.0.0 172.15.255.255 172.32.0.0 192.0.1.1 192.0.3.1 192.167.255.255 192.169.0.0 \
                 198.17.255.255 198.20.0.0 203.0.112.255 203.0.114.0 223.255.255.255 2000::1 2001:200::1 \
                 2001:4860:4860::8888 2606:4700:4700::1111 2a00::1 3ffe::1",
            ),
        ] {
            for address in addresses.split_whitespace() {
                assert_eq!(AddressClass::of(address.parse().expect(address)), class, "{address}");
            }
        }
    }

    #[test]
    fn an_ipv6_address_has_the_class_of_its_embedded_ipv4_address() {
        for (address, class) in [
            ("127.0.0.1", Loopback),
            ("0.0.0.0", Loopback),
            ("10.1.2.3", Private),
            ("192.168.0.1", Private),
            ("100.64.0.1", Private),
            ("169.254.169.254", LinkLocal),
            ("224.0.0.1", Special),
            ("203.0.113.1", Documentation),
            ("8.8.8.8", Public),
        ] {
            let v4: Ipv4Addr = address.parse().expect(address);
            let [high, low] = [(v4.to_bits() >> 16) as u16, v4.to_bits() as u16];
            for v6 in [
                v4.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0xFFFF, 0, high, low),
                Ipv6Addr::new(0x64, 0xFF9B, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
            ] {
                assert_eq!(AddressClass::of(v6.into()), class, "{v6} holds {address}");
            }
            // `::` is excluded, because it is the unspecified address.
            assert_eq!(AddressClass::of(v4.to_ipv6_compatible().into()), class, "::{address}");
        }
    }

    #[test]
    fn redirects_stay_in_a_class_or_lead_to_a_more_public_one() {
        let classes = [Public, Private, Loopback, LinkLocal, Special, Documentation];
        let allowed = |from: AddressClass| classes.into_iter().filter(move |to| from.may_redirect_to(*to));
        for (from, to) in [
            (Public, vec![Public]),
            (Private, vec![Public, Private]),
            (Loopback, vec![Public, Private, Loopback]),
            (LinkLocal, vec![Public, Private, LinkLocal]),
            (Special, vec![Public, Special, Documentation]),
            (Documentation, vec![Public, Special, Documentation]),
        ] {
            assert_eq!(allowed(from).collect::<Vec<_>>(), to, "from {from}");
        }
        // Two redirects must not lead to an address that a single redirect may not lead to.
        for from in classes {
            for (by, to) in allowed(from).flat_map(|by| allowed(by).map(move |to| (by, to))) {
                assert!(from.may_redirect_to(to), "{from} to {to} by {by}");
            }
        }
    }

    fn of(text: &str) -> Result<PublicAddress, UndecidedReason> {
        PublicAddress::of(Some(text.parse().expect(text)), |_| false)
    }

    #[test]
    fn a_private_special_or_proxy_address_leaves_the_identity_undecided() {
        let texts = "10.0.0.1 172.16.0.1 192.168.1.1 100.64.0.1 100.127.255.254 127.0.0.1 0.0.0.0 169.254.1.1 \
            198.18.0.1 224.0.0.1 240.0.0.1 255.255.255.255 :: ::1 fe80::1 fc00::1 ff02::1 ::ffff:10.0.0.1 \
            64:ff9b::c0a8:1";
        for text in texts.split(' ') {
            assert_eq!(of(text), Err(UndecidedReason::Address), "{text}");
        }
        assert_eq!(PublicAddress::of(None, |_| false), Err(UndecidedReason::Address));
        let proxy =
            PublicAddress::of(Some(IpAddr::from([8, 8, 8, 8])), |address| address == IpAddr::from([8, 8, 8, 8]));
        assert_eq!(proxy, Err(UndecidedReason::Address));
    }

    #[test]
    fn an_ipv4_mapped_address_counts_as_the_address_that_it_maps() {
        for text in ["66.249.66.1", "203.0.113.7", "2001:4860:4801:10::1", "2001:db8::1"] {
            assert_eq!(of(text).map(PublicAddress::get), Ok(text.parse().expect(text)));
        }
        assert_eq!(of("::ffff:66.249.66.1"), of("66.249.66.1"));
    }
}
