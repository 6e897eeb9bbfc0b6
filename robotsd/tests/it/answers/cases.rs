//! Every way in which a request for a robots.txt is answered, and what that is to crawlers: the rows of the chapter's table.

use std::sync::LazyLock;

use super::zoo::{Asked, Reply, brotli, gzip, redirect, response};

/// Rules without a finding.
pub(super) const RULES: &str = "User-agent: *\nDisallow: /private/\n";
const PLAIN: &str = "Content-Type: text/plain; charset=utf-8";
const HTML: &str = "Content-Type: text/html; charset=utf-8";
const PAGE: &str =
    "<!DOCTYPE html>\n<html><meta http-equiv=refresh content=\"0; url=/rules\"><body>Welcome</body></html>\n";

/// What crawlers do after an answer, as the JSON output has it.
pub(super) const GO_BY_RULES: &str = "rules";
pub(super) const ALLOW_ALL: &str = "allow-all";
pub(super) const DISALLOW_ALL: &str = "disallow-all";

/// A server's answer, and what is expected of the check.
pub(super) struct Case {
    /// What the server does, for the table.
    pub(super) says: &'static str,
    pub(super) reply: fn(&Asked) -> Reply,
    pub(super) crawlers: &'static str,
    /// The codes of the findings, errors first.
    pub(super) codes: &'static [&'static str],
    pub(super) exit: i32,
}

const fn case(
    says: &'static str,
    reply: fn(&Asked) -> Reply,
    crawlers: &'static str,
    codes: &'static [&'static str],
    exit: i32,
) -> Case {
    Case { says, reply, crawlers, codes, exit }
}

fn send(status: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Reply {
    Reply::Octets(response(status, fields, body))
}

fn status(status: &str) -> Reply {
    send(status, &[HTML], PAGE)
}

/// A chain of redirects, and the rules behind it.
fn chain(asked: &Asked, redirects: usize) -> Reply {
    let at = asked.target.strip_prefix("/hop/").map_or(0, |at| at.parse().unwrap());
    match at == redirects {
        true => send("200 OK", &[PLAIN], RULES),
        false => Reply::Octets(redirect("301 Moved Permanently", &format!("/hop/{}", at + 1))),
    }
}

/// A redirect with this status, and the rules behind it.
fn once(asked: &Asked, status: &str, location: &str) -> Reply {
    match asked.target.as_str() {
        "/robots.txt" => Reply::Octets(redirect(status, location)),
        _ => send("200 OK", &[PLAIN], RULES),
    }
}

/// The rules in a coding, for clients that accept it.
fn coded(asked: &Asked, coding: &str, packed: &[u8]) -> Reply {
    match asked.accepts(coding) {
        true => send("200 OK", &[PLAIN, &format!("Content-Encoding: {coding}"), "Vary: Accept-Encoding"], packed),
        false => send("200 OK", &[PLAIN, "Vary: Accept-Encoding"], RULES),
    }
}

/// Rules of 1 KiB each.
fn long_file(octets: usize) -> String {
    let rules: String = (0..octets >> 10).map(|number| format!("Disallow: /{number:01012}\n")).collect();
    format!("User-agent: *\n{rules}")
}

/// More than is decoded, with rules beyond what crawlers read.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let comment = format!("# {}\n", "x".repeat(1021));
    gzip(format!("{}{}", long_file(501 << 10), comment.repeat(16 << 10)).as_bytes())
});

