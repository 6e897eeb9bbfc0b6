//! Restricts where hooks may send requests.
//!
//! The author of a hook's config file makes this machine send requests, but must not be able to
//! reach services that only this machine can reach. Therefore:
//!
//! 1. No hook may send requests to an admin interface, of this process or of a replica.
//! 2. Hooks in an included file may send requests only to public addresses and to the hosts that
//!    the operator lists in `hook_hosts`.
//!
//! A name can resolve to any address, and to a different address each time. Therefore, the
//! addresses of a name are checked for each request, and the request is sent to a checked address.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use http::uri::Authority;
use tower_robots::internals::AddressClass;
use tower_robots::policy::Network;

/// The destinations that the hooks of one config file may use.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct HookScope {
    /// The config file that defines the hooks. Each file has its own limit of concurrent requests.
    pub(crate) file: PathBuf,
    /// The operator's list of hosts for the hooks of an included file; `None` for the operator's
    /// own file, whose hooks may use any address.
    pub(crate) listed: Option<Vec<HookHost>>,
    /// Hosts and ports of the admin interfaces of this process and its replicas, according to the
    /// config.
    pub(crate) admin: Vec<(String, u16)>,
}

/// An entry of `hook_hosts`: a name, an address or a network, with an optional port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HookHost {
    host: ListedHost,
    port: Option<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum ListedHost {
    /// A host name in lower case, which is allowed regardless of the addresses that it resolves to.
    Name(String),
    Network(Network),
}

impl FromStr for HookHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let network = |text: &str| text.parse().map(ListedHost::Network);
        let address: Option<SocketAddr> = text.parse().ok();
        if let Ok(host) = address.map_or_else(|| network(text), |address| network(&address.ip().to_string())) {
            return Ok(Self { host, port: address.map(|address| address.port()) });
        }
        let named = text.parse::<Authority>().ok().filter(|authority| {
            let host = authority.host();
            !host.is_empty()
                && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-._".contains(&byte))
                && !is_numeric(host)
        });
        let port = |authority: &Authority| match authority.as_str().strip_prefix(authority.host())? {
            "" => Some(None),
            _ => authority.port_u16().map(Some),
        };
        match named.as_ref().map(|authority| (authority.host(), port(authority))) {
            Some((host, Some(port))) => Ok(Self { host: ListedHost::Name(plain(host)), port }),
            _ => Err(format!(
                "{text:?} is not a valid host for hooks: write a name, an address or a network, with or without a \
                 port, such as \"purge.internal\", \"10.0.0.5:8080\" or \"10.0.0.0/8\""
            )),
        }
    }
}

impl HookHost {
    fn is(&self, host: &str, address: SocketAddr) -> bool {
        let is_host = match &self.host {
            ListedHost::Name(name) => *name == plain(host),
            ListedHost::Network(network) => network.contains(address.ip().to_canonical()),
        };
        is_host && self.port.is_none_or(|port| port == address.port())
    }
}

/// Converts a host name to lower case without a final dot, for comparisons.
fn plain(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// Reports whether the system would treat a host as an address, in any notation (such as `127.1` or
/// `0x7f000001`), instead of looking up its name.
fn is_numeric(host: &str) -> bool {
    let last = host.trim_end_matches('.').rsplit('.').next().unwrap_or_default();
    host.contains(':') || last.starts_with(|first: char| first.is_ascii_digit())
}

/// Resolves a host with the system's resolver. May block.
pub(super) fn look_up(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

/// Resolves a host, but returns an error if this needs a name lookup.
fn look_up_numbers(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    match plain(host) {
        host if host == "localhost" => Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]),
        host if is_numeric(&host) => look_up(&host, port),
        _ => Err(io::ErrorKind::NotFound.into()),
    }
}

#[derive(Debug)]
pub(super) enum NoDestination {
    /// No address of the host is allowed.
    Refused(String),
    /// The name cannot be resolved at the moment.
    Unknown(String),
}

