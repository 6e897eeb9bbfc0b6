//! Connects to a store, which is one server or a cluster, and explains its errors to the operator.
//!
//! **All addresses of a store's host name are tried at the same time, and the lowest usable address
//! is chosen.** The client library would use the first address that accepts a connection, even if
//! the server there hangs or is a replica. As a result, different processes could choose different
//! servers.
//!
//! **A lost connection to a cluster is opened again through any known node of the cluster.** The
//! node in the URL may be down, and another node may have taken over its slots.

use std::collections::BTreeSet;
use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::cluster::ClusterClient;
use redis::cluster_async::ClusterConnection;
use redis::io::AsyncDNSResolver;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, ErrorKind, FromRedisValue, RedisError,
    RedisFuture, RedisResult, Script, ServerErrorKind, TlsCertificates, ToRedisArgs, Value, from_redis_value,
};
use tokio::task::{JoinHandle, spawn_blocking, spawn_local};
use tokio::time::timeout;

use super::settings::{StoreNodes, StoreSettings};
use crate::render::truncated;

/// Minimum time limit for connecting, including TLS and login.
const CONNECT: Duration = Duration::from_millis(250);

fn connect_time(settings: &StoreSettings) -> Duration {
    CONNECT.max(settings.deadline)
}

/// A connection to a store. Clones share the connection, and commands are sent without waiting for
/// the replies to earlier commands.
#[derive(Clone)]
pub(crate) enum StoreConnection {
    One(MultiplexedConnection),
    Cluster(Box<ClusterConnection>),
}

impl StoreConnection {
    /// Tries all addresses of the store at the same time. If several addresses reply to the probe,
    /// uses the lowest address, so that all processes choose the same server. If no address
    /// replies, tries the nodes that the cluster last listed.
    pub(crate) async fn connect<P: Future<Output = Result<(), String>>>(
        settings: &StoreSettings,
        addresses: &mut StoreAddresses,
        probe: impl Fn(Self) -> P + Clone + 'static,
    ) -> Result<Self, String> {
        let info = settings.info()?;
        let (host, port) = host(info.addr());
        let is_address = host.parse::<IpAddr>().is_ok();
        let found = addresses.find(host, port).await?;
        // A store that has replied does not require TLS, so the message suggests TLS only before
        // the first reply.
        let is_new = !addresses.has_answered && !settings.url.is_encrypted();
        let hint = if is_new { ": if the server requires TLS, write the URL with \"rediss://\"" } else { "" };
        let tries = found.into_iter().map(|address| {
            let (settings, info, probe) = (settings.clone(), info.clone(), probe.clone());
            let tried = async move {
                let connection = Self::open(&settings, vec![info], address, hint).await?;
                if !connection.reconnects_itself() {
                    probe(connection.clone()).await?;
                }
                Ok::<_, String>(connection)
            };
            (address, spawn_local(tried))
        });
        let mut problems = Vec::new();
        for (address, tried) in tries.collect::<Vec<_>>() {
            match tried.await.unwrap_or_else(|_| Err("no connection".to_owned())) {
                Ok(connection) => return connection.remember_nodes(settings, addresses).await,
                Err(why) if is_address => problems.push(why),
                Err(why) => problems.push(format!("{address}: {why}")),
            }
        }
        if let (Some(&address), false) = (addresses.known.first(), addresses.nodes.is_empty())
            && let Ok(connection) = Self::open(settings, addresses.nodes.clone(), address, "").await
        {
            return connection.remember_nodes(settings, addresses).await;
        }
        Err(problems.join("; "))
    }

    /// Connects through the given servers. `address` is the address to use for the host name in the
    /// URL.
    async fn open(
        settings: &StoreSettings,
        servers: Vec<ConnectionInfo>,
        address: SocketAddr,
        hint: &str,
    ) -> Result<Self, String> {
        let most = 2 * connect_time(settings);
        let late =
            |_| Err(format!("no connection to the server could be opened within {limit} ms", limit = most.as_millis()));
        timeout(most, Self::open_without_timeout(settings, servers, address, hint)).await.unwrap_or_else(late)
    }

