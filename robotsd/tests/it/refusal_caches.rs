//! Tests, with a real nginx and a real Varnish, that no cache in front of robotsd sends a browser
//! the response to a refused crawler.
//!
//! If a server is missing, its test is skipped with a message; in CI it fails.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Mutex;

use super::daemon::{Daemon, find, free_ports};
use super::programs::present;
use crate::harness::*;

const CCBOT: &str = "CCBot/2.0 (https://commoncrawl.org/faq/)";
const OPEN: &str = "Mozilla/5.0 (compatible; OpenBot/1.0; +https://open.test/bot)";

const ROBOTS: &str = "User-agent: GPTBot\nUser-agent: CCBot\nDisallow: /\n\nUser-agent: *\nAllow: /\n";

/// nginx would store any response that does not forbid it.
const NGINX: &str = "
events {}
http {
    access_log off;
    proxy_cache_path cache keys_zone=pages:1m;
    server {
        listen 127.0.0.1:FRONT;
        location / {
            proxy_pass http://ROBOTSD;
            proxy_http_version 1.1;
            proxy_set_header Host $host;
            proxy_cache pages;
            proxy_cache_lock on;
            proxy_cache_valid any 10m;
            add_header X-Cache $upstream_cache_status always;
        }
    }
}
";

/// Number of requests through each cache, over all threads.
const REQUESTS: usize = 1000;
const THREADS: usize = 4;

/// Number of paths. There are so few paths that all agents request most of them.
const PATHS: usize = 120;

/// Starts a proxy with a case for each status, and one with a server that asks caches to keep its
/// response.
fn start() -> (Folder, Running, [Origin; 2]) {
    let keep = ["Cache-Control: public, max-age=600", "Surrogate-Control: max-age=600", "X-Accel-Expires: 600"];
    let site = Origin::answering(move |asked| response("200 OK", &keep, format!("page {}", asked.target)));
    let tarpit = Origin::answering(move |_| response("200 OK", &keep, "a tarpit"));
    let statuses = [401, 402, 403, 404, 410, 451].map(|status| {
        let fields = "fields = { WWW-Authenticate = \"License\" }";
        format!("[[site.refusal.case]]\npaths = [\"/*/{status}$\"]\nstatus = {status}\n{fields}\n")
    });
    let cases = format!("{}[[site.refusal.case]]\nupstream = \"http://{tarpit}\"", statuses.concat());
    let config = Config::refusing().upstream("shop", &site).tables(cases).robots(ROBOTS);
    let (folder, running) = config.start();
    (folder, running, [site, tarpit])
}

/// Sends all requests through the cache. Returns the number of refusals with each status.
fn ask_everything(cache: SocketAddr) -> BTreeMap<u16, usize> {
    const KINDS: [&str; 7] = ["401", "402", "403", "404", "410", "451", "tarpit"];
    let refusals = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let refusals = &refusals;
            scope.spawn(move || {
                let mut seed = thread as u64 + 1;
                for _ in 0..REQUESTS / THREADS {
                    seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                    let number = (seed >> 33) as usize;
                    let path = format!("/{}/{}", number % PATHS, KINDS[number % PATHS % KINDS.len()]);
                    let agent = [GPTBOT, CCBOT, FIREFOX, OPEN][number / PATHS % 4];
                    let request = format!(
                        "GET {path} HTTP/1.1\r\nHost: site.test\r\nUser-Agent: {agent}\r\nConnection: close\r\n\r\n"
                    );
                    let answer = exchange(cache, request);
                    let page = format!("page {path}");
                    if agent == FIREFOX || agent == OPEN {
                        answer.comes_with(200, &page);
                    } else if answer.body != page {
                        assert_eq!(answer.field("cache-control"), Some("no-store"), "{answer:?}");
                        *refusals.lock().unwrap().entry(answer.status).or_default() += 1;
                    }
                }
            });
        }
    });
    refusals.into_inner().unwrap()
}

/// Sends the requests through a cache. `command` starts it: it listens on the first address, and
/// forwards requests to the second.
fn no_browser_gets_a_refusal(command: impl Fn(SocketAddr, SocketAddr, &Folder) -> Command) {
    let (_robotsd, running, _origins) = start();
    let folder = folder(&[]);
    let front = SocketAddr::from(([127, 0, 0, 1], free_ports(1)[0]));
    let mut cache = Daemon::logging(&mut command(front, running.address, &folder), &folder);
    let is_up = || TcpStream::connect(front).is_ok();
    assert!(cache.comes_to(is_up), "{}", folder.read("log"));
    let refusals = ask_everything(front);
    let statuses: Vec<_> = refusals.keys().copied().collect();
    assert_eq!(statuses, [200, 401, 402, 403, 404, 410, 451], "{refusals:?}");
}

#[test]
fn nginx_as_a_cache_sends_no_refusal_to_a_browser() {
    let Some(nginx) = present(find("nginx")) else { return };
    no_browser_gets_a_refusal(|front, robotsd, folder| {
        let config = NGINX.replace("FRONT", &front.port().to_string()).replace("ROBOTSD", &robotsd.to_string());
        folder.write("nginx.conf", config);
        let mut command = Command::new(&nginx);
        command.args(["-p", ".", "-c", "nginx.conf", "-e", "stderr", "-g", "daemon off; pid nginx.pid;"]);
        command
    });
}

#[test]
fn varnish_as_a_cache_sends_no_refusal_to_a_browser() {
    let Some(varnish) = present(find("varnishd")) else { return };
    no_browser_gets_a_refusal(|front, robotsd, folder| {
        let mut command = Command::new(&varnish);
        command.args(["-F", "-j", "none", "-s", "malloc,16m", "-n"]).arg(folder.at("work"));
        command.args(["-a", &front.to_string(), "-b", &robotsd.to_string()]);
        command
    });
}
