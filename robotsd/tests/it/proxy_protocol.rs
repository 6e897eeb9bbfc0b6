//! Tests robotsd behind proxies with the PROXY protocol: HAProxy, the stream module of nginx, and
//! curl.

use super::daemon::{Daemon, find, free_ports};
use super::programs::{present, skip};
use super::tls::certify;
use crate::harness::*;

const ROBOTS: &str = "User-agent: GPTBot\nDisallow: /drafts/\n";

/// Starts robotsd behind a proxy that announces the client's address. 127.0.0.3 is exempt.
fn start(origin: &Origin, listener: &str) -> (Folder, Running) {
    let folder = Config::refusing()
        .listener(format!("proxy_protocol = true\n{listener}"))
        .upstream("shop", origin)
        .tables("[exempt]\ncidrs = [\"127.0.0.3/32\"]")
        .log_requests()
        .tables("address = \"keep\"")
        .admin_socket()
        .robots(ROBOTS)
        .folder();
    certify(folder.path(), &["a.test"]);
    let running = folder.start();
    (folder, running)
}

/// Listener keys that trust the proxies of these tests.
const TRUSTING: &str = "trusted_proxies = [\"127.0.0.1/32\"]";
const SECURE: &str = "[[listener.certificate]]\nchain = \"a.pem\"\nkey = \"a.key\"\n";

/// Starts a proxy with its config. `@FRONT@` is the proxy's port, and `@ROBOTSD@` is robotsd's
/// port.
fn in_front(program: &Path, config: &str, arguments: &[&str], robotsd: SocketAddr) -> (Daemon, Folder, SocketAddr) {
    for _ in 0..10 {
        let [front] = free_ports(1)[..] else { unreachable!() };
        let text = config.replace("@FRONT@", &front.to_string()).replace("@ROBOTSD@", &robotsd.port().to_string());
        let folder = folder(&[("front.conf", &text)]);
        let mut server = Daemon::logging(Command::new(program).args(arguments), &folder);
        let address = ([127, 0, 0, 1], front).into();
        if server.comes_to(|| connect_from(PROBE, address).is_some()) {
            return (server, folder, address);
        }
        println!("{}", folder.read("log"));
    }
    panic!("{} does not start", program.display());
}

/// Address of a client that only checks whether the proxy listens.
const PROBE: [u8; 4] = [127, 0, 0, 9];

/// Returns the logged connection problems, except those of the probe.
fn problem(running: &Running) -> Vec<Value> {
    running.all("problem").into_iter().filter(|line| line["address"] != "127.0.0.9").collect()
}

/// Sends a request through the proxy from this address; `None` if the connection is closed.
fn ask_from(source: [u8; 4], front: SocketAddr, path: &str, agent: &str) -> Option<Answer> {
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: a.test\r\nUser-Agent: {agent}\r\nX-Forwarded-For: 127.0.0.3\r\nConnection: close\r\n\r\n"
    );
    offer(connect_from(source, front).unwrap(), request).map(|answer| Answer::parse(&answer))
}

/// Checks that robotsd distinguishes the clients of a proxy, and ignores address fields that the
/// clients send.
fn assert_clients_are_distinguished(running: &Running, front: SocketAddr) {
    let ask = |source, path, agent| ask_from(source, front, path, agent).expect("an answer");
    let answer = ask([127, 0, 0, 2], "/x", FIREFOX);
    assert_eq!(answer.status, 200, "{answer:?}");
    assert!(answer.body.to_lowercase().contains("x-forwarded-for: 127.0.0.2\r\n"), "{}", answer.body);
    assert_eq!(ask([127, 0, 0, 2], "/drafts/x", GPTBOT).status, 403);
    assert_eq!(ask([127, 0, 0, 3], "/drafts/x", GPTBOT).status, 200, "exempt");
    running.wait_for_event("refused", |line| line["address"] == "127.0.0.2");
    running.wait_for_event("request", |line| line["address"] == "127.0.0.3" && line["path"] == "/drafts/x");
}

const HAPROXY: &str = "defaults\n  mode tcp\n  timeout connect 60s\n  timeout client 60s\n  timeout server 60s\n\
    timeout check 60s\n  listen front\n  bind 127.0.0.1:@FRONT@\n  server robotsd 127.0.0.1:@ROBOTSD@ SEND check inter 20ms fall 1000\n";