    async fn open_without_timeout(
        settings: &StoreSettings,
        servers: Vec<ConnectionInfo>,
        address: SocketAddr,
        hint: &str,
    ) -> Result<Self, String> {
        let info = settings.info()?;
        let failed = |error: RedisError| {
            let hint = if error.is_connection_dropped() { hint } else { "" };
            format!("{}{hint}", describe(&error, settings))
        };
        let ca = settings.ca.clone().filter(|_| settings.url.is_encrypted());
        let certificates = ca.map(|ca| TlsCertificates { client_tls: None, root_cert: Some(ca) });
        // The certificate must be valid for the host name, so the address is used only to connect.
        let (host, _) = host(info.addr());
        let resolver = OneAddress { host: host.to_owned(), address };
        match settings.nodes {
            StoreNodes::One => {
                let client = match certificates {
                    Some(certificates) => Client::build_with_tls(info, certificates),
                    None => Client::open(info),
                };
                let config = AsyncConnectionConfig::new()
                    .set_dns_resolver(resolver)
                    .set_connection_timeout(Some(connect_time(settings)))
                    .set_response_timeout(Some(settings.deadline));
                let client = client.map_err(failed)?;
                let connection = client.get_multiplexed_async_connection_with_config(&config).await;
                connection.map(Self::One).map_err(failed)
            }
            StoreNodes::Cluster => {
                let builder = ClusterClient::builder(servers)
                    .async_dns_resolver(resolver)
                    .connection_timeout(connect_time(settings))
                    .response_timeout(settings.deadline)
                    // The library must not retry, because after the time limit, the bucket of the
                    // process decides.
                    .retries(1);
                let builder = match certificates {
                    Some(certificates) => builder.certs(certificates),
                    None => builder,
                };
                let client = builder.build().map_err(failed)?;
                let connection = client.get_async_connection().await.map_err(failed)?;
                Ok(Self::Cluster(Box::new(connection)))
            }
        }
    }

    /// Records for the next connection that the store has replied, and which nodes its cluster has.
    async fn remember_nodes(
        mut self,
        settings: &StoreSettings,
        addresses: &mut StoreAddresses,
    ) -> Result<Self, String> {
        if matches!(self, Self::Cluster(_)) {
            let ranges = self.query(redis::cmd("CLUSTER").arg("SLOTS")).await;
            addresses.nodes = nodes(ranges.map_err(|error| describe(&error, settings))?, &settings.info()?);
        }
        addresses.has_answered = true;
        Ok(self)
    }

    pub(crate) const fn reconnects_itself(&self) -> bool {
        matches!(self, Self::Cluster(_))
    }

    pub(crate) async fn query<T: FromRedisValue>(&mut self, command: &Cmd) -> RedisResult<T> {
        match self {
            Self::One(connection) => command.query_async(connection).await,
            Self::Cluster(connection) => command.query_async(&mut **connection).await,
        }
    }

    /// Runs a script with one key, and loads the script into the store if necessary.
    pub(crate) async fn run<T: FromRedisValue>(
        &mut self,
        script: &StoreScript,
        key: &str,
        arguments: &[impl ToRedisArgs],
    ) -> RedisResult<T> {
        let command = |command: &str, script: &str| {
            let mut command = redis::cmd(command);
            command.arg(script).arg(1).arg(key).arg(arguments);
            command
        };
        match self.query(&command("EVALSHA", script.known.get_hash())).await {
            // After a restart, the server no longer knows the script; EVAL loads it again.
            Err(error) if error.kind() == ErrorKind::Server(ServerErrorKind::NoScript) => {
                self.query(&command("EVAL", script.text)).await
            }
            outcome => outcome,
        }
    }
}

pub(crate) struct StoreScript {
    text: &'static str,
    known: Script,
}

impl StoreScript {
    pub(crate) fn new(text: &'static str) -> Self {
        Self { text, known: Script::new(text) }
    }
}

fn host(address: &ConnectionAddr) -> (&str, u16) {
    match address {
        ConnectionAddr::Tcp(host, port) | ConnectionAddr::TcpTls { host, port, .. } => (host, *port),
        // `StoreUrl` accepts only TCP addresses.
        _ => ("", 0),
    }
}

