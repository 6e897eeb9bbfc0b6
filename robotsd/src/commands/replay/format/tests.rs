//! Tests with lines as servers write them.

use clap::ValueEnum as _;

use super::clf::any_time;
use super::*;

const CURL: &str =
    r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a?b=c HTTP/1.1" 200 2326 "https://example.com/x" "GPTBot/1.2""#;

fn read(format: ReplayLogFormat, line: &str) -> Option<LoggedRequest<'_>> {
    format.read(line.as_bytes(), &JsonKeys::default())
}

fn shown(format: ReplayLogFormat, line: &str) -> Option<[String; 6]> {
    read(format, line).map(|entry| texts(&entry))
}

fn found(log: &str) -> ReplayLogFormat {
    ReplayLogFormat::Auto.detect(&JsonKeys::default(), log.as_bytes())
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
        assert_eq!(read(format, line).expect(line).status, want, "{line}");
    }
    let columns = W3cColumns::parse(b"#Fields: cs-method cs-uri-stem sc-status").expect("columns");
    assert_eq!(columns.read(b"GET / 404").expect("a request").status, Some(404));
}

#[test]
fn lines_of_every_server_are_read() {
    use ReplayLogFormat::{Combined, Common, Json};
    for (format, line, want) in [
        (Combined, CURL.to_owned(), ["", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
        (Combined, format!("example.com:443 {CURL}"), ["example.com:443", "192.0.2.7", "GET", "/a?b=c", "https://example.com/x", "GPTBot/1.2"]),
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
        assert_eq!(found(&format!("\n{line}\n")), format, "{line}");
    }
    assert_eq!(read(Combined, CURL).and_then(|entry| entry.time), Some(971_211_336));
}

const ALB: &str = r#"https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.0.2.7:2817 10.0.0.1:80 0.086 0.048 0.037 200 200 0 57 "GET https://example.com:443/a?b=c HTTP/1.1" "GPTBot/1.2 (a \"b\")" ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:x "Root=1-58337281-1d84f3d73c47ec4e58577259" "example.com" "arn:aws:acm:x" 1 2018-07-02T22:22:48.364000Z "authenticate,forward" "-" "-" "10.0.0.1:80" "200" "-" "-""#;

#[test]
fn lines_of_a_load_balancer_are_read() {
    let want = ["example.com:443", "192.0.2.7", "GET", "/a?b=c", "", "GPTBot/1.2 (a \"b\")"];
    assert_eq!(shown(ReplayLogFormat::Alb, ALB), Some(want.map(str::to_owned)));
    assert_eq!(found(ALB), ReplayLogFormat::Alb);
    assert_eq!(read(ReplayLogFormat::Alb, ALB).and_then(|entry| entry.time), Some(1_530_570_180));
    // A URL without a path, an address in brackets, and bytes that are no request.
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

/// Returns the requests of a chunk, and the number of directives and of unread lines.
fn of_chunk(chunk: &str) -> (Vec<[String; 6]>, usize, usize) {
    let keys = JsonKeys::default();
    let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
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
        for format in [ReplayLogFormat::Combined, ReplayLogFormat::Common, ReplayLogFormat::Json] {
            assert_eq!(shown(format, line), None, "{line} {format:?}");
        }
    }
}

#[test]
fn the_format_is_recognised_by_most_lines() {
    let mixed = format!("junk\n{CURL}\n{{}}\n{CURL}\n");
    assert_eq!(found(&mixed), ReplayLogFormat::Combined);
    assert_eq!(ReplayLogFormat::Json.detect(&JsonKeys::default(), mixed.as_bytes()), ReplayLogFormat::Json);
}

/// The log format of a server may change within a chunk.
#[test]
fn lines_in_another_format_are_read_where_the_format_was_found() {
    let keys = JsonKeys::default();
    let common = r#"192.0.2.8 - - [10/Oct/2000:13:55:36 -0700] "GET /b HTTP/1.1" 200 1"#;
    let json = r#"{"time":1,"remote_addr":"192.0.2.9","request":"GET /c HTTP/1.1","http_user_agent":"CCBot"}"#;
    let referer = r#"192.0.2.8 - - [10/Oct/2000:13:55:36 -0700] "GET /d HTTP/1.1" 200 1 "https://example.com/""#;
    for most in [CURL, common, json] {
        let chunk = [most, most, most, CURL, common, json, referer].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
        let mut agent = |line: &'static str| match reader.read(line.as_bytes()) {
            LogLine::Request(request) => Some(String::from_utf8_lossy(&request.agent).into_owned()),
            _ => None,
        };
        let agents = [CURL, common, json, referer].map(|line| agent(line).expect(line));
        assert_eq!(agents, ["GPTBot/1.2", "", "CCBot", ""], "{most}");
        assert_eq!(agent("no request"), None);
    }
    let mut named = ChunkReader::new(ReplayLogFormat::Combined, &keys, common.as_bytes());
    assert_eq!(named.read(common.as_bytes()), LogLine::Unread);
}

/// The access log contains the requests of these lines, too.
#[test]
fn lines_of_error_logs_and_lines_that_are_cut_are_not_read_in_the_common_format() {
    let keys = JsonKeys::default();
    let error = r#"2026/11/22 10:00:00 [error] 12#12: *5 open() "/srv/.git" failed, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x""#;
    let short =
        r#"2026/11/22 10:00:00 [error] 12#12: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x""#;
    let in_agent = r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2 "-" "Mozilla/5.0 (compat"#;
    let in_referer = r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 2 "https://exam"#;
    for line in [error, short, in_agent, in_referer] {
        let chunk = [CURL, CURL, CURL, line].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
        assert_eq!(reader.read(line.as_bytes()), LogLine::Unread, "{line}");
    }
}

/// The format of an error log is no access log, however few quotes it has.
#[test]
fn an_error_log_holds_no_requests() {
    let keys = JsonKeys::default();
    let nginx = r#"2026/11/22 10:00:00 [error] 7#7: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1""#;
    let host = r#"2026/11/22 10:00:00 [error] 7#7: *5 no, client: 192.0.2.7, request: "GET /.git HTTP/1.1", host: "x", referrer: "http://x/""#;
    let apache = r#"[Sun Nov 22 10:00:00.000000 2026] [core:error] [pid 7] [client 192.0.2.7:1] AH00126: Invalid URI in request "GET / HTTP/1.1""#;
    for line in [nginx, host, apache] {
        let chunk = [line; 3].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
        assert_eq!(reader.read(line.as_bytes()), LogLine::Unread, "{line}");
        assert!(is_of_error_log(line.as_bytes()), "{line}");
    }
    for line in [CURL, "{\"a\": 1}", "", "2026/11/22", "[", "[a] [b]", "2026/11/22 10:00:00 ["] {
        assert!(!is_of_error_log(line.as_bytes()), "{line}");
    }
}

#[test]
fn no_line_has_a_host_for_an_address_where_another_format_has_the_address() {
    let keys = JsonKeys::default();
    let vhost = format!("example.com:443 {CURL}");
    for most in [CURL, &vhost] {
        let chunk = [most, most, most, CURL, &vhost].join("\n");
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
        for (line, host) in [(CURL, None), (vhost.as_str(), Some("example.com:443"))] {
            let LogLine::Request(request) = reader.read(line.as_bytes()) else { panic!("{line}") };
            assert_eq!(*request.address, *b"192.0.2.7", "{line}");
            assert_eq!(request.host.as_deref(), host.map(str::as_bytes), "{line}");
        }
        // A line whose client is not an address is also read.
        let named = CURL.replace("192.0.2.7", "client.test");
        assert!(matches!(reader.read(named.as_bytes()), LogLine::Request(_)));
    }
}

/// Returns the host and the address of each line by GPTBot for `/a` at the usual time.
fn gptbots(lines: &[String]) -> Vec<Option<(Option<String>, String)>> {
    let keys = JsonKeys::default();
    let chunk = lines.join("\n");
    let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
    let text = |octets: &[u8]| String::from_utf8_lossy(octets).into_owned();
    let mut one = |line: &String| {
        let LogLine::Request(request) = reader.read(line.as_bytes()) else { return None };
        assert_eq!((&*request.target, &*request.agent), (&b"/a"[..], &b"GPTBot/1.2"[..]), "{line}");
        assert_eq!(request.time, Some(971_211_336), "{line}");
        Some((request.host.as_deref().map(text), text(&request.address)))
    };
    lines.iter().map(&mut one).collect()
}

const GPTBOT: &str = r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 23 "-" "GPTBot/1.2""#;
const GPTBOT_JSON: &str = r#"{"time_iso8601":"2000-10-10T20:55:36+00:00","remote_addr":"192.0.2.7","request":"GET /a HTTP/1.1","status":200,"http_user_agent":"GPTBot/1.2"}"#;

#[test]
fn lines_that_a_collector_put_into_an_object_are_read() {
    let text = |line: &str| serde_json::to_string(&format!("{line}\n")).expect("a text");
    let octets = format!("{:?}", GPTBOT.as_bytes());
    let objects = |line: &str| {
        let line = text(line);
        [
            format!(r#"{{"log":{line},"stream":"stdout","time":"2026-11-27T03:12:05.1Z"}}"#),
            format!(
                r#"{{"@timestamp":"2026-11-27T01:25:11.1Z","message":{line},"host":{{"name":"web1"}},"input":{{"type":"log"}}}}"#
            ),
            format!(r#"{{"MESSAGE":{line},"_SYSTEMD_UNIT":"web.service","__REALTIME_TIMESTAMP":"1795748118480000"}}"#),
            format!(r#"{{"event":{{"original":{line}}},"agent":{{"type":"filebeat"}},"tags":["x"]}}"#),
            format!("{{\"textPayload\": {line}, \"severity\": \"INFO\", \"log\": null}}"),
        ]
    };
    let of_server = [GPTBOT, GPTBOT_JSON].into_iter().flat_map(objects);
    // These objects are nested, such as the output of a container that a service gathers.
    let twice = objects(&objects(GPTBOT)[0]);
    let lines: Vec<_> =
        of_server.chain(twice).chain([format!(r#"{{"MESSAGE":{octets}}}"#)]).chain([GPTBOT.to_owned()]).collect();
    for (line, read) in lines.iter().zip(gptbots(&lines)) {
        assert_eq!(read, Some((None, "192.0.2.7".to_owned())), "{line}");
    }
    // With --log-format, the given format is the format of the inner line.
    let keys = JsonKeys::default();
    for (format, line) in [(ReplayLogFormat::Combined, GPTBOT), (ReplayLogFormat::Json, GPTBOT_JSON)] {
        for line in objects(line) {
            let read = ChunkReader::new(format, &keys, b"").read(line.as_bytes()) != LogLine::Unread;
            assert!(read, "{line}");
        }
    }
    let event = text(r#"{"ts":"2026-11-22T10:00:00Z","level":"info","event":"config-loaded"}"#);
    if let Some(known) = crate::log::LogEvent::ALL.iter().find(|event| **event != crate::log::LogEvent::Request) {
        let line = format!(r#"{{"log":{}}}"#, event.replace("config-loaded", known.as_str()));
        assert_eq!(ChunkReader::new(ReplayLogFormat::Auto, &keys, b"").read(line.as_bytes()), LogLine::Event, "{line}");
    }
}

#[test]
fn lines_behind_a_prefix_are_read() {
    let prefixes = [
        "Nov 27 01:25:11 box2 nginx[1302]: ",
        "<190>Nov 27 01:25:11 box2 nginx: ",
        "Nov  7 01:25:11.123456 box2.example.com nginx[1302]: ",
        "2026-11-27T03:12:05+0000 web1 nginx[1302]: ",
        "<134>2026-11-27T01:25:11Z cache-fra1 fastly[1234]: ",
        "<190>1 2026-11-27T01:25:11.1Z web1 nginx 1302 - - ",
        "10.0.0.5 nginx: ",
        "Nov 27 01:25:11 10.0.0.5 nginx: ",
        "nginx[1302]: ",
        "2026-11-27T01:25:11.123456789Z stdout F ",
        "2026-11-27T01:25:11.123456789Z ",
        "1795748118.480 ",
        "web-1  | ",
        "\u{1b}[0;33;1mweb.1     | \u{1b}[0m",
        "[pod/web-5d4/nginx] ",
        "[2026-11-27T01:25:11Z] ",
        "[27/Nov/2026:01:25:11 +0000] ",
        "web-5d4 nginx ",
        "\"",
    ];
    let lines: Vec<_> = prefixes.iter().map(|prefix| format!("{prefix}{GPTBOT}")).collect();
    for (line, read) in lines.iter().zip(gptbots(&lines)) {
        assert_eq!(read, Some((None, "192.0.2.7".to_owned())), "{line}");
    }
    let hosts: Vec<_> = prefixes.iter().map(|prefix| format!("{prefix}www.shop.test:443 {GPTBOT}")).collect();
    for (line, read) in hosts.iter().zip(gptbots(&hosts)) {
        assert_eq!(read, Some((Some("www.shop.test:443".to_owned()), "192.0.2.7".to_owned())), "{line}");
    }
    let objects: Vec<_> = prefixes.iter().map(|prefix| format!("{prefix}{GPTBOT_JSON}")).collect();
    for (line, read) in objects.iter().zip(gptbots(&objects)).filter(|(line, _)| !line.starts_with('"')) {
        assert_eq!(read, Some((None, "192.0.2.7".to_owned())), "{line}");
    }
    // Caddy's console format has the time only in front of the object.
    let caddy = "2000/10/10 20:55:36.541\tinfo\thttp.log.access.log0\thandled request\t{\"request\": {\"remote_addr\": \"192.0.2.5:63746\", \
                 \"method\": \"GET\", \"host\": \"shop.test\", \"uri\": \"/a\", \"headers\": {\"User-Agent\": [\"GPTBot/1.2\"]}}, \"status\": 200}";
    assert_eq!(gptbots(&[caddy.to_owned()]), [Some((Some("shop.test".to_owned()), "192.0.2.5".to_owned()))]);
}

#[test]
fn the_address_is_the_one_that_a_server_writes() {
    for (client, host, address) in [
        ("192.0.2.7 - -", None, "192.0.2.7"),
        ("- - -", None, "-"),
        ("192.0.2.7 - John Doe", None, "192.0.2.7"),
        ("192.0.2.7 ident user", None, "192.0.2.7"),
        ("192.0.2.7", None, "192.0.2.7"),
        ("client.test - -", None, "client.test"),
        ("unix: - -", None, "unix:"),
        ("shop.test 192.0.2.7 - -", Some("shop.test"), "192.0.2.7"),
        ("shop.test 192.0.2.7 - John Doe", Some("shop.test"), "192.0.2.7"),
        ("shop.test - - -", Some("shop.test"), "-"),
        ("shop.test client.test - -", Some("shop.test"), "client.test"),
        ("- 192.0.2.7 - -", Some(""), "192.0.2.7"),
        ("[2001:db8::1]:80 192.0.2.7 - -", Some("[2001:db8::1]:80"), "192.0.2.7"),
        ("203.0.113.5:8080 192.0.2.7 - -", Some("203.0.113.5:8080"), "192.0.2.7"),
        ("shop.test:443 fe80::abc%enp0s8 - -", Some("shop.test:443"), "fe80::abc%enp0s8"),
        ("10.72.153.53 [2001:db8::9] - -", None, "10.72.153.53"),
        ("192.0.2.7, 10.0.0.9 - -", None, "10.0.0.9"),
        // A client can choose any user name.
        ("192.0.2.7 - 66.249.66.1 -", None, "192.0.2.7"),
        ("192.0.2.7 - x: 66.249.66.1 - -", None, "192.0.2.7"),
        ("192.0.2.7 - [01/Jan/2001:00:00:00 +0000]", None, "192.0.2.7"),
        (r#"192.0.2.7 - \"x\" y"#, None, "192.0.2.7"),
        ("shop.test 192.0.2.7 - 66.249.66.1 -", Some("shop.test"), "192.0.2.7"),
    ] {
        let line = GPTBOT.replace("192.0.2.7 - -", client);
        assert_eq!(gptbots(&[line]), [Some((host.map(str::to_owned), address.to_owned()))], "{client}");
    }
}

/// Each line contains something like a request, but is not a line that a server writes for one.
#[test]
fn what_is_not_understood_is_unread() {
    let keys = JsonKeys::default();
    let escaped = serde_json::to_string(GPTBOT).expect("a text");
    for line in [
        // Parts of objects over several lines, as `journalctl -o json-pretty` writes them.
        &format!("    \"message\" : {escaped},"),
        &format!("[{{\"message\": {escaped}}}, {{\"message\": {escaped}}}]"),
        &format!("{{\"message\": {escaped}"),
        &format!("{{\"message\": \" {}\"", &escaped[1..]),
        &format!("{{\"lines\": {}}}", serde_json::to_string(&[GPTBOT, GPTBOT].join("\n")).expect("a text")),
        &GPTBOT.replace("192.0.2.7", "{192.0.2.7"),
        "Nov 27 01:25:11 box2 sshd[99]: Invalid user \"GET /a HTTP/1.1\" from 192.0.2.7",
        "Nov 27 13:40:30 localhost haproxy[5417]: 192.0.2.1:47878 [27/Nov/2026:13:40:30.102] https~ backend/srv 395/0 200 1654 {a|b} \"GET /a HTTP/1.1\"",
        "[27/Nov/2026:18:41:26 +0000] - 200 200 - GET https shop.test \"/a\" [Client 192.0.2.9] \"GPTBot/1.2\" \"-\"",
        r#"{"level":"error","msg":"no answer to \"GET /a HTTP/1.1\" from 192.0.2.7"}"#,
        // These lines have other values under the names of request fields.
        r#"{"level":"info","method":"tools/list","path":"/a"}"#,
        r#"{"level":"info","method":"dns-01","target":"shop.test"}"#,
        // These lines have a User-Agent under an unknown key.
        r#"{"method":"GET","path":"/a","userAgent":"GPTBot/1.2"}"#,
        r#"{"method":"GET","path":"/a","req":{"headers":{"user-agent":["GPTBot/1.2"]}}}"#,
        r#"{"method":"GET","path":"/a","client_ua":"GPTBot/1.2"}"#,
        // These lines have a host, an address or the agent before the value at the agent's
        // position, or are two lines in one.
        r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 23 "shop.test" "https://x.test/" "GPTBot/1.2""#,
        r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 23 "GPTBot/1.2" "-""#,
        r#"192.0.2.7 - - [10/Oct/2000:13:55:36 -0700] "GET /a HTTP/1.1" 200 23 "-" "10.0.0.1, 192.0.2.7" "GPTBot/1.2""#,
        &format!("{}{GPTBOT}", &GPTBOT[..GPTBOT.len() - 4]),
        &format!("{}{GPTBOT}", &GPTBOT[..GPTBOT.len() - 18]),
    ] {
        for format in ReplayLogFormat::value_variants() {
            let mut reader = ChunkReader::new(*format, &keys, line.as_bytes());
            assert_eq!(reader.read(line.as_bytes()), LogLine::Unread, "{format:?} {line}");
        }
    }
}

#[test]
fn objects_are_read_by_the_keys_that_are_named() {
    let named = |keys: &[&str]| JsonKeys::naming(&keys.iter().map(|key| key.parse().expect(key)).collect::<Vec<_>>());
    let line = r#"{"proxy":{"verb":"GET","path":"/a","userAgent":["GPTBot/1.2"],"clientIp":"192.0.2.7:80"},"path":"/other","request":"POST /b HTTP/1.1","x.at":971211336000}"#;
    let keys = ["ua=proxy.userAgent", "method=Proxy.verb", "path=proxy.path", "address=proxy.clientIp", "time=x.at"];
    let read = |keys: &JsonKeys| {
        let request = ReplayLogFormat::Json.read(line.as_bytes(), keys)?;
        let texts = texts(&request);
        let text = |at: usize| texts[at].clone();
        Some((text(1), text(2), text(3), text(5), request.time))
    };
    let text = str::to_owned;
    let keys = named(&keys);
    let want = (text("192.0.2.7"), text("GET"), text("/a"), text("GPTBot/1.2"), Some(971_211_336));
    assert_eq!(read(&keys), Some(want));
    assert_eq!(keys.missing().count(), 0);
    // Only the given key is used.
    let keys = named(&["ua=none", "path=path", "method=proxy.verb"]);
    assert_eq!(read(&keys), Some((String::new(), text("GET"), text("/other"), String::new(), None)));
    assert_eq!(keys.missing().map(ToString::to_string).collect::<Vec<_>>(), ["ua=none"]);
    // A key counts as found even if its line cannot be read for lack of another key.
    let keys = named(&["path=none", "ua=none", "ua=proxy.userAgent"]);
    assert_eq!(read(&keys), None);
    assert_eq!(keys.missing().map(ToString::to_string).collect::<Vec<_>>(), ["path=none", "ua=none"]);
    // With the known keys alone, the result would be a request without a User-Agent.
    assert_eq!(read(&named(&[])), None);
    assert_eq!(read(&named(&["ua=proxy.userAgent"])).map(|read| read.2), Some(text("/b")));
}

#[test]
fn objects_of_services_are_read() {
    let lines = [
        r#"{"ClientIP":"192.0.2.7","ClientRequestHost":"shop.test","ClientRequestMethod":"GET","ClientRequestURI":"/a","EdgeStartTimestamp":971211336000000000,"EdgeResponseStatus":200,"ClientRequestUserAgent":"GPTBot/1.2"}"#,
        r#"{"@timestamp":"2000-10-10T20:55:36.1Z","http":{"request":{"method":"GET"},"response":{"status_code":200}},"url":{"original":"/a","domain":"shop.test"},"user_agent":{"original":"GPTBot/1.2"},"source":{"ip":"192.0.2.7"},"host":{"name":"web1"}}"#,
        r#"{"@timestamp":"2000-10-10T20:55:36.1Z","http.request.method":"GET","url.original":"/a","url.domain":"shop.test","user_agent.original":"GPTBot/1.2","client.ip":"192.0.2.7"}"#,
    ]
    .map(str::to_owned);
    assert_eq!(gptbots(&lines), vec![Some((Some("shop.test".to_owned()), "192.0.2.7".to_owned())); 3]);
    let google = r#"{"httpRequest":{"requestMethod":"GET","requestUrl":"https://shop.test/a","status":200,"userAgent":"GPTBot/1.2","remoteIp":"192.0.2.7"},"timestamp":"2000-10-10T20:55:36.1Z"}"#;
    let want = Some(["", "192.0.2.7", "GET", "https://shop.test/a", "", "GPTBot/1.2"].map(str::to_owned));
    assert_eq!(shown(ReplayLogFormat::Json, google), want);
    let cloudfront = r#"{"request":"GET /a HTTP/1.1","agent":"Mozilla/5.0%20(compatible;%20GPTBot/1.2)"}"#;
    let wanted = &b"Mozilla/5.0 (compatible; GPTBot/1.2)"[..];
    assert_eq!(read(ReplayLogFormat::Json, cloudfront).expect("a request").agent, wanted);
}

#[test]
fn values_in_quotes_are_read_where_a_log_has_columns() {
    let (requests, directives, unread) = of_chunk(
        "#Version: 1.0\n#Fields:  date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status time-taken\n\
         2024-02-29 22:59:59.190 GET /a 192.0.2.7 \"Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)\" 200 2036\n\
         2024-02-29 22:59:59 GET /b 192.0.2.7 \"the \"\"new\"\" one\" 200 1\n\
         2024-02-29 22:59:59 GET /c 192.0.2.7 \"\" 200 1\n\
         2024-02-29\t22:59:59\tGET\t/d\t192.0.2.7\t\"A B\"\t200\t1\n\
         2024-02-29 22:59:59 GET /d 192.0.2.7 \"A\tB\" 200 1\n\
         2024-02-29 22:59:59 GET /e 192.0.2.7 \"IIS+writes+it 200 1\n\
         2024-02-29 22:59:59 GET /f \"192.0.2.7 g\" 200 1\n\
         2024-02-29 22:59:59 GET /h 192.0.2.7 \"cut of\n\
         2024-02-29 22:59:59 GET /i 192.0.2.7 \"A B\"C 200 1\n",
    );
    let read: Vec<_> = requests.iter().map(|[_, _, _, target, _, agent]| format!("{target} {agent}")).collect();
    let want = [
        "/a Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)",
        "/b the \"new\" one",
        "/c ",
        "/d A B",
        "/d A\tB",
        "/e \"IIS writes it",
        "/f g\"",
    ];
    assert_eq!(read, want.map(|line| format!("{line} 1709247599")));
    assert_eq!((directives, unread), (2, 2));
}

/// With more values than `#Fields` names columns, values would be in the wrong columns.
#[test]
fn a_line_with_other_columns_than_the_log_names_is_unread() {
    let (requests, _, unread) = of_chunk(
        "#Fields: date time cs-method cs-uri-stem c-ip cs(User-Agent) sc-status\n\
         2026-11-27 12:40:21 GET /a b c 192.0.2.7 GPTBot/1.2 200\n\
         2026-11-27 12:40:21 GET /a 192.0.2.7 Mozilla/5.0 (compatible; GPTBot/1.2) 200\n\
         2026-11-27 12:40:21 GET /a 192.0.2.7\n\
         2026-11-27 12:40:22 GET /b 192.0.2.7 GPTBot/1.2\n\
         2026-11-27 12:40:22 10.0.0.1 GET /b GPTBot/1.2 200\n\
         192.0.2.7 - - [27/Nov/2026:12:40:22 +0000] \"GET /b HTTP/1.1\"\n\
         2026-11-27 12:40:23 GET /c 192.0.2.7 GPTBot/1.2 200 \n\
         #Fields: cs-method cs(User-Agent) c-ip cs-uri-stem cs-uri-query sc-status\n\
         GET GPTBot/1.2 192.0.2.7 /d\n",
    );
    let targets: Vec<_> = requests.iter().map(|request| request[3].as_str()).collect();
    assert_eq!((targets, unread), (vec!["/b", "/c"], 6));
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
        ("29/Feb/2024:23:59:59.250 +0100", Some(1_709_247_599)),
        ("2024-02-29 23:59:59.786 +0100", Some(1_709_247_599)),
        ("1709247599123", Some(1_709_247_599)),
        ("1709247599123456", Some(1_709_247_599)),
        ("1709247599123456789", Some(1_709_247_599)),
        ("inf", None),
        ("1e300", None),
        ("yesterday", None),
        ("10/Okt/2000:13:55:36 -0700", None),
        ("", None),
    ] {
        assert_eq!(any_time(text.as_bytes()), want, "{text}");
    }
}
