//! Reads the forwarded fields of trusted proxies, and builds the forwarded fields that inform an
//! upstream about the client.
//!
//! robotsd always writes the [fields for an upstream](ForwardedValues) itself, and removes incoming
//! fields with these names. If the peer is trusted, the incoming fields are read first, and their
//! values become part of robotsd's fields. The field `Forwarded` is not written, because most
//! applications read the `X-Forwarded-*` fields. If a request had both `Forwarded` and
//! `X-Forwarded-*`, two applications could see different clients.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use http::HeaderValue;
use http::header::{HeaderMap, HeaderName};
use tower_robots::internals::ForwardedWay;
use tower_robots::policy::Network;

use super::request_id::RequestId;
use super::{ClientInfo, host};
use crate::http_common::Peer;
use crate::http_common::fields::{self, ForwardedValues, Sender};

/// The trusted proxies in front of a listener. By default, no proxy is trusted, so forwarded fields
/// are ignored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Trusted {
    pub(crate) networks: Vec<Network>,
    /// Name of the field that contains the client's `User-Agent`, if the proxies send their own
    /// product name in `User-Agent`.
    pub(crate) agent_header: Option<HeaderName>,
}

#[derive(Debug)]
pub(crate) struct ForwardedInfo {
    /// Address of the client: the last address in the forwarded fields that is not a trusted proxy.
    /// If all addresses are trusted, this is the first address.
    pub(crate) client: SocketAddr,
    /// The addresses from the client to the peer, in the format of `X-Forwarded-For`. Addresses
    /// before the client's address are left out.
    pub(crate) forwarded_for: Option<HeaderValue>,
    pub(crate) scheme: Option<&'static str>,
    pub(crate) host: Option<HeaderValue>,
    pub(crate) id: Option<RequestId>,
    /// All lines of the client's `User-Agent` in the field [`Trusted::agent_header`]; `None` if the
    /// proxies use no such field.
    pub(crate) agent: Option<Arc<[HeaderValue]>>,
}

impl Trusted {
    pub(crate) fn trusts(&self, address: IpAddr) -> bool {
        self.networks.iter().any(|network| network.contains(address))
    }

    pub(crate) fn read(&self, fields: &HeaderMap, peer: SocketAddr) -> ForwardedInfo {
        let way = ForwardedWay::read(fields, peer, |address| self.trusts(address));
        let client = way.client();
        let addresses = way.hops.iter().rev().map(|hop| hop.ip().to_canonical().to_string());
        let addresses = addresses.collect::<Vec<_>>().join(", ");
        let agent =
            self.agent_header.as_ref().map(|name| fields.get_all(name).into_iter().cloned().collect::<Arc<[_]>>());
        ForwardedInfo {
            client,
            forwarded_for: HeaderValue::from_str(&addresses).ok(),
            scheme: way.scheme.and_then(|given| scheme(&given)),
            host: way.host.filter(|given| host::is_valid(given)).and_then(|given| HeaderValue::from_bytes(&given).ok()),
            id: Self::request_id(fields),
            agent: agent.filter(|lines| !lines.is_empty()),
        }
    }

    /// Returns the id that a trusted proxy has set. Returns `None` if the id is not safe to write
    /// into a log, a page or a header.
    pub(crate) fn request_id(fields: &HeaderMap) -> Option<RequestId> {
        let mut given = fields.get_all(X_REQUEST_ID).iter();
        match (given.next(), given.next()) {
            (Some(id), None) => RequestId::from_proxy(id.as_bytes()),
            _ => None,
        }
    }
}

/// Name of the field with the request id. robotsd or a trusted proxy sets this field. If a client
/// sends the field, robotsd removes it.
pub(crate) const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

fn scheme(given: &[u8]) -> Option<&'static str> {
    ["https", "http"].into_iter().find(|scheme| given.eq_ignore_ascii_case(scheme.as_bytes()))
}

#[derive(Clone, Debug)]
pub(crate) struct ForwardedFields {
    peer: Peer,
    address: HeaderValue,
    scheme: &'static str,
    trusted: Arc<Trusted>,
    is_trusted: bool,
    /// Whether a proxy has announced the client in a PROXY header.
    is_announced: bool,
}

impl ForwardedFields {
    pub(crate) fn new(peer: Peer, scheme: &'static str, trusted: Arc<Trusted>) -> Self {
        // If an IPv4 client connects to a dual-stack socket, its address is written as an IPv4
        // address, as everywhere else in robotsd.
        let address = peer.address.ip().to_canonical().to_string();
        let address = HeaderValue::from_str(&address).unwrap_or_else(|_| HeaderValue::from_static("unknown"));
        let is_trusted = trusted.trusts(peer.address.ip());
        Self { peer, address, scheme, trusted, is_trusted, is_announced: false }
    }

    /// Returns the fields for a connection with a PROXY header.
    pub(crate) fn announced(self) -> Self {
        Self { is_announced: true, ..self }
    }

