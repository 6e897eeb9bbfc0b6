//! Tests with lines as servers write them.

use clap::ValueEnum as _;

use super::clf::any_time;
use super::*;
use crate::render::test_cases::check_cases;

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
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    [
        text(entry.host.as_deref().unwrap_or_default()),
        text(&entry.address),
        text(&entry.method),
        text(&entry.target),
        text(&entry.referer),
        text(&entry.agent),
    ]
}

/// Each case in `tests/cases/log_lines.txt` contains lines as servers write them, `---`, the
/// format, and the values in each line: host, address, method, target, referer, agent, time and
/// status.
#[test]
fn lines_of_every_server_are_read() {
    check_cases("log_lines.txt", |lines| {
        let keys = JsonKeys::default();
        let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, lines.as_bytes());
        let read = |line: &str| match reader.read(line.as_bytes()) {
            LogLine::Request(entry) => format!("{:?} {:?} {:?}\n", texts(&entry), entry.time, entry.status),
            LogLine::Directive => "directive\n".to_owned(),
            LogLine::Event => "event\n".to_owned(),
            LogLine::Unread => "unread\n".to_owned(),
        };
        let read: String = lines.lines().map(read).collect();
        format!("{:?}\n{read}", found(lines))
    });
}

#[test]
fn lines_without_a_request_are_not_read() {
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
fn the_format_of_most_lines_is_detected() {
    let mixed = format!("junk\n{CURL}\n{{}}\n{CURL}\n");
    assert_eq!(found(&mixed), ReplayLogFormat::Combined);
    assert_eq!(ReplayLogFormat::Json.detect(&JsonKeys::default(), mixed.as_bytes()), ReplayLogFormat::Json);
}

/// The log format of a server may change within a chunk.
#[test]
fn lines_in_another_format_are_read_if_the_format_was_detected_automatically() {
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

/// The access log contains these requests, too.
#[test]
fn lines_of_error_logs_and_cut_lines_are_not_read_as_the_common_format() {
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

/// An error log does not count as an access log, even if its lines have few quotes.
#[test]
fn lines_of_an_error_log_are_not_read_as_requests() {
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
fn a_host_before_the_address_is_not_mistaken_for_the_address() {
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
        // A line with a host name instead of the client's address is also parsed.
        let named = CURL.replace("192.0.2.7", "client.test");
        assert!(matches!(reader.read(named.as_bytes()), LogLine::Request(_)));
    }
}

/// Returns the host and the address in each line that contains GPTBot's request for `/a` at the
/// usual time.
fn gptbots(lines: &[String]) -> Vec<Option<(Option<String>, String)>> {
    let keys = JsonKeys::default();
    let chunk = lines.join("\n");
    let mut reader = ChunkReader::new(ReplayLogFormat::Auto, &keys, chunk.as_bytes());
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
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
fn log_lines_that_a_collector_wrapped_in_json_objects_are_read() {
    let text = |line: &str| serde_json::to_string(&format!("{line}\n")).expect("a text");
    let bytes = format!("{:?}", GPTBOT.as_bytes());
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
            format!(r#"{{"message":{line},"path":"/var/log/nginx/access.log","host":"web1"}}"#),
        ]
    };
    let of_server = [GPTBOT, GPTBOT_JSON].into_iter().flat_map(objects);
    // Nested objects, such as the output of a container that a service gathers.
    let twice = objects(&objects(GPTBOT)[0]);
    let lines: Vec<_> =
        of_server.chain(twice).chain([format!(r#"{{"MESSAGE":{bytes}}}"#)]).chain([GPTBOT.to_owned()]).collect();
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

/// The client chooses these values, and could forge requests in them.
#[test]
fn log_lines_in_the_values_of_a_request_are_not_read() {
    let keys = JsonKeys::default();
    let forged = serde_json::to_string(GPTBOT).expect("a text");
    let requests = [
        format!(r#"{{"method":"A B","path":"/x","user_agent":{forged}}}"#),
        format!(r#"{{"verb":"A","url":"/x","userAgent":{forged}}}"#),
        format!(r#"{{"request":"A_B","http_referer":{forged}}}"#),
        format!(r#"{{"jsonPayload":{{"method":"A B","other":{forged}}}}}"#),
    ];
    let wrapped = requests.each_ref().map(|line| format!(r#"{{"log":{}}}"#, serde_json::Value::from(line.as_str())));
    for line in requests.iter().chain(&wrapped) {
        for format in ReplayLogFormat::value_variants() {
            let read = ChunkReader::new(*format, &keys, line.as_bytes()).read(line.as_bytes());
            assert_eq!(read, LogLine::Unread, "{format:?} {line}");
        }
    }
    let line = format!(r#"{{"remote_addr":"203.0.113.9","method":"A_B","path":"/x","user_agent":{forged}}}"#);
    let read = shown(ReplayLogFormat::Json, &line).expect("a request");
    assert_eq!(read.each_ref().map(String::as_str), ["", "203.0.113.9", "A_B", "/x", "", GPTBOT]);
}

/// robotsd's own log has the header under `user_agent`, and the result of identifying it under
/// `agent`.
#[test]
fn the_agent_class_in_the_log_of_robotsd_is_not_read_as_a_user_agent() {
    let agent = |event: &str, header: &str| {
        let line = format!(
            r#"{{"ts":"2026-11-22T10:00:00.000Z","event":"{event}","agent":"empty","method":"GET","path":"/a"{header}}}"#
        );
        shown(ReplayLogFormat::Json, &line).expect("a request")[5].clone()
    };
    assert_eq!(agent("request", ""), "");
    assert_eq!(agent("request", r#","user_agent":"GPTBot/1.2""#), "GPTBot/1.2");
    assert_eq!(agent("another", ""), "empty");
}

#[test]
fn every_http_token_can_be_a_method() {
    for method in ["GET", "A_B", "M-SEARCH", "X1", "!#$%&'*+-.^_`|~"] {
        let line = GPTBOT.replace("GET", method);
        assert_eq!(shown(ReplayLogFormat::Combined, &line).map(|read| read[2].clone()).as_deref(), Some(method));
    }
    for method in ["GE/T", "(GET)", "\\x16"] {
        assert_eq!(shown(ReplayLogFormat::Combined, &GPTBOT.replace("GET", method)), None, "{method}");
    }
}

#[test]
fn log_lines_after_a_prefix_are_read() {
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
    // In Caddy's console format, only the text before the object contains the time.
    let caddy = "2000/10/10 20:55:36.541\tinfo\thttp.log.access.log0\thandled request\t{\"request\": {\"remote_addr\": \"192.0.2.5:63746\", \
                 \"method\": \"GET\", \"host\": \"shop.test\", \"uri\": \"/a\", \"headers\": {\"User-Agent\": [\"GPTBot/1.2\"]}}, \"status\": 200}";
    assert_eq!(gptbots(&[caddy.to_owned()]), [Some((Some("shop.test".to_owned()), "192.0.2.5".to_owned()))]);
}

/// Each line contains text that looks like a request, but no server writes such a line for a
/// request.
#[test]
fn lines_that_only_resemble_requests_are_not_read() {
    let keys = JsonKeys::default();
    let escaped = serde_json::to_string(GPTBOT).expect("a text");
    for line in [
        // Parts of objects that span several lines, as `journalctl -o json-pretty` writes them.
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
        // Lines with unrelated values under the names of request fields.
        r#"{"level":"info","method":"tools/list","path":"/a"}"#,
        r#"{"level":"info","method":"dns-01","target":"shop.test"}"#,
        // A User-Agent under an unknown key.
        r#"{"method":"GET","path":"/a","userAgent":"GPTBot/1.2"}"#,
        r#"{"method":"GET","path":"/a","req":{"headers":{"user-agent":["GPTBot/1.2"]}}}"#,
        r#"{"method":"GET","path":"/a","client_ua":"GPTBot/1.2"}"#,
        // Lines with a host, an address or the agent before the agent's column, and two requests on
        // one line.
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
fn json_objects_are_read_by_the_keys_that_the_user_names() {
    let named = |keys: &[&str]| {
        JsonKeys::with_operator_keys(&keys.iter().map(|key| key.parse().expect(key)).collect::<Vec<_>>())
    };
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
    assert_eq!(keys.unused_keys().count(), 0);
    // Only the given key is used.
    let keys = named(&["ua=none", "path=path", "method=proxy.verb"]);
    assert_eq!(read(&keys), Some((String::new(), text("GET"), text("/other"), String::new(), None)));
    assert_eq!(keys.unused_keys().map(ToString::to_string).collect::<Vec<_>>(), ["ua=none"]);
    // A key counts as found even if the line cannot be read because another key is missing.
    let keys = named(&["path=none", "ua=none", "ua=proxy.userAgent"]);
    assert_eq!(read(&keys), None);
    assert_eq!(keys.unused_keys().map(ToString::to_string).collect::<Vec<_>>(), ["path=none", "ua=none"]);
    // With the known keys alone, the result would be a request without a User-Agent.
    assert_eq!(read(&named(&[])), None);
    assert_eq!(read(&named(&["ua=proxy.userAgent"])).map(|read| read.2), Some(text("/b")));
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
