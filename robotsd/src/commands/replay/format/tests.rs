//! A table of lines as servers write them.

use super::clf::any_time;
use super::*;

const CURL: &str =
    r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.1" 200 2326 "https://example.com/x" "GPTBot/1.2""#;

fn shown(format: ReplayLogFormat, line: &str) -> Option<[String; 6]> {
    format.read(line.as_bytes()).map(|entry| texts(&entry))
}

fn texts(entry: &LoggedRequest<'_>) -> [String; 6] {
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    [
        text(entry.host.as_deref().unwrap_or_default()),
        text(&entry.address),
        text(&entry.method),
        text(&entry.target),
        text(&entry.referer),
        text(&entry.agent),
    ]
}

#[test]
fn the_status_is_read_where_a_line_has_one() {
    use ReplayLogFormat::{Alb, Combined, Common, Json};
    let alb = "https 2018-07-02T22:23:00.186641Z app/a/5 192.0.2.7:2817 10.0.0.1:80 0.1 0.2 0.3 403 200 34 366 \"GET https://a.test:443/ HTTP/1.1\" \"XBot\"";
    for (format, line, want) in [
        (Combined, CURL, Some(200)),
        (Common, "::1 - - [x] \"GET / HTTP/1.0\" 304 -", Some(304)),
        (Common, "::1 - - [x] \"GET / HTTP/1.0\"", None),
        (Common, "::1 - - [x] \"GET / HTTP/1.0\" - 7", None),
        (Json, r#"{"method":"GET","path":"/a","response_code":429}"#, Some(429)),
        (Json, r#"{"method":"GET","path":"/a","status":"403"}"#, Some(403)),
        (Json, r#"{"method":"GET","path":"/a"}"#, None),
        (Alb, alb, Some(403)),
    ] {
        assert_eq!(format.read(line.as_bytes()).expect(line).status, want, "{line}");
    }
    let columns = W3cColumns::parse(b"#Fields: cs-method cs-uri-stem sc-status").expect("columns");
    assert_eq!(columns.read(b"GET / 404").expect("a request").status, Some(404));
}

#[test]
fn lines_of_every_server_are_read() {
    use ReplayLogFormat::{Combined, Common, Json, VhostCombined};
    for (format, line, want) in [
        (Combined, CURL.to_owned(), ["", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
        (VhostCombined, format!("example.com:443 {CURL}"), ["example.com:443", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
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
            ["example.com:8443", "192.0.2.8", "GET", "/a", "", "GPTBot/1.2"],
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

const ALB: &str = r#"https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://example.com:443/a?b=c HTTP/1.1" "GPTBot/1.2 (a \"b\")" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281-1d84f3d73c47ec4e58577259" "example.com" "arn:aws:acm:x" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;

#[test]
fn lines_of_a_load_balancer_are_read() {
    let want = ["example.com:443", "192.0.2.7", "GET", "/a?b=c", "", "GPTBot/1.2 (a \"b\")"];
    assert_eq!(shown(ReplayLogFormat::Alb, ALB), Some(want.map(str::to_owned)));
    assert_eq!(ReplayLogFormat::Auto.detect(ALB.as_bytes()), ReplayLogFormat::Alb);
    assert_eq!(ReplayLogFormat::Alb.read(ALB.as_bytes()).and_then(|entry| entry.time), Some(1_530_570_180));
    // The root without a path, an address in brackets, and text of a client that is no request.
    let line =
        ALB.replace("https://example.com:443/a?b=c", "https://[2001:db8::1]:443").replace("192.0.2.7:", "2001:db8::2:");
    assert_eq!(
        shown(ReplayLogFormat::Alb, &line).map(|shown| [shown[0].clone(), shown[1].clone(), shown[3].clone()]),
        Some(["[2001:db8::1]:443".to_owned(), "2001:db8::2".to_owned(), "/".to_owned()])
    );
    for line in [
        ALB.replace("GET https://example.com:443/a?b=c HTTP/1.1", "- http://example.com:80- -"),
        "https x app/".to_owned(),
    ] {
        assert_eq!(shown(ReplayLogFormat::Alb, &line), None, "{line}");
    }
}

/// The requests of a chunk, and how many lines were directives and unread.
fn of_chunk(chunk: &str) -> (Vec<[String; 6]>, usize, usize) {
    let mut reader = ChunkReader::new(ReplayLogFormat::Auto, chunk.as_bytes());
    let (mut requests, mut directives, mut unread) = (Vec::new(), 0, 0);
    for line in chunk.lines() {
        match reader.read(line.as_bytes()) {
            LogLine::Request(entry) => {
                let [host, address, method, target, referer, agent] = texts(&entry);
                let agent = format!("{agent} {}", entry.time.unwrap_or_default());
                requests.push([host, address, method, target, referer, agent]);
            }
            LogLine::Directive => directives += 1,
            LogLine::Event | LogLine::Unread => unread += 1,
        }
    }
    (requests, directives, unread)
}

#[test]
fn logs_of_iis_are_read_by_their_columns() {
    let (requests, directives, unread) = of_chunk(
        "#Software: Microsoft Internet Information Services 10.0\n#Version: 1.0\n#Date: 2024-02-29 22:59:59\n\
         #Fields: date time s-ip cs-method cs-uri-stem cs-uri-query s-port cs-username c-ip cs(User-Agent) cs(Referer) sc-status\n\
         2024-02-29 22:59:59 10.0.0.1 GET /a b=c 443 - 192.0.2.7 Mozilla/5.0+(compatible;+NewBot/2.1;++http://www.example.com/bot.html) https://example.com/x 200\n\
         2024-02-29 22:59:59 10.0.0.1 GET /b - 443 - 192.0.2.7 AcmeBot/1+(+https://acme.test/bot) - 200\n\
         cut off\n\
         #Fields: cs-method cs-uri-stem cs-host\nGET /c shop.test:443\n",
    );
    let agent = "Mozilla/5.0 (compatible; NewBot/2.1; +http://www.example.com/bot.html) 1709247599";
    let want = [
        ["", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", agent],
        ["", "192.0.2.7", "GET", "/b", "", "AcmeBot/1 (+https://acme.test/bot) 1709247599"],
        ["shop.test:443", "", "GET", "/c", "", " 0"],
    ];
    assert_eq!(requests, want.map(|request| request.map(str::to_owned)));
    assert_eq!((directives, unread), (5, 1));
}

#[test]
fn logs_of_cloudfront_are_read_by_their_columns() {
    let (requests, directives, unread) = of_chunk(
        "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem sc-status cs(Referer) cs(User-Agent) cs-uri-query cs(Cookie) x-edge-result-type x-edge-request-id x-host-header\n\
         2024-02-29\t22:59:59\tLHR62-C2\t2\t192.0.2.7\tGET\td111.cloudfront.net\t/a%20b\t200\t-\tMozilla/5.0%20(compatible;%20GPTBot/1.2;%20+https://openai.com/gptbot)\tb=c\t-\tHit\tid==\tshop.test\n\
         2024-02-29\t22:59:59\tLHR62-C2\t2\t2001:db8::1\tGET\td111.cloudfront.net\t/\t200\thttps://shop.test/x\tGPTBot/1.2%2520(x)\t-\t-\tHit\tid==\t-\n",
    );
    let want = [
        [
            "shop.test",
            "192.0.2.7",
            "GET",
            "/a%20b?b=c",
            "",
            "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot) 1709247599",
        ],
        ["d111.cloudfront.net", "2001:db8::1", "GET", "/", "https://shop.test/x", "GPTBot/1.2 (x) 1709247599"],
    ];
    assert_eq!(requests, want.map(|request| request.map(str::to_owned)));
    assert_eq!((directives, unread), (2, 0));
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
fn the_format_is_recognised_by_most_lines() {
    let mixed = format!("junk\n{CURL}\n{{}}\n{CURL}\n");
    assert_eq!(ReplayLogFormat::Auto.detect(mixed.as_bytes()), ReplayLogFormat::Combined);
    assert_eq!(ReplayLogFormat::Json.detect(mixed.as_bytes()), ReplayLogFormat::Json);
}

/// A server may have been given another format within a chunk of its log.
#[test]
fn lines_in_another_format_are_read_where_the_format_was_found() {
    let common = r#"192.0.2.8 - - [10/Oct/2000:13:55:36 -0700] "GET /b HTTP/1.1" 200 1"#;
    let json = r#"{"time":1,"remote_addr":"192.0.2.9","request":"GET /c HTTP/1.1","http_user_agent":"CCBot"}"#;
    let referer = r#"192.0.2.8 - - [10/Oct/2000:13:55:36 -0700] "GET /d HTTP/1.1" 200 1 "https://example.com/""#;
    for most in [CURL, common, json] {
        let chunk = [most, most, most, CURL, common, json, referer].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, chunk.as_bytes());
        let mut agent = |line: &'static str| match reader.read(line.as_bytes()) {
            LogLine::Request(request) => Some(String::from_utf8_lossy(&request.agent).into_owned()),
            _ => None,
        };
        let agents = [CURL, common, json, referer].map(|line| agent(line).expect(line));
        assert_eq!(agents, ["GPTBot/1.2", "", "CCBot", ""], "{most}");
        assert_eq!(agent("no request"), None);
    }
    let mut named = ChunkReader::new(ReplayLogFormat::Combined, common.as_bytes());
    assert_eq!(named.read(common.as_bytes()), LogLine::Unread);
}

/// They hold a request as well, which an access log has besides.
#[test]
fn lines_of_error_logs_and_lines_that_are_cut_are_not_read_in_the_common_format() {
    let error = r#"2026/11/22 10:00:00 [error] 12#12: *5 open() "/srv/.git" failed, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x""#;
    let short =
        r#"2026/11/22 10:00:00 [error] 12#12: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x""#;
    let in_agent = r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2 "-" "Mozilla/5.0 (compat"#;
    let in_referer = r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2 "https://exam"#;
    for line in [error, short, in_agent, in_referer] {
        let chunk = [CURL, CURL, CURL, line].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, chunk.as_bytes());
        assert_eq!(reader.read(line.as_bytes()), LogLine::Unread, "{line}");
    }
}

/// An error log alone is in no format, however few quotes its lines have.
#[test]
fn an_error_log_holds_no_requests() {
    let nginx = r#"2026/11/22 10:00:00 [error] 7#7: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1""#;
    let host = r#"2026/11/22 10:00:00 [error] 7#7: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x", referrer: "http://x/""#;
    let apache = r#"[Sun Nov 22 10:00:00.000000 2026] [core:error] [pid 7] [client 192.0.2.7:1] AH00126: Invalid URI in request "GET / HTTP/1.1""#;
    for line in [nginx, host, apache] {
        let chunk = [line; 3].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, chunk.as_bytes());
        assert_eq!(reader.read(line.as_bytes()), LogLine::Unread, "{line}");
        assert!(is_of_error_log(line.as_bytes()), "{line}");
    }
    for line in [CURL, "{\"a\": 1}", "", "2026/11/22", "[", "[a] [b]", "2026/11/22 10:00:00 ["] {
        assert!(!is_of_error_log(line.as_bytes()), "{line}");
    }
}

#[test]
fn no_line_has_a_host_for_an_address_where_another_format_has_the_address() {
    let vhost = format!("example.com:443 {CURL}");
    for most in [CURL, &vhost] {
        let chunk = [most, most, most, CURL, &vhost].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, chunk.as_bytes());
        for (line, host) in [(CURL, None), (vhost.as_str(), Some("example.com:443"))] {
            let LogLine::Request(request) = reader.read(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(*request.address, *b"192.0.2.7", "{line}");
            assert_eq!(request.host.as_deref(), host.map(str::as_bytes), "{line}");
        }
        // One that no format has an address for is read all the same.
        let named = CURL.replace("192.0.2.7", "client.test");
        assert!(matches!(reader.read(named.as_bytes()), LogLine::Request(_)));
    }
}

#[test]
fn times_are_read_in_every_form() {
    for (text, want) in [
        ("10/Oct/2000:13:55:36 -0700", Some(971_211_336)),
        ("01/Jan/1970:00:00:00 +0000", Some(0)),
        ("29/Feb/2024:23:59:59 +0100", Some(1_709_247_599)),
        ("2024-02-29T22:59:59Z", Some(1_709_247_599)),
        ("2024-02-29T23:59:59.5+01:00", Some(1_709_247_599)),
        ("2024-02-29 22:59:59", Some(1_709_247_599)),
        ("1709247599.123", Some(1_709_247_599)),
        ("yesterday", None),
        ("10/Okt/2000:13:55:36 -0700", None),
        ("", None),
    ] {
        assert_eq!(any_time(text.as_bytes()), want, "{text}");
    }
}
