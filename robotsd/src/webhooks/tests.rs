//! Tests of hooks against real servers on the loopback address.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use http::Method;
use http::header::{AUTHORIZATION, HeaderName, HeaderValue};
use parking_lot::Mutex;

use super::attempt::RetryPlan;
use super::*;

const SECRET: &str = "Bearer s3cr3t-t0ken";

/// What a server does with a request.
#[derive(Clone, Copy, Debug)]
enum Answer {
    Status(u16),
    /// Sends this many interim responses, and then 204.
    Interim(usize),
    /// Closes the connection without a response.
    Reset,
    /// Keeps the connection open without a response.
    Silence,
}

/// A server that gives these answers in order, and repeats the last one.
struct Server {
    port: u16,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn new(answers: &'static [Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let requests: Arc<Mutex<Vec<String>>> = Arc::default();
        let seen = Arc::clone(&requests);
        std::thread::spawn(move || {
            for (number, socket) in listener.incoming().enumerate() {
                let Ok(mut socket) = socket else { return };
                let request = request_of(&mut socket);
                seen.lock().push(request);
                match answers.get(number).or(answers.last()) {
                    Some(Answer::Status(status)) => {
                        let head = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\n\r\n");
                        let _ = socket.write_all(head.as_bytes());
                    }
                    Some(Answer::Interim(count)) => {
                        let answer = "HTTP/1.1 103 Early Hints\r\n\r\n".repeat(*count) + "HTTP/1.1 204 x\r\n\r\n";
                        let _ = socket.write_all(answer.as_bytes());
                    }
                    Some(Answer::Silence) => std::mem::forget(socket),
                    Some(Answer::Reset) | None => {}
                }
            }
        });
        Self { port, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().clone()
    }
}

fn request_of(socket: &mut TcpStream) -> String {
    let _ = socket.set_read_timeout(Some(Duration::from_secs(60)));
    let (mut bytes, mut part) = (Vec::new(), [0; 4096]);
    loop {
        let text = String::from_utf8_lossy(&bytes);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or(0) {
                return text.into_owned();
            }
        }
        match socket.read(&mut part) {
            Ok(0) | Err(_) => return text.into_owned(),
            Ok(count) => bytes.extend_from_slice(&part[..count]),
        }
    }
}

fn hook(port: u16, headers: Vec<(HeaderName, HookHeader)>) -> Arc<HookSettings> {
    hook_within(Duration::from_secs(60), port, headers)
}

fn hook_within(timeout: Duration, port: u16, headers: Vec<(HeaderName, HookHeader)>) -> Arc<HookSettings> {
    let hook = test_hook(&format!("http://127.0.0.1:{port}/purge/p4th?zone=1"));
    let body = BodyTemplate::parse("{\"files\": {{urls}}, \"version\": \"{{version}}\"}", None).expect("a body");
    Arc::new(HookSettings { headers, body: Some(body), timeout, ..hook })
}

/// Creates a hook of the operator's own file. It has a URL and no other settings.
pub(super) fn test_hook(url: &str) -> HookSettings {
    HookSettings {
        target: HookTarget::new(url.parse().expect("a URL")).expect("a target"),
        method: Method::POST,
        headers: Vec::new(),
        body: None,
        timeout: DEFAULT_TIMEOUT,
        trust: None,
        on: Vec::new(),
        secret: None,
        scope: Arc::default(),
    }
}

fn version(hash: &str) -> Notice {
    let notice = Notice::new(None, "shop", hash);
    Notice { site: "shop".to_owned(), hosts: vec!["shop.test".to_owned()], ..notice }
}

/// Creates a sender with short delays between attempts. Also returns its reports.
fn hooks(folder: Option<&Path>, attempts: usize) -> (Arc<PublishHooks>, Arc<Mutex<Vec<String>>>) {
    hooks_with(folder, vec![Duration::from_millis(40); attempts - 1])
}

fn hooks_with(folder: Option<&Path>, pauses: Vec<Duration>) -> (Arc<PublishHooks>, Arc<Mutex<Vec<String>>>) {
    let said: Arc<Mutex<Vec<String>>> = Arc::default();
    let (listener, plan) = (Arc::clone(&said), RetryPlan { pauses });
    let hooks = PublishHooks::new("web-1".to_owned(), folder.map(Path::to_owned), plan, None, move |event| {
        listener.lock().push(event.message.clone());
    });
    (hooks, said)
}

fn serve(hooks: &Arc<PublishHooks>, hook: &Arc<HookSettings>) {
    hooks.set([("shop".to_owned(), SiteHooks { hosts: vec!["shop.test".to_owned()], hooks: vec![Arc::clone(hook)] })]);
}

