//! A running proxy whose robots.txt changes, and that is stopped.

use std::fs;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::harness::{
    FIREFOX, GPTBOT, LISTENER, StopAtEnd, folder, message, replace_file, serving, wait_for, wait_until,
};

/// Versions here have nothing in common, which no gate would pass.
const CONFIG: &str = "mode = \"refuse\"\ngate.mode = \"off\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[site]]\nname = \"a\"\nroot = \".\"\n";

fn version(name: &str) -> String {
    let rules: String = (0..300).map(|number| format!("Disallow: /{name}/{number}/\n")).collect();
    format!("# version {name}\nUser-agent: GPTBot\n{rules}# end {name}\n")
}

#[test]
fn edits_of_every_kind_fail_no_request_and_no_half_file_goes_live() {
    let folder = folder(&[("robotsd.toml", CONFIG), ("robots.txt", &version("v0")), ("page.html", "hello")]);
    let path = folder.at("robots.txt");
    let running = folder.start();
    let stop = AtomicBool::new(false);
    let asked = AtomicUsize::new(0);
    let serves = |name: &str| (running.get("/robots.txt", FIREFOX).body == version(name)).then_some(());
    std::thread::scope(|scope| {
        let stopping = StopAtEnd(&stop);
        let mut askers = Vec::new();
        for _ in 0..2 {
            askers.push(scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let answer = running.get("/robots.txt", GPTBOT);
                    assert_eq!(answer.status, 200);
                    let name = answer.body.lines().next().unwrap().trim_start_matches("# version ");
                    assert_eq!(answer.body, version(name), "half a file is live");
                    assert_eq!(running.get("/page.html", FIREFOX).status, 200);
                    // Disallowed by one version and no file under another: anything else is a failure of ours.
                    let status = running.get("/v1/7/x", GPTBOT).status;
                    assert!(matches!(status, 403 | 404), "{status}");
                    asked.fetch_add(3, Ordering::Relaxed);
                }
            }));
        }
        // Edited in place.
        fs::write(&path, version("v1")).unwrap();
        wait_for("v1", || serves("v1"));
        assert_eq!(running.get("/v1/7/x", GPTBOT).status, 403);
        // Renamed over.
        replace_file(&path, version("v2"));
        wait_for("v2", || serves("v2"));
        assert_eq!(running.get("/v1/7/x", GPTBOT).status, 404);
        // Half-written, with a pause, then finished.
        let mut file = fs::File::create(&path).unwrap();
        let text = version("v3");
        std::io::Write::write_all(&mut file, &text.as_bytes()[..text.len() / 2]).unwrap();
        let before = asked.load(Ordering::Relaxed);
        wait_until("requests meanwhile", || asked.load(Ordering::Relaxed) > before + 30);
        std::io::Write::write_all(&mut file, &text.as_bytes()[text.len() / 2..]).unwrap();
        drop(file);
        wait_for("v3", || serves("v3"));
        // Truncated, deleted: the last good one stays and the log says why.
        fs::File::create(&path).unwrap();
        let rejected = running.event("rejected");
        assert!(message(&rejected).contains("the file is empty"), "{rejected}");
        fs::remove_file(&path).unwrap();
        running.wait_for_message("rejected", "there is no such file");
        serves("v3").unwrap();
        // And back.
        replace_file(&path, version("v4"));
        wait_for("v4", || serves("v4"));
        drop(stopping);
        askers.into_iter().for_each(|asker| asker.join().unwrap());
    });
    assert!(asked.load(Ordering::Relaxed) > 100, "{asked:?}");
}

#[cfg(unix)]
#[test]
fn a_hangup_reads_the_file_again() {
    let (_folder, running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", &version("v0"))]);
    running.signal("HUP");
    running.wait_for_event("unchanged", |line| line["reason"] == "request");
}

#[cfg(unix)]
#[test]
fn a_termination_finishes_what_is_under_way_and_ends() {
    use std::io::{Read, Write};
    let (_folder, mut running) = serving(&[("robotsd.toml", CONFIG), ("robots.txt", &version("v0"))]);
    // A request that has begun.
    let mut stream = std::net::TcpStream::connect(running.address).unwrap();
    stream.write_all(b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n").unwrap();
    // An idle connection.
    let mut idle = std::net::TcpStream::connect(running.address).unwrap();
    idle.write_all(b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut first = [0; 15];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    running.signal("TERM");
    running.event("stopping");
    stream.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# end v0\n"), "{answer}");
    let status = running.wait_for_end();
    assert!(status.success(), "{status}");
}

#[cfg(unix)]
#[test]
fn a_second_termination_waits_for_no_connection() {
    use std::io::Write;
    // An upstream that takes requests and answers none.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let config = format!(
        "workers = 2\n{LISTENER}[[site]]\nname = \"a\"\nupstreams = [\"http://{}\"]\nrobots.text = \"# open\"\n\
         [limits]\nresponse = \"1h\"\ndrain = \"1h\"\n",
        silent.local_addr().unwrap()
    );
    let (_folder, mut running) = serving(&[("robotsd.toml", &config)]);
    let mut stream = std::net::TcpStream::connect(running.address).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let _taken = silent.accept().unwrap();
    running.signal("TERM");
    running.event("stopping");
    running.end();
    assert!(running.has_event("stopped", |line| message(line).starts_with("a second signal")));
}
