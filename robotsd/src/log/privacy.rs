//! Personal data in logs: by default no values of a query, and only the network of an address.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::config::{AddressLogging, LogConfig, QueryLogging};

/// How much of a request's query and of its client's address is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LogPrivacy {
    pub(crate) query: QueryLogging,
    pub(crate) address: AddressLogging,
}

impl LogPrivacy {
    pub(crate) const fn new(log: &LogConfig) -> Self {
        Self { query: log.query, address: log.address }
    }

    /// A target, or a whole URL, as it may be logged.
    pub(crate) fn target(self, target: &str) -> String {
        let Some((path, query)) = target.split_once('?') else { return target.to_owned() };
        match self.query {
            QueryLogging::Drop => path.to_owned(),
            QueryLogging::Keep => target.to_owned(),
            QueryLogging::Redact => {
                let redacted = query.split('&').map(|pair| match pair.split_once('=') {
                    Some((name, value)) if !value.is_empty() => format!("{name}=…"),
                    // A word without a value is one: `?dG9rZW4=`.
                    _ => "…".to_owned(),
                });
                format!("{path}?{}", redacted.collect::<Vec<_>>().join("&"))
            }
        }
    }

    /// A client's address as it may be logged: a network is written with its length.
    pub(crate) fn address(self, address: IpAddr) -> Option<String> {
        let network = self.network(address)?;
        Some(match (self.address, network) {
            (AddressLogging::Truncate, IpAddr::V4(network)) => {
                // By hand, because every refused request is logged with one.
                let mut text = String::with_capacity("255.255.255.0/24".len());
                for octet in &network.octets()[..3] {
                    text.push_str(itoa::Buffer::new().format(*octet));
                    text.push('.');
                }
                text + "0/24"
            }
            (AddressLogging::Truncate, IpAddr::V6(network)) => format!("{network}/48"),
            _ => network.to_string(),
        })
    }

    /// The address, or the first one of its network.
    pub(super) fn network(self, address: IpAddr) -> Option<IpAddr> {
        match self.address {
            AddressLogging::Keep => Some(address),
            AddressLogging::Drop => None,
            AddressLogging::Truncate => Some(match address.to_canonical() {
                IpAddr::V4(address) => {
                    let [a, b, c, _] = address.octets();
                    Ipv4Addr::new(a, b, c, 0).into()
                }
                IpAddr::V6(address) => {
                    let [a, b, c, ..] = address.segments();
                    Ipv6Addr::new(a, b, c, 0, 0, 0, 0, 0).into()
                }
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_redacted_unless_asked_for() {
        for (query, want) in [
            (QueryLogging::Keep, "/x?q=secret&word&b="),
            (QueryLogging::Redact, "/x?q=…&…&…"),
            (QueryLogging::Drop, "/x"),
        ] {
            assert_eq!(LogPrivacy { query, ..LogPrivacy::default() }.target("/x?q=secret&word&b="), want);
        }
        assert_eq!(LogPrivacy::default().target("/x"), "/x");
    }

    #[test]
    fn addresses_are_truncated_unless_asked_for() {
        let with = |address| LogPrivacy { address, ..LogPrivacy::default() };
        for (address, want) in [
            ("192.0.2.77", "192.0.2.0/24"),
            ("2001:db8:1:2::9", "2001:db8:1::/48"),
            ("::ffff:192.0.2.77", "192.0.2.0/24"),
        ] {
            let address: IpAddr = address.parse().expect("an address");
            assert_eq!(LogPrivacy::default().address(address).as_deref(), Some(want));
            assert_eq!(with(AddressLogging::Drop).address(address), None);
            assert_eq!(with(AddressLogging::Keep).address(address), Some(address.to_string()));
        }
    }
}