fn state(hooks: &PublishHooks) -> String {
    hooks.status("shop", "shop")[0].report.state.clone()
}

fn until(what: &str, condition: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !condition() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Waits until a reported line contains this text.
fn says(said: &Mutex<Vec<String>>, text: &str) {
    until(text, || said.lock().iter().any(|line| line.contains(text)));
}

#[test]
fn a_version_is_announced_once_with_the_configured_headers_and_body() {
    let folder = tempfile::tempdir().expect("a folder");
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{SECRET}\n")).expect("written");
    let server = Server::new(&[Answer::Status(200)]);
    let hook = hook(server.port, vec![(AUTHORIZATION, HookHeader::File(token.clone()))]);
    let (hooks, said) = hooks(None, 3);
    serve(&hooks, &hook);
    hooks.published(&version("sha256:0123456789abcdef0000"));
    until("delivered", || state(&hooks) == "delivered");
    let requests = server.requests();
    assert_eq!(requests.len(), 1, "{requests:?}");
    let request = &requests[0];
    assert!(request.starts_with("POST /purge/p4th?zone=1 HTTP/1.1\r\n"), "{request}");
    for line in [
        format!("host: 127.0.0.1:{}", server.port),
        format!("authorization: {SECRET}"),
        "content-type: application/json".to_owned(),
    ] {
        assert!(request.contains(&format!("\r\n{line}\r\n")), "{line}: {request}");
    }
    let body = "{\"files\": [\"https://shop.test/robots.txt\"], \"version\": \"sha256:0123456789abcdef0000\"}";
    assert!(request.ends_with(&format!("\r\n\r\n{body}")), "{request}");
    // The file must be read again for the next request. No message shows its content or path.
    std::fs::write(&token, "Bearer other").expect("written");
    hooks.published(&version("sha256:1"));
    until("a second", || server.requests().len() == 2);
    assert!(server.requests()[1].contains("\r\nauthorization: Bearer other\r\n"));
    let shown = format!("{:?} {:?} {hooks:?}", said.lock(), hooks.status("shop", "shop"));
    assert!(!shown.contains("s3cr3t") && !shown.contains("p4th"), "{shown}");
    assert!(shown.contains("version 0123456789abcdef: the receiver answered with status 200"), "{shown}");
}

#[test]
fn at_most_sixteen_interim_responses_are_read() {
    let server = Server::new(&[Answer::Interim(17), Answer::Interim(16)]);
    let (hooks, said) = hooks(None, 3);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    says(&said, "there are too many interim answers (1xx)");
    says(&said, "answered with status 204 at attempt 2");
}

#[test]
fn a_failed_webhook_is_retried_and_finally_given_up() {
    let server = Server::new(&[Answer::Status(500), Answer::Reset, Answer::Status(204)]);
    let (hooks, said) = hooks(None, 5);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    until("delivered", || state(&hooks) == "delivered");
    assert_eq!(server.requests().len(), 3);
    for what in ["the receiver answered 500", "connect", "answered with status 204 at attempt 3"] {
        says(&said, what);
    }

    let server = Server::new(&[Answer::Silence]);
    let (hooks, said) = self::hooks(None, 2);
    serve(&hooks, &hook_within(Duration::from_millis(200), server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    says(&said, "the receiver did not answer within 0.2 s; the next attempt is");
    says(&said, "the receiver did not answer within 0.2 s; robotsd gave up after 2 attempts");

    let server = Server::new(&[Answer::Status(503)]);
    let (hooks, said) = self::hooks(None, 3);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    until("given up", || state(&hooks) == "failed");
    assert_eq!(server.requests().len(), 3);
    says(&said, "robotsd gave up after 3 attempts");

    let server = Server::new(&[Answer::Status(403)]);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.published(&version("sha256:2"));
    until("refused", || state(&hooks) == "failed");
    assert_eq!(server.requests().len(), 1, "403 will be the answer again");
}

#[test]
fn a_newer_version_replaces_one_that_waits_to_be_sent() {
    let server = Server::new(&[Answer::Status(500), Answer::Status(200)]);
    let (hooks, said) = hooks_with(None, vec![Duration::from_secs(60)]);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    until("it waits", || said.lock().len() == 1);
    for number in 2..=9 {
        hooks.published(&version(&format!("sha256:{number}")));
    }
    until("delivered", || {
        state(&hooks) == "delivered" && server.requests().last().is_some_and(|last| last.contains("sha256:9"))
    });
    let requests = server.requests();
    // At least one notice must have been replaced before it was sent. On a busy machine, only one
    // notice may have been replaced, because most notices are sent before the next notice arrives.
    assert!(requests.len() < 9, "{}: those between are left out", requests.len());
}

#[test]
fn a_restart_with_the_same_version_sends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(&[Answer::Status(200)]);
    let hook = hook(server.port, Vec::new());
    let start = |hash: &str| {
        let (hooks, _) = hooks(Some(folder.path()), 2);
        serve(&hooks, &hook);
        hooks.serves(&version(hash));
        hooks
    };
    let first = start("sha256:1");
    until("delivered", || state(&first) == "delivered");
    let again = start("sha256:1");
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((server.requests().len(), state(&again)), (1, "idle".to_owned()));
    let changed = start("sha256:2");
    until("delivered", || state(&changed) == "delivered");
    assert_eq!(server.requests().len(), 2);
    // Every version that goes live must be announced, even if it was announced before.
    changed.serves(&version("sha256:2"));
    changed.published(&version("sha256:1"));
    until("a third", || server.requests().len() == 3);
}

#[test]
fn a_version_whose_last_request_failed_is_announced_again_after_a_restart() {
    let folder = tempfile::tempdir().expect("a folder");
    let server = Server::new(&[Answer::Status(200), Answer::Status(500), Answer::Status(500), Answer::Status(200)]);
    let hook = hook(server.port, Vec::new());
    let start = || {
        let (hooks, said) = hooks(Some(folder.path()), 1);
        serve(&hooks, &hook);
        hooks.serves(&version("sha256:1"));
        until("delivered", || said.lock().len() == 1);
        (hooks, said)
    };
    let (first, said) = start();
    for (number, hash) in [(2, "sha256:2"), (3, "sha256:1")] {
        first.published(&version(hash));
        until("given up", || said.lock().len() == number);
    }
    assert_eq!(state(&first), "failed");
    let (again, _) = start();
    assert_eq!((server.requests().len(), state(&again)), (4, "delivered".to_owned()));
}

#[test]
fn an_event_that_ends_during_its_request_is_reported_when_it_occurs_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("a listener");
    let (hooks, said) = hooks(Some(folder.path()), 1);
    let url = format!("http://{}/", listener.local_addr().expect("an address"));
    let hook = Arc::new(HookSettings { on: vec![NotifyEvent::Waits], ..test_hook(&url) });
    hooks.set([(String::new(), SiteHooks { hosts: Vec::new(), hooks: vec![hook] })]);
    let notice = Notice::new(Some(NotifyEvent::Waits), "shop", "sha256:1");
    for number in 1..=2 {
        hooks.notify(std::slice::from_ref(&notice));
        let socket = Mutex::new(None);
        until("a request", || {
            *socket.lock() = listener.accept().ok();
            socket.lock().is_some()
        });
        let (mut socket, _) = socket.into_inner().expect("a connection");
        request_of(&mut socket);
        hooks.notify(&[]);
        socket.write_all(b"HTTP/1.1 204 x\r\ncontent-length: 0\r\n\r\n").expect("sent");
        until("delivered", || said.lock().len() == number);
    }
}

#[test]
fn webhooks_that_differ_only_in_a_header_are_separate() {
    let server = Server::new(&[Answer::Status(200)]);
    let folder = tempfile::tempdir().expect("a folder");
    let start = || {
        let zone = HeaderName::from_static("x-zone");
        let of_host = |host| hook(server.port, vec![(zone.clone(), HookHeader::Text(HeaderValue::from_static(host)))]);
        let (hooks, _) = hooks(Some(folder.path()), 2);
        let of_site =
            SiteHooks { hosts: vec!["shop.test".to_owned()], hooks: vec![of_host("a.test"), of_host("b.test")] };
        hooks.set([("shop".to_owned(), of_site)]);
        hooks.serves(&version("sha256:1"));
        hooks
    };
    let first = start();
    until("both", || first.status("shop", "shop").iter().all(|hook| hook.report.state == "delivered"));
    let sent = server.requests().join("\n");
    assert!(sent.contains("\r\nx-zone: a.test\r\n") && sent.contains("\r\nx-zone: b.test\r\n"), "{sent}");
    let again = start();
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!((server.requests().len(), again.status("shop", "shop").len()), (2, 2));
}

#[test]
fn new_hosts_are_announced_and_files_of_host_patterns_are_not() {
    let server = Server::new(&[Answer::Status(200)]);
    let (hooks, said) = hooks(None, 2);
    serve(&hooks, &hook(server.port, Vec::new()));
    hooks.serves(&version("sha256:1"));
    until("delivered", || state(&hooks) == "delivered");
    let wider = Notice { hosts: vec!["shop.test".to_owned(), "new.test".to_owned()], ..version("sha256:1") };
    hooks.serves(&wider);
    until("the other host", || {
        server.requests().last().is_some_and(|last| last.contains("https://new.test/robots.txt"))
    });
    hooks.serves(&wider);
    let pattern = Notice { name: "shop/*.shop.test".to_owned(), hosts: Vec::new(), ..version("sha256:1") };
    hooks.published(&pattern);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.requests().len(), 2, "{:?}", said.lock());
    let status = &hooks.status("shop", "shop/*.shop.test")[0].report;
    assert!(status.problem.as_ref().is_some_and(|problem| problem.contains("for a pattern of hosts")), "{status:?}");
}

