//! Trailers on HTTP/1.1, in both directions.

use super::*;

const ANSWER: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum, Content-Length, X-Absent\r\n\r\n\
                      2\r\nok\r\n0\r\nX-Sum: 7\r\nX-Other: 8\r\nContent-Length: 9\r\n\r\n";

/// The head, and the octets from the last chunk on.
async fn ask(client: &mut Raw, fields: &str) -> (String, String) {
    client.send(format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n")).await;
    let head = client.until(b"\r\n\r\n").await;
    client.until(b"ok\r\n").await;
    (head, client.until(b"\r\n\r\n").await)
}

#[tokio::test]
async fn a_client_that_takes_trailers_gets_those_that_were_announced() {
    let origin = Origin::start(|_, mut peer| async move {
        while peer.asked().await.is_some() {
            peer.try_send(ANSWER).await;
        }
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    for te in ["", "TE: deflate\r\n"] {
        let (head, end) = ask(&mut client, te).await;
        assert_eq!(end, "0\r\n\r\n", "{te}");
        assert!(!head.contains("trailer:"), "{head}");
    }
    for te in ["TE: trailers\r\n", "Connection: TE\r\nTE: deflate, Trailers\r\n"] {
        let (head, end) = ask(&mut client, te).await;
        assert_eq!(end, "0\r\nx-sum: 7\r\n\r\n", "{te}");
        assert!(head.contains("\r\ntrailer: x-sum, x-absent\r\n"), "{head}");
    }
    // The connection goes on.
    assert_eq!(ask(&mut client, "").await.1, "0\r\n\r\n");
}

#[tokio::test]
async fn a_body_whose_length_is_known_has_no_trailers() {
    let origin = Origin::saying("HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTrailer: X-Sum\r\n\r\nok");
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    let response = client.ask("GET / HTTP/1.1\r\nHost: h\r\nTE: trailers\r\n\r\n").await;
    assert_eq!(response.body, "ok");
    assert!(!response.head.contains("trailer:"), "{}", response.head);
}

#[tokio::test]
async fn an_upstream_gets_the_trailers_of_a_request_that_were_announced() {
    let (sender, mut requests) = reporting();
    let origin = Origin::start(move |_, mut peer| async move {
        loop {
            let head = peer.until(b"\r\n\r\n").await;
            peer.until(b"ab\r\n").await;
            sender.send((head, peer.until(b"\r\n\r\n").await)).unwrap();
            peer.send(OK).await;
        }
    });
    let mut client = Raw::connect(proxy(origin.upstream())).await;
    let section = "X-Sum: 1\r\nx-real-ip: 10.0.0.1\r\nRobots-Verdict: a\r\nX-Other: 2\r\nHost: other\r\n";
    for (announced, head_says, end_says) in [
        ("Trailer: X-Sum, x-real-ip, robots-verdict, host\r\n", "\r\ntrailer: x-sum\r\n", "0\r\nx-sum: 1\r\n\r\n"),
        ("Trailer: X-Absent\r\n", "\r\ntrailer: x-absent\r\n", "0\r\n\r\n"),
        ("Trailer: host\r\n", "", "0\r\n\r\n"),
        ("", "", "0\r\n\r\n"),
    ] {
        let request = format!(
            "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n{announced}\r\n2\r\nab\r\n0\r\n{section}\r\n"
        );
        assert_eq!(client.ask(&request).await.status(), 200);
        let (head, end) = requests.recv().await.unwrap();
        assert!(head.contains(head_says) && head.contains("trailer:") != head_says.is_empty(), "{head}");
        assert_eq!(end, end_says, "{announced}");
    }
}