pub(super) const CASES: &[Case] = &[
    case("200 with rules, `text/plain`", |_| send("200 OK", &[PLAIN], RULES), GO_BY_RULES, &[], 0),
    case("200 without a body", |_| send("200 OK", &[PLAIN], ""), GO_BY_RULES, &["empty-file"], 0),
    case("203 with rules", |_| send("203 Non-Authoritative", &[PLAIN], RULES), GO_BY_RULES, &["answer-not-200"], 0),
    case(
        "206, a part of the rules",
        |_| send("206 Partial Content", &[PLAIN, "Content-Range: bytes 0-33/99"], RULES),
        GO_BY_RULES,
        &["answer-not-200"],
        0,
    ),
    case("200 with rules, no `Content-Type`", |_| send("200 OK", &[], RULES), GO_BY_RULES, &["answer-content-type"], 0),
    case(
        "200 with rules, `application/octet-stream`",
        |_| send("200 OK", &["Content-Type: application/octet-stream"], RULES),
        GO_BY_RULES,
        &["answer-content-type"],
        0,
    ),
    case(
        "200 with a page of HTML (a soft 404); what it redirects to by itself is not followed",
        |asked| if asked.target == "/robots.txt" { status("200 OK") } else { send("200 OK", &[PLAIN], RULES) },
        GO_BY_RULES,
        &["answer-content-type", "html-instead-of-text"],
        1,
    ),
    case(
        "200 with a page of HTML that is called `text/plain`",
        |_| send("200 OK", &[PLAIN], PAGE),
        GO_BY_RULES,
        &["html-instead-of-text"],
        1,
    ),
    case(
        "200 with `charset=iso-8859-1`, ASCII only",
        |_| send("200 OK", &["Content-Type: text/plain; charset=ISO-8859-1"], RULES),
        GO_BY_RULES,
        &["answer-charset"],
        0,
    ),
    case(
        "200 with `charset=iso-8859-1` and an `é` of it",
        |_| send("200 OK", &["Content-Type: text/plain; charset=iso-8859-1"], b"User-agent: *\nDisallow: /caf\xE9/\n"),
        GO_BY_RULES,
        &["answer-charset", "invalid-utf-8"],
        0,
    ),
    case(
        "200 with rules in UTF-16",
        |_| {
            let octets: Vec<u8> = "\u{feff}User-agent: *\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
            send("200 OK", &[PLAIN], octets)
        },
        GO_BY_RULES,
        &["utf-16"],
        1,
    ),
    case(
        "200 with a byte order mark",
        |_| send("200 OK", &[PLAIN], format!("\u{feff}{RULES}")),
        GO_BY_RULES,
        &["byte-order-mark"],
        0,
    ),
    case(
        "200 with 501 KiB of rules",
        |_| send("200 OK", &[PLAIN], long_file(501 << 10)),
        GO_BY_RULES,
        &["over-500-kib"],
        1,
    ),
    case(
        "200 in gzip, for clients that accept it",
        |asked| coded(asked, "gzip", &gzip(RULES.as_bytes())),
        GO_BY_RULES,
        &[],
        0,
    ),
    case(
        "200 in brotli, for clients that accept it",
        |asked| coded(asked, "br", &brotli(RULES.as_bytes())),
        GO_BY_RULES,
        &[],
        0,
    ),
    case(
        "200 in gzip, for every client",
        |_| send("200 OK", &[PLAIN, "Content-Encoding: gzip"], gzip(RULES.as_bytes())),
        GO_BY_RULES,
        &["answer-coding"],
        0,
    ),
    case(
        "200 in zstd, which crawlers do not accept",
        |_| send("200 OK", &[PLAIN, "Content-Encoding: zstd"], [0x28, 0xB5, 0x2F, 0xFD]),
        GO_BY_RULES,
        &["answer-undecodable"],
        1,
    ),
    case(
        "200, called gzip and sent as it is",
        |_| send("200 OK", &[PLAIN, "Content-Encoding: gzip"], RULES),
        GO_BY_RULES,
        &["answer-undecodable"],
        1,
    ),
    case("200, 16 MiB in a few KiB of gzip", |asked| coded(asked, "gzip", &BOMB), GO_BY_RULES, &["over-500-kib"], 1),
    case(
        "200 with `Cache-Control: max-age=31536000`",
        |_| send("200 OK", &[PLAIN, "Cache-Control: public, max-age=31536000"], RULES),
        GO_BY_RULES,
        &["answer-cached-long"],
        0,
    ),
    case(
        "200 with `Age: 345600`",
        |_| send("200 OK", &[PLAIN, "Age: 345600"], RULES),
        GO_BY_RULES,
        &["answer-stale"],
        0,
    ),
    case("301, 302, 303, 307 or 308 to the rules", |asked| once(asked, "302 Found", "/rules"), GO_BY_RULES, &[], 0),
    case("five redirects to the rules", |asked| chain(asked, 5), GO_BY_RULES, &["redirect-long"], 0),
    case("six redirects to the rules", |asked| chain(asked, 6), ALLOW_ALL, &["redirect-too-many"], 1),
    case(
        "redirects in a loop",
        |asked| Reply::Octets(redirect("302 Found", if asked.target == "/a" { "/robots.txt" } else { "/a" })),
        ALLOW_ALL,
        &["redirect-loop"],
        1,
    ),
    case(
        "a redirect to itself",
        |_| Reply::Octets(redirect("301 Moved", "/robots.txt")),
        ALLOW_ALL,
        &["redirect-loop"],
        1,
    ),
    case("301 without `Location`", |_| send("301 Moved", &[], ""), ALLOW_ALL, &["redirect-nowhere"], 1),
    case(
        "301 to an `ftp` URL",
        |_| Reply::Octets(redirect("301 Moved", "ftp://example.com/robots.txt")),
        ALLOW_ALL,
        &["redirect-nowhere"],
        1,
    ),
    case("300", |_| status("300 Multiple Choices"), ALLOW_ALL, &["redirect-nowhere"], 1),
    case("304 without a condition", |_| send("304 Not Modified", &[], ""), DISALLOW_ALL, &["answer-not-final"], 1),
    case(
        "301 to the rules on another host",
        |asked| once(asked, "301 Moved", "http://cdn.example.net:8080/rules"),
        GO_BY_RULES,
        &["redirect-other-host"],
        0,
    ),
    case(
        "301 to a port without a server",
        |asked| once(asked, "301 Moved", "http://example.com:8081/robots.txt"),
        DISALLOW_ALL,
        &["redirect-unreachable"],
        1,
    ),
    case("400", |_| status("400 Bad Request"), ALLOW_ALL, &["answer-client-error"], 0),
    case("401", |_| status("401 Unauthorized"), ALLOW_ALL, &["answer-restricted"], 0),
    case("403", |_| status("403 Forbidden"), ALLOW_ALL, &["answer-restricted"], 0),
    case("404", |_| status("404 Not Found"), ALLOW_ALL, &["answer-missing"], 0),
    case("410", |_| status("410 Gone"), ALLOW_ALL, &["answer-missing"], 0),
    case("429", |_| status("429 Too Many Requests"), DISALLOW_ALL, &["answer-rate-limited"], 1),
    case("451", |_| status("451 Unavailable"), ALLOW_ALL, &["answer-client-error"], 0),
    case("500", |_| status("500 Internal Server Error"), DISALLOW_ALL, &["answer-server-error"], 1),
    case("503", |_| status("503 Service Unavailable"), DISALLOW_ALL, &["answer-server-error"], 1),
    case("599", |_| status("599 Trouble"), DISALLOW_ALL, &["answer-server-error"], 1),
    case("600", |_| status("600 Odd"), DISALLOW_ALL, &["answer-not-final"], 1),
    case("no HTTP", |_| Reply::Octets(b"220 mail.example.com\r\n".to_vec()), DISALLOW_ALL, &["answer-broken"], 1),
    case(
        "fewer octets than `Content-Length` says",
        |_| Reply::Octets(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n".to_vec()),
        DISALLOW_ALL,
        &["answer-broken"],
        1,
    ),
    case(
        "a malformed chunk",
        |_| Reply::Octets(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nUser-agent: *\n".to_vec()),
        DISALLOW_ALL,
        &["answer-broken"],
        1,
    ),
    case("a reset in place of an answer", |_| Reply::Reset(Vec::new()), DISALLOW_ALL, &["answer-broken"], 1),
    case(
        "a reset within the body",
        |_| Reply::Reset(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n".to_vec()),
        DISALLOW_ALL,
        &["answer-broken"],
        1,
    ),
    case("nothing within the time", |_| Reply::Silence(Vec::new()), DISALLOW_ALL, &["answer-timeout"], 1),
    case(
        "a body that does not end within the time",
        |_| Reply::Silence(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n".to_vec()),
        DISALLOW_ALL,
        &["answer-timeout"],
        1,
    ),
    case(
        "interim answers (1xx) without end",
        |_| Reply::Octets(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100)),
        DISALLOW_ALL,
        &["answer-broken"],
        1,
    ),
];
