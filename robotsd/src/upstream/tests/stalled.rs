//! Tests of clients that do not read their responses, and of the requests that then get a
//! connection.

use std::net::{IpAddr, Ipv4Addr};

use tokio::net::TcpSocket;

use super::balancer::UpstreamState;
use super::http1_connection::Certainty;
use super::server_search::{Pooled, Requirement};
use super::usage::ClientKey;
use super::*;
use crate::http_common::test_peer::frame;

/// Size of a body that fits into the read-ahead buffer, but not into the first read of a response.
const SMALL: usize = 40 * 1024;
/// Size of a body that is larger than all buffers together, in bytes.
const LARGE: usize = 16 * 1024 * 1024;

/// An origin with `/small`, `/chunked` (same size), `/large`, and a short body for other paths.
fn origin() -> Origin {
    Origin::start(|_, mut peer| async move {
        loop {
            let Some(target) = peer.asked().await else { return };
            match target.as_str() {
                "/small" => {
                    peer.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: {SMALL}\r\n\r\n")).await;
                    peer.try_send("s".repeat(SMALL)).await;
                }
                "/chunked" => {
                    peer.try_send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                    peer.try_send(format!("{SMALL:x}\r\n{}\r\n0\r\n\r\n", "s".repeat(SMALL))).await;
                }
                "/trailers" => {
                    peer.try_send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
                    peer.try_send(format!("{SMALL:x}\r\n{}\r\n0\r\nX-Sum: 1\r\n\r\n", "s".repeat(SMALL))).await;
                }
                "/large" => {
                    peer.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")).await;
                    peer.pour(LARGE).await;
                }
                "/form" => {
                    if !peer.heard(b"123456789").await {
                        return;
                    }
                    peer.try_send(OK).await;
                }
                "/early" => {
                    // The origin sends only a part of the response, before the request is complete.
                    peer.try_send("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n1").await;
                    peer.rest().await;
                    return;
                }
                _ => peer.try_send(OK).await,
            }
        }
    })
}

struct Scene {
    address: SocketAddr,
    origins: Origins,
    events: Events,
    buffers: Arc<read_ahead::BufferBudget>,
}

/// Starts a proxy with at most `connections` connections to an origin.
fn scene(connections: usize, change: impl FnOnce(&mut UpstreamLimits)) -> Scene {
    let mut limits =
        UpstreamLimits { connections: connections.try_into().unwrap(), connect: Duration::from_secs(50), ..patient() };
    change(&mut limits);
    let settings = settings([format!("http://{}", origin().address)]);
    let (origins, events) = origins(&settings, limits, &SharedResources::with(resolver::Resolver::system()));
    let buffers = Arc::clone(&origins.0.buffers);
    let address = proxy(worker(&origins));
    Scene { address, origins, events, buffers }
}

/// An HTTP/2 client whose streams have no window until a test grants it.
struct Greedy {
    peer: Raw,
    heads: usize,
    bytes: usize,
    resets: usize,
    /// Number of streams that the proxy has ended.
    ends: usize,
}

/// Connects with this local address.
async fn from(from: Ipv4Addr, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(SocketAddr::new(IpAddr::V4(from), 0)).unwrap();
    soon(socket.connect(address)).await.unwrap()
}

