//! Tests that a redirect is checked by the address of its target. The simulated servers use
//! loopback addresses.

use crate::live::Mutex;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use robots_core::internals::AddressClass;

use super::super::{FetchErrorKind, FetchOutcome, Fetcher};
use super::{PlayedNetwork, read_head};
use crate::live::{LiveRobots, ReloadOutcome, WhenMissing};

/// A loopback address for a simulated server on the internet.
const PUBLIC: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 71));
/// A loopback address for a simulated server in the organisation's network.
const PRIVATE: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 72));
/// A loopback address for the simulated metadata service of a cloud.
const LINK_LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(127, 0, 0, 73));
const LOOPBACK: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

fn class(address: IpAddr) -> AddressClass {
    match address {
        PUBLIC => AddressClass::Public,
        PRIVATE => AddressClass::Private,
        LINK_LOCAL => AddressClass::LinkLocal,
        other => AddressClass::of(other),
    }
}

/// Starts a fetcher in a simulated network. `resolve` returns the addresses of a name.
fn fetcher(resolve: impl Fn(&str, u16) -> Vec<SocketAddr> + Send + Sync + 'static) -> Fetcher {
    let played = PlayedNetwork { resolve: Box::new(resolve), class: Box::new(class) };
    Fetcher::builder().network(played).start().expect("a thread")
}

fn by_system(host: &str, port: u16) -> Vec<SocketAddr> {
    (host, port).to_socket_addrs().map(Iterator::collect).unwrap_or_default()
}

/// A server at an address, which counts its requests.
struct Server {
    address: SocketAddr,
    answer: Arc<Mutex<String>>,
    requests: Arc<AtomicUsize>,
}

impl Server {
    fn at(address: IpAddr) -> Self {
        Self::on(TcpListener::bind((address, 0)).expect("a port"))
    }

    fn on(listener: TcpListener) -> Self {
        let server = Self {
            address: listener.local_addr().expect("an address"),
            answer: Arc::new(Mutex::new(file("# the file"))),
            requests: Arc::default(),
        };
        let (answer, requests) = (server.answer.clone(), server.requests.clone());
        std::thread::spawn(move || {
            for mut stream in listener.incoming().map_while(Result::ok) {
                read_head(&mut stream);
                requests.fetch_add(1, Ordering::SeqCst);
                let answer = answer.lock().clone();
                let _ = stream.write_all(answer.as_bytes());
            }
        });
        server
    }

    fn redirects_to(self, location: &str) -> Self {
        *self.answer.lock() = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
        self
    }

    fn url(&self) -> String {
        format!("http://{}/robots.txt", self.address)
    }

    fn requests(&self) -> usize {
        self.requests.load(Ordering::SeqCst)
    }
}

/// Starts a public server and a loopback server with the same port. So one host name can resolve to
/// both servers.
fn on_one_port() -> (Server, Server) {
    let bind = || {
        let public = TcpListener::bind((PUBLIC, 0)).expect("a port");
        let port = public.local_addr().expect("an address").port();
        TcpListener::bind((LOOPBACK, port)).ok().map(|loopback| (public, loopback))
    };
    let (public, loopback) = (0..100).find_map(|_| bind()).expect("a port that is free at both addresses");
    (Server::on(public), Server::on(loopback))
}

fn file(text: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
}

