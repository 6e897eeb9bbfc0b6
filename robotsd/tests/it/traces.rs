//! Tests the trace context. Its fields must be forwarded, and its ID must be in both logs.

use crate::harness::*;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const TRACEPARENT: &[u8] = b"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
/// Bytes that a client may send. Some of them are not allowed by the standard.
const TRACESTATE: &[u8] = b"rojo=00f067aa0ba902b7,  congo=t61rcWkgMzE ;\t\"\xff\xfe\"";

fn start(origin: &Origin) -> (Folder, Running) {
    let config = Config::refusing().log_requests().upstream("shop", origin);
    config.robots("User-agent: GPTBot\nDisallow: /private/").start()
}

/// Returns a request with both fields. It has the field `tracestate` twice.
fn request(head: &str, body: &[u8]) -> Vec<u8> {
    let fields: [&[u8]; 4] = [b"traceparent: ", TRACEPARENT, b"\r\nTraceState: ", TRACESTATE];
    [head.as_bytes(), &fields.concat(), b"\r\ntracestate: second=1\r\n\r\n", body].concat()
}

/// Sends a request. Returns the response up to the origin's copy of the head of the request.
fn sent(running: &Running, request: &[u8]) -> Vec<u8> {
    let mut stream = crate::harness::sent(running.address, request);
    let mut answer = Vec::new();
    let mut bytes = [0; 4096];
    while !contains(&answer, b"second=1") {
        let length = stream.read(&mut bytes).unwrap();
        assert!(length > 0, "{}", String::from_utf8_lossy(&answer));
        answer.extend_from_slice(&bytes[..length]);
    }
    answer
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}

#[test]
fn trace_context_fields_are_forwarded_byte_for_byte_on_every_code_path() {
    let (_folder, running) = start(&Origin::start());
    for (path, request) in [
        ("the fast path", request("GET /a HTTP/1.1\r\nHost: h\r\n", b"")),
        (
            "hyper, for a request that ends the connection",
            request("GET /b HTTP/1.1\r\nHost: h\r\nConnection: close\r\n", b""),
        ),
        ("hyper, for an older version", request("GET /c HTTP/1.0\r\nHost: h\r\n", b"")),
        ("hyper, for a body", request("POST /d HTTP/1.1\r\nHost: h\r\nContent-Length: 2\r\n", b"{}")),
        (
            "a head in pieces",
            request("GET /e HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 0\r\n", b""),
        ),
    ] {
        let answer = sent(&running, &request);
        for field in
            [&[b"traceparent: ", TRACEPARENT, b"\r\n"].concat(), &[b"tracestate: ", TRACESTATE, b"\r\n"].concat()]
        {
            assert!(contains(&answer, field), "{path}: {}", String::from_utf8_lossy(&answer));
        }
    }
    // The requests use one connection, so that earlier requests have used both fast paths.
    let answer = sent(
        &running,
        &[request("GET /f HTTP/1.1\r\nHost: h\r\n", b""), request("GET /g HTTP/1.1\r\nHost: h\r\n", b"")].concat(),
    );
    assert!(contains(&answer, TRACESTATE), "{}", String::from_utf8_lossy(&answer));
}

#[test]
fn trace_context_fields_are_forwarded_over_http_2() {
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    let traceparent = std::str::from_utf8(TRACEPARENT).unwrap();
    let state = "rojo=00f067aa0ba902b7,  congo=t61rcWkgMzE";
    let url = format!("http://{}/h2", running.address);
    let output = Command::new("curl")
        .args(["-sS", "--http2-prior-knowledge", "-H", &format!("traceparent: {traceparent}")])
        .args(["-H", &format!("tracestate: {state}"), &url])
        .output();
    let Ok(output) = output.map(Ended::from) else { return super::programs::skip("curl") };
    let said = &output.out;
    assert!(said.contains(&format!("traceparent: {traceparent}\r\n")), "{output:?}");
    assert!(said.contains(&format!("tracestate: {state}\r\n")), "{output:?}");
    wait_for("the line of the request", || {
        running.has_event("request", |line| line["protocol"] == "HTTP/2.0" && line["trace_id"] == TRACE).then_some(())
    });
}

#[test]
fn both_logs_contain_a_valid_trace_id_and_omit_an_invalid_one() {
    let origin = Origin::start();
    let (_folder, running) = start(&origin);
    let ask = |path: &str, parent: &str| {
        running.request("GET", path, &[("User-Agent", GPTBOT), ("traceparent", parent)]).status
    };
    assert_eq!(ask("/private/traced", std::str::from_utf8(TRACEPARENT).unwrap()), 403);
    assert_eq!(ask("/private/zero", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"), 403);
    assert_eq!(ask("/private/long", &"a".repeat(55)), 403);
    for event in ["refused", "request"] {
        running.wait_for_event(event, |line| line["path"] == "/private/traced" && line["trace_id"] == TRACE);
        for path in ["/private/zero", "/private/long"] {
            let line = running.wait_for_event(event, |line| line["path"] == path);
            assert!(line.get("trace_id").is_none(), "{line}");
        }
    }
}