/// Returns the nodes in `ranges`, the reply to `CLUSTER SLOTS`. Each range contains its first slot,
/// its last slot, and its nodes.
fn nodes(ranges: Vec<Vec<Value>>, info: &ConnectionInfo) -> Vec<ConnectionInfo> {
    let nodes = ranges.into_iter().flat_map(|range| range.into_iter().skip(2)).filter_map(|node| {
        let mut parts = from_redis_value::<Vec<Value>>(node).ok()?.into_iter();
        let host: String = from_redis_value(parts.next()?).ok()?;
        let port: i64 = from_redis_value(parts.next()?).ok()?;
        Some((host, u16::try_from(port).ok()?))
    });
    // "" and "?" mean that the host of a node is unknown.
    let known: BTreeSet<(String, u16)> = nodes.filter(|(host, _)| !["", "?"].contains(&host.as_str())).collect();
    let at = |(host, port)| match info.addr() {
        ConnectionAddr::TcpTls { insecure, tls_params, .. } => {
            ConnectionAddr::TcpTls { host, port, insecure: *insecure, tls_params: tls_params.clone() }
        }
        _ => ConnectionAddr::Tcp(host, port),
    };
    known.into_iter().map(|node| info.clone().set_addr(at(node))).collect()
}

/// Time limit for resolving a host name. When the limit is reached, the last known addresses are
/// tried.
const RESOLVE: Duration = Duration::from_millis(250);

const MAX_ADDRESSES: usize = 4;

/// Function that resolves a host and port to addresses. It may block.
pub(crate) type AddressLookup = Arc<dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>> + Send + Sync>;

pub(crate) fn system_lookup(host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
    (host, port).to_socket_addrs().map(Iterator::collect)
}

pub(crate) struct StoreAddresses {
    lookup: AddressLookup,
    /// The lookup in progress. No other lookup is started until it has finished.
    under_way: Option<JoinHandle<io::Result<Vec<SocketAddr>>>>,
    /// The addresses from the last successful lookup.
    known: Vec<SocketAddr>,
    /// The nodes that the cluster listed at the last connection.
    nodes: Vec<ConnectionInfo>,
    /// Whether a store has ever replied at any of the addresses.
    has_answered: bool,
}

impl StoreAddresses {
    pub(crate) const fn new(lookup: AddressLookup) -> Self {
        Self { lookup, under_way: None, known: Vec::new(), nodes: Vec::new(), has_answered: false }
    }

    /// Returns the addresses in sort order. If the name cannot be resolved, returns the last known
    /// addresses.
    pub(crate) async fn find(&mut self, host: &str, port: u16) -> Result<Vec<SocketAddr>, String> {
        let mut looking = self.under_way.take().unwrap_or_else(|| {
            let (lookup, host) = (Arc::clone(&self.lookup), host.to_owned());
            spawn_blocking(move || lookup(&host, port))
        });
        let found = match timeout(RESOLVE, &mut looking).await {
            Ok(Ok(found)) => found.map_err(|error| error.to_string()),
            Ok(Err(_)) => Err("the resolver failed".to_owned()),
            Err(_) => {
                self.under_way = Some(looking);
                Err(format!("the resolver did not answer within {limit} ms", limit = RESOLVE.as_millis()))
            }
        };
        let why = match found {
            Ok(mut found) if !found.is_empty() => {
                found.sort_unstable();
                found.dedup();
                found.truncate(MAX_ADDRESSES);
                self.known = found;
                return Ok(self.known.clone());
            }
            Ok(_) => "the name has no address".to_owned(),
            Err(why) => why,
        };
        if self.known.is_empty() {
            Err(format!("the name {host:?} cannot be resolved: {why}"))
        } else {
            Ok(self.known.clone())
        }
    }
}

/// A resolver that returns a fixed address for one host name, and asks the system's resolver about
/// all other names.
struct OneAddress {
    host: String,
    address: SocketAddr,
}

impl AsyncDNSResolver for OneAddress {
    fn resolve<'a, 'b: 'a>(
        &'a self,
        host: &'b str,
        port: u16,
    ) -> RedisFuture<'a, Box<dyn Iterator<Item = SocketAddr> + Send + 'a>> {
        let known = (host == self.host && port == self.address.port()).then_some(self.address);
        Box::pin(async move {
            let found: Vec<_> = match known {
                Some(address) => vec![address],
                None => tokio::net::lookup_host((host, port)).await?.collect(),
            };
            Ok(Box::new(found.into_iter()) as Box<dyn Iterator<Item = SocketAddr> + Send>)
        })
    }
}