impl HookScope {
    pub(crate) fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new(""))
    }

    /// Returns the reason why requests to a host are never allowed. Returns `None` if the requests
    /// may be allowed, or if the decision depends on a name lookup.
    pub(super) fn objection(&self, host: &str, port: u16) -> Option<String> {
        match self.destinations((host, port), &[], look_up_numbers) {
            Err(NoDestination::Refused(why)) => Some(why),
            _ => None,
        }
    }

    /// Returns the allowed addresses of a host. `own` contains the addresses of this process's
    /// admin interface.
    pub(super) fn destinations(
        &self,
        (host, port): (&str, u16),
        own: &[SocketAddr],
        look_up: impl Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Vec<SocketAddr>, NoDestination> {
        let of_admin = || self.admin.iter().filter(|(_, of)| *of == port).map(|(host, _)| host);
        if of_admin().any(|of| plain(of) == plain(host)) {
            return Err(NoDestination::Refused(admin_message(&format!("{host}:{port}"))));
        }
        let unknown =
            |error: io::Error| NoDestination::Unknown(format!("cannot connect to {host} port {port}: {error}"));
        let found = look_up(host, port).map_err(unknown)?;
        let mut places = own.to_vec();
        for of in of_admin() {
            // If the address of an admin interface cannot be resolved, the destination of the hook
            // may be that interface.
            let unknown = |error: io::Error| {
                NoDestination::Unknown(format!(
                    "robotsd cannot check whether {host} port {port} is the admin interface {of}, because it cannot \
                     resolve the name {of}: {error}"
                ))
            };
            places.extend(look_up(of, port).map_err(unknown)?);
        }
        let (mut permitted, mut refused) = (Vec::new(), None);
        for address in found {
            match self.refusal(host, address, &places) {
                None => permitted.push(address),
                why => refused = refused.or(why),
            }
        }
        match refused {
            Some(why) if permitted.is_empty() => Err(NoDestination::Refused(why)),
            _ => Ok(permitted),
        }
    }

    fn refusal(&self, host: &str, address: SocketAddr, places: &[SocketAddr]) -> Option<String> {
        if places.iter().any(|place| reaches_listener(address, *place)) {
            return Some(admin_message(&address.to_string()));
        }
        let (class, listed) = (AddressClass::of(address.ip()), self.listed.as_ref()?);
        if class == AddressClass::Public || listed.iter().any(|of| of.is(host, address)) {
            return None;
        }
        let (ip, file) = (address.ip(), self.file.display());
        let is = if host == ip.to_string() { format!("{ip} is") } else { format!("{host} is at {ip},") };
        Some(format!(
            "{is} a {class} address, and hooks in an included file ({file}) may only send requests to public \
             addresses: to allow this one, add hook_hosts = [{host:?}] to the config"
        ))
    }
}

fn admin_message(place: &str) -> String {
    format!("{place} is an admin interface of robotsd, and hooks must not send requests to it: write another url")
}

fn reaches_listener(to: SocketAddr, listener: SocketAddr) -> bool {
    let (ip, own) = (to.ip().to_canonical(), listener.ip().to_canonical());
    let is_there = match (ip.is_unspecified(), own.is_unspecified()) {
        // A connection to an unspecified address goes to the loopback address.
        (true, _) => own.is_unspecified() || own.is_loopback(),
        (false, true) => is_of_this_machine(ip),
        (false, false) => ip == own,
    };
    to.port() == listener.port() && is_there
}