/// Fetches a URL and follows redirects. Returns the file, or the kind of the error.
fn outcome(fetcher: &Fetcher, url: &str) -> Result<String, FetchErrorKind> {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    match runtime.block_on(fetcher.fetch(&url.parse().expect(url), None)) {
        FetchOutcome::Found { bytes, .. } => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        FetchOutcome::Failed(error) => Err(error.kind),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_redirect_to_a_more_private_kind_of_address_is_refused() {
    let fetcher = fetcher(by_system);
    let (yes, no) = (Ok("# the file".to_owned()), Err(FetchErrorKind::RedirectAddress));
    for (from, to, want) in [
        (PUBLIC, PUBLIC, &yes),
        (PUBLIC, PRIVATE, &no),
        (PUBLIC, LOOPBACK, &no),
        (PUBLIC, LINK_LOCAL, &no),
        (PRIVATE, PUBLIC, &yes),
        (PRIVATE, PRIVATE, &yes),
        (PRIVATE, LOOPBACK, &no),
        (PRIVATE, LINK_LOCAL, &no),
        (LOOPBACK, PUBLIC, &yes),
        (LOOPBACK, LOOPBACK, &yes),
        (LOOPBACK, LINK_LOCAL, &no),
        (LINK_LOCAL, PRIVATE, &yes),
        (LINK_LOCAL, LINK_LOCAL, &yes),
        (LINK_LOCAL, LOOPBACK, &no),
    ] {
        let there = Server::at(to);
        let here = Server::at(from).redirects_to(&there.url());
        assert_eq!(outcome(&fetcher, &here.url()), *want, "{from} to {to}");
        assert_eq!(there.requests(), usize::from(want.is_ok()), "requests from {from} to {to}");
        assert_eq!(outcome(&fetcher, &there.url()), yes, "{to} itself may be configured");
    }
}

#[test]
fn a_redirect_from_a_public_server_reaches_no_spelling_of_a_loopback_address() {
    let victim = Server::at(LOOPBACK);
    let port = victim.address.port();
    let fetcher = fetcher(by_system);
    let hosts = "127.0.0.1 127.1 127.8.9.10 0 0.0.0.0 2130706433 0x7f000001 0x7f.1 017700000001 localhost \
        LOCALHOST. [::1] [::] [::ffff:127.0.0.1] [::ffff:0:0] [::127.0.0.1] [64:ff9b::7f00:1] [2002:7f00:1::]";
    for host in hosts.split(' ') {
        for scheme in ["http:", ""] {
            let here = Server::at(PUBLIC).redirects_to(&format!("{scheme}//{host}:{port}/status"));
            let failed = outcome(&fetcher, &here.url()).expect_err(host);
            assert!(matches!(failed, FetchErrorKind::RedirectAddress | FetchErrorKind::Name), "{host}: {failed:?}");
        }
    }
    assert_eq!(victim.requests(), 0);
}

#[test]
fn each_redirect_is_checked_against_the_server_that_sent_it() {
    let fetcher = fetcher(by_system);
    let last = Server::at(LOOPBACK);
    let second = Server::at(PUBLIC).redirects_to(&last.url());
    // The redirects lead from the loopback server to a public server and back. The last one is not
    // followed, because it comes from the public server.
    let first = Server::at(LOOPBACK).redirects_to(&second.url());
    assert_eq!(outcome(&fetcher, &first.url()), Err(FetchErrorKind::RedirectAddress));
    assert_eq!((second.requests(), last.requests()), (1, 0));
}

#[test]
fn a_redirect_to_a_name_that_is_rebound_to_loopback_is_refused() {
    let (public, victim) = on_one_port();
    let port = victim.address.port();
    let public = public.redirects_to("/again");
    let asked = AtomicUsize::new(0);
    let fetcher = fetcher(move |host, port| {
        assert_eq!(host, "rebound.example");
        let first = asked.fetch_add(1, Ordering::SeqCst) == 0;
        vec![(if first { PUBLIC } else { LOOPBACK }, port).into()]
    });
    let url = format!("http://rebound.example:{port}/robots.txt");
    assert_eq!(outcome(&fetcher, &url), Err(FetchErrorKind::RedirectAddress));
    assert_eq!((public.requests(), victim.requests()), (1, 0));
}

#[test]
fn only_the_allowed_addresses_of_a_redirect_target_are_tried() {
    let (allowed, forbidden) = on_one_port();
    let port = allowed.address.port();
    let here = Server::at(PUBLIC).redirects_to(&format!("http://both.example:{port}/robots.txt"));
    let own = here.address;
    let fetcher = fetcher(move |host, port| match host {
        // There are more forbidden addresses than the fetcher would try.
        "both.example" => [LOOPBACK; 8].into_iter().chain([PUBLIC]).map(|address| (address, port).into()).collect(),
        _ => vec![own],
    });
    assert_eq!(outcome(&fetcher, &here.url()), Ok("# the file".to_owned()));
    assert_eq!((allowed.requests(), forbidden.requests()), (1, 0));
}

#[test]
fn a_forbidden_redirect_keeps_the_live_version_and_the_message_contains_advice() {
    let admin = Server::at(LOOPBACK);
    let here = Server::at(PUBLIC);
    let fetcher = fetcher(by_system);
    let live = LiveRobots::url(&here.url()).expect("a URL").fetcher(&fetcher).when_missing(WhenMissing::Fail);
    let live = live.open().expect("the first version");
    let hash = live.snapshot().content.as_ref().map(|content| content.hash());
    let here = here.redirects_to(&format!("http://{}/status", admin.address));
    let reload = live.reload_blocking();
    assert!(matches!(reload.outcome, ReloadOutcome::Kept { .. }), "{reload}");
    let expected = format!(
        "the redirect leads to a forbidden address: http://{}/status has the loopback address 127.0.0.1, but the \
         redirecting server has a public address; if the robots.txt is at this URL, configure the URL directly",
        admin.address
    );
    assert!(reload.to_string().contains(&expected), "{reload}");
    assert_eq!(live.snapshot().content.as_ref().map(|content| content.hash()), hash);
    assert_eq!((here.requests(), admin.requests()), (2, 0));
}