/// Maximum length of a server's message when it is shown, in characters.
const MAX_SHOWN_LENGTH: usize = 200;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum StoreProblem {
    Late,
    /// The connection broke, or the server reported an error that makes the connection unusable.
    Broken(String),
}

impl StoreProblem {
    /// Returns the problem for a reply that the script cannot have returned.
    pub(crate) fn invalid_reply() -> Self {
        Self::Broken("the answer is not from a store: another service answers at this address".to_owned())
    }

    pub(crate) fn of(error: &RedisError, settings: &StoreSettings) -> Self {
        if error.is_timeout() { Self::Late } else { Self::Broken(describe(error, settings)) }
    }

    pub(crate) fn message(self, settings: &StoreSettings) -> String {
        match self {
            Self::Late => format!("the server did not answer within {limit} ms", limit = settings.deadline.as_millis()),
            Self::Broken(why) => why,
        }
    }
}

const NODE_OUT: &str = "the cluster does not serve these keys: one of its nodes is down";

/// Substrings of the messages of the server or the library, with explanations for the operator.
/// Errors are recognised by their message, because the cluster client wraps an error in another
/// error, which hides its kind.
const MEANINGS: &[(&[&str], &str)] = &[
    (
        &["WRONGPASS", "invalid password", "AuthenticationFailed"],
        "the server refuses the login: check the user in the URL, and the password in the URL or in password_file",
    ),
    (
        &["NOAUTH", "unauthenticated"],
        "the server requires a password: set password_file to the path of a file with the password, and write the \
         user, if any, into the URL",
    ),
    (
        &["NOPERM", "NoPerm"],
        "the user of the server lacks permissions: allow EVAL, EVALSHA, TIME, GET and SET for keys that begin with \
         the prefix, and in a cluster also CLUSTER SLOTS and PING",
    ),
    (
        &["READONLY", "ReadOnly"],
        "the server is a replica and accepts no writes: write the address of the primary, or a name that always \
         leads to the primary",
    ),
    (&["cluster support disabled"], "the server is not a node of a cluster: leave out cluster = true"),
    (&["CLUSTERDOWN", "ClusterDown", "MASTERDOWN", "MasterDown"], NODE_OUT),
    (&["MOVED", "Moved", "CROSSSLOT", "CrossSlot"], "the server is a node of a cluster: set cluster = true"),
    (&["LOADING", "BusyLoading"], "the server is still loading its data, and will be used as soon as it is ready"),
    (
        &["OOM"],
        "the memory of the server is full: raise its maxmemory, or let it remove keys that expire (maxmemory-policy)",
    ),
    (&["MISCONF"], "the server accepts no writes, because it cannot save its data: see the log of the server"),
    (&["BUSY"], "a script of another client keeps the server busy"),
    (
        &["UnknownIssuer"],
        "the certificate of the server is from an untrusted authority: add the certificate of that \
         authority with \"ca\"",
    ),
    (
        &["NotValidForName", "not valid for name"],
        "the certificate of the server is for another name: in the URL, write a host name that the certificate \
         contains",
    ),
    (
        &["Expired", "NotValidYet", "certificate expired", "not valid yet"],
        "the certificate of the server is not valid today: renew it, or correct the clock",
    ),
    (
        &["CaUsedAsEndEntity"],
        "the certificate of the server is that of a certificate authority: create a server certificate with \
         basicConstraints=CA:FALSE",
    ),
    (&["invalid peer certificate"], "the certificate of the server cannot be trusted"),
    (
        &["InvalidContentType", "corrupt message"],
        "the server does not use TLS at this port: write the URL with \"redis://\"",
    ),
    (&["Connection refused"], "no server listens at this address"),
    (&["unknown command", "max number of clients"], "the server refuses this client"),
];

