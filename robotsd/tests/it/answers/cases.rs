//! The rows of the table on the page `answers`: every kind of response to a request for a
//! robots.txt, and the behaviour of crawlers after this response.

use std::sync::LazyLock;

use crate::harness::*;

/// Rules for which the check reports no finding.
pub(super) const RULES: &str = "User-agent: *\nDisallow: /private/\n";
const PLAIN: &str = "Content-Type: text/plain; charset=utf-8";
const HTML: &str = "Content-Type: text/html; charset=utf-8";
const PAGE: &str =
    "<!DOCTYPE html>\n<html><meta http-equiv=refresh content=\"0; url=/rules\"><body>Welcome</body></html>\n";

/// The behaviour of crawlers after a response, as in the JSON output.
pub(super) const GO_BY_RULES: &str = "rules";
pub(super) const ALLOW_ALL: &str = "allow-all";
pub(super) const DISALLOW_ALL: &str = "disallow-all";

/// The behaviour of crawlers, and the exit status of the check.
type Outcome = (&'static str, i32);
const KEPT: Outcome = (GO_BY_RULES, 0);
const SPOILT: Outcome = (GO_BY_RULES, 1);
const OPEN: Outcome = (ALLOW_ALL, 0);
const LOST: Outcome = (ALLOW_ALL, 1);
const SHUT: Outcome = (DISALLOW_ALL, 1);

/// How a server responds, and what the check must report.
pub(super) struct Case {
    /// Description of the response, for the table.
    pub(super) says: &'static str,
    pub(super) outcome: Outcome,
    /// The codes of the findings, errors first.
    pub(super) codes: &'static str,
    pub(super) reply: fn(&Asked) -> Reply,
}

const fn case(says: &'static str, outcome: Outcome, codes: &'static str, reply: fn(&Asked) -> Reply) -> Case {
    Case { says, outcome, codes, reply }
}

fn send(status: &str, fields: &[&str], body: impl AsRef<[u8]>) -> Reply {
    response(status, fields, body).into()
}

fn ok(fields: &[&str], body: impl AsRef<[u8]>) -> Reply {
    send("200 OK", fields, body)
}

/// A response that is shorter than its `Content-Length`.
const CUT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nUser-agent: *\n";

fn moved(status: &str, location: &str) -> Reply {
    redirect(status, location).into()
}

/// Returns Brotli data without compression: one stored block for a 16-bit window, and the empty
/// last block (RFC 7932, section 9).
pub(super) fn brotli(bytes: &[u8]) -> Vec<u8> {
    let head = ((u32::try_from(bytes.len()).unwrap() - 1) << 4 | 1 << 20).to_le_bytes();
    [&head[..3], bytes, &[0x03]].concat()
}

fn status(status: &str) -> Reply {
    send(status, &[HTML], PAGE)
}

/// Replies with the next redirect in a chain of this length, which ends at the rules.
fn chain(asked: &Asked, redirects: usize) -> Reply {
    let at = asked.target.strip_prefix("/hop/").map_or(0, |at| at.parse().unwrap());
    match at == redirects {
        true => ok(&[PLAIN], RULES),
        false => moved("301 Moved Permanently", &format!("/hop/{}", at + 1)),
    }
}

/// Replies with a single redirect to the rules, with this status.
fn once(asked: &Asked, status: &str, location: &str) -> Reply {
    match asked.target.as_str() {
        "/robots.txt" => moved(status, location),
        _ => ok(&[PLAIN], RULES),
    }
}

/// Replies with the rules in a content coding, if the client accepts that coding.
fn coded(asked: &Asked, coding: &str, packed: &[u8]) -> Reply {
    match asked.accepts(coding) {
        true => ok(&[PLAIN, &format!("Content-Encoding: {coding}"), "Vary: Accept-Encoding"], packed),
        false => ok(&[PLAIN, "Vary: Accept-Encoding"], RULES),
    }
}

/// Returns rules with this total size. Each rule takes 1 KiB.
fn long_file(bytes: usize) -> String {
    let rules: String = (0..bytes >> 10).map(|number| format!("Disallow: /{number:01012}\n")).collect();
    format!("User-agent: *\n{rules}")
}

/// A compressed file whose decompressed size exceeds robotsd's limit. Its rules extend beyond the
/// part that crawlers read.
static BOMB: LazyLock<Vec<u8>> = LazyLock::new(|| {
    let comment = format!("# {}\n", "x".repeat(1021));
    gzip(format!("{}{}", long_file(501 << 10), comment.repeat(16 << 10)).as_bytes())
});

pub(super) const CASES: &[Case] = &[
    case("200 with rules, `text/plain`", KEPT, "", |_| ok(&[PLAIN], RULES)),
    case("200 without a body", KEPT, "empty-file", |_| ok(&[PLAIN], "")),
    case("203 with rules", KEPT, "answer-not-200", |_| send("203 Non-Authoritative", &[PLAIN], RULES)),
    case("206, a part of the rules", KEPT, "answer-not-200", |_| {
        send("206 Partial Content", &[PLAIN, "Content-Range: bytes 0-33/99"], RULES)
    }),
    case("200 with rules, no `Content-Type`", KEPT, "answer-content-type", |_| ok(&[], RULES)),
    case("200 with rules, `application/octet-stream`", KEPT, "answer-content-type", |_| {
        ok(&["Content-Type: application/octet-stream"], RULES)
    }),
    case(
        "200 with a page of HTML (a soft 404); what it redirects to by itself is not followed",
        SPOILT,
        "html-instead-of-text",
        |asked| if asked.target == "/robots.txt" { status("200 OK") } else { ok(&[PLAIN], RULES) },
    ),
    case("200 with a page of HTML that is called `text/plain`", SPOILT, "html-instead-of-text", |_| ok(&[PLAIN], PAGE)),
    case("200 with `charset=iso-8859-1`, ASCII only", KEPT, "answer-charset", |_| {
        ok(&["Content-Type: text/plain; charset=ISO-8859-1"], RULES)
    }),
    case("200 with `charset=iso-8859-1` and an `é` of it", KEPT, "answer-charset invalid-utf-8", |_| {
        ok(&["Content-Type: text/plain; charset=iso-8859-1"], b"User-agent: *\nDisallow: /caf\xE9/\n")
    }),
    case("200 with rules in UTF-16", SPOILT, "utf-16", |_| {
        let bytes: Vec<u8> = "\u{feff}User-agent: *\r\n".encode_utf16().flat_map(u16::to_le_bytes).collect();
        ok(&[PLAIN], bytes)
    }),
    case("200 with a byte order mark", KEPT, "byte-order-mark", |_| ok(&[PLAIN], format!("\u{feff}{RULES}"))),
    case("200 with 501 KiB of rules", SPOILT, "over-500-kib", |_| ok(&[PLAIN], long_file(501 << 10))),
    case("200 in gzip, for clients that accept it", KEPT, "", |asked| coded(asked, "gzip", &gzip(RULES.as_bytes()))),
    case("200 in brotli, for clients that accept it", KEPT, "", |asked| coded(asked, "br", &brotli(RULES.as_bytes()))),
    case("200 in gzip, for every client", KEPT, "answer-coding", |_| {
        ok(&[PLAIN, "Content-Encoding: gzip"], gzip(RULES.as_bytes()))
    }),
    case("200 in zstd, which crawlers do not accept", SPOILT, "answer-undecodable", |_| {
        ok(&[PLAIN, "Content-Encoding: zstd"], [0x28, 0xB5, 0x2F, 0xFD])
    }),
    case("200, called gzip and sent as it is", SPOILT, "answer-undecodable", |_| {
        ok(&[PLAIN, "Content-Encoding: gzip"], RULES)
    }),
    case("200, 16 MiB in a few KiB of gzip", SPOILT, "over-500-kib", |asked| coded(asked, "gzip", &BOMB)),
    case("200 with `Cache-Control: max-age=31536000`", KEPT, "answer-cached-long", |_| {
        ok(&[PLAIN, "Cache-Control: public, max-age=31536000"], RULES)
    }),
    case("200 with `Age: 345600`", KEPT, "answer-stale", |_| ok(&[PLAIN, "Age: 345600"], RULES)),
    case("301, 302, 303, 307 or 308 to the rules", KEPT, "", |asked| once(asked, "302 Found", "/rules")),
    case("five redirects to the rules", KEPT, "redirect-long", |asked| chain(asked, 5)),
    case("six redirects to the rules", LOST, "redirect-too-many", |asked| chain(asked, 6)),
    case("redirects in a loop", LOST, "redirect-loop", |asked| {
        moved("302 Found", if asked.target == "/a" { "/robots.txt" } else { "/a" })
    }),
    case("a redirect to itself", LOST, "redirect-loop", |_| moved("301 Moved", "/robots.txt")),
    case("301 without `Location`", LOST, "redirect-nowhere", |_| send("301 Moved", &[], "")),
    case("301 to an `ftp` URL", LOST, "redirect-nowhere", |_| moved("301 Moved", "ftp://example.com/robots.txt")),
    case("300", LOST, "redirect-nowhere", |_| status("300 Multiple Choices")),
    case("304 without a condition", SHUT, "answer-not-final", |_| send("304 Not Modified", &[], "")),
    case("301 to the rules on another host", KEPT, "redirect-other-host", |asked| {
        once(asked, "301 Moved", "http://cdn.example.net:8080/rules")
    }),
    case("301 to a port without a server", SHUT, "redirect-unreachable", |asked| {
        once(asked, "301 Moved", "http://example.com:8081/robots.txt")
    }),
    case("400", OPEN, "answer-client-error", |_| status("400 Bad Request")),
    case("401", OPEN, "answer-restricted", |_| status("401 Unauthorized")),
    case("403", OPEN, "answer-restricted", |_| status("403 Forbidden")),
    case("404", OPEN, "answer-missing", |_| status("404 Not Found")),
    case("410", OPEN, "answer-missing", |_| status("410 Gone")),
    case("429", SHUT, "answer-rate-limited", |_| status("429 Too Many Requests")),
    case("451", OPEN, "answer-client-error", |_| status("451 Unavailable")),
    case("500", SHUT, "answer-server-error", |_| status("500 Internal Server Error")),
    case("503", SHUT, "answer-server-error", |_| status("503 Service Unavailable")),
    case("599", SHUT, "answer-server-error", |_| status("599 Problem")),
    case("600", SHUT, "answer-not-final", |_| status("600 Odd")),
    case("no HTTP", SHUT, "answer-broken", |_| Reply::Last(b"220 mail.example.com\r\n".to_vec())),
    case("fewer bytes than `Content-Length` says", SHUT, "answer-broken", |_| Reply::Last(CUT.to_vec())),
    case("a malformed chunk", SHUT, "answer-broken", |_| {
        Reply::Last(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nUser-agent: *\n".to_vec())
    }),
    case("a reset in place of an answer", SHUT, "answer-broken", |_| Reply::Reset(Vec::new())),
    case("a reset within the body", SHUT, "answer-broken", |_| Reply::Reset(CUT.to_vec())),
    case("nothing within the time", SHUT, "answer-timeout", |_| Reply::Silence(Vec::new())),
    case("a body that does not end within the time", SHUT, "answer-timeout", |_| Reply::Silence(CUT.to_vec())),
    case("interim answers (1xx) without end", SHUT, "answer-broken", |_| {
        Reply::Last(b"HTTP/1.1 103 Early Hints\r\n\r\n".repeat(100))
    }),
];