fn is_of_this_machine(ip: IpAddr) -> bool {
    ip.is_loopback() || UdpSocket::bind((ip, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OWN: &str = "127.0.0.1:9145";

    /// Returns what happens to a request to `place`. `listed` are the hosts that the config allows
    /// for hooks of the file `team.toml`. A test name contains the addresses that it resolves to,
    /// for example `10.0.0.5-10.0.0.6.test`.
    fn outcome(place: &str, listed: Option<&[&str]>) -> String {
        let listed = listed.map(|listed| listed.iter().map(|host| host.parse().expect(host)).collect());
        let admin = [("10.9.9.9", 9145), ("10.8.8.8.test", 9145), ("none.test", 9999)];
        let admin = admin.map(|(host, port)| (host.to_owned(), port)).to_vec();
        let scope = HookScope { file: "team.toml".into(), listed, admin };
        let names = |host: &str, port| match plain(host).strip_suffix(".test") {
            Some("none") => Err(io::Error::other("no such name")),
            Some(of) => Ok(of.split('-').map(|ip| (ip.parse::<IpAddr>().expect(ip), port).into()).collect()),
            None => look_up_numbers(host, port),
        };
        let (host, port) = place.rsplit_once(':').expect("a host and a port");
        let place = (host, port.parse().expect("a port"));
        match scope.destinations(place, &[OWN.parse().expect("an address")], names) {
            Ok(addresses) => addresses.iter().map(|address| address.ip().to_string()).collect::<Vec<_>>().join(" "),
            Err(NoDestination::Refused(why)) if why.contains("is an admin interface") => "admin".to_owned(),
            Err(NoDestination::Refused(why)) if why.contains("hook_hosts") => "unlisted".to_owned(),
            other => format!("{other:?}"),
        }
    }

    #[test]
    fn no_webhook_reaches_an_admin_interface_in_any_spelling_of_its_address() {
        let hosts = "127.0.0.1 localhost LOCALHOST. 127.1 2130706433 0x7f000001 0177.0.0.1 0.0.0.0 0 :: \
            ::ffff:127.0.0.1 ::ffff:7f00:1 127.0.0.1.test 0.0.0.0.test 10.9.9.9 10.9.9.9.test 10.8.8.8 \
            10.8.8.8-10.8.8.8.test 10.8.8.8.TEST.";
        for host in hosts.split(' ') {
            for listed in [None, Some(&["0.0.0.0/0", "::/0"][..])] {
                assert_eq!(outcome(&format!("{host}:9145"), listed), "admin", "{host}");
            }
        }
        // Another port is another server. If any address of a name is allowed, that address is
        // used.
        assert_eq!(outcome("127.0.0.1:9146", None), "127.0.0.1");
        assert_eq!(outcome("127.0.0.1-10.0.0.5.test:9145", None), "10.0.0.5");
        // An unresolved admin address could be any address, so no request is sent.
        assert!(outcome("10.0.0.5:9999", None).contains("Unknown"));
    }

    #[test]
    fn a_listener_on_all_addresses_is_reached_by_each_address_of_this_machine() {
        let reached =
            |to: &str, listener: &str| reaches_listener(to.parse().expect(to), listener.parse().expect(listener));
        for to in ["127.0.0.1:80", "127.0.0.7:80", "0.0.0.0:80", "[::1]:80", "[::ffff:127.0.0.1]:80"] {
            assert!(reached(to, "[::]:80") && reached(to, "0.0.0.0:80"), "{to}");
        }
        // The address 192.0.2.1 is reserved for documentation, so it does not belong to this
        // machine.
        assert!(!reached("192.0.2.1:80", "0.0.0.0:80") && !reached("127.0.0.1:81", "0.0.0.0:80"));
        assert!(!reached("127.0.0.2:80", "127.0.0.1:80") && reached("192.0.2.1:80", "192.0.2.1:80"));
    }

    #[test]
    fn webhooks_of_included_files_reach_only_public_and_listed_addresses() {
        for (place, listed, want) in [
            ("8.8.8.8:80", &[][..], "8.8.8.8"),
            ("8.8.8.8-10.0.0.5.test:443", &[], "8.8.8.8"),
            ("10.0.0.5.test:80", &[], "unlisted"),
            ("169.254.169.254:80", &[], "unlisted"),
            ("::ffff:10.0.0.5:80", &[], "unlisted"),
            ("64:ff9b::a00:5:80", &[], "unlisted"),
            ("fd00::5:80", &[], "unlisted"),
            ("127.0.0.1:81", &[], "unlisted"),
            ("2130706433:81", &[], "unlisted"),
            ("10.0.0.5.test:80", &["10.0.0.6.test"], "unlisted"),
            ("10.0.0.5.TEST.:80", &["10.0.0.5.test"], "10.0.0.5"),
            ("10.0.0.5.test:81", &["10.0.0.5.test:80"], "unlisted"),
            ("10.0.0.5.test:80", &["10.0.0.5.test:80"], "10.0.0.5"),
            ("10.0.0.5.test:443", &["10.0.0.5"], "10.0.0.5"),
            ("10.0.0.5.test:443", &["10.0.0.5:443"], "10.0.0.5"),
            ("10.0.0.5.test:443", &["10.0.0.5:80"], "unlisted"),
            ("10.0.0.5.test:443", &["10.0.0.0/8"], "10.0.0.5"),
            ("::ffff:10.0.0.5:80", &["10.0.0.0/8"], "::ffff:10.0.0.5"),
            ("fd00::5:81", &["[fd00::5]:81"], "fd00::5"),
            ("fd00::5:81", &["fd00::5"], "fd00::5"),
        ] {
            assert_eq!(outcome(place, Some(listed)), want, "{place} {listed:?}");
        }
        for wrong in ["", "*", "http://purge.internal", "a b", "a:x", "a:", "a/b", "u@a", "127.1", "10.0.0.5/8", ":80"]
        {
            assert!(wrong.parse::<HookHost>().is_err(), "{wrong}");
        }
    }
}