impl Greedy {
    async fn connect(address: SocketAddr, from: Ipv4Addr) -> Self {
        let mut peer = Raw::new(self::from(from, address).await);
        // Sets SETTINGS_INITIAL_WINDOW_SIZE to 0, and enlarges the connection's window.
        let window = frame(8, 0, 0, &0x7f00_0000_u32.to_be_bytes());
        let hello = [&b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"[..], &frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]), &window];
        peer.send(hello.concat()).await;
        Self { peer, heads: 0, bytes: 0, resets: 0, ends: 0 }
    }

    /// Requests `path` on each of a hundred streams.
    async fn ask_often(&mut self, path: &str) {
        for stream in 0..100 {
            self.ask(2 * stream + 1, path).await;
        }
    }

    async fn ask(&mut self, stream: u32, path: &str) {
        let block = [&[0x82, 0x86, 0x04, path.len() as u8], path.as_bytes(), b"\x01\x06h.test"].concat();
        self.peer.send(frame(1, 5, stream, &block)).await;
    }

    async fn grant(&mut self, stream: u32, bytes: u32) {
        self.peer.send(frame(8, 0, stream, &bytes.to_be_bytes())).await;
    }

    async fn frame(&mut self) {
        let frame = self.peer.frame().await.expect("an open connection");
        match frame.kind {
            0 => self.bytes += frame.payload.len(),
            1 => self.heads += 1,
            3 => self.resets += 1,
            _ => {}
        }
        self.ends += usize::from(matches!(frame.kind, 0 | 1) && frame.flags & 1 == 1);
    }

    async fn until(&mut self, is_so: impl Fn(&Self) -> bool) {
        soon(async {
            while !is_so(self) {
                self.frame().await;
            }
        })
        .await;
    }
}

/// Opens connections that request `path` on every stream, and again whenever a stream ends.
async fn besiege(address: SocketAddr, from: Ipv4Addr, connections: usize, path: &'static str) {
    for _ in 0..connections {
        let mut greedy = Greedy::connect(address, from).await;
        greedy.ask_often(path).await;
        tokio::spawn(async move {
            let mut next = 201;
            loop {
                let before = greedy.resets;
                greedy.frame().await;
                if greedy.resets > before && next < 20_000 {
                    greedy.ask(next, path).await;
                    next += 2;
                }
            }
        });
    }
}

impl Scene {
    async fn opens(&self, connections: usize) {
        wait_until(|| self.origins.0.connection_limit.open.load(Ordering::SeqCst) >= connections).await;
    }
}

async fn is_served(address: SocketAddr, times: usize) {
    let mut client = Raw::connect(address).await;
    for _ in 0..times {
        assert_eq!(client.ask("GET / HTTP/1.1\r\nHost: h\r\n\r\n").await.status(), 200);
    }
}

#[tokio::test]
async fn a_body_that_is_read_ahead_ends_without_its_trailers() {
    let scene = scene(1, |_| {});
    let mut greedy = Greedy::connect(scene.address, Ipv4Addr::LOCALHOST).await;
    greedy.ask(1, "/trailers").await;
    greedy.until(|greedy| greedy.heads == 1).await;
    is_served(scene.address, 1).await;
    greedy.grant(1, SMALL as u32).await;
    greedy.until(|greedy| greedy.ends == 1).await;
    assert_eq!((greedy.heads, greedy.bytes), (1, SMALL));
}

#[tokio::test]
async fn small_responses_free_their_connections_although_no_client_reads() {
    let of_form = async |path| {
        undisturbed(async || {
            let scene = scene(8, |_| {});
            let mut clients = Vec::new();
            for _ in 0..3 {
                let mut greedy = Greedy::connect(scene.address, Ipv4Addr::LOCALHOST).await;
                greedy.ask_often(path).await;
                // The heads of a hundred answers have arrived from eight connections to the origin.
                greedy.until(|greedy| greedy.heads == 100).await;
                clients.push(greedy);
            }
            is_served(scene.address, 20).await;
            if !scene.events.lock().is_empty() {
                return None;
            }
            let used = scene.buffers.used.load(Ordering::SeqCst);
            assert!(used > 0 && used <= 300 * SMALL, "{used}");
            for greedy in &mut clients {
                for stream in 0..100 {
                    greedy.grant(2 * stream + 1, SMALL as u32).await;
                }
                greedy.until(|greedy| greedy.bytes == 100 * SMALL).await;
            }
            Some(scene.buffers.used.load(Ordering::SeqCst))
        })
        .await
    };
    assert_eq!(tokio::join!(of_form("/small"), of_form("/chunked")), (0, 0));
}

#[tokio::test]
async fn buffered_bodies_stay_within_the_total_limit() {
    let scene = scene(32, |limits| limits.buffer_total = 2 * 64 * 1024);
    besiege(scene.address, Ipv4Addr::LOCALHOST, 4, "/small").await;
    scene.opens(32).await;
    is_served(scene.address, 60).await;
    assert!(scene.buffers.used.load(Ordering::SeqCst) <= 2 * 64 * 1024);
    assert!(event_detail(&scene.events, "gave-up").await.contains("stalled for"));
}

#[tokio::test]
async fn other_clients_are_served_while_one_address_uses_every_connection() {
    let besieged = async |from, path, buffers| {
        let scene = scene(64, |limits| limits.buffer = if buffers { limits.buffer } else { 0 });
        besiege(scene.address, from, 6, path).await;
        scene.opens(64).await;
        is_served(scene.address, 200).await;
    };
    let (own, other) = (Ipv4Addr::LOCALHOST, Ipv4Addr::new(127, 0, 0, 2));
    // In the last scene, nothing is read ahead.
    tokio::join!(besieged(own, "/large", true), besieged(other, "/large", true), besieged(own, "/small", false));
}

#[tokio::test]
async fn http_1_clients_that_do_not_read_hold_no_upstream_connection_for_long() {
    let of_version = async |version| {
        let scene = scene(8, |_| {});
        let _clients = Raw::many(12, scene.address, format!("GET /large HTTP/{version}\r\nHost: h\r\n\r\n")).await;
        scene.opens(8).await;
        is_served(scene.address, 50).await;
    };
    // hyper answers HTTP/1.0 requests, and the fast path answers HTTP/1.1 requests.
    tokio::join!(of_version("1.0"), of_version("1.1"));
}

#[tokio::test]
async fn a_client_that_reads_slowly_keeps_its_connection() {
    undisturbed(async || {
        let scene = scene(16, |_| {});
        let mut slow = Greedy::connect(scene.address, Ipv4Addr::LOCALHOST).await;
        slow.ask(1, "/large").await;
        slow.until(|slow| slow.heads == 1).await;
        besiege(scene.address, Ipv4Addr::LOCALHOST, 4, "/large").await;
        scene.opens(16).await;
        let until_reset = async {
            let mut pause = tokio::time::interval(Duration::from_millis(100));
            while slow.resets == 0 {
                pause.tick().await;
                slow.grant(1, 20_000).await;
                let want = slow.bytes + 10_000;
                slow.until(|slow| slow.bytes >= want || slow.resets > 0).await;
            }
        };
        tokio::select! {
            () = until_reset => return None,
            () = is_served(scene.address, 60) => {}
        }
        assert!(times_reported(&scene.events, "gave-up") > 0);
        Some(())
    })
    .await;
}

#[tokio::test]
async fn a_tunnel_within_its_share_stays_open() {
    let origin = Origin::start(|_, mut peer| async move {
        while let Some(target) = peer.asked().await {
            match target.as_str() {
                "/chat" => {
                    let said = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
                    peer.send(said).await;
                    peer.until(b"ping").await;
                    peer.send("pong").await;
                    peer.rest().await;
                    return;
                }
                "/large" => {
                    peer.try_send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n")).await;
                    peer.pour(LARGE).await;
                }
                _ => peer.try_send(OK).await,
            }
        }
    });
    let upstream = origin.upstream_with(few(8, Duration::from_secs(50)));
    let address = proxy(upstream);
    let mut tunnel = Raw::sent(address, HANDSHAKE).await;
    tunnel.until(b"\r\n\r\n").await;
    besiege(address, Ipv4Addr::LOCALHOST, 2, "/large").await;
    is_served(address, 20).await;
    tunnel.send("ping").await;
    tunnel.until(b"pong").await;
}

#[tokio::test]
async fn tunnels_whose_clients_do_not_read_hold_no_upstream_connection_for_long() {
    let origin = Origin::start(|_, mut peer| async move {
        while let Some(target) = peer.asked().await {
            if target != "/push" {
                peer.try_send(OK).await;
                continue;
            }
            let said = "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n";
            peer.send(said).await;
            // The upstream sends until the buffers of the client's and its own socket are full.
            peer.pour(4 * LARGE).await;
        }
    });
    let upstream = origin.upstream_with(few(4, Duration::from_secs(50)));
    let address = proxy(upstream);
    let mut tunnels = Vec::new();
    for _ in 0..4 {
        let mut tunnel = Raw::new(from(Ipv4Addr::new(127, 0, 0, 2), address).await);
        tunnel.send(HANDSHAKE.replace("/chat", "/push")).await;
        tunnel.until(b"\r\n\r\n").await;
        tunnels.push(tunnel);
    }
    is_served(address, 20).await;
}

#[tokio::test]
async fn requests_whose_bodies_do_not_arrive_hold_no_upstream_connection_for_long() {
    let scene = scene(8, |_| {});
    let form = "POST /form HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n1";
    let clients = Raw::many(8, scene.address, form).await;
    scene.opens(8).await;
    is_served(scene.address, 20).await;
    let mut given_up = 0;
    for mut client in clients {
        client.try_send("23456789").await;
        given_up += usize::from(client.message().await.status() == 408);
    }
    assert!(given_up > 0);
}

#[tokio::test]
async fn requests_that_stop_after_an_early_response_hold_no_upstream_connection_for_long() {
    let scene = scene(8, |_| {});
    let early = "POST /early HTTP/1.1\r\nHost: h\r\nContent-Length: 9\r\n\r\n1";
    for client in &mut Raw::many(8, scene.address, early).await {
        client.until(b"\r\n\r\n").await;
    }
    is_served(scene.address, 20).await;
}

#[tokio::test]
async fn the_address_forwarded_by_a_trusted_proxy_determines_the_share() {
    let mut limits =
        UpstreamLimits { connections: NonZeroUsize::new(8).unwrap(), connect: Duration::from_secs(50), ..patient() };
    limits.buffer = 0;
    let upstream = upstream([origin().address], limits);
    let networks = vec!["127.0.0.0/8".parse().unwrap()];
    let trusted = Arc::new(Trusted { networks, agent_header: None });
    let listener_settings = ListenerSettings { trusted, ..ListenerSettings::default() };
    let address = proxy_with(EdgeLimits::default(), listener_settings, upstream);
    let get =
        |target: &str, client: &str| format!("GET {target} HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: {client}\r\n\r\n");
    // The client that has stalled for longest is within its share.
    let mut patient = Raw::sent(address, get("/large", "192.0.2.3")).await;
    patient.until(b"\r\n\r\n").await;
    let mut greedy = Vec::new();
    for _ in 0..7 {
        let mut client = Raw::sent(address, get("/large", "192.0.2.1")).await;
        client.until(b"\r\n\r\n").await;
        greedy.push(client);
    }
    let mut client = Raw::connect(address).await;
    for _ in 0..20 {
        assert_eq!(client.ask(&get("/", "192.0.2.2")).await.status(), 200);
    }
    assert_eq!(patient.exactly(LARGE).await.len(), LARGE);
}

#[tokio::test]
async fn an_idle_connection_is_left_to_a_client_that_waits_on_another_worker() {
    let scene = scene(4, |_| {});
    let one = NonZeroUsize::MIN;
    let balancer = UpstreamState::new(Arc::clone(&scene.origins.0), one);
    let client = ClientKey::default();
    let requirement = Requirement { certainty: Certainty::EventLoop, versions: HttpVersions::Http1, client };
    let Err(first) = balancer.take_idle(requirement) else { panic!("nothing is connected yet") };
    let lease = soon(balancer.find(first, Pooled::Allowed, requirement)).await.unwrap();
    let (connection, pool) = lease.into_http1().unwrap();
    pool.put(connection);
    let other = connection_limit::Demand::new(Arc::clone(&scene.origins.0.connection_limit));
    let waiting = other.wait(ClientKey { address: 1, connection: 1 }, 1);
    assert!(balancer.take_idle(requirement).is_err());
    drop(waiting);
    assert!(balancer.take_idle(requirement).is_ok());
}

#[tokio::test]
async fn a_streamed_response_is_passed_on_as_it_arrives() {
    let more = shared::<Notify>();
    let origin = Origin::start(move |_, mut peer| async move {
        peer.until(b"\r\n\r\n").await;
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        loop {
            peer.try_send("5\r\nevent\r\n").await;
            more.notified().await;
        }
    });
    let address = proxy(origin.upstream());
    let mut client = Greedy::connect(address, Ipv4Addr::LOCALHOST).await;
    client.ask(1, "/").await;
    client.until(|client| client.heads == 1).await;
    for event in 1..=5 {
        // Half of the events arrive before the client can receive them, half while the client
        // waits.
        if event % 2 == 0 {
            client.grant(1, 10).await;
            client.until(|client| client.bytes == event * 5).await;
        }
        more.notify_one();
    }
}