#[test]
fn haproxy_sends_client_addresses_in_both_proxy_protocol_versions() {
    let Some(program) = present(find("haproxy")) else { return };
    let origin = Origin::start();
    for send in ["send-proxy", "send-proxy-v2", "send-proxy-v2 proxy-v2-options crc32c,unique-id"] {
        let (folder, running) = start(&origin, TRUSTING);
        let (_haproxy, _files, front) =
            in_front(&program, &HAPROXY.replace("SEND", send), &["-db", "-f", "front.conf"], running.address);
        assert_clients_are_distinguished(&running, front);
        // The health checks of the proxy, every 20 ms here, send a PROXY header and no request.
        let checks = || status(&folder)["traffic"]["accepted_connections"].as_u64();
        let before = checks().unwrap();
        wait_for("health checks", || checks().filter(|checks| *checks > before + 5));
        assert_eq!(problem(&running), Vec::<Value>::new(), "{send}");
    }
}

#[test]
fn nginx_sends_client_addresses_in_the_proxy_protocol() {
    let module = std::env::var_os("ROBOTSD_BESIDE_BIN").map(PathBuf::from);
    let places = module.into_iter().chain([PathBuf::from("/usr/lib/nginx/modules")]);
    let module = places.map(|folder| folder.join("ngx_stream_module.so")).find(|module| module.is_file());
    let (Ok(program), Some(module)) = (find("nginx"), module) else {
        return skip("nginx with its stream module, Debian's package libnginx-mod-stream");
    };
    let origin = Origin::start();
    let (_folder, running) = start(&origin, TRUSTING);
    let config = format!(
        "load_module {};\npid nginx.pid;\nerror_log stderr;\nevents {{}}\n\
         stream {{ server {{ listen 127.0.0.1:@FRONT@; proxy_pass 127.0.0.1:@ROBOTSD@; proxy_protocol on; }} }}\n",
        module.display()
    );
    let arguments = ["-p", ".", "-c", "front.conf", "-e", "stderr", "-g", "daemon off;"];
    let (_nginx, _files, front) = in_front(&program, &config, &arguments, running.address);
    assert_clients_are_distinguished(&running, front);
    assert_eq!(problem(&running), Vec::<Value>::new());
}

#[test]
fn curl_sends_a_proxy_header_before_http_2_and_tls() {
    let origin = Origin::start();
    let curl = |scheme: &str, running: &Running, arguments: &[&str]| {
        let mut curl = Command::new("curl");
        curl.args(["-sS", "-k", "--haproxy-protocol", "--interface", "127.0.0.2"]).args(arguments);
        let port = running.address.port();
        curl.args(["--resolve", &format!("a.test:{port}:127.0.0.1")]).arg(format!("{scheme}://a.test:{port}/x"));
        curl.args(["-w", "%{http_version}"]).output().map(Ended::from)
    };
    let (folder, clear) = start(&origin, "trusted_proxies = [\"127.0.0.2/32\"]");
    let secure = format!("trusted_proxies = [\"127.0.0.2/32\"]\n{SECURE}");
    let (_other, secure) = start(&origin, &secure);
    for (scheme, running, arguments, version) in [
        ("http", &clear, &["--http1.1"][..], "1.1"),
        ("http", &clear, &["--http2-prior-knowledge"], "2"),
        ("https", &secure, &["--http1.1"], "1.1"),
        ("https", &secure, &["--http2"], "2"),
    ] {
        let Ok(output) = curl(scheme, running, arguments) else { return skip("curl") };
        let said = output.out.to_lowercase();
        assert!(said.contains("x-forwarded-for: 127.0.0.2\r\n"), "{arguments:?}: {output:?}");
        assert!(said.ends_with(version), "{arguments:?}: {output:?}");
    }
    // Clients that send no PROXY header, or that connect from another address, must get no
    // response.
    for (running, source) in [(&clear, [127, 0, 0, 2]), (&clear, [127, 0, 0, 1]), (&secure, [127, 0, 0, 2])] {
        assert!(ask_from(source, running.address, "/x", FIREFOX).is_none(), "{source:?} was answered");
    }
    let event = clear.wait_for_event("problem", |line| line["reason"] == "untrusted");
    assert_eq!((&event["address"], &event["level"]), (&"127.0.0.1".into(), &"warn".into()));
    clear.wait_for_event("problem", |line| line["reason"] == "proxy-header" && line["address"] == "127.0.0.2");
    let errors = || status(&folder)["traffic"]["connection_errors"].clone();
    let want = json!([{"kind": "untrusted", "count": 1}, {"kind": "proxy-header", "count": 1}]);
    wait_until("the counts", || errors() == want);
}

fn status(folder: &Folder) -> Value {
    folder.configured(["status", "--json", "--config"]).json()
}
