//! A table of lines as servers write them.

use super::*;

const CURL: &str =
    r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.1" 200 2326 "https://example.com/x" "GPTBot/1.2""#;

fn shown(format: ReplayLogFormat, line: &str) -> Option<[String; 6]> {
    let entry = format.read(line.as_bytes())?;
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    Some([
        text(entry.host.as_deref().unwrap_or_default()),
        text(&entry.address),
        text(&entry.method),
        text(&entry.target),
        text(&entry.referer),
        text(&entry.agent),
    ])
}

#[test]
fn lines_of_every_server_are_read() {
    use ReplayLogFormat::{Combined, Common, Json, VhostCombined};
    for (format, line, want) in [
        (Combined, CURL.to_owned(), ["", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
        (VhostCombined, format!("example.com:443 {CURL}"), ["example.com", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
        (
            Common,
            r#"::1 - John Doe [10/Oct/2000:13:55:36 -0700] "HEAD / HTTP/1.0" 200 -"#.to_owned(),
            ["", "::1", "HEAD", "/", "", ""],
        ),
        (
            Combined,
            r#"h - - [x] "GET /a b HTTP/1.1" 200 1 "-" "say \"hi\" \x22\xff""#.to_owned(),
            ["", "h", "GET", "/a b", "", "say \"hi\" \"\u{fffd}"],
        ),
        (
            Json,
            r#"{"time_iso8601":"2024-02-29T22:59:59+00:00","remote_addr":"192.0.2.7","request":"GET /a HTTP/1.1","status":200,"http_user_agent":"GPTBot/1.2","http_referer":"-","host":"example.com"}"#.to_owned(),
            ["example.com", "192.0.2.7", "GET", "/a", "", "GPTBot/1.2"],
        ),
        (
            Json,
            r#"{"level":"info","ts":1709247599.5,"logger":"http.log.access","msg":"handled request","request":{"remote_ip":"192.0.2.7","remote_port":"1","client_ip":"192.0.2.8","proto":"HTTP/2.0","method":"GET","host":"example.com:8443","uri":"/a","headers":{"User-Agent":["GPTBot/1.2"],"Accept":["*/*"]}},"status":200}"#.to_owned(),
            ["example.com", "192.0.2.8", "GET", "/a", "", "GPTBot/1.2"],
        ),
        (
            Json,
            r#"{"ClientAddr":"192.0.2.7:1","ClientHost":"192.0.2.7","DownstreamStatus":200,"RequestHost":"example.com","RequestMethod":"GET","RequestPath":"/a","StartUTC":"2024-02-29T22:59:59.1Z","request_User-Agent":"GPTBot/1.2","time":"2024-02-29T22:59:59Z"}"#.to_owned(),
            ["example.com", "192.0.2.7", "GET", "/a", "", "GPTBot/1.2"],
        ),
        (
            Json,
            r#"{"start_time":"2024-02-29T22:59:59.123Z","method":"GET","path":"/a","authority":"example.com","user_agent":"GPTBot/1.2","downstream_remote_address":"192.0.2.7:1234","response_code":200,"protocol":"HTTP/1.1"}"#.to_owned(),
            ["example.com", "192.0.2.7", "GET", "/a", "", "GPTBot/1.2"],
        ),
    ] {
        assert_eq!(shown(format, &line), Some(want.map(str::to_owned)), "{line}");
        assert_eq!(ReplayLogFormat::Auto.detect(format!("\n{line}\n").as_bytes()), format, "{line}");
    }
    assert_eq!(Combined.read(CURL.as_bytes()).and_then(|entry| entry.time), Some(971_211_336));
}

#[test]
fn what_is_no_request_is_not_read() {
    for line in [
        "",
        "junk",
        "h - - [x] \"\" 400 0 \"-\" \"-\"",
        "h - - [x] \"\\x16\\x03\\x01\" 400 0 \"-\" \"-\"",
        "{}",
        "{\"method\":\"GET\"",
        "[1]",
    ] {
        for format in
            [ReplayLogFormat::Combined, ReplayLogFormat::Common, ReplayLogFormat::VhostCombined, ReplayLogFormat::Json]
        {
            assert_eq!(shown(format, line), None, "{line} {format:?}");
        }
    }
}

#[test]
fn the_format_is_told_by_most_lines() {
    let mixed = format!("junk\n{CURL}\n{{}}\n{CURL}\n");
    assert_eq!(ReplayLogFormat::Auto.detect(mixed.as_bytes()), ReplayLogFormat::Combined);
    assert_eq!(ReplayLogFormat::Json.detect(mixed.as_bytes()), ReplayLogFormat::Json);
}

#[test]
fn the_host_of_a_line_is_split_from_its_port_only() {
    for (host, name) in [
        ("a.test:8080", "a.test"),
        ("a.test", "a.test"),
        ("[::1]:443", "[::1]"),
        ("2001:db8::1", "2001:db8::1"),
        ("a.test:", "a.test:"),
    ] {
        assert_eq!(clf::without_port(host.as_bytes()), name.as_bytes(), "{host}");
    }
}