    /// Returns the fields for a connection whose PROXY header does not identify the client.
    /// Forwarded fields on this connection are not trusted, because they may come from that client.
    pub(crate) fn untrusted(self) -> Self {
        Self { is_trusted: false, ..self }
    }

    pub(crate) const fn sender(&self) -> Sender {
        if self.is_trusted { Sender::TrustedProxy } else { Sender::Anyone }
    }

    /// Reads the forwarded fields of a request if the peer is trusted. Must be called before these
    /// fields are removed.
    pub(crate) fn read(&self, fields: &HeaderMap) -> Option<ForwardedInfo> {
        self.is_trusted.then(|| self.trusted.read(fields, self.peer.address))
    }

    pub(crate) fn request_id(&self, fields: &HeaderMap) -> Option<RequestId> {
        self.is_trusted.then(|| Trusted::request_id(fields)).flatten()
    }

    pub(crate) fn client(&self, forwarded: Option<&ForwardedInfo>) -> ClientInfo {
        match forwarded {
            None => ClientInfo { peer: self.peer, agent: None },
            Some(forwarded) => {
                ClientInfo { peer: Peer::at(forwarded.client, self.peer.listener), agent: forwarded.agent.clone() }
            }
        }
    }

    /// Reports whether the client is known to have sent a request without TLS. A proxy that does
    /// not report the client's scheme may have terminated TLS.
    pub(crate) fn is_plain_http(&self, forwarded: Option<&ForwardedInfo>) -> bool {
        let scheme = match forwarded {
            Some(forwarded) => forwarded.scheme,
            None => Some(self.scheme).filter(|_| !self.is_announced),
        };
        scheme == Some("http")
    }