/// Describes an error on one line: an explanation, if known, and the message of the library or the
/// server.
fn describe(error: &RedisError, settings: &StoreSettings) -> String {
    let text = shown(&error.to_string(), settings);
    // The cluster client follows MOVED replies itself, so an error with MOVED means that the new
    // node is down.
    let is_stray = settings.nodes == StoreNodes::Cluster && text.contains("Moved");
    let known = || MEANINGS.iter().find(|(marks, _)| marks.iter().any(|mark| text.contains(mark)));
    let found = if is_stray { Some(NODE_OUT) } else { known().map(|(_, meaning)| *meaning) };
    let late = || error.is_timeout().then_some("the server did not answer in time while connecting");
    let closed = || error.is_connection_dropped().then_some("the server closed the connection");
    let garbage = || (error.kind() == ErrorKind::Parse).then_some("the server is not Valkey or Redis");
    match found.or_else(late).or_else(garbage).or_else(closed) {
        Some(meaning) => format!("{meaning} ({text})"),
        None => text,
    }
}

/// Returns an error message without secrets and control characters, and with a limited length. A
/// server may send secrets back.
fn shown(text: &str, settings: &StoreSettings) -> String {
    let mut text: String = text.chars().map(|char| if char.is_control() { ' ' } else { char }).collect();
    for secret in settings.secrets() {
        text = text.replace(&secret, "***");
    }
    truncated(&text, MAX_SHOWN_LENGTH)
}

#[cfg(test)]
mod tests {
    use super::super::settings::StoreUrl;
    use super::*;
    use crate::http_common::test_peer::soon;
    use redis::make_extension_error;
    use std::io;
    use std::sync::atomic::{AtomicU32, Ordering};

    #[tokio::test(start_paused = true)]
    async fn the_last_known_addresses_are_tried_while_a_name_cannot_be_resolved() {
        let asked = Arc::new(AtomicU32::new(0));
        let (release, released) = std::sync::mpsc::channel::<()>();
        let released = parking_lot::Mutex::new(released);
        let lookup: AddressLookup = Arc::new({
            let asked = Arc::clone(&asked);
            move |_: &str, port: u16| match asked.fetch_add(1, Ordering::Relaxed) {
                0 => Err(io::Error::other("no such name")),
                1 => Ok(["127.0.0.2", "127.0.0.1", "127.0.0.2"]
                    .map(|ip| SocketAddr::new(ip.parse().unwrap(), port))
                    .into()),
                2 => Ok(Vec::new()),
                _ => {
                    let _ = released.lock().recv();
                    Err(io::Error::other("no such name"))
                }
            }
        });
        let mut addresses = StoreAddresses::new(lookup);
        let error = addresses.find("cache.internal", 6379).await.unwrap_err();
        assert_eq!(error, "the name \"cache.internal\" cannot be resolved: no such name");
        for number in 1..=4 {
            // The lookup of call 3 never ends, so calls 3 and 4 both reach their time limit.
            let time = async {
                if number >= 3 {
                    tokio::time::advance(2 * RESOLVE).await;
                }
            };
            let (found, ()) = tokio::join!(addresses.find("cache.internal", 6379), time);
            assert_eq!(found.unwrap(), ["127.0.0.1:6379", "127.0.0.2:6379"].map(|address| address.parse().unwrap()));
        }
        // The thread of the last lookup may start late.
        while asked.load(Ordering::Relaxed) < 4 {
            std::thread::yield_now();
        }
        assert_eq!(asked.load(Ordering::Relaxed), 4);
        drop(release);
    }

    #[tokio::test]
    async fn the_tls_hint_is_given_only_for_a_store_that_has_never_answered() {
        let server = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let settings = settings(&format!("redis://{}", server.local_addr().unwrap()));
        let mut addresses = StoreAddresses::new(Arc::new(system_lookup));
        let closing = async {
            loop {
                drop(server.accept().await);
            }
        };
        let trying = tokio::task::LocalSet::new();
        let trying = trying.run_until(async {
            for is_hinted in [true, false] {
                addresses.has_answered = !is_hinted;
                let probe = |_| std::future::ready(Ok(()));
                // On a busy machine, the attempt may time out before the server closes the
                // connection, so the test tries again.
                let said = loop {
                    let said = StoreConnection::connect(&settings, &mut addresses, probe).await.err().unwrap();
                    if said.starts_with("the server closed the connection (") {
                        break said;
                    }
                };
                assert_eq!(
                    said.ends_with("if the server requires TLS, write the URL with \"rediss://\""),
                    is_hinted,
                    "{said}"
                );
            }
        });
        soon(async {
            tokio::select! { () = trying => {}, () = closing => {} }
        })
        .await;
    }

