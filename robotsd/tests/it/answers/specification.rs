//! Tests the tables of the specification pages, row by row.

use super::cases::{ALLOW_ALL, DISALLOW_ALL, GO_BY_RULES, RULES};
use super::{Checked, URL, check, check_within, checked_at, down, rule};
use crate::harness::*;

fn rows(table: &str) -> Vec<Value> {
    let spec: Value = serde_json::from_str(include_str!("../../../../tests/cases/spec.json")).unwrap();
    spec[table].as_array().unwrap().clone()
}

/// Returns the reported behaviour of crawlers for a server with this reply.
fn crawlers<R: Into<Reply>>(reply: impl Fn(&Asked) -> R + Send + Sync + 'static) -> String {
    checked_at(&Origin::answering(reply)).crawlers().to_owned()
}

fn of_status(status: u16) -> String {
    crawlers(move |_| response(&format!("{status} X"), &["Content-Type: text/plain"], RULES))
}

/// Returns the reported behaviour if this many redirects lead to the rules.
fn of_redirects(redirects: usize) -> String {
    crawlers(move |asked| {
        let at: usize = asked.target.trim_matches(|char: char| !char.is_ascii_digit()).parse().unwrap_or(0);
        match at == redirects {
            true => response("200 OK", &[], RULES),
            false => redirect("302 Found", &format!("/{}", at + 1)),
        }
    })
}

#[test]
fn every_row_of_the_response_specification_is_met() {
    let rows = rows("fetch_result");
    assert_eq!(rows.len(), 6);
    for row in rows {
        match row["status"].as_str().unwrap() {
            "2xx" => all([200, 201, 203, 226], GO_BY_RULES),
            "3xx" => {
                for (redirects, want) in [(1, GO_BY_RULES), (5, GO_BY_RULES), (6, ALLOW_ALL), (20, ALLOW_ALL)] {
                    assert_eq!(of_redirects(redirects), want, "{redirects} redirects");
                }
            }
            "4xx" => {
                all([400, 401, 402, 403, 404, 406, 410, 418, 451, 499], ALLOW_ALL);
                all([429], DISALLOW_ALL);
            }
            "5xx" => all([500, 501, 502, 503, 504, 522, 599], DISALLOW_ALL),
            "network or DNS failure, timeout, bad response, reset, chunking error" => {
                assert_eq!(Checked::of(&mut check(&[URL], &[down("", 8080)])).crawlers(), DISALLOW_ALL);
                assert_eq!(Checked::of(&mut check(&["http://no..name:8080"], &[])).crawlers(), DISALLOW_ALL);
                let silent = rule(Origin::answering(|_| Reply::Silence(Vec::new())).address, "", 8080);
                let timed_out = Checked::of(&mut check_within("--timeout=100ms", &[URL], &[silent]));
                assert_eq!(timed_out.crawlers(), DISALLOW_ALL);
                assert_eq!(crawlers(|_| Reply::Reset(Vec::new())), DISALLOW_ALL);
                for bytes in ["-ERR\r\n", "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nx\r\n"] {
                    assert_eq!(crawlers(|_| Reply::Last(bytes.into())), DISALLOW_ALL, "{bytes}");
                }
            }
            "cache" => {
                for (age, want) in [("86400", ""), ("172800", "answer-cached-long")] {
                    let server = Origin::answering(move |_| {
                        let fields = ["Content-Type: text/plain", &format!("Cache-Control: max-age={age}")];
                        response("200 OK", &fields, RULES)
                    });
                    assert_eq!(checked_at(&server).codes().join(" "), want, "{age}");
                }
            }
            other => panic!("what is {other:?}?"),
        }
    }
}

/// Checks the reported behaviour of crawlers for servers with each of these statuses.
fn all<const N: usize>(statuses: [u16; N], want: &str) {
    for status in statuses {
        assert_eq!(of_status(status), want, "{status}");
    }
}

/// The robots.txt for a URL must be fetched from the origin in the table, and from nowhere else.
#[test]
fn every_row_of_the_origin_specification_is_met() {
    for row in rows("origin_scope") {
        let url = row["robots_url"].as_str().unwrap();
        let server = Origin::answering(|_| response("200 OK", &["Content-Type: text/plain"], RULES));
        let (host, port) = host_and_port(url);
        let rules = [rule(server.address, &host, port), down("", 80), down("", 443), down("", 81), down("", 8181)];
        let checked = Checked::of(&mut check(&[url], &rules));
        let refusals =
            [("/folder/", "crawlers read robots.txt only at the root of a host"), ("ftp://", "ftp is not supported")];
        if let Some((_, why)) = refusals.iter().find(|(part, _)| url.contains(part)) {
            assert!(checked.stderr().contains(why) && checked.exit() == 2, "{url}: {}", checked.stderr());
            continue;
        }
        assert_eq!(checked.crawlers(), GO_BY_RULES, "{url}: {}", checked.stderr());
        let of_origins = |list: &str| {
            let origin = |url: &Value| url.as_str().unwrap().split('/').take(3).collect::<Vec<_>>().join("/");
            let origins: Vec<_> = row[list].as_array().unwrap().iter().map(origin).collect();
            origins.into_iter().map(|origin| (Checked::of(&mut check(&[&origin], &rules)), origin))
        };
        for (elsewhere, other) in of_origins("not_valid_for") {
            let found = (elsewhere.crawlers(), elsewhere.exit());
            assert_eq!(found, (DISALLOW_ALL, 2), "{url} {other}: {}", elsewhere.stderr());
        }
        for (same, origin) in of_origins("valid_for") {
            assert_eq!(same.crawlers(), GO_BY_RULES, "{url} {origin}");
        }
    }
}

/// Returns the host and port of a URL. The URL has no user information, and no IPv6 address.
fn host_and_port(url: &str) -> (String, u16) {
    let authority = url.split('/').nth(2).unwrap();
    let (host, port) = authority.split_once(':').unwrap_or((authority, "80"));
    (host.to_owned(), port.parse().unwrap())
}