    /// Returns the values of the forwarded fields for a request. The caller must have removed the
    /// forwarded fields that came with the request. If the proxies send the client's `User-Agent`
    /// in another field, that field is added again for the upstream.
    pub(crate) fn values(
        &self,
        fields: &mut HeaderMap,
        forwarded: Option<ForwardedInfo>,
        client: &ClientInfo,
    ) -> ForwardedValues {
        if let Some(name) = &self.trusted.agent_header {
            fields::remove_spellings(fields, name);
            for line in client.agent.iter().flat_map(|lines| &**lines) {
                fields.append(name, line.clone());
            }
        }
        let (forwarded_for, scheme, host) = forwarded
            .map_or((None, None, None), |ForwardedInfo { forwarded_for, scheme, host, .. }| {
                (forwarded_for, scheme, host)
            });
        let forwarded_for = forwarded_for.unwrap_or_else(|| self.address.clone());
        ForwardedValues { forwarded_for, scheme: scheme.unwrap_or(self.scheme), host }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PEER: &str = "10.0.0.1:5000";

    fn read(lines: &[(&'static str, &str)]) -> ForwardedInfo {
        let trusted = Trusted {
            networks: ["10.0.0.0/8", "2001:db8:1::/48"].map(|network| network.parse().unwrap()).into(),
            agent_header: Some(HeaderName::from_static("x-original-agent")),
        };
        let value = |value: &str| HeaderValue::from_bytes(value.as_bytes()).unwrap();
        let fields = lines.iter().map(|(name, line)| (HeaderName::from_static(name), value(line))).collect();
        trusted.read(&fields, PEER.parse().unwrap())
    }

    fn client(info: &ForwardedInfo) -> String {
        info.client.ip().to_string()
    }

    fn way(info: &ForwardedInfo) -> &str {
        info.forwarded_for.as_ref().unwrap().to_str().unwrap()
    }

    #[test]
    fn the_client_is_the_last_forwarded_address_that_is_not_trusted() {
        for (given, expected_client, expected_way) in [
            ("192.0.2.1", "192.0.2.1", "192.0.2.1, 10.0.0.1"),
            ("192.0.2.1, 10.0.0.2", "192.0.2.1", "192.0.2.1, 10.0.0.2, 10.0.0.1"),
            // The client has forged the addresses before its own.
            ("127.0.0.1, 10.9.9.9, 192.0.2.1, 10.0.0.2", "192.0.2.1", "192.0.2.1, 10.0.0.2, 10.0.0.1"),
            ("2001:db8:2::1, 2001:db8:1::7", "2001:db8:2::1", "2001:db8:2::1, 2001:db8:1::7, 10.0.0.1"),
            ("::ffff:192.0.2.1, ::ffff:10.0.0.2", "192.0.2.1", "192.0.2.1, 10.0.0.2, 10.0.0.1"),
            ("10.0.0.3, 10.0.0.2", "10.0.0.3", "10.0.0.3, 10.0.0.2, 10.0.0.1"),
            // If an entry cannot be parsed, the next entry counts as the client. If there is no
            // next entry, the peer counts as the client.
            ("192.0.2.1, unknown", "10.0.0.1", "10.0.0.1"),
            ("192.0.2.1, x, 10.0.0.2", "10.0.0.2", "10.0.0.2, 10.0.0.1"),
            ("", "10.0.0.1", "10.0.0.1"),
        ] {
            let info = read(&[("x-forwarded-for", given)]);
            assert_eq!((client(&info).as_str(), way(&info)), (expected_client, expected_way), "{given}");
        }
        assert_eq!(client(&read(&[])), "10.0.0.1");
    }

    #[test]
    fn the_list_of_forwarded_addresses_has_a_limit() {
        let said = vec!["10.0.0.2"; 10_000].join(",");
        assert_eq!(way(&read(&[("x-forwarded-for", &said)])).split(", ").count(), 33);
    }

    #[test]
    fn x_forwarded_for_takes_precedence_over_forwarded_and_they_are_not_mixed() {
        let forwarded = ("forwarded", "for=192.0.2.1;proto=https;host=f.test, for=10.0.0.2;proto=http;host=in.test");
        let both = read(&[forwarded, ("x-forwarded-for", "192.0.2.2"), ("x-forwarded-host", "x.test")]);
        assert_eq!((client(&both).as_str(), both.scheme), ("192.0.2.2", None));
        assert_eq!(both.host.unwrap(), "x.test");
        // Scheme and host are taken from the entry that the client's own proxy has added.
        let one = read(&[forwarded, ("x-forwarded-proto", "http"), ("x-forwarded-host", "x.test")]);
        assert_eq!((client(&one).as_str(), one.scheme), ("192.0.2.1", Some("https")));
        assert_eq!(one.host.unwrap(), "f.test");
        let silent = read(&[("forwarded", "for=unknown;proto=https"), ("x-forwarded-proto", "https")]);
        assert_eq!((client(&silent).as_str(), silent.scheme), ("10.0.0.1", None));
        // A proxy that only terminates TLS sends `X-Forwarded-Proto`, but no other forwarded field.
        assert_eq!(read(&[("x-forwarded-proto", "HTTPS")]).scheme, Some("https"));
    }

    #[test]
    fn an_invalid_or_unknown_forwarded_scheme_or_host_is_ignored() {
        for said in ["gopher", "https\u{e9}", "https, ", "https;", ""] {
            assert_eq!(read(&[("x-forwarded-proto", said)]).scheme, None, "{said}");
        }
        assert_eq!(read(&[("x-forwarded-proto", "http,https")]).scheme, Some("https"));
        assert_eq!(read(&[("x-forwarded-proto", "http"), ("x-forwarded-proto", "https")]).scheme, Some("https"));
        for said in ["a b", "a.test/", "", "<a>", "a.test, "] {
            assert_eq!(read(&[("x-forwarded-host", said)]).host, None, "{said}");
        }
        assert_eq!(read(&[("x-forwarded-host", "evil.test, a.test:8080")]).host.unwrap(), "a.test:8080");
    }

    #[test]
    fn plain_http_is_recognized_by_the_connection_or_by_the_field_of_a_trusted_proxy() {
        let peer = Peer::at(PEER.parse().unwrap(), None);
        let direct = |scheme| ForwardedFields::new(peer, scheme, Arc::default());
        assert!(direct("http").is_plain_http(None));
        assert!(!direct("https").is_plain_http(None));
        assert!(!direct("http").announced().is_plain_http(None));
        for (said, is_plain) in
            [(&[][..], false), (&[("x-forwarded-proto", "https")], false), (&[("x-forwarded-proto", "http")], true)]
        {
            for scheme in ["http", "https"] {
                assert_eq!(direct(scheme).is_plain_http(Some(&read(said))), is_plain, "{said:?} {scheme}");
            }
        }
    }

    #[test]
    fn a_given_request_id_is_used_only_if_it_is_single_valid_and_short() {
        let given = |ids: &[&str]| {
            let fields = ids.iter().map(|id| (X_REQUEST_ID, HeaderValue::from_bytes(id.as_bytes()).unwrap())).collect();
            Trusted::request_id(&fields).map(|id| id.as_str().to_owned())
        };
        let uuid = "6f1c0d2e-3b4a-4c5d-8e6f-708192a3b4c5";
        assert_eq!(given(&[uuid]).as_deref(), Some(uuid));
        let longest = "a".repeat(64);
        assert_eq!(given(&[&longest]), Some(longest.clone()));
        for ids in [&[][..], &[uuid, uuid], &[""], &["a b"], &["a\"b"], &["a,b"], &["\u{e9}"], &[&(longest + "a")]] {
            assert_eq!(given(ids), None, "{ids:?}");
        }
    }

    #[test]
    fn every_line_of_the_configured_agent_field_is_kept() {
        let info = read(&[("x-original-agent", "GPTBot"), ("user-agent", "CDN"), ("x-original-agent", "Mozilla")]);
        assert_eq!(info.agent.as_deref().unwrap(), ["GPTBot", "Mozilla"]);
    }
}