#[test]
fn a_webhook_that_was_removed_from_the_config_sends_nothing() {
    let server = Server::new(&[Answer::Status(500)]);
    // The delay is at least half of `pause`. The hook is removed from this site late in the delay;
    // another site still has it.
    let pause = Duration::from_secs(1);
    for number in 1.. {
        let begun = Instant::now();
        let before = server.requests().len();
        let (hooks, said) = hooks_with(None, vec![pause, Duration::from_secs(600)]);
        serve(&hooks, &hook(server.port, Vec::new()));
        hooks.published(&version("sha256:1"));
        until("it waits", || said.lock().len() == 1);
        hooks.set([]);
        if begun.elapsed() > pause / 4 {
            assert!(number < 60, "the machine is too busy");
            continue;
        }
        std::thread::sleep(pause + pause / 4);
        assert_eq!(server.requests().len(), before + 1);
        // If the hook is configured again, the notice is sent.
        serve(&hooks, &hook(server.port, Vec::new()));
        hooks.serves(&version("sha256:1"));
        until("it is sent", || server.requests().len() == before + 2);
        break;
    }
}

#[test]
fn a_receiver_that_does_not_respond_delays_no_other_receiver() {
    let (dead, well) = (Server::new(&[Answer::Silence]), Server::new(&[Answer::Status(200)]));
    let (hooks, _) = hooks(None, 1);
    let slow = |number: usize| {
        let slow = hook_within(Duration::from_secs(3600), dead.port, Vec::new());
        (format!("slow{number}"), SiteHooks { hosts: vec!["a.test".to_owned()], hooks: vec![slow] })
    };
    let of_shop = SiteHooks { hosts: vec!["shop.test".to_owned()], hooks: vec![hook(well.port, Vec::new())] };
    hooks.set((0..100).map(slow).chain([("shop".to_owned(), of_shop)]));
    for number in 0..100 {
        let name = format!("slow{number}");
        hooks.published(&Notice { site: name.clone(), name, ..version("sha256:1") });
    }
    hooks.published(&version("sha256:1"));
    until("delivered", || state(&hooks) == "delivered");
}