    fn settings(url: &str) -> StoreSettings {
        StoreSettings::new(StoreUrl::new(url).unwrap())
    }

    #[test]
    fn the_message_for_a_store_error_suggests_a_solution() {
        let said = |code: &str, detail: &str| {
            describe(&make_extension_error(code.to_owned(), Some(detail.to_owned())), &settings("redis://cache"))
        };
        for (code, detail, expected) in [
            ("WRONGPASS", "invalid username-password pair or user is disabled.", "password_file"),
            ("NOAUTH", "Authentication required.", "password_file"),
            ("NOPERM", "this user has no permissions to run the 'eval' command", "EVALSHA"),
            ("NOPERM", "this user has no permissions to run the 'cluster|slots' command", "CLUSTER SLOTS and PING"),
            ("READONLY", "You can't write against a read only replica.", "write the address of the primary"),
            ("ERR", "This instance has cluster support disabled", "leave out cluster = true"),
            ("CLUSTERDOWN", "Hash slot not served", "one of its nodes is down"),
            ("MOVED", "866 10.0.0.5:6379", "set cluster = true"),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", "maxmemory"),
        ] {
            let said = said(code, detail);
            assert!(said.contains(expected) && said.contains(detail), "{code}: {said}");
        }
        let refused =
            RedisError::from(io::Error::new(io::ErrorKind::ConnectionRefused, "Connection refused (os error 111)"));
        let want = "no server listens at this address (Connection refused (os error 111))";
        assert_eq!(describe(&refused, &settings("redis://cache")), want);
    }

    #[test]
    fn cluster_nodes_are_contacted_with_the_tls_setting_and_password_of_the_url() {
        let text = |text: &str| Value::BulkString(text.into());
        let node = |host, port| Value::Array(vec![host, Value::Int(port), text("id"), Value::Array(Vec::new())]);
        let range = |first, nodes: &[Value]| [&[Value::Int(first), Value::Int(first + 99)], nodes].concat();
        let ranges = vec![
            range(0, &[node(text("10.0.0.1"), 6379), node(text("10.0.0.2"), 6380)]),
            range(
                100,
                &[node(text("10.0.0.1"), 6379), node(text("?"), 6379), node(text(""), 6379), node(Value::Nil, 6379)],
            ),
            range(200, &[text("10.0.0.3"), node(text("10.0.0.4"), 1 << 20), Value::Array(Vec::new())]),
        ];
        for url in ["redis://u:hunter2@cache", "rediss://u:hunter2@cache"] {
            let info = settings(url).info().unwrap();
            let found = nodes(ranges.clone(), &info);
            let want = [("10.0.0.1", 6379), ("10.0.0.2", 6380)];
            assert_eq!(found.iter().map(|node| host(node.addr())).collect::<Vec<_>>(), want);
            let is_encrypted =
                |info: &ConnectionInfo| matches!(info.addr(), ConnectionAddr::TcpTls { insecure: false, .. });
            for node in found {
                assert_eq!(is_encrypted(&node), is_encrypted(&info));
                assert_eq!(node.redis_settings().password(), Some("hunter2"));
            }
        }
    }

    #[test]
    fn an_error_message_of_the_store_becomes_one_short_line_without_passwords() {
        let password = Some("swordfish".to_owned());
        let settings = StoreSettings { password, ..settings("redis://robotsd:hunter%202@cache") };
        let text = format!("AUTH hunter 2 hunter%202 swordfish\r\n\x1b[2J{}", "x".repeat(10_000));
        let said = describe(&make_extension_error("ERR".to_owned(), Some(text)), &settings);
        assert!(!said.contains("hunter") && !said.contains("swordfish"), "{said}");
        assert!(said.chars().count() < 300 && !said.contains(char::is_control), "{said}");
    }
}
