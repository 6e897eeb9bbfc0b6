//! Changes the robots.txt of a running proxy in several ways, and then stops the proxy.

use crate::harness::*;

/// Creates a config without a gate, because the versions of this test have nothing in common.
fn config() -> Config {
    let config = Config::refusing().keys("gate.enabled = false").files_of("a");
    config.robots(version("v0")).file("page.html", "hello")
}

fn half_of(text: &str) -> &str {
    &text[..text.len() / 2]
}

fn version(name: &str) -> String {
    let rules: String = (0..300).map(|number| format!("Disallow: /{name}/{number}/\n")).collect();
    format!("# version {name}\nUser-agent: GPTBot\n{rules}# end {name}\n")
}

#[test]
fn edits_of_a_live_file_fail_no_request_and_no_half_written_file_goes_live() {
    let (folder, running) = config().start();
    let path = folder.at("robots.txt");
    let serves = |name: &str| (running.get("/robots.txt", FIREFOX).body == version(name)).then_some(());
    // A file counts as complete if it has not changed for the time `QUIET` of `source/file.rs`. On
    // a busy machine, a writer may be delayed for that long.
    let (half, halves) = (half_of(&version("v3")).to_owned(), AtomicUsize::new(0));
    let client = || -> Client<'_> {
        Box::new(|| {
            let answer = running.get("/robots.txt", GPTBOT);
            assert_eq!(answer.status, 200);
            let name = answer.body.lines().next().unwrap().trim_start_matches("# version ");
            if answer.body == half {
                halves.fetch_add(1, Ordering::Relaxed);
            } else {
                assert_eq!(answer.body, version(name), "half a file is live");
            }
            assert_eq!(running.get("/page.html", FIREFOX).status, 200);
            // One version disallows the path. The other version allows it, but there is no such
            // file. Every other status is an error.
            let status = running.get("/v1/7/x", GPTBOT).status;
            assert!(matches!(status, 403 | 404), "{status}");
        })
    };
    while_asking([client(), client()], |asking| {
        // The file is edited in place.
        fs::write(&path, version("v1")).unwrap();
        wait_for("v1", || serves("v1"));
        assert_eq!(running.get("/v1/7/x", GPTBOT).status, 403);
        // The file is replaced by a rename.
        replace_file(&path, version("v2"));
        wait_for("v2", || serves("v2"));
        assert_eq!(running.get("/v1/7/x", GPTBOT).status, 404);
        // The second half is written after a pause.
        let mut file = fs::File::create(&path).unwrap();
        let (text, began) = (version("v3"), Instant::now());
        file.write_all(half.as_bytes()).unwrap();
        asking.wait_for_more(10);
        file.write_all(&text.as_bytes()[half.len()..]).unwrap();
        drop(file);
        let pause = began.elapsed();
        wait_for("v3", || serves("v3"));
        let halves = halves.load(Ordering::Relaxed);
        assert!(
            halves == 0 || pause > Duration::from_millis(300),
            "half a file is live: {halves} times, after {pause:?}"
        );
        // The file is truncated or deleted. The last good version stays live, and the log contains
        // the reason.
        fs::File::create(&path).unwrap();
        running.wait_for_message("rejected", "the file is empty");
        fs::remove_file(&path).unwrap();
        running.wait_for_message("rejected", "the file does not exist");
        serves("v3").unwrap();
        replace_file(&path, version("v4"));
        wait_for("v4", || serves("v4"));
        asking.wait_for_more(10);
    });
}

#[test]
fn a_sighup_reloads_the_file() {
    let (_folder, running) = config().start();
    running.signal("HUP");
    running.wait_for_event("unchanged", |line| line["reason"] == "request");
}

#[test]
fn a_sigterm_finishes_requests_in_progress_and_then_ends_the_process() {
    let limits = "[limits]\ngreeting = \"5m\"\nheader_read = \"5m\"\ndrain = \"5m\"";
    let (_folder, mut running) = config().tables(limits).start();
    // Only a part of this request is sent.
    let mut stream = sent(running.address, b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n");
    let mut idle = sent(running.address, b"GET /robots.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut first = [0; 15];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200 OK");
    running.signal("TERM");
    running.event("stopping");
    stream.write_all(b"\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.ends_with("# end v0\n"), "{answer}");
    // robotsd closes both connections. The clients must also close them, because robotsd waits for
    // that.
    assert!(rest(idle).ends_with(b"# end v0\n"));
    drop(stream);
    let status = running.wait_for_end();
    assert!(status.success(), "{status}");
}

#[test]
fn a_second_sigterm_ends_the_process_without_waiting_for_connections() {
    // This upstream accepts requests, but never responds.
    let silent = Origin::answering(|_| Vec::new());
    let config = Config::new().keys("workers = 2").upstream("a", &silent);
    let config = config.tables("[limits]\nresponse = \"1h\"\ndrain = \"1h\"").robots("# open");
    let (_folder, mut running) = config.start();
    let _stream = sent(running.address, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_until("the request", || !silent.requests().is_empty());
    running.signal("TERM");
    running.event("stopping");
    running.end();
    assert!(running.has_event("stopped", |line| message(line).starts_with("a second signal")));
}