#[tokio::test]
async fn the_shutdown_waits_only_briefly_for_webhooks_in_progress() {
    let server = Server::new(&[Answer::Silence]);
    let (hooks, _) = hooks(None, 5);
    assert!(hooks.finish().now_or_never().is_some(), "nothing is under way");
    serve(&hooks, &hook_within(Duration::from_secs(3600), server.port, Vec::new()));
    hooks.published(&version("sha256:1"));
    until("it is sent", || server.requests().len() == 1);
    // The clock of the sender is paused, so that time is simulated.
    tokio::time::pause();
    hooks.finish().await;
    assert_eq!(state(&hooks), "sending");
}

#[test]
fn an_unreadable_secret_fails_with_a_message_that_contains_its_path() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str, text: &str| {
        std::fs::write(folder.path().join(name), text).expect("written");
        folder.path().join(name)
    };
    let server = Server::new(&[Answer::Status(200)]);
    for (path, why) in [
        (folder.path().join("gone"), "No such file"),
        (folder.path().to_owned(), "not a regular file"),
        (file("lines", "one-s3cr3t\ntwo"), "more than one line"),
        (file("empty", "\u{feff} \n"), "the file is empty"),
        (file("long", &"s3cr3t".repeat(2_000)), "longer than 8192 bytes"),
        (file("nul", "s3cr3t\0"), "a control character"),
    ] {
        let (hooks, said) = hooks(None, 1);
        serve(&hooks, &hook(server.port, vec![(AUTHORIZATION, HookHeader::File(path.clone()))]));
        hooks.published(&version("sha256:1"));
        until("given up", || state(&hooks) == "failed" && !said.lock().is_empty());
        let said = said.lock().join("\n");
        assert!(said.contains("the header authorization cannot be sent") && said.contains(why), "{said}");
        assert!(said.contains(&path.display().to_string()) && !said.contains("s3cr3t"), "{said}");
    }
    assert!(server.requests().is_empty());
}
